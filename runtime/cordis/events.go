package cordis

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ouro-run/ouro/seams"
)

// listener is one registration on an event.
type listener struct {
	list  *events
	ctx   *Context
	ep    *episode
	scope *seams.Scope
	fn    seams.Handler
	front bool
	all   bool // heard whatever the filter says
	once  bool
	dead  atomic.Bool
}

// events is the list of one event's listeners.
type events struct {
	link  link[events]
	name  string
	mode  atomic.Uint32 // 1 + the mode it was first dispatched in
	items atomic.Pointer[[]*listener]

	every []*listener // registered ones, in order; the scheduler's
	stale bool
}

func (l *events) rebuild() {
	l.stale = false
	var items []*listener
	for _, h := range l.every {
		if h.ep.heard && !h.ep.mute && !h.dead.Load() {
			items = append(items, h)
		}
	}
	l.items.Store(&items)
}

func (st *state) touch(l *events) {
	if !l.stale {
		l.stale = true
		st.lists = append(st.lists, l)
	}
}

// relist notes that the episode's listeners come or go.
func (st *state) relist(ep *episode) {
	for _, e := range ep.effects {
		if e.kind == listenEffect && e.state != finished {
			st.touch(e.hook.list)
		}
	}
}

func (st *state) list(h *listener, event string) {
	if h.list = st.c.events.get(slotKey{name: event}); h.list == nil {
		h.list = &events{name: event}
		h.list.items.Store(new([]*listener))
		st.c.events.put(slotKey{name: event}, h.list, &h.list.link)
	}
	if h.front {
		h.list.every = slices.Insert(h.list.every, 0, h)
	} else {
		h.list.every = append(h.list.every, h)
	}
	st.observed(event, h.list)
	if h.ep.heard {
		st.touch(h.list)
	}
}

// observed keeps at hand whether the container's own events have listeners.
func (st *state) observed(event string, l *events) {
	switch event {
	case StatusEvent.Name:
		st.onStatus = l
	case ServiceEvent.Name:
		st.onService = l
	case PluginEvent.Name:
		st.onPlugin = l
		st.c.watch.Store(l != nil)
	}
}

func (st *state) unlist(h *listener) {
	h.list.every = without(h.list.every, h)
	st.touch(h.list)
	if len(h.list.every) == 0 {
		st.c.events.remove(slotKey{name: h.list.name})
		st.observed(h.list.name, nil)
	}
}

func (h *listener) hears(scope *seams.Scope, where func(*Context) bool) bool {
	return h.all || (h.scope == nil || scope.Within(h.scope)) && (where == nil || where(h.ctx))
}

// call runs the listener; a panic is contained.
func (h *listener) call(ctx context.Context, payload any, next seams.Next) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = h.panicked(r)
		}
	}()
	return h.fn(ctx, payload, next)
}

// panicked charges a panic to the listener's owner.
func (h *listener) panicked(r any) error {
	err := &seams.Error{Code: seams.Panicked, Op: h.ep.f.label(), Msg: fmt.Sprintf("a listener of %s panicked: %v\n%s", h.list.name, r, debug.Stack())}
	h.ep.f.c.report(Report{Fiber: h.ep.f, Phase: "listener", Label: h.list.name, Err: err})
	return err
}

// take claims a once listener; others may always run.
func (h *listener) take() bool {
	if !h.once {
		return true
	}
	if h.dead.Swap(true) {
		return false
	}
	h.ep.f.c.do(func(st *state) {
		st.unlist(h)
		for _, e := range h.ep.effects {
			if e.hook == h && e.state == live {
				st.finishEffect(e, nil)
				return
			}
		}
	})
	return true
}

// dispatch sends d to the listeners that are visible now (E1), entering the
// lease of each one's owner.
func (c *Container) dispatch(ctx context.Context, d seams.Dispatch, where func(*Context) bool) (any, error) {
	var items []*listener
	if l := c.events.get(slotKey{name: d.Event}); l != nil {
		items = *l.items.Load()
		if m := uint32(d.Mode) + 1; l.mode.Load() != m && !l.mode.CompareAndSwap(0, m) {
			c.conflict(l, d.Mode)
		}
	}
	switch d.Mode {
	case seams.Parallel:
		return nil, c.parallel(ctx, items, d, where)
	case seams.Waterfall:
		w := &waterfall{items: items, d: d, where: where}
		return w.from(ctx, 0)
	default:
		if len(items) == 0 {
			return nil, nil
		}
		s := sequence{ctx: ctx, items: items, scope: d.Scope, load: d.Payload, where: where, all: d.Mode == seams.Emit}
		return s.run()
	}
}

