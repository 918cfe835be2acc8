package loader

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
)

// Check finds all faults at once, with the place of the value at fault, and
// mounts nothing.
func TestCheck(t *testing.T) {
	w := newWorld(t, Options{})
	w.l.opts.Builtins = map[string]*cordis.Plugin{
		"memory":  w.plugin("memory", "provide memory"),
		"timer":   w.plugin("timer", "provide timer"),
		"outside": w.plugin("outside", "provide outside"),
	}
	w.l.opts.Defaults = []string{"timer"}
	w.write("strict.js", "need key")
	w.write("broken.js", "version 1\nsyntax")
	w.write("x.js", "provide x")
	w.write("needs.js", "inject memory\ninject timer\ninject x\ninject nobody")
	w.write("cordis.yml", `
- id: opnai
  name: opnai
- id: strict
  name: ./strict.js
  config:
    key: 7
- id: unset
  name: ./strict.js
  config:
    key: !!js process.env.UNSET
    v: !!js process.env.OTHER
- id: broken
  name: ./broken.js
- id: off
  name: ./nope.js
  disabled: true
- id: maybe
  name: ./x.js
  disabled: !!js nope
- id: x
  name: ./x.js
- id: x2
  name: ./x.js
- id: x3
  name: ./x.js
  isolate: {x: true}
- id: x
  name: ./x.js
- id: needs
  name: ./needs.js
`)
	faults := w.l.Check(context.Background())
	want := []string{
		`yml:3:9: entry opnai: plugin "opnai" was not found`,
		`yml:7:10: entry strict: config.key`,
		`yml:11:10: warning: entry unset: process.env.UNSET has no value`,
		`yml:11:10: entry unset: config.key`,
		`yml:12:8: warning: entry unset: process.env.OTHER has no value`,
		`yml:14:9: entry broken: …broken.js:2:1: syntax error`,
		`yml:20:13: entry maybe: !!js nope`,
		`yml:24:9: warning: entry x2: it provides "x", and so does entry x`,
		`yml:28:7: entry x: second entry with the id`,
		`yml:31:9: warning: entry needs: it waits for the service "memory", which no entry declares to provide; the builtin memory does: add`,
		`yml:31:9: warning: entry needs: it waits for the service "nobody", which no entry declares to provide; an entry may all the same`,
	}
	w.mu.Lock()
	w.faults = faults
	w.mu.Unlock()
	w.blames(want...)
	w.happened()

	w.write("cordis.yml", "- name: [\n")
	if got := w.l.Check(context.Background()); len(got) != 1 || got[0].Pos.Line == 0 {
		t.Errorf("a file that is broken: %v", got)
	}
	w.write("cordis.yml", "# nothing\n")
	if got := w.l.Check(context.Background()); len(got) != 1 || !got[0].Warning {
		t.Errorf("an empty file: %v", got)
	}
	w.write("cordis.yml", "- {id: m, name: memory}\n")
	if got := w.l.Check(context.Background()); len(got) != 0 {
		t.Errorf("a good file: %v", got)
	}
}

// The cases yml-*, as first load and as a reload over a good file.
func TestYAMLCases(t *testing.T) {
	for _, tc := range []struct {
		id    string
		fatal string // what the error must name; "" for none
		up    int    // entries that run
		warn  bool
	}{
		{"yml-01", ":2:…tab", 0, false},
		{"yml-02", "", 1, false},
		{"yml-03", ":6:…model…4", 0, false},
		{"yml-04", "", 3, false},
		{"yml-05", "", 0, false},
		{"yml-08", "", 1, false},
		{"yml-10", "", 0, true},
	} {
		t.Run(tc.id, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + tc.id + ".yml")
			if err != nil {
				t.Fatal(err)
			}
			bad := func(err error) bool {
				if tc.id == "yml-05" {
					return err == nil
				}
				if tc.fatal == "" {
					return err != nil
				}
				if err == nil {
					return true
				}
				rest, ok := err.Error(), false
				for part := range strings.SplitSeq(tc.fatal, "…") {
					if _, rest, ok = strings.Cut(rest, part); !ok {
						return true
					}
				}
				return false
			}
			w := newWorld(t, Options{})
			w.write("plugins/a.js", "")
			w.write("cordis.yml", string(text))
			if err := w.l.Start(context.Background()); bad(err) {
				t.Fatalf("first load: %v", err)
			} else if err == nil {
				w.settle()
			}
			if got := w.took(); len(got) != tc.up {
				t.Errorf("came up: %q", got)
			}
			if tc.warn {
				w.blames("warning: the config is empty: no entries")
			}

			w = newWorld(t, Options{})
			w.write("plugins/a.js", "")
			w.start("- {id: before, name: ./plugins/a.js}\n")
			w.happened("up before a")
			w.write("cordis.yml", string(text))
			if err := w.l.Reload(context.Background()); bad(err) {
				t.Fatalf("reload: %v", err)
			}
			w.settle()
			if tc.up == 0 {
				w.happened() // the running configuration stays
				w.stands("before:active")
			} else if got := w.took(); len(got) != tc.up+1 {
				t.Errorf("reload: %q", got)
			}
			if tc.warn {
				w.blames("warning: the config is empty: the running one is kept")
			}
		})
	}
}
