package loader

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// L-01
func TestStartsEnabledEntriesOnce(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.start(`
- id: one
  name: ./a.js
- id: off
  name: ./a.js
  disabled: true
- id: g
  group: true
  config:
    - id: two
      name: ./a.js
    - id: out
      name: ./a.js
      disabled: yes
- id: h
  group: true
  disabled: true
  config:
    - id: three
      name: ./a.js
`)
	w.happened("up one a", "up two a")
	w.stands("one:active off:disabled two:active out:disabled three:disabled")
	w.blames()
	if n := w.loads[filepath.Join(w.dir, "a.js")]; n != 1 {
		t.Errorf("the file was loaded %d times", n)
	}
}

// L-62; a fault of the whole file: all places, nothing started.
func TestFatalFaultStartsNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.write("cordis.yml", "- id: one\n  name: ./a.js\n- id: [x]\n  name: ./a.js\n- nmae: ./a.js\n")
	err := w.l.Start(context.Background())
	var faults config.Faults
	if !errors.Is(err, seams.InvalidConfig) || !errors.As(err, &faults) || len(faults) < 2 {
		t.Fatalf("start answers %v", err)
	}
	w.happened()
	if got := w.l.Entries(); got != nil {
		t.Errorf("entries %v", got)
	}
}

func TestMissingFile(t *testing.T) {
	w := newWorld(t, Options{})
	if err := w.l.Start(context.Background()); !errors.Is(err, seams.NotFound) || !strings.Contains(err.Error(), "cordis.yml does not exist") {
		t.Fatal(err)
	}
}

// Case cor-05, L-59, L-60, L-62, L-63.
func TestOneBadEntryDoesNotStopTheRest(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("plugins/good.js", "")
	w.write("plugins/other.js", "")
	w.write("plugins/broken.js", "version 1\nsyntax")
	w.write("plugins/only-a-readme/README.md", "no code")
	yml, err := os.ReadFile("testdata/cor-05.yml")
	w.ok(err)
	w.start(string(yml))
	w.happened("up good-one good", "up same-id good", "up good-two good")
	w.blames(
		"cordis.yml:4:9: entry not-there: plugin \"@example/no-such-plugin\" was not found; a name is a builtin or the path",
		"cordis.yml:6:9: entry no-code: plugins/only-a-readme is a folder and no entry file",
		"cordis.yml:8:9: entry syntax: …broken.js:2:1: syntax error [COMPILE_FAILED]",
		"cordis.yml:11:7: entry same-id: second entry with the id \"same-id\"; the first stands at …:9:7",
	)
	w.stands("good-one:active not-there:failed! no-code:failed! syntax:failed! same-id:active good-two:active same-id:failed!")

	// Fixing the file on disk brings it up without touching the others.
	w.write("plugins/broken.js", "")
	w.reload()
	w.happened("up syntax broken")
	w.blames()
}

func TestNames(t *testing.T) {
	w := newWorld(t, Options{})
	w.opts.Builtins = map[string]*cordis.Plugin{
		"openai":                        w.plugin("openai"),
		"agent-loop":                    w.plugin("agent-loop"),
		"@deepseek-ai/dsh-agent-loop":   w.plugin("agent-loop"),
		"@deepseek-ai/dsh-some-builtin": w.plugin("some"),
	}
	w.l.opts.Builtins = w.opts.Builtins
	w.write("src/weather.ts", "")
	abs := filepath.Join(w.dir, "src/weather.ts")
	w.start(`
- {id: builtin, name: openai}
- {id: alias, name: '@deepseek-ai/dsh-agent-loop'}
- {id: path, name: ./src/weather.ts}
- {id: absolute, name: ` + abs + `}
- {id: near, name: opnai}
- {id: near-alias, name: '@deepseek-ai/dsh-agentloop'}
- {id: far, name: nothing-like-it}
- {id: no-dot, name: src/weather.ts}
- {id: near-file, name: ./src/wether.ts}
- {id: no-file, name: ./src/x.ts}
- {id: kind, name: ./cordis.yml}
`)
	w.happened("up builtin openai", "up alias agent-loop", "up path weather.ts", "up absolute weather.ts")
	const rule = "a name is a builtin or the path of a .js, .mjs, .cjs or .ts file"
	w.blames(
		`yml:6:20: entry near: plugin "opnai" was not found, did you mean "openai"? `+rule,
		`did you mean "@deepseek-ai/dsh-agent-loop"?`,
		`plugin "nothing-like-it" was not found; `+rule+`…Builtins: agent-loop, openai [NOT_FOUND]`,
		`no builtin is called "src/weather.ts"; for the file write "./src/weather.ts" [NOT_FOUND]`,
		`src/wether.ts was not found, did you mean src/weather.ts? [NOT_FOUND]`,
		`src/x.ts was not found [NOT_FOUND]`,
		`cordis.yml is no plugin file; `+rule,
	)
}

// A configuration is validated against the plugin's schema, with the place of
// the value at fault; defaults are filled in.
func TestConfigFaultsHaveTheirPlace(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "need key")
	w.start(`
- id: good
  name: ./a.js
  config: {key: x}
- id: bad
  name: ./a.js
  config:
    key: [1]
    other: 2
- id: none
  name: ./a.js
`)
	w.happened(`up good a {"key":"x"}`)
	w.blames("yml:8:10: entry bad: config.key", "yml:9:5: entry bad: config.other", "yml:10:3: entry none: config.key")
	w.stands("good:active bad:failed! none:failed!")
}

