package cordis

import (
	"context"
	"slices"

	"github.com/ouro-run/ouro/seams"
)

type waitKind uint8

const (
	ready waitKind = iota
	settled
	gone
	goneAll
	effectDone
	framesGone
	restOfAll
)

// Done is something that will have happened. Waiting is explicit and checked:
// inside plugin code, a wait for something that itself waits for the caller to
// return answers WOULD_DEADLOCK at once; what was asked for still happens.
type Done struct {
	c    *Container
	f    *Fiber
	all  []*Fiber // goneAll
	eff  *effect
	ep   *episode // framesGone
	what waitKind
}

// waiter is one goroutine that waits.
type waiter struct {
	d    *Done
	ch   chan struct{}
	err  error
	from []*episode // those whose code the waiter stands in
	undo *episode   // the one whose undo it stands in
	busy bool       // it stands in code that [Container.Settle] waits for
	held bool       // it stands in the announcement of the fiber it waits for
}

// unsettled marks contexts of code that Settle waits for and that is nobody's
// loading or unloading; announcing those in which a fiber is announced.
type (
	unsettled  struct{}
	announcing struct{ *Fiber }
)

// Wait returns nil when it has happened; the error of the fiber or the undo it
// was about; WOULD_DEADLOCK; or the context's cause. ctx should be the one the
// calling plugin code was given: it is how a self-wait is seen.
func (d *Done) Wait(ctx context.Context) error {
	if d.what == goneAll && len(d.all) == 0 || d.what == gone && d.f == nil {
		return nil
	}
	if d.f != nil && (d.what == gone && d.f.State() == Disposed || d.what == ready && d.f.State() == Active) {
		d.c.published()
		return nil
	}
	w := &waiter{d: d}
	over := false
	d.c.do(func(st *state) {
		// Consequences of earlier events of this batch are not yet drawn: ask for
		// the waiter to be looked at when they are.
		if len(st.dirty) == 0 && len(st.begins) == 0 {
			if over, w.err = st.resolved(d); over {
				return
			}
		}
		if w.err = st.admit(ctx, w); w.err != nil {
			over = true
			return
		}
		w.ch = make(chan struct{})
		st.enlist(w)
	})
	if over {
		return w.err
	}
	select {
	case <-w.ch:
	case <-ctx.Done():
		d.c.do(func(st *state) {
			select {
			case <-w.ch:
			default:
				w.err = context.Cause(ctx)
				st.dismiss(w)
			}
		})
	}
	return w.err
}

// admit records that the frames w stands in wait; WOULD_DEADLOCK if that would
// be for themselves.
func (st *state) admit(ctx context.Context, w *waiter) error {
	framesOf(ctx, func(f *frame) {
		ep := f.ep
		if f.kind == undoFrame && w.undo == nil {
			w.undo = ep
		}
		if (f.kind != bodyFrame || ep.inApp) && !slices.Contains(w.from, ep) {
			w.from = append(w.from, ep)
		}
	})
	w.busy = w.undo != nil || ctx.Value(unsettled{}) != nil
	w.held = w.d.f != nil && w.d.f.held && ctx.Value(announcing{w.d.f}) != nil
	if st.deadlock(w) {
		return w.d.deadlock()
	}
	for _, ep := range w.from {
		ep.waits = append(ep.waits, w)
	}
	return nil
}

func (d *Done) deadlock() error {
	return seams.Errorf(seams.WouldDeadlock, "cordis.Wait", "%s cannot end before this call returns; ask for it and return", d.subject())
}

// refuse ends the waits of ep's frames that have become waits for themselves,
// because ep now waits for those frames.
func (st *state) refuse(ep *episode) {
	for _, w := range slices.Clone(ep.waits) {
		if w.ch != nil && st.deadlock(w) {
			w.err = w.d.deadlock()
			st.dismiss(w)
			close(w.ch)
		}
	}
}

func (st *state) retract(w *waiter) {
	for _, ep := range w.from {
		ep.waits = without(ep.waits, w)
	}
}

