package loader

import (
	"strings"
	"testing"
)

// groups writes two nested groups with three entries; off names what is
// disabled, and where says in which group entry c stands.
func groups(where string, off ...string) string {
	is := func(id string) string {
		for _, o := range off {
			if o == id {
				return ", disabled: true"
			}
		}
		return ""
	}
	in := func(g string) string {
		if g == where {
			return "{id: c, name: ./p.js" + is("c") + "}"
		}
		return ""
	}
	return `
- {id: a, name: ./p.js` + is("a") + `}
- id: outer
  group: true
  ` + strings.TrimPrefix(is("outer"), ", ") + `
  config:
    - {id: b, name: ./p.js` + is("b") + `}
    - id: inner
      group: true
      ` + strings.TrimPrefix(is("inner"), ", ") + `
      config: [` + in("inner") + `]
- id: other
  group: true
  ` + strings.TrimPrefix(is("other"), ", ") + `
  config: [` + in("other") + `]
`
}

// L-06…L-09, L-32, L-45
func TestDisabledGroups(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("p.js", "")
	w.start(groups("inner"))
	w.happened("up a p", "up b p", "up c p")
	w.edit(groups("inner", "inner"))
	w.happened("down c p")
	w.stands("a:active b:active c:disabled")
	w.edit(groups("inner", "inner", "outer"))
	w.happened("down b p")
	w.stands("a:active b:disabled c:disabled")
	w.edit(groups("inner", "outer"))
	w.happened()
	w.edit(groups("inner", "b"))
	w.happened("up c p")
	w.edit(groups("inner"))
	w.happened("up b p")
	w.edit(groups("inner", "a"))
	w.happened("down a p")
	w.blames()
}

// L-10, L-11
func TestMovesBetweenGroups(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("p.js", "")
	w.start(groups("inner", "a", "b"))
	w.happened("up c p")
	w.edit(groups("other", "a", "b"))
	w.happened()
	w.edit(groups("inner", "a", "b", "inner"))
	w.happened("down c p")
	w.edit(groups("other", "a", "b", "other"))
	w.happened()
	w.edit(groups("inner", "a", "b"))
	w.happened("up c p")
}

// L-12: interceptions layer, the innermost wins; a change of them restarts
// nothing and is seen.
func TestInterceptLayers(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("db.js", "provide db")
	w.write("use.js", "inject db")
	text := `
- {id: db, name: ./db.js}
- id: g
  group: true
  intercept: {db: {a: 1, b: 1, c: 1}}
  config:
    - id: h
      group: true
      intercept: {db: {b: 2, c: 2}}
      config:
        - {id: use, name: ./use.js, intercept: {db: {c: 3}}}
`
	w.start(text)
	w.happened("up db db", `up use use db=db{"a":1,"b":2,"c":3}`)
	w.edit(strings.Replace(text, "a: 1", "a: 9", 1))
	w.happened()
	ctx := w.l.tree.nodes["use"].tried.context(w.c.Root())
	if got := ctx.Meta("db")["a"]; got != 9.0 {
		t.Errorf("metadata a = %v", got)
	}
	w.edit(strings.Replace(text, "{c: 3}", "{c: !!js process.env.C}", 1))
	w.happened()
	w.edit(strings.Replace(text, "{c: 3}", "{c: !!js nope}", 1))
	w.happened()
	w.blames("yml:11:…: entry use: !!js nope…its last good version goes on running")
	w.stands("db:active use:active!")
}

// What a group injects holds for all that is in it; an entry's own inject adds
// to the plugin's and may carry metadata.
func TestInject(t *testing.T) {
	w := newWorld(t, Options{})
	w.write("p.js", "")
	w.write("use.js", "inject db")
	w.write("db.js", "provide db")
	w.write("x.js", "provide x")
	base := `
- id: g
  group: true
  inject: [x]
  config:
    - {id: p, name: ./p.js}
    - {id: use, name: ./use.js, inject: {db: {k: 1}}}
- {id: db, name: ./db.js}
`
	w.start(base)
	w.stands("p:pending use:pending db:active")
	w.took()
	w.edit(base + "- {id: x, name: ./x.js}\n")
	w.happened("up x x", "up p p", `up use use db=db{"k":1}`)
	w.edit(base)
	w.happened("down p p", `down use use db=db{"k":1}`, "down x x")
	w.edit(strings.Replace(base, "inject: [x]", "inject: []", 1))
	w.happened("up p p", `up use use db=db{"k":1}`)
	w.blames()
}
