package model

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// walk drives a world by itself: of the legal moves it makes those that choose
// picks.
type walk struct {
	w     *World
	plan  Plan
	ids   int
	where map[int]int // slot to entry
	pick  func(n int) int
}

func newWalk(p Plan, pick func(int) int) *walk {
	return &walk{w: New(), plan: p, where: map[int]int{}, pick: pick}
}

func (r *walk) mount(parent *Fiber, entry int, s *Script, realms Realms) *Fiber {
	r.ids++
	if entry == 0 {
		entry = 1000 + r.ids
	}
	f := r.w.Mount(r.ids, parent, entry, s, realms, false)
	r.w.Own(parent, Step{Kind: Child, Name: s.Name}, f)
	return f
}

func (r *walk) op(o Op) {
	slot := r.plan.Slots[o.Slot]
	entry := o.Slot + 1
	switch s := slot.Variants[o.Variant]; o.Kind {
	case Set:
		if slot.Parent < 0 && r.w.Clash(r.w.Root, entry, s, slot.Realms) == nil {
			r.mount(r.w.Root, entry, s, slot.Realms)
		}
	case Unmount:
		for _, f := range append([]*Fiber(nil), r.w.Fibers...) {
			if f.Entry == entry && !f.Retired {
				r.w.Ask(f)
				r.w.Retire(f)
			}
		}
	}
	r.settle()
}

// settle does what must be done in the same step.
func (r *walk) settle() {
	w := r.w
	for _, f := range w.Fibers { // a takeover is one
		if f.due != "" {
			w.Retire(f)
			if f.Phase == Active {
				w.Depart(f)
			}
		}
	}
	for again := true; again; {
		again = false
		for _, f := range append([]*Fiber(nil), w.Fibers...) {
			switch {
			case f.Phase == Active && !w.same(f):
				w.Depart(f)
			case f.Phase == Pending && f.Retired && w.child(f) == nil:
				w.Remove(f)
				for _, e := range append([]*Effect(nil), f.Parent.Stack...) {
					if e.Child == f {
						w.Undone(e)
					}
				}
			default:
				continue
			}
			again = true
		}
	}
	w.Settle()
	for again := true; again; {
		again = false
		for _, f := range w.Fibers {
			if _, ok := w.Target(f); ok && f.Phase == Pending {
				w.Begin(f)
				w.Settle()
				again = true
			}
		}
	}
	w.Batch()
}

// step makes one move of one fiber; false if none can.
func (r *walk) step() bool {
	w := r.w
	var can []func()
	for _, f := range w.Fibers {
		switch f.Phase {
		case Loading:
			can = append(can, func() { r.stage(f) })
		case Leaving:
			if w.relied(f) == nil {
				can = append(can, func() { w.Close(f) })
			}
		case Undoing:
			if n := len(f.Stack); n == 0 {
				can = append(can, func() { w.Inactive(f) })
			} else if e := f.Stack[n-1]; e.Child == nil {
				can = append(can, func() { w.Undo(e); w.Undone(e) })
			} else if !e.Child.Retired {
				can = append(can, func() { w.Undo(e); w.Retire(e.Child) })
			}
		}
	}
	if len(can) == 0 {
		return false
	}
	can[r.pick(len(can))]()
	r.settle()
	return true
}

func (r *walk) stage(f *Fiber) {
	w := r.w
	todo := f.Script.effects()
	switch {
	case f.At < len(todo) && !f.diverted:
		s := todo[f.At]
		switch {
		case s.Kind == Child && f.Retired:
			w.Fault(f, true) // it may not mount any more
			w.Depart(f)
			return
		case s.Kind == Child:
			r.mount(f, 0, s.Script, s.Realms)
		case s.Kind == Bind && w.Taken(f, s.Name) != nil:
			w.Fault(f, true)
			w.Depart(f)
			return
		default:
			w.Own(f, s, nil)
		}
		w.Stage(f)
	case f.Script.Fails():
		w.Fault(f, false)
		w.Depart(f)
	default:
		w.Stage(f)
		if f.diverted {
			w.Depart(f)
		} else {
			w.Finish(f)
		}
	}
}

// The rules keep their own properties, whatever is done and in whatever order.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plans().Draw(t, "plan")
		order := rapid.SliceOfN(rapid.IntRange(0, 59), 20, 80).Draw(t, "order")
		at := 0
		r := newWalk(p, func(n int) int { at++; return order[at%len(order)] % n })
		for _, o := range p.Ops {
			r.op(o)
			for range r.pick(6) {
				r.step()
			}
		}
		for range 10000 {
			if !r.step() {
				break
			}
		}
		r.w.Rest()
		if len(r.w.Violations) > 0 {
			t.Fatal(strings.Join(r.w.Violations, "\n"))
		}
	})
}

