package loader

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tree of one moment: the content of every file.
type moment map[string]string

var pluginFiles = []string{"a.js", "b.js", "c.js"}

func genPlugin(t *rapid.T) string {
	var lines []string
	add := func(line string, chance int) {
		if rapid.IntRange(0, 99).Draw(t, line) >= 100-chance {
			lines = append(lines, line)
		}
	}
	lines = append(lines, fmt.Sprintf("version %d", rapid.IntRange(0, 3).Draw(t, "version")))
	for _, s := range []string{"x", "y"} {
		switch rapid.IntRange(0, 4).Draw(t, s) {
		case 4:
			lines = append(lines, "provide "+s)
		case 3:
			lines = append(lines, "inject "+s)
		}
	}
	add("bind z", 12)
	add("inject z", 12)
	add("hold r", 12)
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
	for _, name := range append(slices.Clone(pluginFiles), "lib", "cordis.yml") {
		if rapid.IntRange(0, 9).Draw(t, "change "+name) >= 6 || m[name] == "" {
			switch name {
			case "cordis.yml":
				m[name] = genYAML(t)
			case "lib":
				m[name] = fmt.Sprintf("#%d", rapid.IntRange(0, 3).Draw(t, "lib"))
			default:
				m[name] = genPlugin(t)
			}
		}
	}
	return m
}

// running returns the lines of what came up and did not go down.
func (w *world) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	live := map[string]int{}
	for _, line := range w.log {
		what, rest, _ := strings.Cut(line, " ")
		config := ""
		if i := strings.LastIndex(rest, " {"); i >= 0 {
			rest, config = rest[:i], rest[i:]
		}
		if what == "up" {
			live[rest+"|"+config]++
			continue
		}
		for k := range live {
			if strings.HasPrefix(k, rest+"|") {
				if live[k]--; live[k] == 0 {
					delete(live, k)
				}
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(live))
}

// At rest the container runs what a fresh start on the same files does,
// wherever that is all active; and a reload of unchanged files does nothing.
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
		compared++
		got, want := w.running(), fresh.running()
		if !slices.Equal(got, want) {
			t.Fatalf("after the edits %q\nfresh %q\n%s", got, want, w.states())
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
