package cordis

import (
	"context"
	"errors"
	"reflect"
	"slices"
)

// Entry is a named place below one activation. Setting it again replaces what
// stands there without a gap (N1…N7): the new version loads hidden beside the
// old one and takes over in the step in which it becomes active; if it fails,
// stays pending or is withdrawn, nobody else notices.
type Entry struct {
	ctx  *Context
	name string
}

// Entry returns the place called name. Contexts derived from one activation
// share its places; the realms and metadata of ctx are those the plugin gets.
func (ctx *Context) Entry(name string) *Entry { return &Entry{ctx, name} }

// Set mounts p at the place, or replaces what stands there. It answers the fiber
// that now is the newest version: the present one when plugin, configuration
// and the realms of what it injects and provides are all as before; its
// metadata is then changed in place. resolve, if not nil, makes the raw
// configuration at each activation, in that activation's context. If only the
// configuration differs, the running version is asked first whether it takes it
// in place ([Context.OnUpdate]); its refusal is returned and changes nothing.
func (e *Entry) Set(p *Plugin, cfg any, resolve func(*Context) (any, error)) (*Fiber, error) {
	var f *Fiber
	equal := false
	e.ctx.ep.f.c.do(func(st *state) {
		if at := e.ctx.ep.entries[e.name]; at != nil {
			hold, next := at.undecided()
			if next == nil && hold != nil && hold.phase == active && hold.p == p && len(hold.ep.updates) > 0 && hold.scope == e.ctx.scope && st.sameSlots(hold, e.ctx) {
				f = hold
				equal = resolve == nil && f.resolve == nil && reflect.DeepEqual(f.raw, cfg)
			}
		}
	})
	if f != nil && !equal {
		if took, err := f.offer(cfg, resolve); took || err != nil {
			if took {
				f.base.Store(e.ctx.lay)
			}
			return f, err
		}
	}
	return e.ctx.mount(mount{p: p, cfg: cfg, resolve: resolve, name: e.name})
}

// Unmount retires every version.
func (e *Entry) Unmount() *Done {
	d := &Done{c: e.ctx.ep.f.c, what: goneAll}
	d.c.do(func(st *state) { d.all = st.unmount(e) })
	return d
}

// unmount retires all versions and answers them.
func (st *state) unmount(e *Entry) (all []*Fiber) {
	if at := e.ctx.ep.entries[e.name]; at != nil {
		all = slices.Clone(at.versions)
		for _, f := range all {
			st.retire(f)
		}
	}
	return
}

// Withdraw retires the undecided successor, if there is one.
func (e *Entry) Withdraw() *Done {
	d := &Done{c: e.ctx.ep.f.c, what: gone}
	d.c.do(func(st *state) {
		if at := e.ctx.ep.entries[e.name]; at != nil {
			if _, next := at.undecided(); next != nil {
				d.f = next
				st.retire(next)
			}
		}
	})
	return d
}

// Versions returns the fiber that holds the place and its undecided successor;
// each is nil if there is none.
func (e *Entry) Versions() (holder, successor *Fiber) {
	e.ctx.ep.f.c.do(func(*state) {
		if at := e.ctx.ep.entries[e.name]; at != nil {
			holder, successor = at.undecided()
		}
	})
	return
}

// unchanged reports whether m asks for what stands there already. It then takes
// over the context's metadata and realms in place.
func (st *state) unchanged(ctx *Context, m *mount, hold, next *Fiber) bool {
	f := next
	if f == nil {
		f = hold
	}
	if f == nil || f.failed || f.p != m.p || m.resolve != nil || f.resolve != nil || !reflect.DeepEqual(f.raw, m.cfg) || f.scope != ctx.scope {
		return false
	}
	if !st.sameSlots(f, ctx) {
		return false
	}
	f.base.Store(ctx.lay)
	m.out = f
	return true
}

// sameSlots reports whether f and all below it would inject and provide in the
// same realms if f were mounted through ctx.
func (st *state) sameSlots(f *Fiber, ctx *Context) bool {
	probe := &Fiber{c: st.c, p: f.p, parent: f.parent}
	probe.base.Store(ctx.lay)
	same := true
	st.walk(f, func(d *Fiber) {
		for i := range d.needs {
			same = same && d.realmUnder(f, probe, d.needs[i].Name) == d.needs[i].slot.key.realm
		}
		for _, s := range d.claims {
			same = same && d.realmUnder(f, probe, s.key.name) == s.key.realm
		}
	})
	return same
}

// realmUnder is realmOf with probe in the place of f, which is d or above it.
func (d *Fiber) realmUnder(f, probe *Fiber, name string) *realm {
	for ; d != f; d = d.parent {
		for l := d.base.Load(); l != nil; l = l.next {
			if l.set && l.name == name {
				return l.realm
			}
		}
	}
	return probe.realmOf(name)
}