// listenersLeft waits until the listeners that run for ep now have returned, but
// for those the caller stands in.
func (ep *episode) listenersLeft(ctx context.Context) error {
	var own [2]uint64
	framesOf(ctx, func(f *frame) {
		if t := f.ticket; f.ep == ep && f.kind == callFrame && t != callTicket {
			own[t]++
		}
	})
	if ep.gate.alone(own) {
		return nil
	}
	return ep.join(ctx, func() error { return ep.gate.barrier(ctx, own) })
}

// join runs wait, which waits for code that runs for ep. If some of that waits for
// the caller, it does not: that code does not go on before the caller has
// returned.
func (ep *episode) join(ctx context.Context, wait func() error) error {
	c := ep.f.c
	w := &waiter{d: &Done{c: c, f: ep.f, ep: ep, what: framesGone}}
	var err error
	if c.do(func(st *state) { err = st.admit(ctx, w) }); err != nil {
		return nil
	}
	defer c.do(func(st *state) { st.retract(w) })
	return wait()
}

func (d *Done) subject() string {
	switch {
	case d.what == framesGone:
		return "a call inside " + d.f.label()
	case d.eff != nil:
		return d.eff.label() + " of " + d.f.label()
	case d.f != nil:
		return d.f.label()
	case len(d.all) > 0:
		return d.all[0].label()
	default:
		return "the container"
	}
}

func (st *state) enlist(w *waiter) {
	switch w.d.what {
	case restOfAll:
		st.idle = append(st.idle, w)
	case goneAll:
		for _, f := range w.d.all {
			f.waiters = append(f.waiters, w)
			st.check = append(st.check, f)
		}
	default:
		w.d.f.waiters = append(w.d.f.waiters, w)
		st.check = append(st.check, w.d.f)
	}
}

func (st *state) dismiss(w *waiter) {
	st.retract(w)
	switch w.d.what {
	case restOfAll:
		st.idle = without(st.idle, w)
	case goneAll:
		for _, f := range w.d.all {
			f.waiters = without(f.waiters, w)
		}
	default:
		w.d.f.waiters = without(w.d.f.waiters, w)
	}
}

// resolved reports whether d has happened, and with which error.
func (st *state) resolved(d *Done) (bool, error) {
	f := d.f
	switch d.what {
	case ready:
		switch {
		case f.phase == active:
			return true, nil
		case f.phase == removed || f.retired && f.phase == pending:
			return true, seams.Errorf(seams.Unloaded, f.label(), "it was disposed before it became active")
		case f.failed && f.phase == pending:
			return true, f.err
		}
		return false, nil
	case settled:
		switch f.phase {
		case active:
			return true, nil
		case removed:
			return true, f.err
		case pending:
			return !f.held, f.err
		}
		return st.stuckIn(f) != nil, st.stuckIn(f)
	case gone:
		if f.phase == removed || f == st.root && f.kids.first == nil {
			return true, nil
		}
		return false, nil
	case goneAll:
		return !slices.ContainsFunc(d.all, func(f *Fiber) bool { return f.phase != removed }), nil
	case effectDone:
		if d.eff.state == finished {
			return true, d.eff.err
		}
		err := st.stuckIn(f)
		return err != nil && slices.Contains(st.stuck, d.eff), err
	default:
		if len(st.stuck) > 0 {
			return true, st.stuckIn(nil)
		}
		return st.transit == 0 && st.undos == 0 && !st.telling && !st.reporting, nil
	}
}

// stuckIn is the STUCK error of f, or of whatever is stuck if f is nil.
func (st *state) stuckIn(f *Fiber) error {
	for _, e := range st.stuck {
		if f == nil || e.ep.f == f {
			return seams.Errorf(seams.Stuck, e.ep.f.label(), "undoing %s has not ended; what it relies on stays", e.label())
		}
	}
	return nil
}

// resolveWaits answers the waiters of what changed in this batch.
func (st *state) resolveWaits() {
	for _, f := range st.check {
		if len(f.waiters) > 0 {
			for _, w := range slices.Clone(f.waiters) {
				st.answer(w)
			}
		}
	}
	st.check = st.check[:0]
	if len(st.idle) > 0 {
		for _, w := range slices.Clone(st.idle) {
			st.answer(w)
		}
	}
}

func (st *state) answer(w *waiter) {
	select {
	case <-w.ch:
		return
	default:
	}
	over, err := st.resolved(w.d)
	if !over {
		return
	}
	w.err = err
	st.dismiss(w)
	close(w.ch)
}

