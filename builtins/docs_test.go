package builtins

import (
	"os"
	"regexp"
	"testing"
)

// Every setting of a builtin stands in docs/config.md.
func TestSettingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	r, err := prepare(Options{File: "cordis.yml"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	var walk func(name string, schema any)
	walk = func(name string, schema any) {
		switch s := schema.(type) {
		case []any:
			for _, part := range s {
				walk(name, part)
			}
		case map[string]any:
			fields, _ := s["properties"].(map[string]any)
			for field := range fields {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(field) + `\b`).Match(page) {
					t.Errorf("%s: %s is not documented", name, field)
				}
			}
			for _, part := range s {
				walk(name, part)
			}
		}
	}
	settings := 0
	for name, p := range r.catalogue() {
		if s, ok := p.Config.(interface{ JSONSchema() map[string]any }); ok {
			walk(name, s.JSONSchema())
			settings++
		}
	}
	if settings < 8 {
		t.Errorf("only %d plugins have settings", settings)
	}
}
