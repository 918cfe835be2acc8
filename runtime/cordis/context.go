package cordis

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/ouro-run/ouro/seams"
)

// Context is what plugin code registers and reads through. It is bound to one
// activation: when that is over, every registration answers INACTIVE_EFFECT for
// ever. Contexts derived by Isolate, Intercept and WithScope belong to the same
// activation. It implements seams.Owner and seams.Bus.
type Context struct {
	ep    *episode
	lay   *layer
	scope *seams.Scope
}

var (
	_ seams.Owner = (*Context)(nil)
	_ seams.Bus   = (*Context)(nil)
)

// layer is one isolation or interception, inner before outer.
type layer struct {
	name  string
	realm *realm
	set   bool // realm is meant, not meta
	meta  map[string]any
	next  *layer
}

// Fiber returns the fiber this context belongs to.
func (ctx *Context) Fiber() *Fiber { return ctx.ep.f }

// Container returns the container.
func (ctx *Context) Container() *Container { return ctx.ep.f.c }

// Context returns the activation's context.Context. It is cancelled, with a
// cause coded UNLOADED, after the last consumer has left and before the first
// of the activation's own undos starts; a plugin disposed while loading sees it
// at once (C3).
func (ctx *Context) Context() context.Context { return ctx.ep.life.context(ctx.ep.f.c, ctx.ep) }

// Leaving is closed when the plugin stops being available to new consumers: the
// signal to take no new work. Those committed to it may still call.
func (ctx *Context) Leaving() <-chan struct{} { return ctx.ep.life.leaving() }

// Scope is the scope registrations go to and dispatches come from.
func (ctx *Context) Scope() *seams.Scope { return ctx.scope }

// WithScope returns the same activation's context in another scope.
func (ctx *Context) WithScope(s *seams.Scope) *Context {
	return &Context{ctx.ep, ctx.lay, s}
}

// Isolate returns a context in which the service name is read from and provided
// to another realm (C-52…C-54). An empty label makes a private realm; equal
// labels, for one name, share one. There is no fallback to the outer realm.
func (ctx *Context) Isolate(name, label string) *Context {
	r := &realm{label}
	if label != "" {
		r = ctx.ep.f.c.namedRealm(name, label)
	}
	return &Context{ctx.ep, &layer{name: name, realm: r, set: true, next: ctx.lay}, ctx.scope}
}

// Intercept returns a context that adds a layer of metadata for the service
// name. Layers merge key by key, inner ones win; they change what a provider
// answers, never whether it is there (A15).
func (ctx *Context) Intercept(name string, meta map[string]any) *Context {
	return &Context{ctx.ep, &layer{name: name, meta: maps.Clone(meta), next: ctx.lay}, ctx.scope}
}

// Meta returns the merged metadata for the service name, nil if there is none.
// The map belongs to the caller.
func (ctx *Context) Meta(name string) map[string]any {
	var out map[string]any
	add := func(meta map[string]any) {
		for k, v := range meta {
			if _, ok := out[k]; !ok {
				if out == nil {
					out = map[string]any{}
				}
				out[k] = v
			}
		}
	}
	ctx.layers(func(l *layer) bool {
		if l.name == name && !l.set {
			add(l.meta)
		}
		return true
	})
	return out
}

// layers calls f for every layer, inner before outer, until it answers false.
func (ctx *Context) layers(f func(*layer) bool) {
	walk := func(l *layer) bool {
		for ; l != nil; l = l.next {
			if !f(l) {
				return false
			}
		}
		return true
	}
	if !walk(ctx.lay) {
		return
	}
	for a := ctx.ep.f; a != nil; a = a.parent {
		for _, n := range a.p.Inject {
			if n.Meta != nil && !f(&layer{name: n.Name, meta: n.Meta}) {
				return
			}
		}
		if !walk(a.base.Load()) {
			return
		}
	}
}

func (ctx *Context) realmOf(name string) *realm {
	for l := ctx.lay; l != nil; l = l.next {
		if l.set && l.name == name {
			return l.realm
		}
	}
	return ctx.ep.f.realmOf(name)
}

func (f *Fiber) realmOf(name string) *realm {
	for a := f; a != nil; a = a.parent {
		for l := a.base.Load(); l != nil; l = l.next {
			if l.set && l.name == name {
				return l.realm
			}
		}
	}
	return nil
}

func (f *Fiber) slotOf(name string) slotKey { return slotKey{name, f.realmOf(name)} }

