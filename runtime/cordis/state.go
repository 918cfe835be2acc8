package cordis

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// phase is where a fiber stands. State is what others are shown of it.
type phase uint8

const (
	pending phase = iota
	loading
	active
	leaving // unpublished; serves those committed to it until they are gone
	closing // takes no new frame; waits for those inside
	undoing
	removed
)

// slotKey is one service name in one realm; the nil realm is the shared one.
type slotKey struct {
	name  string
	realm *realm
}

type realm struct{ label string }

// slot is everything about one service name in one realm. It exists while
// somebody claims, binds, needs or watches it.
type slot struct {
	link     link[slot]
	key      slotKey
	claims   []*Fiber   // installed fibers that declare or have bound it
	bindings []*binding // in order of providing
	first    *need      // required needs of installed fibers, oldest first
	last     *need
	shown    atomic.Pointer[binding]
	one      struct { // room for the usual case
		claims   [1]*Fiber
		bindings [1]*binding
	}
}

// binding is a value bound to a slot by an episode.
type binding struct {
	slot      *slot
	ep        *episode
	cell      any                // *cell[T]
	each      func(*Context) any // the value for one reader, or nil
	relied    int                // consumers whose view names it
	withdrawn bool
	eff       *effect
	at        int // its place in ep.bindings
}

// entry is a place in the composition below one episode; its versions are the
// fibers that hold or held it and are still installed, oldest first.
type entry struct {
	name     string
	parent   *episode
	versions []*Fiber
}

// undecided returns the holder and its undecided successor.
func (e *entry) undecided() (hold, next *Fiber) {
	for _, f := range e.versions {
		if !f.retired {
			if hold == nil {
				hold = f
			} else {
				next = f
			}
		}
	}
	return
}

// episode is one activation of a fiber, from begin to inactive.
type episode struct {
	f        *Fiber
	stamp    uint64                    // the scheduler's clock at begin; grows along every wait edge
	view     []atomic.Pointer[binding] // one for each required need; readers take no lock
	relied   int                       // consumers, counted once for each binding their view names
	body     Context                   // what Apply gets
	landed   event                     // how its last stage ended
	run      *stages
	limit    *time.Timer // of Apply
	inApp    bool        // a stage of Apply runs
	diverted bool        // its steps were ended: it cannot finish any more

	effects  []*effect
	done     int                       // effects that are done and not yet dropped
	current  *effect                   // the undo that runs
	manual   []*effect                 // asked for ahead of time, waiting for their turn
	waiting  *effect                   // the effect at which undoing stands
	entries  map[string]*entry         // named places below it
	bindings []*binding                // live ones
	waits    []*waiter                 // explicit waits made from its frames
	updates  []func(any) (bool, error) // in-place updates, newest first

	binds   atomic.Bool // has provided something
	over    atomic.Bool // no longer current
	visible atomic.Bool // active with all ancestors
	heard   bool        // was visible once: its listeners are in the lists
	mute    bool        // superseded or undoing: they are not any more
	gate    gate
	life    life
}

type effectKind uint8

const (
	userEffect effectKind = iota
	bindEffect
	listenEffect
	childEffect
	groupEffect // only a label over others
)

type effectState uint8

const (
	live effectState = iota
	queued
	running
	finished
)

type effect struct {
	name  string // what stands in the parentheses, or the label itself
	kind  effectKind
	state effectState
	early bool // undone ahead of its owner's end
	setup bool // its setup has not returned
	ep    *episode
	group *effect
	undo  seams.Undo
	bind  *binding
	hook  *listener
	child *Fiber
	err   error
}

// label names the effect for people.
func (e *effect) label() string {
	switch e.kind {
	case bindEffect:
		return "ctx.provide(" + e.name + ")"
	case listenEffect:
		return "ctx.on(" + e.name + ")"
	case childEffect:
		return "ctx.plugin(" + e.child.Name() + ")"
	default:
		return e.name
	}
}

// state is the whole of what the scheduler decides on. Only the goroutine that
// drains the queue touches it. It does no I/O, takes no lock, reads no clock
// and runs no plugin code: what must run elsewhere goes to out.
type state struct {
	c      *Container
	mut    mutation
	clock  uint64
	ids    uint64
	root   *Fiber
	closed bool // the root takes no registration any more

	dirty   []*Fiber
	spare   []*Fiber // the array that dirty does not use
	begins  []*Fiber
	hidden  bool // the publication stamp is odd
	lists   []*events
	notes   []note
	telling bool // notes are being handed to listeners

	reports   []Report
	reporting bool // reports are being handed over

	onStatus, onService, onPlugin *events  // the container\'s own events, nil if unheard
	check                         []*Fiber // fibers whose waiters must be looked at
	transit                       int      // fibers that load or unload, and held ones
	undos                         int      // manual undos on their way
	stuck                         []*effect
	idle                          []*waiter
	out                           []command
	taint                         uint64
	scratch                       []*binding
	vacant                        *slot  // the last one dropped: in the table, perhaps used again
	visits                        uint64 // fibers looked at, for scale assertions
}

