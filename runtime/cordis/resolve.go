package cordis

import "slices"

// need is one need of an installed fiber, and its place among the subscribers
// of its slot.
type need struct {
	Need
	f          *Fiber
	slot       *slot
	prev, next *need
}

// family is a fiber's children in order of mounting.
type family struct{ first, last *Fiber }

type sibling struct{ prev, next *Fiber }

func (k *family) add(f *Fiber) {
	f.sib = sibling{prev: k.last}
	if k.last == nil {
		k.first = f
	} else {
		k.last.sib.next = f
	}
	k.last = f
}

func (k *family) remove(f *Fiber) {
	if f.sib.prev == nil {
		k.first = f.sib.next
	} else {
		f.sib.prev.sib.next = f.sib.next
	}
	if f.sib.next == nil {
		k.last = f.sib.prev
	} else {
		f.sib.next.sib.prev = f.sib.prev
	}
}

func (st *state) subscribe(n *need) {
	if n.Optional {
		return
	}
	s := n.slot
	n.prev, n.next = s.last, nil
	if s.last == nil {
		s.first = n
	} else {
		s.last.next = n
	}
	s.last = n
}

func (st *state) unsubscribe(n *need) {
	if n.Optional {
		st.drop(n.slot)
		return
	}
	s := n.slot
	if n.prev == nil {
		s.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		s.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	st.drop(s)
}

// drop forgets a slot that nobody uses, but for the last one: who provides a
// service often does so again. An optional need does not keep its slot, so
// another may have its key by now.
func (st *state) drop(s *slot) {
	if s.used() || st.c.slots.get(s.key) != s {
		return
	}
	if v := st.vacant; v != nil && v != s && !v.used() {
		st.c.slots.remove(v.key)
	}
	st.vacant = s
}

func (s *slot) used() bool { return s.first != nil || len(s.claims)+len(s.bindings) > 0 }

// shadow is the nearest ancestor that is not active, nil when all are. What a
// fiber below it publishes is seen inside that ancestor's subtree only (N3).
func (st *state) shadow(f *Fiber) *Fiber {
	if st.mut.has(mutNoShadow) {
		return nil
	}
	for a := f.parent; a != nil; a = a.parent {
		if a.phase != active {
			return a
		}
	}
	return nil
}

// within reports whether f lies below a.
func (f *Fiber) within(a *Fiber) bool {
	for p := f.parent; p != nil; p = p.parent {
		if p == a {
			return true
		}
	}
	return false
}

// resolve is the binding of s that f sees: one of an active fiber that is
// exposed or in a shadow in which f stands too. Of several, which are those of
// versions of one entry, the one in the nearest shadow wins. With tainted set,
// what markTaint has marked does not exist.
func (st *state) resolve(f *Fiber, s *slot, tainted bool) *binding {
	var best *binding
	var in *Fiber
	for _, b := range s.bindings {
		g := b.ep.f
		on := g.phase == active || st.mut.has(mutLateUnpublish) && g.phase >= leaving
		if b.withdrawn || g.ep != b.ep || !on || tainted && g.taint == st.taint {
			continue
		}
		sh := st.shadow(g)
		if sh != nil && !f.within(sh) {
			continue
		}
		if best == nil || sh != nil && (in == nil || sh.within(in)) {
			best, in = b, sh
		}
	}
	return best
}

// markTaint marks everything that ends when the older versions above f end:
// those versions, what is below them, and what is committed to any of it. f
// resolves as if it were gone (N4). It reports whether there is any.
func (st *state) markTaint(f *Fiber) bool {
	st.taint++
	var work []*Fiber
	add := func(g *Fiber) {
		if g.taint != st.taint {
			g.taint = st.taint
			work = append(work, g)
		}
	}
	for a := f; a != nil; a = a.parent {
		if a.entry != nil && len(a.entry.versions) > 1 {
			for _, g := range a.entry.versions {
				if g.id < a.id {
					add(g)
				}
			}
		}
	}
	if len(work) == 0 || st.mut.has(mutNoExclude) {
		st.taint++
		return false
	}
	if st.mut.has(mutDirectOnly) {
		return true
	}
	for len(work) > 0 {
		g := work[len(work)-1]
		work = work[:len(work)-1]
		for ch := g.kids.first; ch != nil; ch = ch.sib.next {
			add(ch)
		}
		if g.ep == nil {
			continue
		}
		for _, b := range g.ep.bindings {
			for n := b.slot.first; n != nil; n = n.next {
				if n.f.ep != nil && n.f.ep.commits(g.ep) {
					add(n.f)
				}
			}
		}
	}
	return true
}

// target computes f's target view into st.scratch; false is ⊥.
func (st *state) target(f *Fiber) bool {
	st.scratch = st.scratch[:0]
	if f.retired || f.failed && !st.mut.has(mutFailRetry) || f.held {
		return false
	}
	if f.phase == pending && f.waitsForOlder() {
		return false
	}
	if len(f.needs) == 0 {
		return true
	}
	tainted, looked := false, false
	for i := range f.needs {
		n := &f.needs[i]
		if n.Optional {
			continue
		}
		if len(n.slot.bindings) == 0 {
			return false
		}
		if !looked {
			looked, tainted = true, st.markTaint(f)
		}
		b := st.resolve(f, n.slot, tainted)
		if b == nil {
			return false
		}
		st.scratch = append(st.scratch, b)
	}
	return true
}

// same reports whether f's target is its view: every need is provided by the
// same episode. A binding that its provider withdrew and gave again while f was
// loading is taken over silently (C-16).
func (st *state) same(f *Fiber) bool {
	if !st.target(f) {
		return false
	}
	if st.mut.has(mutBoolTarget) {
		return true
	}
	for i, b := range st.scratch {
		if b.ep != f.ep.view[i].Load().ep {
			return false
		}
	}
	for i, b := range st.scratch {
		if old := f.ep.view[i].Swap(b); old != b {
			b.relied++
			old.relied--
			if old.withdrawn && old.relied == 0 && old.eff.state != finished {
				st.unbind(old)
				st.finishEffect(old.eff, nil)
			}
		}
	}
	return true
}

// show sets what everybody outside of any shadow sees in a slot.
func (st *state) show(s *slot) {
	var best *binding
	for _, b := range s.bindings {
		if b.ep.visible.Load() && !b.withdrawn {
			best = b
		}
	}
	if old := s.shown.Swap(best); old != best {
		st.tell(note{service: s.key.name, realm: s.key.realm})
	}
}

// expose makes an active fiber, and the active ones below it, visible if all
// its ancestors are active.
func (st *state) expose(f *Fiber) {
	if !st.mut.has(mutNoShadow) && f.parent != nil && !f.parent.exposed() {
		// Inside the subtree of the ancestor that is not active, it is seen now.
		for _, b := range f.ep.bindings {
			st.markSlot(b.slot)
		}
		st.exposeKids(f)
		return
	}
	st.hide()
	f.ep.visible.Store(true)
	for _, b := range f.ep.bindings {
		st.markSlot(b.slot)
	}
	f.ep.heard = true
	st.relist(f.ep)
	st.exposeKids(f)
}

func (st *state) exposeKids(f *Fiber) {
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		st.mark(ch)
		if ch.phase == active && !ch.ep.visible.Load() {
			st.expose(ch)
		}
	}
}

