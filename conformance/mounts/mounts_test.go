package mounts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/conformance/mounts"
	"github.com/ouro-run/ouro/seams"
)

// ideal is a runtime that knows the corpus by heart. What it breaks of it is said
// by its fields.
type ideal struct {
	cases  []mounts.Case
	mute   bool       // errors say nothing
	code   seams.Code // of all errors, if not ""
	takes  bool       // refuses nothing
	never  bool       // refuses everything
	leaves bool       // cannot unmount

	now *mounts.Case
	bad bool
}

func (r *ideal) Mount(_ context.Context, code string) (string, error) {
	r.now = nil
	for i, c := range r.cases {
		url := func(s string) string { return strings.ReplaceAll(s, "http://api.test", r.URL()) }
		if code == url(c.Code) || code == url(c.Fixed) {
			r.now, r.bad = &r.cases[i], code == url(c.Code) && c.Refused != ""
		}
	}
	if r.now == nil {
		return "", errors.New("not in the corpus")
	}
	return "dyn-1", nil
}

func (r *ideal) Call(context.Context, string, map[string]any) (string, error) {
	if r.never || r.bad && !r.takes {
		e := &seams.Error{Code: r.now.Refused, Msg: "please " + r.now.Says}
		if r.mute {
			e.Msg = "no"
		}
		if r.code != "" {
			e.Code = r.code
		}
		return "", e
	}
	return r.now.Answer, nil
}

func (r *ideal) Unmount(context.Context, string) error {
	if r.leaves {
		return errors.New("stuck")
	}
	return nil
}

func (r *ideal) URL() string { return "http://127.0.0.1:1" }

// The suite passes what is right and fails, by the name of the case, what is not.
func TestSuite(t *testing.T) {
	cases, err := mounts.Cases()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, c := range cases {
		if c.Refused != "" {
			refused++
			if _, known := seams.Explain(c.Refused); !known {
				t.Errorf("%s: %s is no code", c.Name, c.Refused)
			}
			if c.Fixed == c.Code {
				t.Errorf("%s: the change changes nothing", c.Name)
			}
		}
	}
	if len(cases) < 80 || refused < 50 {
		t.Errorf("%d cases, of which %d are refused", len(cases), refused)
	}
	for _, c := range []struct {
		name string
		r    ideal
		fail int
	}{
		{"right", ideal{}, 0},
		{"takes everything", ideal{takes: true}, refused},
		{"refuses everything", ideal{never: true}, len(cases)},
		{"says nothing", ideal{mute: true}, refused},
		{"another code", ideal{code: seams.Unknown}, refused},
		{"cannot unmount", ideal{leaves: true}, len(cases)},
	} {
		c.r.cases = cases
		checks, err := mounts.Checks(&c.r)
		if err != nil {
			t.Fatal(err)
		}
		failed := harness.Failing(t.Context(), checks)
		if len(failed) != c.fail {
			t.Errorf("%s: %d cases fail, want %d: %v", c.name, len(failed), c.fail, failed)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "a case has a title",
		"// T\n// call: t\n// answer: 1\n":   "and code",
		"// T\n// answer: 1\nx\n":            "a call",
		"// T\n// call: t {\n// answer: 1\n": "call:",
		"// T\n// call: t\n// answer: 1\n// nonsense\nx\n":                                       "unknown line",
		"// T\n// call: t\n// answer: 1\n// refused: X\nx\n":                                     "go together",
		"// T\n// call: t\n// answer: 1\n// refused: X\n// says: y\n// change: a\nx\n":           "expected old text",
		"// T\n// call: t\n// answer: 1\n// refused: X\n// says: y\n// change: a --> b\nx\n":     "0 times",
		"// T\n// call: t\n// answer: 1\n// refused: X\n// says: y\n// change: a --> b\na + a\n": "2 times",
	} {
		if _, err := mounts.Parse("x.js", text); !errors.Is(err, seams.InvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("// T\n// call: t {\"a\": 1}\n// answer: 1\n// refused: X\n// says: y\n// change: a --> b\na\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := mounts.Parse("x.js", text)
		if err == nil && (c.Title == "" || c.Tool == "" || !strings.HasSuffix(text, c.Code)) {
			t.Errorf("%+v", c)
		}
	})
}

func ExampleParse() {
	c, err := mounts.Parse("run.js", `// run for execute.
// call: one {}
// answer: 1
// refused: INVALID_ARGUMENT
// says: rename run to execute
// change: run: --> execute:
return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'one', run: () => 1 })) } }
`)
	fmt.Println(err, c.Title, c.Refused, strings.Contains(c.Fixed, "execute: () => 1"))
	// Output: <nil> run for execute. INVALID_ARGUMENT true
}