// conflict reports, once, that an event is dispatched in two modes (E7).
func (c *Container) conflict(l *events, m seams.Mode) {
	old := l.mode.Swap(1 << 16)
	if old >= 1<<16 || old == 0 || seams.Mode(old-1) <= seams.Parallel && m <= seams.Parallel {
		l.mode.CompareAndSwap(1<<16, old)
		return
	}
	c.report(Report{Phase: "event", Label: l.name, Err: seams.Errorf(seams.ModeConflict, l.name,
		"the event is dispatched as %s and as %s", seams.Mode(old-1), m)})
}

// sequence is one dispatch in a mode that calls listeners one after another.
// Adjacent listeners of one owner share a lease and a frame.
type sequence struct {
	ctx   context.Context
	frame *frame
	rest  []frame // for the owners to come
	items []*listener
	at    int
	scope *seams.Scope
	load  any
	where func(*Context) bool
	all   bool // call all, join errors; else the first error or bail value ends it
	ep    *episode
	value any
	errs  []error
}

func (s *sequence) run() (any, error) {
	for s.at < len(s.items) {
		s.part()
	}
	if len(s.errs) == 0 {
		return s.value, nil
	}
	return nil, errors.Join(s.errs...)
}

// part calls listeners until the end or until one panics, which costs it one
// deferred call for all of them.
func (s *sequence) part() {
	defer func() {
		if r := recover(); r != nil {
			s.fail(s.items[s.at-1].panicked(r))
		}
		s.exit()
	}()
	for s.at < len(s.items) {
		h := s.items[s.at]
		s.at++
		if !h.hears(s.scope, s.where) || h.ep != s.ep && !s.enter(h) || h.dead.Load() || !h.take() {
			continue
		}
		v, err := h.fn(s.frame, s.load, nil)
		if err != nil {
			s.fail(err)
		} else if !s.all && seams.Bails(v) {
			s.value, s.at = v, len(s.items)
		}
	}
}

func (s *sequence) fail(err error) {
	s.errs = append(s.errs, err)
	if !s.all {
		s.at = len(s.items)
	}
}

// enter changes the lease to that of h's owner. Each owner has a frame of its
// own: a listener may keep it, and it must not come to stand in another's code.
func (s *sequence) enter(h *listener) bool {
	s.exit()
	t, ok := h.ep.gate.enter()
	if !ok {
		if h.ep.f.c.st.mut.has(mutLateListener) {
			_, _ = h.call(s.ctx, s.load, nil)
		}
		return false
	}
	if len(s.rest) == 0 {
		s.rest = make([]frame, changes(s.items[s.at-1:]))
	}
	s.ep, s.frame, s.rest = h.ep, &s.rest[0], s.rest[1:]
	s.frame.Context, s.frame.ep, s.frame.kind, s.frame.ticket = s.ctx, h.ep, callFrame, t
	return true
}

// changes is how often the owner changes, the first included.
func changes(items []*listener) int {
	n := 1
	for i := 1; i < len(items); i++ {
		if items[i].ep != items[i-1].ep {
			n++
		}
	}
	return n
}

func (s *sequence) exit() {
	if s.ep != nil {
		s.frame.leave()
		s.ep.gate.exit(s.frame.ticket)
		s.ep = nil
	}
}