// deadlock searches everything the waiter would wait for: consumers and
// children of what is to end, providers of what is to become ready, and what
// explicit waits inside those wait for. It is a deadlock if the waiter's own
// code is among them.
func (st *state) deadlock(w *waiter) bool {
	if len(w.from) == 0 {
		return false
	}
	s := search{st: st, w: w, from: w.from, ends: map[*Fiber]bool{}, begins: map[*Fiber]bool{}, waited: map[*episode]bool{}}
	return s.wait(w.d)
}

type search struct {
	st     *state
	w      *waiter
	from   []*episode
	ends   map[*Fiber]bool
	begins map[*Fiber]bool
	waited map[*episode]bool
}

func (s *search) wait(d *Done) bool {
	switch d.what {
	case ready, settled:
		if d == s.w.d && s.w.held {
			return true
		}
		if d.what == settled && d.f.phase == pending {
			return false
		}
		return s.begin(d.f)
	case gone:
		return s.end(d.f)
	case goneAll:
		return slices.ContainsFunc(d.all, s.end)
	case effectDone:
		ep := d.eff.ep
		switch {
		case d.eff.state == live: // undone with its owner
			return s.end(ep.f)
		case d.eff.kind == bindEffect:
			return s.relied(d.eff.bind)
		default: // its undo runs, or its turn comes when the one that runs has ended
			return s.w.undo == ep || s.waits(ep)
		}
	case framesGone:
		return d != s.w.d && slices.Contains(s.from, d.ep) || s.waits(d.ep)
	default:
		return d == s.w.d && s.w.busy || s.rest(s.st.root)
	}
}

// rest: what is on its way below f.
func (s *search) rest(f *Fiber) bool {
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		switch {
		case ch.phase == loading && s.begin(ch), ch.phase >= leaving && s.end(ch), s.rest(ch):
			return true
		}
	}
	return false
}

// end: what must have ended before f is gone.
func (s *search) end(f *Fiber) bool {
	if s.ends[f] {
		return false
	}
	s.ends[f] = true
	if f.ep == nil {
		return false
	}
	if slices.Contains(s.from, f.ep) {
		return true
	}
	if !f.retired && f.entry != nil {
		// A holder ends when its successor has taken over.
		if hold, next := f.entry.undecided(); hold == f && next != nil && s.begin(next) {
			return true
		}
	}
	if s.consumers(f.ep) || s.waits(f.ep) {
		return true
	}
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		if s.end(ch) {
			return true
		}
	}
	return false
}

// relied: those that are committed to a binding that is withdrawn.
func (s *search) relied(b *binding) bool {
	for n := b.slot.first; n != nil; n = n.next {
		if ep := n.f.ep; ep != nil {
			for i := range ep.view {
				if ep.view[i].Load() == b && s.end(n.f) {
					return true
				}
			}
		}
	}
	return false
}

func (s *search) consumers(ep *episode) bool {
	for _, b := range ep.bindings {
		for n := b.slot.first; n != nil; n = n.next {
			if n.f.ep != nil && n.f.ep.commits(ep) && s.end(n.f) {
				return true
			}
		}
	}
	return false
}

func (s *search) waits(ep *episode) bool {
	if s.waited[ep] {
		return false
	}
	s.waited[ep] = true
	return slices.ContainsFunc(ep.waits, func(w *waiter) bool { return s.wait(w.d) })
}

// begin: what must have begun before f is ready. A need that an unknown plugin
// may still provide excludes nothing.
func (s *search) begin(f *Fiber) bool {
	if s.begins[f] {
		return false
	}
	s.begins[f] = true
	switch f.phase {
	case active, removed:
		return false
	case loading:
		return slices.Contains(s.from, f.ep) || s.waits(f.ep)
	case leaving, closing, undoing:
		return s.end(f)
	}
	for i := range f.needs {
		n := &f.needs[i]
		if n.Optional || len(n.slot.claims) == 0 {
			continue
		}
		all := true
		for _, p := range n.slot.claims {
			all = all && s.begin(p)
		}
		if all {
			return true
		}
	}
	return false
}
