package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

const one = "- {id: a, name: ./a.js}\n"

// L-02, also for entries without an id and for lines that move.
func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.write("b.js", "")
	w.start(one + "- name: ./b.js\n  config: {v: 1}\n- {id: c, name: ./b.js}\n")
	if got := len(w.took()); got != 3 {
		t.Fatalf("%d entries came up", got)
	}
	w.edit("# a comment\n- {id: d, name: ./b.js}\n\n- name: ./b.js\n  config: {v: 1}\n" + one)
	w.happened("up d b", "down c b")
	w.edit("[]")
	if got := w.took(); len(got) != 3 {
		t.Fatalf("gone: %q", got)
	}
	w.blames()
}

// An entry that is left out for its id is reported once, wherever it moves to.
func TestSecondOfAnIDIsReportedOnce(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.start(one + one)
	w.blames("yml:2:8: entry a: second entry")
	w.edit("# moved\n" + one + one)
	w.blames()
	w.edit(one + one + one)
	w.blames("yml:3:8: entry a: second entry")
	w.edit(one)
	w.edit(one + one)
	w.blames("yml:2:8: entry a: second entry")
}

// L-26, L-27, L-34, L-35: new behaviour, old effects gone, the same entry.
func TestPluginFileReload(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "version 1")
	w.write("b.js", "")
	w.start(one + "- {id: b, name: ./b.js}\n")
	w.happened("up a a1", "up b b")
	for i := range 20 {
		w.write("a.js", fmt.Sprintf("version x%d", i))
		w.reload()
	}
	got := w.took()
	if len(got) != 40 || got[38] != "up a ax19" || got[39] != "down a ax18" {
		t.Fatalf("%d: %q", len(got), got[max(0, len(got)-4):])
	}
	w.write("a.js", "version 1")
	w.reload()
	w.happened("up a a1", "down a ax19")
	w.until("21 reload events", func() bool { return len(w.reloads) == 21 })
	for _, r := range w.reloads {
		if !slices.Equal(r.Files, []string{filepath.Join(w.dir, "a.js")}) {
			t.Errorf("%q were reloaded", r.Files)
		}
	}
	w.stands("a:active b:active")
}

// L-28, L-29
func TestDependencies(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "import ./lib.js")
	w.write("b.js", "import ./lib.js")
	w.write("c.js", "")
	w.write("lib.js", "version 1")
	w.start(one + "- {id: b, name: ./b.js}\n- {id: c, name: ./c.js}\n")
	w.happened("up a a1", "up b b1", "up c c")
	w.write("lib.js", "version 2")
	w.reload()
	w.happened("up a a2", "down a a1", "up b b2", "down b b1")
	w.write("a.js", "version 3")
	w.write("c.js", "version 3")
	w.reload()
	w.happened("up a a3", "down a a2", "up c c3", "down c c")
	w.write("lib.js", "version 4") // a has nothing to do with it any more
	w.reload()
	w.happened("up b b4", "down b b2")
	w.ok(os.Remove(filepath.Join(w.dir, "lib.js")))
	w.reload()
	w.happened()
	w.blames("entry b: …lib.js was not found…its last good version")
	w.write("lib.js", "version 5")
	w.reload()
	w.happened("up b b5", "down b b4")
	w.stands("a:active b:active c:active")
}

// L-30
func TestSyntaxErrorKeepsTheOldPlugin(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "version 1")
	w.start(one)
	w.took()
	w.write("a.js", "version 2\nsyntax")
	w.reload()
	w.happened()
	w.blames("yml:1:17: entry a: …a.js:2:1: syntax error [COMPILE_FAILED]; its last good version goes on running")
	w.stands("a:active!")
	w.reload()
	w.blames() // once
	w.write("a.js", "version 2\n\nsyntax")
	w.reload()
	w.blames("a.js:3:1: syntax error") // another one
	w.edit(one + "- {id: b, name: ./a.js}\n")
	w.happened()
	w.blames("entry b: …syntax error [COMPILE_FAILED]")
	w.write("a.js", "version 2")
	w.reload()
	w.happened("up a a2", "down a a1", "up b a2")
	w.write("a.js", "syntax")
	w.reload()
	w.write("a.js", "version 2")
	w.reload()
	w.stands("a:active b:active")
}