// own records e as the newest effect of its episode.
func (st *state) own(e *effect) {
	e.ep.effects = append(e.ep.effects, e)
	st.trace("own", e.ep.f, e)
}

func (st *state) tick() uint64 { st.clock++; return st.clock }

func (st *state) mark(f *Fiber) {
	if !f.dirty && f.phase != removed {
		f.dirty = true
		st.dirty = append(st.dirty, f)
	}
}

func (st *state) markSlot(s *slot) {
	st.show(s)
	for n := s.first; n != nil; n = n.next {
		st.mark(n.f)
	}
}

// moved notes that f's phase changed from old.
func (st *state) moved(f *Fiber, old State) {
	st.check = append(st.check, f)
	if now := f.state(); now != old {
		f.status.Store(uint32(now))
		st.tell(note{fiber: f, old: old, now: now})
	}
}

// sweep ends an event: every active fiber whose view is no longer its target
// leaves, to a fixpoint, before the next event is looked at (N6).
func (st *state) sweep() {
	for {
		if len(st.dirty) == 0 {
			break
		}
		batch := st.dirty
		st.dirty, st.spare = st.spare[:0], nil
		for _, f := range batch {
			f.dirty = false
			st.visits++
			switch {
			case f.phase == pending:
				st.begins = append(st.begins, f)
			case f.phase != active || f == st.root || st.same(f):
			case st.mut.has(mutLazyLeave):
				st.out = append(st.out, command{kind: cmdPoke, f: f})
			default:
				st.leave(f)
			}
		}
		clear(batch)
		st.spare = batch
	}
	st.trace("event", nil, nil)
}

// refresh ends a batch of events: what can begin begins, and what has changed
// is shown.
func (st *state) refresh() {
	for len(st.begins) > 0 {
		begins := st.begins
		st.begins = nil
		for _, f := range begins {
			if f.phase == pending && st.target(f) {
				st.begin(f)
			}
		}
		st.sweep()
	}
	st.publish()
	st.trace("batch", nil, nil)
	st.resolveWaits()
}

// begin: Inactive with a target becomes Loading against it (L-Begin).
func (st *state) begin(f *Fiber) {
	old := f.state()
	if f.failed && st.mut.has(mutFailRetry) {
		f.failed, f.err = false, nil
	}
	ep := &episode{f: f, stamp: st.tick()}
	ep.body = Context{ep: ep, scope: f.scope}
	ep.gate.ep = ep
	if n := len(st.scratch); n > 0 {
		ep.view = make([]atomic.Pointer[binding], n)
	}
	for i, b := range st.scratch {
		ep.view[i].Store(b)
		b.relied++
		b.ep.relied++
	}
	f.ep, f.phase = ep, loading
	f.last.Store(ep)
	f.begins.Add(1)
	st.transit++
	ep.inApp = true
	st.out = append(st.out, command{kind: cmdStage, f: f, ep: ep})
	st.trace("begin", f, nil)
	st.moved(f, old)
	if st.mut.has(mutLeaveAtBegin) {
		st.takeover(f)
	}
}

// staged: a stage of Apply has landed.
func (st *state) staged(ev *event) {
	ep := ev.ep
	f := ep.f
	ep.inApp = false
	if f.ep != ep || f.phase != loading {
		return
	}
	st.trace("stage", f, nil)
	switch {
	case ev.err != nil && !(f.retired && (seams.CodeOf(ev.err) == seams.InactiveEffect || seams.CodeOf(ev.err) == seams.Unloaded)):
		st.fail(f, ev.err)
	case ep.diverted || !st.mut.has(mutNoRecheck) && !st.same(f):
		if !ev.last {
			ep.diverted, ep.inApp = true, true
			st.out = append(st.out, command{kind: cmdStop, f: f, ep: ep})
			return
		}
		st.leave(f)
	case ev.last:
		st.finish(f)
	default:
		ep.inApp = true
		st.out = append(st.out, command{kind: cmdStage, f: f, ep: ep})
	}
}

func (st *state) fail(f *Fiber, err error) {
	f.failed, f.err = true, err
	st.trace("fault", f, nil)
	st.blame(Report{Fiber: f, Phase: "apply", Err: err})
	if st.mut.has(mutSkipPrefix) {
		f.ep.effects = nil
		f.ep.bindings = nil
	}
	if st.mut.has(mutFailKills) {
		st.takeover(f)
	}
	st.leave(f)
}