func (ctx *Context) inactive(op string) error {
	return seams.Errorf(seams.InactiveEffect, op, "plugin %s is no longer active here", ctx.ep.f.label())
}

// mount is one request to mount a plugin.
type mount struct {
	p       *Plugin
	cfg     any
	resolve func(*Context) (any, error)
	from    *Fiber // another version of this fiber's entry
	name    string // or a named place, "" for an anonymous one
	out     *Fiber
	err     error
	same    bool // nothing changed: out is the holder
}

// Plugin mounts p below this activation, in a place of its own: always a new
// fiber (§1.4). It does not wait for the plugin to load. It fails with
// INVALID_PLUGIN, INACTIVE_EFFECT, CLASH, or the error of an internal/plugin
// listener, and then changes nothing.
func (ctx *Context) Plugin(p *Plugin, cfg any) (*Fiber, error) {
	return ctx.mount(mount{p: p, cfg: cfg})
}

// Load is Plugin that runs Apply in the caller's goroutine, if the plugin can
// begin at once, and returns when the fiber is at rest: active, failed (with its
// error), or pending.
func (ctx *Context) Load(c context.Context, p *Plugin, cfg any) (*Fiber, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	in := ctx.ep.f.c
	m := &mount{p: p, cfg: cfg}
	if in.watched() {
		f, err := ctx.mount(*m)
		if err != nil {
			return nil, err
		}
		return f, f.Settle(c)
	}
	out := in.decide(func(st *state) { st.mount(ctx, m, false) })
	for i := range out {
		if out[i].f == m.out && m.out != nil {
			mine := out[i]
			in.exec.start(in, append(out[:i:i], out[i+1:]...))
			out = nil
			in.carry(mine)
			break
		}
	}
	in.exec.start(in, out)
	if m.err != nil {
		return nil, m.err
	}
	if m.out.State() == Active {
		in.published()
		return m.out, nil
	}
	return m.out, m.out.Settle(c)
}

// Inject runs apply as a child plugin while names are all there.
func (ctx *Context) Inject(names []string, apply func(*Context) error) (*Fiber, error) {
	return ctx.Plugin(&Plugin{Inject: Inject(names...), Apply: func(ctx *Context, _ any) error { return apply(ctx) }}, nil)
}

func (ctx *Context) mount(m mount) (*Fiber, error) {
	fs, err := ctx.mountAll([]*mount{&m})
	if err != nil {
		return nil, err
	}
	return fs[0], nil
}

// mountAll mounts in one step. The first error is returned; the others are
// mounted all the same unless they failed too.
func (ctx *Context) mountAll(ms []*mount) ([]*Fiber, error) {
	c := ctx.ep.f.c
	for _, m := range ms {
		if err := m.p.check(); err != nil {
			return nil, err
		}
	}
	watched := c.watched()
	c.do(func(st *state) {
		for _, m := range ms {
			st.mount(ctx, m, watched)
		}
	})
	return ctx.announceMounts(ms, watched)
}

func (ctx *Context) announceMounts(ms []*mount, watched bool) ([]*Fiber, error) {
	c := ctx.ep.f.c
	var first error
	out := make([]*Fiber, len(ms))
	if watched {
		for _, m := range ms {
			if m.err == nil && !m.same {
				in := context.WithValue(context.WithValue(ctx.Context(), unsettled{}, true), announcing{m.out}, true)
				_, m.err = c.dispatch(in, seams.Dispatch{Event: PluginEvent.Name, Payload: m.out}, nil)
			}
		}
		c.do(func(st *state) {
			for _, m := range ms {
				st.announced(m)
			}
		})
	}
	for i, m := range ms {
		if m.err == nil {
			out[i] = m.out
		} else if first == nil {
			first = m.err
		}
	}
	return out, first
}

// announced lets a mounted fiber begin, or takes it back if that was refused.
func (st *state) announced(m *mount) {
	f := m.out
	switch {
	case f == nil || !f.held:
	case m.err != nil:
		st.retire(f)
	default:
		f.held = false
		st.transit--
		st.trace("release", f, nil)
		st.mark(f)
		st.succeed(f)
	}
}

// AddNeed adds a required service to a fiber that has not begun. Only an
// internal/plugin listener may call it (C-67).
func (f *Fiber) AddNeed(name string) error {
	err := seams.Errorf(seams.InactiveEffect, "cordis.AddNeed", "%s has already begun", f.label())
	f.c.do(func(st *state) {
		if !f.held || f.phase == removed {
			return
		}
		err = nil
		for i := range f.needs {
			st.unsubscribe(&f.needs[i])
		}
		f.needs = append(f.needs, need{Need: Need{Name: name}})
		st.subscribeAll(f)
	})
	if err == nil {
		return nil
	}
	return err
}