// L-33: the consumers of a reloaded provider follow it.
func TestServiceReload(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("db.js", "provide db\nversion 1")
	w.write("use.js", "inject db")
	w.start("- {id: db, name: ./db.js}\n- {id: use, name: ./use.js}\n")
	w.happened("up db db1", "up use use db=db1")
	w.write("db.js", "provide db\nversion 2")
	w.reload()
	w.happened("up db db2", "down use use db=db1", "down db db1", "up use use db=db2")
}

// L-37, L-41, L-42: a version that fails leaves the one before it running.
func TestFailingVersion(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "version 1\nneed key")
	w.write("x.js", "")
	w.start("- id: a\n  name: ./a.js\n  config:\n    key: x\n")
	w.happened(`up a a1 {"key":"x"}`)

	w.edit("- id: a\n  name: ./a.js\n  config:\n    key: 7\n")
	w.happened()
	w.blames("yml:4:10: entry a: config.key…its last good version goes on running")
	w.stands("a:active!")
	w.edit("- id: a\n  name: ./a.js\n  config:\n    key: x\n") // back: nothing was lost
	w.happened()
	w.stands("a:active")

	w.write("a.js", "version 2\nneed key\nfail it breaks")
	w.reload()
	w.happened()
	w.blames("yml:2:9: entry a: …it breaks [APPLY_FAILED]; its last good version goes on running")
	w.stands("a:active!")
	w.edit("\n\n- id: a\n  name: ./a.js\n  config:\n    key: x\n")
	w.blames() // the same fault elsewhere is said once
	if at := w.l.Entries()[0].Faults[0].Pos; at.Line != 4 {
		t.Errorf("the fault stands at %v", at)
	}
	w.write("a.js", "version 3\nneed key")
	w.reload()
	w.happened(`up a a3 {"key":"x"}`, "down a a1")
	w.stands("a:active")
}

// L-40: another name is loaded before the old plugin stops.
func TestChangedName(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.write("b.js", "")
	w.write("c.js", "fail no")
	w.start(one)
	w.happened("up a a")
	w.edit("- {id: a, name: ./nope.js}\n")
	w.happened()
	w.blames("entry a: nope.js was not found…its last good version goes on running")
	w.edit("- {id: a, name: ./c.js}\n")
	w.happened()
	w.blames("entry a: …no [APPLY_FAILED]; its last good version goes on running")
	w.edit("- {id: a, name: ./b.js}\n")
	w.happened("up a b", "down a a")
	w.stands("a:active")
}

// L-39; and L-44 differs: the entries of one edit do not hang together.
func TestEditsGoEntryByEntry(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.write("b.js", "")
	w.start(one + "- {id: b, name: ./b.js}\n")
	w.took()
	w.edit("- {id: a, name: ./a.js, config: {v: 2}}\n- {id: b, name: ./nope.js}\n- {id: c, name: ./b.js}\n")
	w.happened(`up a a {"v":2}`, "down a a", "up c b")
	w.blames("entry b: nope.js was not found")

	before := w.states()
	w.write("cordis.yml", "- id: a\n  name: [unclosed\n")
	for range 2 {
		if err := w.l.Reload(context.Background()); !errors.Is(err, seams.InvalidConfig) {
			t.Errorf("reload answers %v", err)
		}
	}
	w.settle()
	w.happened()
	w.blames("cordis.yml:…its last good version goes on running") // said once
	w.stands(before)
	w.ok(os.Remove(filepath.Join(w.dir, "cordis.yml")))
	for range 2 {
		if err := w.l.Reload(context.Background()); !errors.Is(err, seams.NotFound) {
			t.Errorf("reload answers %v", err)
		}
	}
	w.blames("cordis.yml does not exist")
	w.edit("")
	w.blames("the config is empty")
	w.edit(one)
	w.happened("up a a", "down a a", "down b b", "down c b")
}

// An exclusive plugin is replaced with a gap; when the new version fails, the
// last good one is mounted again.
func TestExclusive(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "exclusive\nhold port\nversion 1")
	w.start(one)
	w.happened("up a a1")
	w.write("a.js", "exclusive\nhold port\nversion 2")
	w.reload()
	w.happened("down a a1", "up a a2")
	w.write("a.js", "exclusive\nhold port\nfail no\nversion 3")
	w.reload()
	w.happened("down a a2", "up a a2")
	w.blames("entry a: …no [APPLY_FAILED]; its last good version")
	w.stands("a:active!")
	w.write("a.js", "exclusive\nhold port\nversion 4")
	w.reload()
	w.happened("down a a2", "up a a4")
	w.stands("a:active")
	w.blames()
}