func (c *Container) parallel(ctx context.Context, items []*listener, d seams.Dispatch, where func(*Context) bool) error {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, h := range items {
		if !h.hears(d.Scope, where) {
			continue
		}
		t, ok := h.ep.gate.enter()
		if !ok {
			continue
		}
		wg.Go(func() {
			fr := newFrame(ctx, h.ep, callFrame, t)
			defer h.ep.gate.exit(t)
			defer fr.leave()
			if !h.dead.Load() && h.take() {
				_, errs[i] = h.call(fr, d.Payload, nil)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// waterfall is one dispatch in that mode.
type waterfall struct {
	items []*listener
	d     seams.Dispatch
	where func(*Context) bool
}

// from runs the listeners from i on, and the default inside them all.
func (w *waterfall) from(ctx context.Context, i int) (any, error) {
	for ; i < len(w.items); i++ {
		h := w.items[i]
		if !h.hears(w.d.Scope, w.where) {
			continue
		}
		t, ok := h.ep.gate.enter()
		if !ok {
			continue
		}
		if h.dead.Load() || !h.take() {
			h.ep.gate.exit(t)
			continue
		}
		return w.enter(ctx, h, t, i+1)
	}
	if w.d.Default == nil {
		return nil, nil
	}
	return w.d.Default(ctx)
}

func (w *waterfall) enter(ctx context.Context, h *listener, t ticket, rest int) (any, error) {
	fr := newFrame(ctx, h.ep, callFrame, t)
	defer h.ep.gate.exit(t)
	defer fr.leave()
	var used atomic.Bool
	return h.call(fr, w.d.Payload, func(ctx context.Context) (any, error) {
		if used.Swap(true) {
			return nil, seams.Errorf(seams.NextTwice, w.d.Event, "a listener of %s called next twice", h.ep.f.label())
		}
		return w.from(ctx, rest)
	})
}

// note is a change that listeners of internal/status or internal/service hear, or
// a report from inside a step.
type note struct {
	fiber    *Fiber
	old, now State
	service  string
	realm    *realm
}

// StatusChange is the payload of internal/status.
type StatusChange struct {
	Fiber *Fiber
	Old   State
	New   State
}

// ServiceChange is the payload of internal/service: a service appeared, changed
// or vanished. Only listeners whose context resolves the name to the same realm
// hear it.
type ServiceChange struct{ Name string }

// Events of the container itself. All are observed, in order, after the change;
// errors are reported and contained. Plugins that mount plugins are asked first
// through internal/plugin.
var (
	// StatusEvent tells each change of a fiber's state once, in order (Q10).
	StatusEvent = seams.Event[StatusChange, struct{}]{Name: "internal/status", Mode: seams.Emit}
	// ServiceEvent tells that what a name resolves to has changed.
	ServiceEvent = seams.Event[ServiceChange, struct{}]{Name: "internal/service", Mode: seams.Emit}
	// PluginEvent is dispatched before a mounted fiber may begin, and again when
	// it is disposed. An error from a listener of the first refuses the mount
	// (C-67…C-71).
	PluginEvent = seams.Event[*Fiber, struct{}]{Name: "internal/plugin", Mode: seams.Emit}
)

// watched reports whether mounts are announced before they may begin.
func (c *Container) watched() bool { return c.watch.Load() }

// tell queues a change if anybody listens.
func (st *state) tell(n note) {
	if n.fiber == nil && st.onService == nil || n.fiber != nil && st.onStatus == nil && (n.now != Disposed || st.onPlugin == nil) {
		return
	}
	st.notes = append(st.notes, n)
	if !st.telling {
		st.telling = true
		st.out = append(st.out, command{kind: cmdTell})
	}
}

// tellAll hands queued notes to their listeners until there are none.
func (c *Container) tellAll() {
	var notes []note
	defer func() {
		if len(notes) > 0 { // an observer called Goexit; others hear the rest
			c.do(func(st *state) {
				st.notes = append(notes[1:], st.notes...)
				st.out = append(st.out, command{kind: cmdTell})
			})
		}
	}()
	for {
		c.do(func(st *state) {
			notes, st.notes = st.notes, nil
			if len(notes) == 0 {
				st.telling = false
			}
		})
		if len(notes) == 0 {
			return
		}
		for ; len(notes) > 0; notes = notes[1:] {
			c.tell(notes[0])
		}
	}
}

func (c *Container) tell(n note) {
	var err error
	ctx := context.WithValue(c.ctx, unsettled{}, true)
	switch {
	case n.fiber == nil:
		_, err = c.dispatch(ctx, seams.Dispatch{Event: ServiceEvent.Name, Payload: ServiceChange{n.service}}, func(l *Context) bool {
			return l.realmOf(n.service) == n.realm
		})
	default:
		_, err = c.dispatch(ctx, seams.Dispatch{Event: StatusEvent.Name, Payload: StatusChange{n.fiber, n.old, n.now}}, nil)
		if n.now == Disposed {
			_, perr := c.dispatch(ctx, seams.Dispatch{Event: PluginEvent.Name, Payload: n.fiber}, nil)
			err = errors.Join(err, perr)
		}
	}
	if err != nil {
		c.report(Report{Fiber: n.fiber, Phase: "observer", Err: err})
	}
}