// Batch collects mounts and disposals and carries them out in one step: inside
// it no transition starts, and what comes and goes again never begins (A16).
// It is for one goroutine.
type Batch struct {
	ctx *Context
	ops []func(*state)
	ms  []*mount
}

// Batch makes an empty batch below this activation.
func (ctx *Context) Batch() *Batch { return &Batch{ctx: ctx} }

// Plugin adds a mount, as [Context.Plugin].
func (b *Batch) Plugin(p *Plugin, cfg any) { b.mount(b.ctx, &mount{p: p, cfg: cfg}) }

// Set adds a mount at a place, as [Entry.Set].
func (b *Batch) Set(e *Entry, p *Plugin, cfg any, resolve func(*Context) (any, error)) {
	b.mount(e.ctx, &mount{p: p, cfg: cfg, resolve: resolve, name: e.name})
}

func (b *Batch) mount(ctx *Context, m *mount) {
	b.ms = append(b.ms, m)
	b.ops = append(b.ops, func(st *state) {
		if m.err == nil {
			st.mount(ctx, m, st.c.watched())
		}
	})
}

// Unmount adds the retirement of all versions at a place.
func (b *Batch) Unmount(e *Entry) {
	b.ops = append(b.ops, func(st *state) { st.unmount(e) })
}

// Dispose adds the retirement of a fiber.
func (b *Batch) Dispose(f *Fiber) {
	b.ops = append(b.ops, func(st *state) { st.retire(f) })
}

// Commit carries the batch out and answers the mounted fibers in order, nil for
// a mount that was refused. The error is the first refusal; the rest stands.
func (b *Batch) Commit() ([]*Fiber, error) {
	for _, m := range b.ms {
		m.err = m.p.check()
	}
	watched := b.ctx.ep.f.c.watched()
	b.ctx.ep.f.c.do(func(st *state) {
		for _, op := range b.ops {
			op(st)
		}
	})
	return b.ctx.announceMounts(b.ms, watched)
}

// undoEarly undoes one effect ahead of its owner's end, or joins the undoing
// that is under way. It may be called from inside another undo of the same
// fiber, which it is then a part of.
func (e *effect) undoEarly(ctx context.Context) error {
	c := e.ep.f.c
	ev := newEvent(evUndo)
	ev.eff = e
	framesOf(ctx, func(f *frame) {
		ev.nested = ev.nested || f.ep == e.ep && f.kind == undoFrame
	})
	c.call(ev)
	run, wait := ev.run, ev.wait
	ev.free()
	switch {
	case run:
		return e.undoHere(ctx)
	case wait:
		return (&Done{c: c, f: e.ep.f, eff: e, what: effectDone}).Wait(ctx)
	case e.kind == listenEffect:
		return e.ep.listenersLeft(ctx)
	}
	return nil
}

// undoHere runs the inverse in the caller's goroutine.
func (e *effect) undoHere(ctx context.Context) error {
	c := e.ep.f.c
	var err error = errGoexit // unless it returns
	defer func() { c.post(&event{kind: evUndone, eff: e, err: err, last: true}) }()
	err = c.undo(ctx, e)
	return err
}

// undoNow begins the early undo of ev.eff.
func (st *state) undoNow(ev *event) {
	e := ev.eff
	ep := e.ep
	if e.state != live || ep.f.ep != ep || ep.f.phase == undoing && !ev.nested {
		ev.wait = e.state != finished
		return
	}
	e.early = true
	st.undos++
	st.trace("early", ep.f, e)
	switch e.kind {
	case bindEffect:
		b := e.bind
		st.hide()
		b.withdrawn = true
		e.state = queued
		st.markSlot(b.slot)
		if b.relied == 0 {
			st.unbind(b)
			st.finishEffect(e, nil)
		}
		ev.wait = e.state != finished
	case listenEffect:
		e.hook.dead.Store(true)
		st.unlist(e.hook)
		st.finishEffect(e, nil)
	case userEffect:
		e.state = running
		switch {
		case ev.nested:
			ev.run = true
		case ep.current == nil:
			ep.current, ev.run = e, true
		default:
			e.state, ev.wait = queued, true
			ep.manual = append(ep.manual, e)
		}
	}
}

// undoGroup undoes the members of a group, last first, and joins their errors.
func (c *Container) undoGroup(ctx context.Context, g *effect) error {
	var errs []error
	var last *effect
	for {
		var e *effect
		c.do(func(st *state) {
			for i := len(g.ep.effects) - 1; i >= 0; i-- {
				if m := g.ep.effects[i]; m.group == g && m.state != finished {
					e = m
					return
				}
			}
			if g.state == live {
				st.finishEffect(g, nil)
			}
		})
		if e == nil || e == last {
			return errors.Join(errs...)
		}
		if err := e.undoEarly(ctx); err != nil {
			errs = append(errs, err)
			last = e // if it is still there, waiting for it was given up
		}
	}
}