// A plugin may take a changed configuration in place.
func TestTakenInPlace(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "need key\ntake")
	w.start("- {id: a, name: ./a.js, config: {key: x}}\n")
	w.happened(`up a a {"key":"x"}`)
	w.edit("- {id: a, name: ./a.js, config: {key: !!js process.env.K}}\n")
	w.happened()
	w.blames("entry a: config.key…its last good version")
	w.env["K"] = "y"
	w.edit("- {id: a, name: ./a.js, config: {key: !!js process.env.K, v: 1}, intercept: {z: {q: 1}}}\n")
	w.happened(`take a a {"key":"y","v":1}`)
	w.stands("a:active")
	w.edit("- {id: a, name: ./a.js, config: {key: z, v: 1}, intercept: {z: {q: 1}}}\n")
	w.happened(`take a a {"key":"z","v":1}`)
}

// A name that moves is free when its old owner has left.
func TestNamesThatMove(t *testing.T) {
	const x, y, z = "provide x", "provide y", "provide z"
	for name, step := range map[string]struct{ before, after [3]string }{
		"to another entry":             {[3]string{x, "", ""}, [3]string{"", x, ""}},
		"from a removed entry":         {[3]string{x, "", ""}, [3]string{"-", x, ""}},
		"along a chain":                {[3]string{x, y, ""}, [3]string{"", x, y}},
		"swapped":                      {[3]string{x, y, ""}, [3]string{y, x, ""}},
		"round":                        {[3]string{x, y, z}, [3]string{y, z, x}},
		"undeclared":                   {[3]string{"bind x", "", ""}, [3]string{"", "bind x", ""}},
		"undeclared along a chain":     {[3]string{"bind x", "bind y", ""}, [3]string{"", "bind x", "bind y"}},
		"a resource":                   {[3]string{"hold x", "", ""}, [3]string{"", "hold x", ""}},
		"a resource of one gone":       {[3]string{"", "hold x", ""}, [3]string{"hold x", "-", ""}},
		"its provider now needs it":    {[3]string{x, "", ""}, [3]string{"inject x", x, ""}},
		"its provider needs a user":    {[3]string{x, "inject x\nprovide w", ""}, [3]string{"inject w", "inject x\nprovide w", x}},
		"from an entry that is broken": {[3]string{x, "", ""}, [3]string{"fail no", x, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			write := func(of [3]string) string {
				yml := "[]\n"
				for i, text := range of {
					if text != "-" {
						id := string(rune('a' + i))
						w.write(id+".js", text)
						yml = strings.TrimPrefix(yml, "[]\n") + "- {id: " + id + ", name: ./" + id + ".js}\n"
					}
				}
				return yml
			}
			w.start(write(step.before))
			w.blames()
			w.took()
			w.edit(write(step.after))
			var want []string
			for i, text := range step.after {
				switch {
				case strings.HasPrefix(text, "fail"):
					want = append(want, string(rune('a'+i))+":failed!")
				case text != "-":
					want = append(want, string(rune('a'+i))+":active")
				}
			}
			w.stands(strings.Join(want, " "))
			for _, line := range w.took() {
				if name == "from an entry that is broken" && strings.HasPrefix(line, "up a") {
					t.Errorf("it came back: %s", line)
				}
			}
			// That a name was taken for a moment is nothing to report.
			for _, f := range w.blamed() {
				if taken(f.Err) {
					t.Errorf("reported %v", f)
				}
			}
		})
	}
}

// A clash that stays is reported, once, and ends with its cause.
func TestClash(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "provide x")
	w.write("b.js", "provide x")
	w.write("c.js", "bind x")
	w.start(one + "- {id: b, name: ./b.js}\n- {id: c, name: ./c.js}\n")
	w.happened("up a a")
	got := w.blamed()
	slices.SortFunc(got, func(a, b Fault) int { return strings.Compare(a.Entry, b.Entry) })
	if len(got) != 2 || got[0].Entry != "b" || got[1].Entry != "c" || !taken(got[0].Err) || !taken(got[1].Err) {
		t.Fatalf("reported %v", got)
	}
	w.stands("a:active b:failed! c:failed!")
	w.edit("- {id: b, name: ./b.js}\n- {id: c, name: ./c.js}\n")
	w.stands("b:active c:failed!")
	w.edit("- {id: c, name: ./c.js}\n")
	w.stands("c:active")
}