// A broken rule is named.
func TestViolations(t *testing.T) {
	p := &Script{Name: "p", Provides: []string{"k"}, Steps: []Step{{Kind: Take}, {Kind: Bind, Name: "k"}}}
	c := &Script{Name: "c", Needs: []string{"k"}}
	up := func(w *World, id, entry int, s *Script) *Fiber {
		f := w.Mount(id, w.Root, entry, s, nil, false)
		w.Begin(f)
		for _, x := range s.effects() {
			w.Own(f, x, nil)
		}
		w.Stage(f)
		w.Finish(f)
		w.Settle()
		return f
	}
	for _, c := range []struct {
		want string
		do   func(*World)
	}{
		{"GATE", func(w *World) { w.Begin(w.Mount(1, w.Root, 1, c, nil, false)) }},
		{"CLASH", func(w *World) { up(w, 1, 1, p); w.Mount(2, w.Root, 2, p, nil, false) }},
		{"ADMISSION", func(w *World) { f := up(w, 1, 1, p); w.Ask(f); w.Retire(f); w.Mount(2, f, 2, c, nil, false) }},
		{"IDENTITY", func(w *World) { up(w, 2, 1, p); w.Mount(1, w.Root, 2, c, nil, false) }},
		{"UNTOUCHED", func(w *World) { w.Retire(up(w, 1, 1, p)) }},
		{"EAGER", func(w *World) {
			f := up(w, 1, 1, p)
			up(w, 2, 2, c)
			w.Ask(f)
			w.Retire(f)
			w.Depart(f)
			w.Settle()
		}},
		{"GUARD", func(w *World) {
			f := up(w, 1, 1, p)
			up(w, 2, 2, c)
			w.Ask(f)
			w.Retire(f)
			w.Depart(f)
			w.Close(f)
		}},
		{"CALLS", func(w *World) {
			f := up(w, 1, 1, p)
			w.Calls = func(*Fiber) int { return 1 }
			w.Ask(f)
			w.Retire(f)
			w.Depart(f)
			w.Close(f)
		}},
		{"LIFO", func(w *World) {
			f := up(w, 1, 1, p)
			w.Ask(f)
			w.Retire(f)
			w.Depart(f)
			w.Close(f)
			w.Undo(f.Stack[0])
		}},
		{"TERMINAL", func(w *World) {
			f := up(w, 1, 1, p)
			w.Ask(f)
			w.Retire(f)
			w.Depart(f)
			w.Close(f)
			w.Inactive(f)
		}},
		{"TAKEOVER", func(w *World) { up(w, 1, 1, p); up(w, 2, 1, p) }},
		{"PROGRESS", func(w *World) { w.Mount(1, w.Root, 1, p, nil, false); w.Batch() }},
		{"SCRIPT", func(w *World) { f := w.Mount(1, w.Root, 1, p, nil, false); w.Begin(f); w.Stage(f); w.Finish(f) }},
		{"CLOSED", func(w *World) { w.Own(w.Mount(1, w.Root, 1, p, nil, false), Step{Kind: Take}, nil) }},
		{"ONCE", func(w *World) {
			f := up(w, 1, 1, p)
			e := f.Stack[0]
			w.Early(e)
			w.Undone(e)
			w.Undone(e)
		}},
		{"FIXPOINT", func(w *World) { up(w, 1, 1, p); w.Fibers[0].Phase = Pending; w.Rest() }},
	} {
		w := New()
		c.do(w)
		if !slices.ContainsFunc(w.Violations, func(v string) bool { return strings.HasPrefix(v, c.want+":") }) {
			t.Errorf("want %s, got %v", c.want, w.Violations)
		}
	}
}

// What must be active follows from declarations: the least set.
func TestFixpoint(t *testing.T) {
	s := func(needs ...string) *Script { return &Script{Needs: needs} }
	nodes := []Node{
		{Script: s(), Parent: -1},
		{Path: "p", Script: s(), Binds: []string{"k"}},
		{Path: "c", Script: s("k"), Binds: []string{"kc"}},
		{Path: "a", Script: s("b"), Binds: []string{"a"}},
		{Path: "b", Script: s("a"), Binds: []string{"b"}},                         // a cycle: none of both
		{Path: "r", Script: s("k"), Realms: Realms{"k": "r"}},                     // nothing in its realm
		{Path: "x", Script: s(), Parent: 5},                                       // below one that is not active
		{Path: "y", Script: s(), Realms: Realms{"k": "r2"}, Binds: []string{"k"}}, // another realm
	}
	want := []bool{true, true, true, false, false, false, false, true}
	for i, in := range Fixpoint(nodes) {
		if in != want[i] {
			t.Errorf("%q: %v", nodes[i].Path, in)
		}
	}
}
