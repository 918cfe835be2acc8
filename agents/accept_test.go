package agents

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever a model writes as a call's name and arguments, what is sent back is
// a name and an object that every provider takes; an object is not changed.
func FuzzAcceptable(f *testing.F) {
	for _, s := range []string{"", " ", "{}", `{"a":1}`, "null", "[]", `"x"`, `{"a":1}{}`, `{"a":1,}`, `{"a":NaN}`, `{"a":1e999}`, "{\"a\":\"\xff\"}", strings.Repeat("[", 60), strings.Repeat(`{"a":`, 30), "read file", "ünïcode", "\v{}", "\u00a0{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := acceptableArguments(raw)
		var object map[string]any
		if err := json.Unmarshal([]byte(got), &object); err != nil || object == nil {
			t.Errorf("%q became %q: %v", raw, got, err)
		}
		if got != raw && got != "{}" {
			t.Errorf("%q became %q", raw, got)
		}
		if a, b := canonical(raw), canonical(" "+raw+"\n"); json.Valid([]byte(raw)) && a != b {
			t.Errorf("white space makes another call of %q: %q, %q", raw, a, b)
		}
		name := acceptableName(raw)
		if name == "" || len(name) > 64 || foreign.MatchString(name) {
			t.Errorf("%q became %q", raw, name)
		}
	})
}
