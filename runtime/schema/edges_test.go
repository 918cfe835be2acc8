package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// The alternatives of a union are checked once each, also to tell which one was
// meant: nested ones take time in proportion to their depth, and the fault is
// named at its place. (Checked twice, sixty levels would not end.)
func TestNestedUnionsAreCheckedOnce(t *testing.T) {
	const depth = 60
	spec, union := object{"type": "string"}, schema.String()
	var v any = 1.0
	for range depth {
		spec = object{"oneOf": list{object{"type": "object", "properties": object{"a": spec}, "additionalProperties": true}, object{"type": "null"}}}
		union = schema.Union(schema.Object(schema.Fields{"a": union}), schema.String())
		v = object{"a": v}
	}
	s, err := schema.Parameters(object{"x": spec})
	if err != nil {
		t.Fatal(err)
	}
	_, rerr := union.Resolve(v)
	place := strings.Repeat(".a", depth)
	for want, err := range map[string]error{"arguments.x" + place: s.CheckArgs(object{"x": v}), "config" + place: rerr} {
		if err == nil || !strings.Contains(err.Error(), want+": expected string, got number") {
			t.Errorf("%v", err)
		}
	}
	if !errors.Is(rerr, seams.InvalidConfig) {
		t.Error(rerr)
	}
}
