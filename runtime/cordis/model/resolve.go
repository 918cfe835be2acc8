package model

import "slices"

// Key is a service name in a realm; the empty realm is the shared one.
type Key struct{ Name, Realm string }

func (f *Fiber) key(name string) Key {
	for a := f; a != nil; a = a.Parent {
		if r, ok := a.Realms[name]; ok {
			return Key{name, r}
		}
	}
	return Key{name, ""}
}

// chain is f with its ancestors, nearest first, without the root.
func (f *Fiber) chain() (out []*Fiber) {
	for a := f; a.Parent != nil; a = a.Parent {
		out = append(out, a)
	}
	return
}

// kin: f and o lie in different versions of one entry (N2).
func kin(f, o *Fiber) bool {
	for _, a := range f.chain() {
		for _, b := range o.chain() {
			if a != b && a.Entry == b.Entry {
				return true
			}
		}
	}
	return false
}

// shadow is the nearest ancestor of f that is not active, nil when all are.
func (f *Fiber) shadow() *Fiber {
	for a := f.Parent; a != nil; a = a.Parent {
		if a.Phase != Active {
			return a
		}
	}
	return nil
}

// below: f lies inside a's subtree, a itself excluded.
func (f *Fiber) below(a *Fiber) bool {
	for p := f.Parent; p != nil; p = p.Parent {
		if p == a {
			return true
		}
	}
	return false
}

func (f *Fiber) depth() (n int) {
	for ; f != nil; f = f.Parent {
		n++
	}
	return
}

// tainted is what ends when the older versions above f end (N4).
func (w *World) tainted(f *Fiber) map[*Fiber]bool {
	t := map[*Fiber]bool{}
	for _, a := range f.chain() {
		for _, g := range w.Fibers {
			if g.Entry == a.Entry && g.ID < a.ID {
				t[g] = true
			}
		}
	}
	for changed := len(t) > 0; changed; {
		changed = false
		for _, g := range w.Fibers {
			if !t[g] && (t[g.Parent] || slices.ContainsFunc(g.View, func(c Commit) bool { return t[c.To] })) {
				t[g], changed = true, true
			}
		}
	}
	return t
}

// Seen is the fiber whose binding of name f reads now, nil for none: f's own, or
// that of an active one, exposed or in a shadow that f stands in, the nearest
// first (A6, N3).
func (w *World) Seen(f *Fiber, name string) *Fiber {
	if f.binds(f.key(name), false) {
		return f
	}
	return w.choose(f, f.key(name), w.tainted(f))
}

// choose is Seen for a fiber whose tainted set is known.
func (w *World) choose(f *Fiber, k Key, taint map[*Fiber]bool) (best *Fiber) {
	at := -1
	for _, g := range w.all() {
		if g.Phase != Active || taint[g] || !g.binds(k, false) {
			continue
		}
		s := g.shadow()
		if s != nil && !f.below(s) {
			continue
		}
		if d := s.depth(); d > at {
			best, at = g, d
		} else if d == at {
			w.violate("UNIQ: %s resolves for %v to %v and %v", k.Name, f, best, g)
		}
	}
	return
}

// Shown is what everybody outside of any shadow resolves: key to provider.
func (w *World) Shown() map[Key]*Fiber {
	out := map[Key]*Fiber{}
	for _, g := range w.all() {
		if g.Phase != Active || g.shadow() != nil {
			continue
		}
		for _, e := range g.Stack {
			if e.Kind == Bind && !e.Early {
				if o := out[e.Key]; o != nil {
					w.violate("UNIQ: %s is shown by %v and %v", e.Key.Name, o, g)
				}
				out[e.Key] = g
			}
		}
	}
	return out
}

// Target is what f would commit to now; false is ⊥.
func (w *World) Target(f *Fiber) ([]Commit, bool) {
	if f.Retired || f.Failed || f.Held {
		return nil, false
	}
	if f.Phase == Pending && slices.ContainsFunc(w.Fibers, func(g *Fiber) bool {
		return g.Entry == f.Entry && g.ID < f.ID && (f.Script.Exclusive || g.Script.Exclusive)
	}) {
		return nil, false
	}
	taint := w.tainted(f)
	var out []Commit
	for _, n := range f.Script.Needs {
		g := w.choose(f, f.key(n), taint)
		if g == nil {
			return nil, false
		}
		out = append(out, Commit{n, g, g.Begins})
	}
	return out, true
}

// same: f's target is its view.
func (w *World) same(f *Fiber) bool {
	t, ok := w.Target(f)
	return ok && slices.Equal(t, f.View)
}

// relied: some installed fiber's view names f's episode.
func (w *World) relied(f *Fiber) *Fiber {
	for _, g := range w.Fibers {
		if slices.ContainsFunc(g.View, func(c Commit) bool { return c.To == f }) {
			return g
		}
	}
	return nil
}

// Clash is the fiber of another entry that provides what s, mounted below parent
// as a version of entry, declares; nil for none.
func (w *World) Clash(parent *Fiber, entry int, s *Script, realms Realms) *Fiber {
	f := &Fiber{Script: s, Parent: parent, Entry: entry, Realms: realms}
	for _, n := range s.Provides {
		if o := w.claimed(f, f.key(n)); o != nil {
			return o
		}
	}
	return nil
}

// Taken is the fiber because of which f may not bind name.
func (w *World) Taken(f *Fiber, name string) *Fiber {
	if f.claims(f.key(name)) {
		return nil
	}
	return w.claimed(f, f.key(name))
}

func (w *World) claimed(f *Fiber, k Key) *Fiber {
	for _, o := range w.all() {
		if o != f && o.claims(k) && !kin(f, o) {
			return o
		}
	}
	return nil
}

func (f *Fiber) binds(k Key, early bool) bool {
	return slices.ContainsFunc(f.Stack, func(e *Effect) bool { return e.Kind == Bind && e.Key == k && (early || !e.Early) })
}

// claims: f declares k or has it bound.
func (f *Fiber) claims(k Key) bool {
	return f.binds(k, true) || slices.ContainsFunc(f.Script.Provides, func(n string) bool { return f.key(n) == k })
}

// Exposed reports whether all ancestors of f are active.
func (f *Fiber) Exposed() bool { return f.shadow() == nil }

// Reliance counts the commitments to f.
func (w *World) Reliance(f *Fiber) (n int) {
	for _, g := range w.Fibers {
		for _, c := range g.View {
			if c.To == f {
				n++
			}
		}
	}
	return
}