// finish: the last stage landed and the view is the target (L-Finish). In the
// same step the fiber's names are published and every older version of its
// entry leaves (N5).
func (st *state) finish(f *Fiber) {
	old := f.state()
	f.phase = active
	f.acts++
	f.err = nil
	st.transit--
	st.trace("finish", f, nil)
	if st.mut.has(mutLateRetire) {
		st.out = append(st.out, command{kind: cmdPoke, f: f, retake: true})
	} else {
		st.takeover(f)
	}
	st.expose(f)
	st.moved(f, old)
}

func (st *state) takeover(f *Fiber) {
	if len(f.entry.versions) == 1 {
		return
	}
	for _, g := range slices.Clone(f.entry.versions) {
		if g.id < f.id {
			if g.ep != nil {
				st.silence(g)
			}
			st.retire(g)
		}
	}
}

// silence stops events from reaching a superseded version and what is below it.
func (st *state) silence(f *Fiber) {
	if f.ep != nil && !f.ep.mute {
		f.ep.mute = true
		st.relist(f.ep)
	}
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		st.silence(ch)
	}
}

// retire asks a fiber to go, for good (O-Retire). Idempotent.
func (st *state) retire(f *Fiber) {
	if f.retired || f.phase == removed || f == st.root {
		return
	}
	f.retired = true
	st.trace("retire", f, nil)
	if st.mut.has(mutRetiringMissed) && f.ep != nil {
		st.release(f.ep)
	}
	switch f.phase {
	case pending:
		st.tryRemove(f)
	case loading:
		f.ep.life.cancel(&ended{f, true})
	case active:
		st.leave(f)
	}
	st.check = append(st.check, f)
}

// leave: the fiber stops publishing; those committed to it keep it usable.
func (st *state) leave(f *Fiber) {
	old := f.state()
	if f.phase == active {
		st.transit++
		f.phase = leaving
		st.trace("leave", f, nil)
		st.unexpose(f)
	} else {
		f.phase = leaving
		st.trace("leave", f, nil)
	}
	f.ep.life.leave()
	st.moved(f, old)
	st.tryClose(f)
}

// tryClose passes the unload guard: nobody is committed to the fiber any more.
func (st *state) tryClose(f *Fiber) {
	ep := f.ep
	if f.phase != leaving || ep.relied > 0 && !st.mut.has(mutNoGuard|mutGuardAtProvide) {
		return
	}
	f.phase = closing
	ep.life.cancel(&ended{f, false})
	if ep.gate.close() || st.mut.has(mutCallsMissed) {
		st.startUndo(f)
		return
	}
	st.out = append(st.out, command{kind: cmdDrain, f: f, ep: ep})
	st.refuse(ep)
}

func (st *state) startUndo(f *Fiber) {
	if f.phase != closing {
		return
	}
	f.phase = undoing
	st.trace("undoing", f, nil)
	if !st.mut.has(mutLateListener) {
		f.ep.mute = true
		st.relist(f.ep)
	}
	st.nextUndo(f)
}

// nextUndo runs inverses, last first and one at a time, until one of them has
// to be waited for.
func (st *state) nextUndo(f *Fiber) {
	ep := f.ep
	if ep == nil || ep.current != nil || f.phase != undoing {
		return
	}
	ep.waiting = nil
	for {
		i := len(ep.effects) - 1
		if st.mut.has(mutFIFO) {
			i = slices.IndexFunc(ep.effects, func(e *effect) bool { return e.state != finished })
		}
		if i < 0 || len(ep.effects) == 0 {
			st.inactive(f)
			return
		}
		e := ep.effects[i]
		if e.state == finished {
			ep.effects = slices.Delete(ep.effects, i, i+1)
			continue
		}
		if e.setup { // whoever set it up undoes it, and then we go on
			ep.waiting = e
			return
		}
		switch e.kind {
		case bindEffect:
			if st.mut.has(mutGuardAtProvide) && ep.relied > 0 {
				ep.waiting = e
				return
			}
			st.trace("undo", f, e)
			st.unbind(e.bind)
		case listenEffect:
			st.trace("undo", f, e)
			if !st.mut.has(mutLateListener) {
				e.hook.dead.Store(true)
				st.unlist(e.hook)
			}
		case childEffect:
			st.trace("undo", f, e)
			st.retire(e.child)
			if e.child.phase != removed && !st.mut.has(mutChildNotWaited) {
				ep.waiting = e
				return
			}
			if e.state == finished {
				continue
			}
		case userEffect:
			ep.current = e
			if e.state == running {
				return // a nested undo that outlives the one it was a part of
			}
			st.trace("undo", f, e)
			e.state = running
			st.out = append(st.out, command{kind: cmdUndo, f: f, ep: ep, eff: e})
			return
		}
		st.finishEffect(e, nil)
	}
}