func (st *state) subscribeAll(f *Fiber) {
	for i := range f.needs {
		n := &f.needs[i]
		n.f = f
		k := f.slotOf(n.Name)
		n.slot = st.slot(k)
		st.subscribe(n)
	}
}

func (st *state) slot(k slotKey) *slot {
	if s := st.c.slots.get(k); s != nil {
		return s
	}
	s := &slot{key: k}
	s.claims, s.bindings = s.one.claims[:0], s.one.bindings[:0]
	st.c.slots.put(k, s, &s.link)
	return s
}

// mount is O-Insert, and N1 where the entry has versions.
func (st *state) mount(ctx *Context, m *mount, hold bool) {
	ep := ctx.ep
	p := ep.f
	open := st.open(ep) && !p.retired
	if !open && !(st.mut.has(mutExtUnderInactive) && p.phase != removed) {
		m.err = ctx.inactive("cordis.Plugin")
		return
	}
	var e *entry
	switch {
	case m.from != nil:
		if m.from.retired {
			m.err = seams.Errorf(seams.InactiveEffect, "cordis.Fiber", "%s was disposed or replaced", m.from.label())
			return
		}
		e = m.from.entry
	case m.name != "":
		if e = ep.entries[m.name]; e == nil {
			e = &entry{name: m.name, parent: ep}
		}
	}
	f := &Fiber{c: st.c, p: m.p, parent: p, scope: ctx.scope, raw: m.cfg, resolve: m.resolve, held: hold}
	if e == nil {
		e = &f.place
		e.parent = ep
	}
	holder, next := e.undecided()
	if m.name != "" && st.unchanged(ctx, m, holder, next) {
		m.same = true
		return
	}
	f.entry = e
	st.ids++
	f.id = st.ids
	f.base.Store(ctx.lay)
	var slots []*slot
	for _, n := range m.p.Provide {
		s := st.slot(f.slotOf(n))
		slots = append(slots, s)
		if o := st.clash(f, s); o != nil {
			m.err = seams.Errorf(seams.Clash, "cordis.Plugin", "%s provides %q, which %s already provides", f.Name(), n, o.label())
			for _, s := range slots {
				st.drop(s)
			}
			st.ids--
			return
		}
	}
	for _, s := range slots {
		f.claims = append(f.claims, s)
		s.claims = append(s.claims, f)
	}
	if m.name != "" && ep.entries[m.name] == nil {
		if ep.entries == nil {
			ep.entries = map[string]*entry{}
		}
		ep.entries[m.name] = e
	}
	if len(m.p.Inject) > 0 {
		f.needs = make([]need, len(m.p.Inject))
		for i, n := range m.p.Inject {
			f.needs[i].Need = n
		}
	}
	st.subscribeAll(f)
	e.versions = append(e.versions, f)
	p.kids.add(f)
	st.trace("mount", f, nil)
	if open {
		f.eff = &effect{kind: childEffect, ep: ep, child: f}
		st.own(f.eff)
	}
	if hold {
		st.transit++
	}
	st.mark(f)
	if !hold {
		st.succeed(f)
	}
	m.out = f
}

// succeed is what the insertion of f beside its holder ends at once (N1): an
// undecided successor before it, and a holder that there is no point in keeping.
func (st *state) succeed(f *Fiber) {
	holder, _ := f.entry.undecided()
	for _, g := range slices.Clone(f.entry.versions) {
		switch {
		case g.id >= f.id:
		case g != holder, g.acts == 0, g.failed, st.gap(g, f), st.mut.has(mutLoseAtInsert) && g.phase != active:
			st.retire(g)
		}
	}
}

// gap: the successor is exclusive, or needs a name of its own predecessor.
func (st *state) gap(hold, f *Fiber) bool {
	if hold.p.Exclusive || f.p.Exclusive {
		return true
	}
	for i := range f.needs {
		if n := &f.needs[i]; !n.Optional && slices.Contains(hold.claims, n.slot) && !slices.ContainsFunc(n.slot.claims, func(o *Fiber) bool { return o != hold && !o.kin(hold) }) {
			return true
		}
	}
	return false
}