// An apply that fails is reported with the place of the entry, the cause inside.
func TestApplyFault(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "fail the deepest cause")
	w.start("- id: a\n  name: ./a.js\n")
	w.blames("yml:2:9: entry a: …the deepest cause [APPLY_FAILED]")
	w.stands("a:failed!")
	if !w.l.Owns(w.l.Entries()[0].Fiber) {
		t.Error("the loader does not own the version it mounted")
	}
	if w.l.Owns(w.c.Root().Fiber()) {
		t.Error("the loader owns the root")
	}
}

// Case cor-03, L-61: pending names what is missing, and what would provide it.
func TestPending(t *testing.T) {
	w := newWorld(t, Options{})
	w.l.opts.Builtins = map[string]*cordis.Plugin{"memory": w.plugin("memory", "provide memory")}
	w.write("needs-two.js", "inject memory\ninject clock")
	w.write("clock.js", "provide clock")
	needs := "- {id: needs, name: ./needs-two.js}\n"
	memory, clock := "- {id: memory, name: memory}\n", "- {id: clock, name: ./clock.js}\n"
	pending := func(want ...string) {
		t.Helper()
		if s := w.l.Entries()[0]; s.State != "pending" || !slices.Equal(s.Waiting, want) {
			t.Fatalf("%s, waiting %q, want %q", s.State, s.Waiting, want)
		}
	}
	const noMemory, noClock, builtin = "needs memory: nothing provides it", "needs clock: nothing provides it", "the builtin memory provides memory"
	w.start(needs)
	pending(noMemory, noClock, builtin)
	w.edit(needs + memory)
	pending(noClock)
	w.took()
	w.edit(needs + memory + clock)
	w.happened("up clock clock", "up needs needs-two memory=memory clock=clock")
	w.edit(needs + clock)
	pending(noMemory, builtin)
	w.happened("down needs needs-two memory=memory clock=clock", "down memory memory")
	w.edit(needs + memory + clock)
	w.happened("up memory memory", "up needs needs-two memory=memory clock=clock")
	w.write("clock.js", "provide clock\nversion 2")
	w.reload()
	w.happened("down needs needs-two memory=memory clock=clock", "down clock clock", "up clock clock2", "up needs needs-two memory=memory clock=clock2")
	w.blames()
}

// Two that wait for each other stay pending and say so.
func TestCycleIsPending(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "inject b\nprovide a")
	w.write("b.js", "inject a\nprovide b")
	w.start("- {id: a, name: ./a.js}\n- {id: b, name: ./b.js}\n")
	w.stands("a:pending b:pending")
	if why := strings.Join(w.l.Entries()[0].Waiting, "\n"); !strings.Contains(why, "cycle") {
		t.Errorf("waiting: %s", why)
	}
}

func TestTextInsteadOfFile(t *testing.T) {
	w := newWorld(t, Options{Text: []byte("- {id: a, name: ./a.js}\n")})
	w.write("a.js", "")
	w.ok(w.l.Start(context.Background()))
	w.settle()
	w.happened("up a a")
	w.write("a.js", "version 2")
	w.reload()
	w.happened("up a a2", "down a a")
}

// Defaults are there unless an enabled entry declares their service.
func TestDefaults(t *testing.T) {
	w := newWorld(t, Options{})
	w.l.opts.Builtins = map[string]*cordis.Plugin{"memory": w.plugin("memory", "provide memory"), "timer": w.plugin("timer", "provide timer")}
	w.l.opts.Defaults = []string{"memory", "timer"}
	w.write("mine.js", "provide memory")
	w.write("realm.js", "provide timer")
	w.start("- {id: mine, name: ./mine.js}\n- {id: realm, name: ./realm.js, isolate: {timer: true}}\n")
	w.happened("up mine mine", "up realm realm", "up default:timer timer")
	w.edit("- {id: mine, name: ./mine.js, disabled: true}\n")
	w.happened("down mine mine", "down realm realm", "up default:memory memory")
	w.edit("- {id: mine, name: ./mine.js}\n")
	w.happened("up mine mine", "down default:memory memory")
	w.stands("default:timer:active mine:active")
	w.blames()
}

func TestLifeOfALoader(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, Options{})
	if err := w.l.Reload(ctx); !errors.Is(err, seams.InactiveEffect) {
		t.Errorf("reload before start: %v", err)
	}
	w.write("a.js", "")
	w.start("- {id: a, name: ./a.js}")
	if err := w.l.Start(ctx); err == nil {
		t.Error("started twice")
	}
	w.ok(w.l.Close(ctx))
	w.ok(w.l.Close(ctx))
	w.happened("up a a", "down a a")
	for _, err := range []error{w.l.Start(ctx), w.l.Settle(ctx), w.l.Reload(ctx)} {
		if err == nil {
			t.Error("a closed loader answers nil")
		}
	}
	for _, o := range []Options{{}, {File: "x", Defaults: []string{"nope"}}} {
		if _, err := New(w.c.Root(), o); !errors.Is(err, seams.InvalidArgument) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