// undone: an inverse has returned.
func (st *state) undone(ev *event) {
	e := ev.eff
	ep := e.ep
	if e.state == finished {
		return
	}
	if st.mut.has(mutDoubleUndo) && !ev.last && len(ep.effects) > 0 && ep.effects[0] == e {
		st.out = append(st.out, command{kind: cmdUndo, f: ep.f, ep: ep, eff: e, again: true})
		return
	}
	if ep.current == e {
		ep.current = nil
	}
	st.stuck = slices.DeleteFunc(st.stuck, func(s *effect) bool { return s == e })
	if ev.err != nil {
		st.blame(Report{Fiber: ep.f, Phase: "undo", Label: e.label(), Err: ev.err})
	}
	st.finishEffect(e, ev.err)
	for ep.current == nil && len(ep.manual) > 0 {
		next := ep.manual[0]
		ep.manual = ep.manual[1:]
		if next.state == queued {
			next.state = running
			ep.current = next
			st.out = append(st.out, command{kind: cmdUndo, f: ep.f, ep: ep, eff: next})
		}
	}
	if ep.f.ep == ep && ep.f.phase == undoing {
		st.nextUndo(ep.f)
	}
}

// finishEffect marks an effect as undone and drops it from the list when it is
// the last, or when as many are done as live.
func (st *state) finishEffect(e *effect, err error) {
	if e.early {
		st.undos--
	}
	e.state, e.err = finished, err
	ep := e.ep
	st.trace("undone", ep.f, e)
	ep.done++
	if n := len(ep.effects); n > 0 && ep.effects[n-1] == e {
		ep.effects = ep.effects[:n-1]
		ep.done--
	} else if ep.done > 16 && ep.done > n/2 {
		ep.effects = slices.DeleteFunc(ep.effects, func(e *effect) bool { return e.state == finished })
		ep.done = 0
	}
	st.check = append(st.check, ep.f)
}

// inactive: everything of the episode is undone.
func (st *state) inactive(f *Fiber) {
	old := f.state()
	ep := f.ep
	ep.over.Store(true)
	f.ep, f.phase = nil, pending
	st.transit--
	st.trace("inactive", f, nil)
	st.moved(f, old)
	if !(f.retired && st.mut.has(mutRetiringMissed)) {
		st.release(ep)
	}
	if f.retired {
		st.tryRemove(f)
	} else {
		st.mark(f)
	}
}

// release gives up an episode's commitments.
func (st *state) release(ep *episode) {
	for i := range ep.view {
		b := ep.view[i].Load()
		b.relied--
		p := b.ep
		if p.relied--; p.relied == 0 && p.f.ep == p {
			if st.mut.has(mutGuardAtProvide) && p.waiting != nil && p.waiting.kind == bindEffect {
				st.nextUndo(p.f)
			}
			st.tryClose(p.f)
		}
		if b.withdrawn && b.relied == 0 && b.eff.state != finished {
			st.unbind(b)
			st.finishEffect(b.eff, nil)
		}
	}
}

// tryRemove drops a retired, inactive, childless fiber (O-Remove).
func (st *state) tryRemove(f *Fiber) {
	if !f.retired || f.phase != pending || f.kids.first != nil {
		return
	}
	old := f.state()
	f.phase = removed
	if f.held {
		f.held = false
		st.transit--
	}
	for i := range f.needs {
		st.unsubscribe(&f.needs[i])
	}
	for _, s := range f.claims {
		s.claims = without(s.claims, f)
		st.drop(s)
	}
	f.claims = nil
	e := f.entry
	e.versions = without(e.versions, f)
	if len(e.versions) == 0 && e.name != "" && e.parent != nil && e.parent.entries[e.name] == e {
		delete(e.parent.entries, e.name)
	}
	for _, g := range e.versions {
		st.mark(g) // an exclusive one waits for the older to be gone
	}
	st.trace("removed", f, nil)
	st.moved(f, old)
	if p := f.parent; p != nil {
		p.kids.remove(f)
		if f.eff != nil && f.eff.state != finished {
			at := f.eff.ep.waiting == f.eff
			st.finishEffect(f.eff, nil)
			if at {
				st.nextUndo(p)
			}
		}
		st.tryRemove(p)
	}
}

func without[T comparable](s []T, v T) []T {
	if i := slices.Index(s, v); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}