// Effect runs setup and records its undo under label. The place in the order of
// undoing is taken before setup runs; an owner that is unloaded meanwhile waits
// for setup and undoes what it made, and Effect then answers INACTIVE_EFFECT
// after that (R10, R11; C-61…C-66). A nil undo with a nil error records nothing.
// The returned undo undoes this effect alone, once; called again it does nothing
// (C-02, C-64).
func (ctx *Context) Effect(label string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	e := &effect{name: label, kind: userEffect, setup: true}
	if !ctx.ep.record(e) {
		return nil, ctx.inactive(label)
	}
	var undo seams.Undo
	returned := false
	defer func() {
		if !returned { // setup called Goexit
			_, _ = ctx.landed(e, nil, errGoexit)
		}
	}()
	err := contain(func() (err error) {
		undo, err = setup(withFrame(ctx.Context(), ctx.ep, bodyFrame))
		return err
	})
	returned = true
	return ctx.landed(e, undo, err)
}

// landed completes an effect whose setup has returned.
func (ctx *Context) landed(e *effect, undo seams.Undo, err error) (seams.Undo, error) {
	ep := ctx.ep
	c := ep.f.c
	lost := false
	c.do(func(st *state) {
		e.undo = undo
		if err != nil || undo == nil {
			st.finishEffect(e, nil)
		} else {
			lost = ep.f.ep != ep || ep.f.phase == undoing || ep.f.phase == closing || ep.f.phase == leaving && ep.life.over()
		}
		st.setUp(e)
	})
	if err != nil {
		return nil, err
	}
	if lost {
		// Unless its turn has come, it is undone here and now: the caller may stand
		// in a call that the unload waits for.
		_ = e.undoEarly(context.WithoutCancel(ctx.Context()))
		return nil, ctx.inactive(e.label())
	}
	if undo == nil {
		return func(context.Context) error { return nil }, nil
	}
	return e.undoEarly, nil
}

// setUp lets an unload that waits for the setup of e, or of its group, go on.
func (st *state) setUp(e *effect) {
	e.setup = false
	if w := e.ep.waiting; e.ep.f.ep == e.ep && w != nil && (w == e || w == e.group) {
		st.nextUndo(e.ep.f)
	}
}

// record adds an effect to the episode. It fails when the episode is over or
// unloading.
func (ep *episode) record(e *effect) bool {
	e.ep = ep
	ok := false
	ep.f.c.do(func(st *state) {
		if ok = st.open(ep); ok {
			st.own(e)
		}
	})
	return ok
}

// open reports whether the episode takes registrations.
func (st *state) open(ep *episode) bool {
	return ep.f.ep == ep && (ep.f.phase == loading || ep.f.phase == active) && !(st.closed && ep.f == st.root)
}

// EffectSeq is an effect of several steps: each element is recorded when it is
// yielded, under label, and undone on its own, last first. Pulling stops when
// the owner is being unloaded; what landed is undone. An error undoes what had
// landed and is returned (C-03, C-07…C-14).
func (ctx *Context) EffectSeq(label string, steps iter.Seq2[seams.Undo, error]) (seams.Undo, error) {
	g := &effect{name: label, kind: groupEffect, setup: true}
	if !ctx.ep.record(g) {
		return nil, ctx.inactive(label)
	}
	c := ctx.ep.f.c
	all := func(cx context.Context) error { return c.undoGroup(cx, g) }
	var failed error
	defer c.do(func(st *state) { st.setUp(g) }) // unless it was before
	err := contain(func() error {
		for undo, err := range steps {
			if err != nil {
				return err
			}
			if undo == nil {
				undo = func(context.Context) error { return nil }
			}
			e := &effect{name: label, kind: userEffect, group: g, setup: true}
			e.ep = ctx.ep
			// The step has landed: it is recorded whatever the owner does now.
			c.do(func(st *state) { st.own(e) })
			if _, failed = ctx.landed(e, undo, nil); failed != nil {
				return nil
			}
		}
		return nil
	})
	c.do(func(st *state) { st.setUp(g) })
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		_ = all(ctx.Context())
		return nil, err
	}
	return all, nil
}