// unexpose hides a leaving fiber and what is below it.
func (st *state) unexpose(f *Fiber) {
	st.hide()
	if f.ep != nil {
		f.ep.visible.Store(false)
		for _, b := range f.ep.bindings {
			st.markSlot(b.slot)
		}
	}
	if st.mut.has(mutNoShadow) {
		return
	}
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		st.mark(ch)
		st.unexpose(ch)
	}
}

func (f *Fiber) exposed() bool { return f.phase == active && f.ep.visible.Load() }

// hide begins a change of what is visible: registries that read meanwhile read
// again. publish ends it.
func (st *state) hide() {
	if !st.hidden {
		st.hidden = true
		st.c.stamp.Add(1)
	}
}

func (st *state) publish() {
	for _, l := range st.lists {
		l.rebuild()
	}
	st.lists = st.lists[:0]
	if st.hidden {
		st.hidden = false
		st.c.stamp.Add(1)
	}
}

// bind records a binding of a loading or active episode.
func (st *state) bind(b *binding) {
	b.ep.binds.Store(true)
	b.at = len(b.ep.bindings)
	b.ep.bindings = append(b.ep.bindings, b)
	b.slot.bindings = append(b.slot.bindings, b)
	if b.ep.f.phase == active {
		st.hide()
		st.markSlot(b.slot)
	}
}

// unbind removes a binding; nobody is committed to it.
func (st *state) unbind(b *binding) {
	if i := slices.Index(b.slot.bindings, b); i >= 0 {
		b.slot.bindings = slices.Delete(b.slot.bindings, i, i+1)
	}
	if bs := b.ep.bindings; b.at < len(bs) && bs[b.at] == b {
		last := bs[len(bs)-1]
		bs[b.at], last.at = last, b.at
		bs[len(bs)-1] = nil
		b.ep.bindings = bs[:len(bs)-1]
	}
	f := b.ep.f
	if !slices.ContainsFunc(f.p.Provide, func(n string) bool { return n == b.slot.key.name && f.slotOf(n) == b.slot.key }) &&
		!slices.ContainsFunc(b.slot.bindings, func(o *binding) bool { return o.ep == b.ep }) {
		f.claims = without(f.claims, b.slot)
		b.slot.claims = without(b.slot.claims, f)
	}
	st.show(b.slot)
	st.drop(b.slot)
}

// claim records that f provides s; it answers the fiber of another entry that
// does already.
func (st *state) claim(f *Fiber, s *slot) *Fiber {
	if slices.Contains(f.claims, s) {
		return nil
	}
	if o := st.clash(f, s); o != nil {
		return o
	}
	f.claims = append(f.claims, s)
	s.claims = append(s.claims, f)
	return nil
}

// clash is the fiber of another entry that claims s. Two fibers that belong, with
// all that is above them, to different versions of one entry do not clash (N2).
func (st *state) clash(f *Fiber, s *slot) *Fiber {
	for _, o := range s.claims {
		if o == f {
			continue
		}
		if st.mut.has(mutOneExempt) {
			if hold, _ := f.entry.undecided(); f.entry == o.entry && (o == hold || f == hold) {
				continue
			}
			return o
		}
		if !f.kin(o) {
			return o
		}
	}
	return nil
}

// kin reports whether f and o lie in different versions of one entry. It reads
// only what never changes after mounting.
func (f *Fiber) kin(o *Fiber) bool {
	for a := f; a != nil; a = a.parent {
		for b := o; b != nil; b = b.parent {
			if a != b && a.entry != nil && a.entry == b.entry {
				return true
			}
		}
	}
	return false
}
