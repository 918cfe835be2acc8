package loader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
)

// moment is the content of every file at one time.
type moment map[string]string

var pluginFiles = []string{"a.js", "b.js", "c.js"}

// genPlugin makes a plugin; owned says what it provides, nil that anything goes.
func genPlugin(t *rapid.T, name string, owned map[string]string) string {
	var lines []string
	add := func(line string, chance int) {
		if rapid.IntRange(0, 99).Draw(t, line) >= 100-chance {
			lines = append(lines, line)
		}
	}
	lines = append(lines, fmt.Sprintf("version %d", rapid.IntRange(0, 3).Draw(t, "version")))
	for _, s := range []string{"x", "y", "u"} {
		switch by, tidy := owned[s]; {
		case tidy && by == name:
			lines = append(lines, "provide "+s)
		case tidy:
			add("inject "+s, 20)
		case s != "u":
			add("provide "+s, 20)
			add("inject "+s, 20)
		}
	}
	add("bind z", 12)
	add("inject z", 12)
	add("exclusive\nhold r", 12) // what one at a time can have must say so
	add("exclusive", 12)
	add("need key", 15)
	add("import ./lib", 20)
	add("fail", 10)
	add("syntax", 6)
	return strings.Join(lines, "\n")
}

func genYAML(t *rapid.T) string {
	switch rapid.IntRange(0, 19).Draw(t, "shape") {
	case 19:
		return "- id: [broken\n"
	case 18:
		return "# nothing\n"
	}
	field := func(name string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, name) }
	entry := func(id string) string {
		name := rapid.SampledFrom(pluginFiles).Draw(t, id)
		return "{id: " + id + ", name: ./" + name +
			field("config of "+id, "", "", ", config: {v: 1}", ", config: {key: k}", ", config: {key: !!js process.env.K}") +
			field("disabled "+id, "", "", "", ", disabled: true", ", disabled: !!js process.env.OFF") +
			field("isolate "+id, "", "", "", ", isolate: {x: true}", ", isolate: {x: r, y: r}") +
			field("inject "+id, "", "", "", "", ", inject: [y]") + "}"
	}
	places := map[string][]string{}
	for _, id := range []string{"e1", "e2", "e3", "e4"} {
		if at := rapid.SampledFrom([]string{"-", "", "", "g", "h"}).Draw(t, "place of "+id); at != "-" {
			places[at] = append(places[at], entry(id))
		}
	}
	out := strings.Repeat("#\n", rapid.IntRange(0, 2).Draw(t, "lines")) + "- {id: none, group: true}\n"
	for _, g := range []string{"g", "h"} {
		out += "- id: " + g + "\n  group: true\n" +
			field(g, "", "", "  disabled: true\n", "  isolate: {x: true, z: true}\n", "  isolate: {y: r}\n", "  inject: [x]\n") +
			"  config: [" + strings.Join(places[g], ", ") + "]\n"
	}
	for _, e := range places[""] {
		out += "- " + e + "\n"
	}
	return out
}

// edit changes some files of a moment.
func genEdit(t *rapid.T, m moment) moment {
	m = maps.Clone(m)
	var owned map[string]string
	if rapid.Bool().Draw(t, "tidy") {
		// Each service has one owner, and each plugin one entry.
		owned = map[string]string{}
		for _, s := range []string{"x", "y", "u"} {
			owned[s] = rapid.SampledFrom(pluginFiles).Draw(t, "owner of "+s)
		}
		for _, name := range pluginFiles {
			m[name] = genPlugin(t, name, owned)
		}
		m["cordis.yml"] = "- {id: e1, name: ./a.js, config: {key: k}}\n- {id: e2, name: ./b.js, config: {key: k}}\n- {id: e3, name: ./c.js, config: {key: k}}\n"
	}
	for _, name := range append(slices.Clone(pluginFiles), "lib", "cordis.yml") {
		if m[name] == "" || owned == nil && rapid.IntRange(0, 9).Draw(t, "change "+name) >= 6 {
			switch name {
			case "cordis.yml":
				m[name] = genYAML(t)
			case "lib":
				m[name] = fmt.Sprintf("#%d", rapid.IntRange(0, 3).Draw(t, "lib"))
			default:
				m[name] = genPlugin(t, name, nil)
			}
		}
	}
	return m
}

// running returns what is up, as its line of the log says it.
func (w *world) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Values(w.live))
}

// At rest the container runs what a fresh start on the same files does,
// wherever that is all active; and a reload of unchanged files does nothing
// (L-02, L-38).
func TestAtRestLikeAFreshStart(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		w, stop := tempWorld(t)
		defer stop()
		w.env["K"] = "env"
		m := genEdit(t, moment{})
		started := false
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			for name, text := range m {
				w.write(name, text)
			}
			if started {
				_ = w.l.Reload(context.Background())
			} else {
				started = w.l.Start(context.Background()) == nil
			}
			if started {
				w.settle()
			}
			m = genEdit(t, m)
		}
		// The last edit leaves the files whole.
		for broken := true; broken; {
			broken = strings.HasPrefix(m["cordis.yml"], "- id: [") || m["cordis.yml"] == "# nothing\n"
			if broken {
				m["cordis.yml"] = genYAML(t)
			}
		}
		for name, text := range m {
			w.write(name, text)
		}
		if started {
			w.reload()
		} else {
			w.start(m["cordis.yml"])
		}

		fresh, stopFresh := tempWorld(t)
		defer stopFresh()
		fresh.env["K"] = "env"
		for name, text := range m {
			fresh.write(name, text)
		}
		fresh.start(m["cordis.yml"])
		for _, s := range fresh.l.Entries() {
			if s.State != "active" && s.State != "disabled" || len(s.Faults) > 0 {
				return
			}
		}
		// An undeclared service that two entries would hand to each other.
		undeclared := func(f Fault) bool {
			return errors.Is(f.Err, seams.Clash) && strings.Contains(f.Err.Error(), "declare `provide:")
		}
		if slices.ContainsFunc(w.l.Entries(), func(s Status) bool { return slices.ContainsFunc(s.Faults, undeclared) }) {
			return
		}
		compared++
		got, want := w.running(), fresh.running()
		if !slices.Equal(got, want) {
			t.Fatalf("after the edits %q\nfresh %q\n%s\n%v", got, want, w.states(), w.l.Entries())
		}
		w.took()
		w.blamed()
		w.reload()
		w.happened()
		w.blames()
	})
	if compared == 0 {
		t.Error("no run was compared")
	}
	t.Logf("%d runs compared", compared)
}

func tempWorld(t *rapid.T) (*world, func()) {
	dir, err := os.MkdirTemp("", "loader")
	if err != nil {
		t.Fatal(err)
	}
	w := makeWorld(t, dir, Options{})
	return w, func() {
		w.close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