// Go runs f in a goroutine that the activation owns. Its context is cancelled,
// and the goroutine joined, at its own place in the order of undoing, so it
// still serves the undos of what was registered after it (C4). Its error is
// reported; a panic is contained.
func (ctx *Context) Go(label string, f func(context.Context) error) (seams.Undo, error) {
	c := ctx.ep.f.c
	return ctx.Effect(label, func(context.Context) (seams.Undo, error) {
		run, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
		done := make(chan struct{})
		c.wg.Go(func() {
			defer close(done)
			if err := contain(func() error { return f(withFrame(run, ctx.ep, ownedFrame)) }); err != nil && run.Err() == nil {
				c.report(Report{Fiber: ctx.ep.f, Phase: "goroutine", Label: label, Err: err})
			}
		})
		return func(context.Context) error {
			cancel(seams.Errorf(seams.Unloaded, label, "its owner was unloaded"))
			<-done
			return nil
		}, nil
	})
}

// ListenOption changes how a listener is registered.
type ListenOption func(*listener)

// Prepend puts the listener before all others.
func Prepend() ListenOption { return func(l *listener) { l.front = true } }

// Global makes the listener hear dispatches whatever their scope or filter.
func Global() ListenOption { return func(l *listener) { l.all = true } }

// Once removes the listener before its first call (C-21).
func Once() ListenOption { return func(l *listener) { l.once = true } }

// On registers a listener on event, in order of registration. It hears events
// from when the activation becomes active. The returned undo removes it: when
// it has returned, the listener does not run and will not again, except in calls
// that the caller stands in or that wait for it.
func (ctx *Context) On(event string, h seams.Handler) (seams.Undo, error) {
	return ctx.Listen(event, h)
}

// Listen is On with options.
func (ctx *Context) Listen(event string, h seams.Handler, opts ...ListenOption) (seams.Undo, error) {
	ep := ctx.ep
	l := &listener{ctx: ctx, ep: ep, scope: ctx.scope, fn: h}
	for _, o := range opts {
		o(l)
	}
	e := &effect{name: event, kind: listenEffect, ep: ep, hook: l}
	ok := false
	ep.f.c.do(func(st *state) {
		if ok = st.open(ep); ok {
			st.own(e)
			st.list(l, event)
		}
	})
	if !ok {
		return nil, ctx.inactive(e.label())
	}
	return e.undoEarly, nil
}

// Dispatch sends an event from this context's scope when d has none.
func (ctx *Context) Dispatch(c context.Context, d seams.Dispatch) (any, error) {
	if d.Scope == nil {
		d.Scope = ctx.scope
	}
	return ctx.ep.f.c.dispatch(c, d, nil)
}

// DispatchIn is Dispatch to those listeners only whose contexts read the service
// name from the same realm as this one (C-23…C-26, C-55).
func (ctx *Context) DispatchIn(c context.Context, name string, d seams.Dispatch) (any, error) {
	r := ctx.realmOf(name)
	return ctx.ep.f.c.dispatch(c, d, func(l *Context) bool { return l.realmOf(name) == r })
}

// OnUpdate offers changed configurations to take: it answers true when it has
// taken one in place, and an error to refuse it. The newest is asked first. An
// update nobody takes mounts a new version.
func (ctx *Context) OnUpdate(take func(cfg any) (bool, error)) error {
	ok := false
	ctx.ep.f.c.do(func(st *state) {
		if ok = st.open(ctx.ep); ok {
			ctx.ep.updates = append([]func(any) (bool, error){take}, ctx.ep.updates...)
		}
	})
	if !ok {
		return ctx.inactive("ctx.onUpdate")
	}
	return nil
}

// Claim identifies this activation to registries.
func (ctx *Context) Claim() seams.Claim { return (*claim)(ctx.ep) }

// claim is an episode as seams.Claim.
type claim episode

func (k *claim) Visible() bool { return k.visible.Load() }

func (k *claim) Kin(o seams.Claim) bool {
	other, ok := o.(*claim)
	return ok && other != k && k.f.kin(other.f)
}

func (k *claim) Enter(ctx context.Context) (context.Context, func(), error) {
	ep := (*episode)(k)
	t, ok := ep.gate.call()
	if !ok {
		return nil, nil, seams.Errorf(seams.InactiveEffect, k.f.label(), "the plugin was unloaded")
	}
	fr := newFrame(ctx, ep, callFrame, t)
	return fr, func() {
		if fr.leave() {
			ep.gate.exit(t)
		}
	}, nil
}

func (k *claim) String() string { return k.f.label() }

// Report hands an error that no caller is answered with to [Options].Report, as
// this activation's.
func (ctx *Context) Report(phase, label string, err error) {
	ctx.ep.f.c.report(Report{Fiber: ctx.ep.f, Phase: phase, Label: label, Err: err})
}