// Two entries swap what one at a time can have: a name against a resource that
// the container knows nothing of.
func TestSwap(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "exclusive\nhold r")
	w.write("b.js", "exclusive\nprovide x")
	w.start(one + "- {id: b, name: ./b.js}\n")
	w.write("a.js", "version 2\nexclusive\nprovide x\ninject z")
	w.write("b.js", "version 2\nexclusive\nbind z\nhold r")
	w.reload()
	w.stands("a:active b:active")
	if got := w.running(); !slices.Equal(got, []string{"a a2 z=b2", "b b2"}) {
		t.Errorf("%q run", got)
	}
}

// L-54, L-55: expressions belong to their entry and are evaluated at each
// activation, after what it injects is there.
func TestExpressionsInConfig(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("use.js", "inject db")
	w.write("db.js", "provide db\nversion 1")
	use := "- id: g\n  group: true\n  config:\n    - id: use\n      name: ./use.js\n      config: {v: !!js process.env.V, none: !!js process.env.NONE}\n"
	w.env["V"] = "early"
	w.start(use)
	w.happened()
	w.env["V"] = "late"
	w.edit(use + "- {id: db, name: ./db.js}\n")
	w.happened("up db db1", `up use use db=db1 {"none":null,"v":"late"}`)
	w.env["V"] = "later"
	w.write("db.js", "provide db\nversion 2")
	w.reload()
	w.happened("up db db2", "down use use db=db1", "down db db1", `up use use db=db2 {"none":null,"v":"later"}`)
	w.edit(strings.Replace(use, "process.env.V,", "nonsense,", 1) + "- {id: db, name: ./db.js}\n")
	w.happened()
	w.blames("yml:6:19: entry use: !!js nonsense…its last good version")
}

// L-56
func TestDisabledExpression(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	text := func(expr string) string { return "- id: a\n  name: ./a.js\n  disabled: !!js " + expr + "\n" }
	w.env["ON"], w.env["TEXT"], w.env["ZERO"] = true, "x", 0.0
	w.start(text("process.env.OFF"))
	w.happened("up a a")
	w.edit(text("process.env.ON"))
	w.happened("down a a")
	w.edit(text("process.env.ZERO"))
	w.happened("up a a")
	w.edit(text("nonsense"))
	w.happened()
	w.blames("yml:3:13: entry a: !!js nonsense…its last good version")
	w.edit(text("process.env.TEXT"))
	w.happened("down a a")
	w.stands("a:disabled")
}

// A realm, an interception and a configuration that change in one edit.
func TestAllAtOnce(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "provide x\ntake")
	w.start("- {id: a, name: ./a.js, config: {v: 1}}\n")
	w.took()
	w.edit("- {id: a, name: ./a.js, config: {v: 2}, isolate: {x: r}, intercept: {x: {m: 1}}}\n")
	w.happened(`up a a {"v":2}`, "down a a")
}

// A configuration that a plugin refuses, or panics over, in place.
func TestRefusedInPlace(t *testing.T) {
	w := newWorld(t, Options{})
	refuse := func(cfg any) (bool, error) {
		if cfg.(map[string]any)["v"] == 2.0 {
			panic("two")
		}
		return false, errors.New("not three")
	}
	w.l.opts.Builtins = map[string]*cordis.Plugin{"p": {Name: "p", Apply: func(ctx *cordis.Context, _ any) error { return ctx.OnUpdate(refuse) }}}
	w.start("- {id: p, name: p, config: {v: 1}}\n")
	w.edit("- {id: p, name: p, config: {v: 2}}\n")
	w.blames("entry p: two…its last good version")
	w.edit("- {id: p, name: p, config: {v: 3}}\n")
	w.blames("entry p: not three…its last good version")
	w.edit("- {id: p, name: p, config: {v: 1}}\n")
	w.stands("p:active")
}

// Who asks for a reload, or waits for one, is answered when its context ends,
// whatever a file that is being loaded does; the reload goes on.
func TestContextEndsTheWait(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("a.js", "")
	w.start(one)
	loading, release := make(chan struct{}), make(chan struct{})
	load := w.l.opts.Load
	w.l.opts.Load = func(ctx context.Context, path string) (Source, error) {
		close(loading)
		<-release
		return load(ctx, path)
	}
	w.write("a.js", "version 2")
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	answers := make(chan error)
	go func() { answers <- w.l.Reload(ctx) }()
	<-loading
	go func() { answers <- w.l.Settle(ctx) }()
	cancel(cause)
	for range 2 {
		if err := <-answers; !errors.Is(err, cause) {
			t.Errorf("answered %v", err)
		}
	}
	close(release)
	w.settle()
	w.happened("up a a", "up a a2", "down a a")
}
