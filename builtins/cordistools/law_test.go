package cordistools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// row is what the model knows of a mount.
type row struct {
	id, tool     string
	needs, gives int // services, -1 for none
}

// model is the table in order of mounting. Services are s0 to s2; who needs one
// gives a later one, so that there are no cycles.
type model []row

func (m model) active(r row) bool { return r.needs < 0 || m.provides(r.needs) }

func (m model) provides(service int) bool {
	return slices.ContainsFunc(m, func(p row) bool { return p.gives == service && m.active(p) })
}

// Any program of mounts, failures, deaths and unmounts, in any order: what
// cordis_inspect shows is what follows from who provides what, tools are there
// exactly while their plugin runs, ids only grow, and when all is unmounted the
// container is what it was.
func TestLawOfMounts(t *testing.T) {
	w := newWorld(t, map[string]any{"vmTimeoutMs": 1000})
	before := w.shape()
	last := 0
	rapid.Check(t, func(rt *rapid.T) {
		for _, l := range w.section("temporary") { // of a run that failed
			if rest, ok := strings.CutPrefix(l, "- Temporary Plugin "); ok {
				id, _, _ := strings.Cut(rest, ":")
				w.unmount(id)
			}
		}
		var m model
		mount := func() {
			r := row{needs: rapid.IntRange(-1, 1).Draw(rt, "needs"), gives: rapid.IntRange(-1, 2).Draw(rt, "gives")}
			if r.gives >= 0 && r.gives <= r.needs {
				r.gives = r.needs + 1
			}
			starts := r.needs < 0 || m.provides(r.needs)
			clash := starts && r.gives >= 0 && m.provides(r.gives)
			if !clash && slices.ContainsFunc(m, func(o row) bool { return r.gives >= 0 && o.gives == r.gives }) {
				r.gives = -1 // two that wait to provide the same: the later would fail
			}
			fails := starts && rapid.IntRange(0, 5).Draw(rt, "fails") == 0
			last++
			r.id = fmt.Sprint("dyn-", last)
			r.tool = "tool-" + r.id
			inject, give := "'tools'", ""
			if r.needs >= 0 {
				inject += fmt.Sprintf(", 's%d'", r.needs)
			}
			if r.gives >= 0 {
				give = fmt.Sprintf("ctx.provide('s%d', { who: () => '%s' });", r.gives, r.id)
			}
			if fails {
				give += "throw new Error('on purpose');"
			}
			code := fmt.Sprintf("return { name: 'p', inject: [%s], apply(ctx) { %s; ctx.on('tools/result', () => {}); %s } }", inject, define(r.tool, "() => '"+r.id+"'"), give)
			got := w.call("cordis_mount", map[string]any{"code": code})
			if got.IsError != (fails || clash) {
				rt.Fatalf("%+v, fails: %v, clash: %v: %s", r, fails, clash, got.Content.Text())
			}
			if !got.IsError {
				m = append(m, r)
			}
		}
		unmount := func() {
			if len(m) == 0 {
				return
			}
			i := rapid.IntRange(0, len(m)-1).Draw(rt, "which")
			if r := w.call("cordis_unmount", map[string]any{"id": m[i].id}); r.IsError {
				rt.Fatal(r.Error.Message)
			}
			m = slices.Delete(m, i, i+1)
		}
		check := func() {
			if err := w.c.Settle(t.Context()); err != nil {
				rt.Fatal(err)
			}
			lines := w.section("temporary")
			if len(m) == 0 {
				lines = nil
			}
			if len(lines) != len(m) {
				rt.Fatalf("%d rows for %d mounts: %q", len(lines), len(m), lines)
			}
			for i, r := range m {
				state, waiting := "[running]", "waiting for: none"
				if !m.active(r) {
					state, waiting = "[pending]", fmt.Sprintf("waiting for: s%d", r.needs)
				}
				if !strings.HasPrefix(lines[i], "- Temporary Plugin "+r.id+": p "+state) || !strings.Contains(lines[i], waiting+";") {
					rt.Fatalf("%+v is shown as %s", r, lines[i])
				}
				got := w.call(r.tool, nil)
				if m.active(r) != !got.IsError || !got.IsError && got.Value != r.id {
					rt.Fatalf("%+v: its tool answered %+v", r, got)
				}
			}
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "step") < 2 {
				mount()
			} else {
				unmount()
			}
			check()
		}
		for len(m) > 0 {
			unmount()
		}
		check()
		if after := w.shape(); !slices.Equal(before, after) {
			rt.Fatalf("the container is not what it was:\n%q\n%q", before, after)
		}
	})
}
