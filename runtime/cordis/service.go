package cordis

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/ouro-run/ouro/seams"
)

// cell holds a service's value, typed as its provider typed it.
type cell[T any] struct {
	v     atomic.Pointer[T]
	first T
}

func newCell[T any](v T) *cell[T] {
	c := &cell[T]{first: v}
	c.v.Store(&c.first)
	return c
}

// load is the value as any, for readers of another type.
func (c *cell[T]) load() any { return *c.v.Load() }

func (c *cell[T]) set(v any) bool {
	t, ok := v.(T)
	if ok {
		c.v.Store(&t)
	}
	return ok
}

type anyCell interface {
	load() any
	set(any) bool
}

// Provide binds v to key in ctx's realm. Others see it when the activation
// becomes active, and at once if it is. The undo withdraws it: it is no longer
// resolved, those committed to it leave, and when they are gone the undo returns
// (C-17). CLASH names another entry's fiber that provides it, DUPLICATE says
// that this activation already does (C-48).
func Provide[T any](ctx *Context, key seams.Key[T], v T) (seams.Undo, error) {
	p := &provided[T]{cell: cell[T]{first: v}}
	p.cell.v.Store(&p.cell.first)
	return ctx.provide(key.Name, &p.provision, &p.cell, nil)
}

// ProvideEach binds key to a function that makes the value for each reader from
// the reader's context: its fiber owns what the value registers, and its
// intercepted metadata configures it (C-41, C-58…C-60). f runs in the reader's
// goroutine and must not block.
func ProvideEach[T any](ctx *Context, key seams.Key[T], f func(reader *Context) T) (seams.Undo, error) {
	return ctx.provide(key.Name, &provision{}, nil, func(reader *Context) any { return f(reader) })
}

// provision is an effect and its binding, provided is all of a service: one
// allocation.
type provision struct {
	effect  effect
	binding binding
}

type provided[T any] struct {
	provision
	cell cell[T]
}

func (ctx *Context) provide(name string, p *provision, c any, each func(*Context) any) (seams.Undo, error) {
	ep := ctx.ep
	e := &p.effect
	*e = effect{name: name, kind: bindEffect, ep: ep, bind: &p.binding}
	p.binding = binding{ep: ep, cell: c, each: each, eff: e}
	ev := newEvent(evProvide)
	ev.ctx, ev.eff = ctx, e
	ep.f.c.call(ev)
	err := ev.err
	ev.free()
	if err != nil {
		return nil, err
	}
	return e.undoEarly, nil
}

// provide binds e's binding, in ctx's realm.
func (st *state) provide(ctx *Context, e *effect) error {
	ep := ctx.ep
	if !st.open(ep) {
		return ctx.inactive(e.label())
	}
	s := st.slot(slotKey{e.name, ctx.realmOf(e.name)})
	for _, o := range s.bindings {
		if o.ep == ep && !o.withdrawn {
			return seams.Errorf(seams.Duplicate, e.label(), "service %q is already provided by %s itself", e.name, ep.f.label())
		}
	}
	if o := st.claim(ep.f, s); o != nil {
		st.drop(s)
		return seams.Errorf(seams.Clash, e.label(), "service %q is already provided by %s; declare `provide: [%q]` to see a clash before anything runs", e.name, o.label(), e.name)
	}
	e.bind.slot = s
	st.own(e)
	st.bind(e.bind)
	return nil
}

// Set replaces the value of a service this activation provides, in place: its
// readers see the new value, nobody restarts (A11). NOT_PROVIDED, NOT_OWNER or
// WRONG_TYPE change nothing.
func Set[T any](ctx *Context, key seams.Key[T], v T) error {
	var err error
	ctx.ep.f.c.do(func(st *state) {
		s := st.c.slots.get(slotKey{key.Name, ctx.realmOf(key.Name)})
		err = seams.Errorf(seams.NotProvided, "cordis.Set", "service %q is not provided", key.Name)
		if s == nil {
			return
		}
		for _, b := range s.bindings {
			if b.withdrawn {
				continue
			}
			if b.ep != ctx.ep {
				err = seams.Errorf(seams.NotOwner, "cordis.Set", "service %q is provided by %s", key.Name, b.ep.f.label())
				continue
			}
			if b.cell == nil || !b.cell.(anyCell).set(v) {
				err = seams.Errorf(seams.WrongType, "cordis.Set", "service %q was provided with another type than %T", key.Name, v)
				return
			}
			err = nil
			st.tell(note{service: key.Name, realm: s.key.realm})
			return
		}
	})
	return err
}

// value reads a binding as T for a reader.
func value[T any](ctx *Context, b *binding) (T, error) {
	if c, ok := b.cell.(*cell[T]); ok {
		return *c.v.Load(), nil
	}
	var v any
	if b.each != nil {
		v = b.each(ctx)
	} else {
		v = b.cell.(anyCell).load()
	}
	t, ok := v.(T)
	if !ok && v != nil {
		return t, seams.Errorf(seams.WrongType, "cordis.Get", "service %q is a %T, not %s", b.slot.key.name, v, reflect.TypeFor[T]())
	}
	return t, nil
}

// view returns the binding ctx's activation is committed to for name.
func (ctx *Context) view(name string) (*binding, error) {
	ep := ctx.ep
	if ep.over.Load() {
		return nil, ctx.inactive("cordis.Get")
	}
	b, s := ctx.bound(name)
	switch {
	case b != nil:
		return b, nil
	case ep.f.parent != nil:
		return nil, seams.Errorf(seams.NotInjected, "cordis.Get", "plugin %s reads service %q without declaring it; add it to the plugin's inject", ep.f.label(), name)
	case s == nil || s.shown.Load() == nil:
		return nil, seams.Errorf(seams.NotProvided, "cordis.Get", "service %q is not provided", name)
	}
	return s.shown.Load(), nil
}

// bound is the binding the activation is committed to, or its own (A6); nil if it
// has none, with the name's slot.
func (ctx *Context) bound(name string) (*binding, *slot) {
	ep := ctx.ep
	if at := ctx.commitment(name); at != nil {
		return at.Load(), nil
	}
	s := ep.f.c.slots.get(slotKey{name, ctx.realmOf(name)})
	if s != nil && ep.binds.Load() {
		for _, b := range ep.own(s) {
			return b, s
		}
	}
	return nil, s
}

// own returns the live bindings of ep in s.
func (ep *episode) own(s *slot) (out []*binding) {
	ep.f.c.do(func(*state) {
		for _, b := range s.bindings {
			if b.ep == ep && !b.withdrawn {
				out = append(out, b)
			}
		}
	})
	return out
}

// Get reads a service the plugin injects, or provides itself. It is the same
// provider from the activation's begin until its last undo has returned, and
// usable all that time (A5). The root reads whatever is provided. Errors:
// NOT_INJECTED, NOT_PROVIDED (root), INACTIVE_EFFECT, WRONG_TYPE.
func Get[T any](ctx *Context, key seams.Key[T]) (T, error) {
	b, err := ctx.view(key.Name)
	if err != nil {
		var zero T
		return zero, err
	}
	return value[T](ctx, b)
}

// Ref is a resolved service: reading it is one atomic load. It is valid as long
// as Get would answer.
type Ref[T any] struct {
	at   *atomic.Pointer[binding] // where the activation's commitment stands; nil if it has none
	cell *cell[T]
}

// Resolve makes a Ref of a service the plugin injects. A service provided by
// [ProvideEach] or with another type than T is resolved once, at this call.
func Resolve[T any](ctx *Context, key seams.Key[T]) (Ref[T], error) {
	b, err := ctx.view(key.Name)
	if err != nil {
		return Ref[T]{}, err
	}
	r := Ref[T]{at: ctx.commitment(key.Name)}
	var ok bool
	if r.cell, ok = b.cell.(*cell[T]); !ok {
		v, err := value[T](ctx, b)
		if err != nil {
			return Ref[T]{}, err
		}
		r.cell = newCell(v)
	}
	return r, nil
}

// commitment is where the binding the activation is committed to for name stands,
// nil if it does not inject it. While it loads, another may come to stand there.
func (ctx *Context) commitment(name string) *atomic.Pointer[binding] {
	i := 0
	for k := range ctx.ep.f.needs {
		n := &ctx.ep.f.needs[k] // not a copy: its links are the scheduler's
		if n.Optional {
			continue
		}
		if n.Name == name {
			return &ctx.ep.view[i]
		}
		i++
	}
	return nil
}

// Load reads the service.
func (r Ref[T]) Load() T {
	if r.at != nil {
		if c, ok := r.at.Load().cell.(*cell[T]); ok {
			return *c.v.Load()
		}
	}
	return *r.cell.v.Load()
}

// Lookup reads a service that may be absent, without declaring it (§1.3 get).
// The answer holds for this instant: to call a service that is not injected, use
// Borrow.
func Lookup[T any](ctx *Context, key seams.Key[T]) (T, bool) {
	var zero T
	b := ctx.seen(key.Name)
	if b == nil {
		return zero, false
	}
	v, err := value[T](ctx, b)
	return v, err == nil
}

// Borrow reads a service that may be absent and keeps its provider from being
// undone until give is called, once or more often. ok is false when it is absent
// or leaving.
func Borrow[T any](ctx *Context, key seams.Key[T]) (v T, give func(), ok bool) {
	b := ctx.seen(key.Name)
	if b == nil {
		return v, nil, false
	}
	t, ok := b.ep.gate.call()
	if !ok {
		return v, nil, false
	}
	v, err := value[T](ctx, b)
	if err != nil {
		b.ep.gate.exit(t)
		return v, nil, false
	}
	var given atomic.Bool
	return v, func() {
		if !given.Swap(true) {
			b.ep.gate.exit(t)
		}
	}, true
}

// seen is the binding name resolves to now, for a reader without a commitment.
func (ctx *Context) seen(name string) *binding {
	if ctx.ep.over.Load() {
		return nil
	}
	b, s := ctx.bound(name)
	if b != nil || s == nil {
		return b
	}
	if b := s.shown.Load(); b != nil && ctx.ep.visible.Load() {
		return b
	}
	// Below an ancestor that is not active its own subtree is seen too (N3).
	ctx.ep.f.c.do(func(st *state) { b = st.resolve(ctx.ep.f, s, st.markTaint(ctx.ep.f)) })
	return b
}

// Services returns the names this context can resolve now, in no order. It is
// for inspection.
func (ctx *Context) Services() []string {
	var out []string
	ctx.ep.f.c.slots.all(func(s *slot) {
		if s.shown.Load() != nil && ctx.realmOf(s.key.name) == s.key.realm {
			out = append(out, s.key.name)
		}
	})
	return out
}

// Own runs f as a call into this activation: while it runs, the activation is
// not undone. It is for goroutines that outlive the frame that started them.
func (ctx *Context) Own(c context.Context, f func(context.Context) error) error {
	frame, exit, err := ctx.Claim().Enter(c)
	if err != nil {
		return err
	}
	defer exit()
	return contain(func() error { return f(frame) })
}

func (r *realm) String() string {
	if r == nil {
		return ""
	}
	if r.label == "" {
		return fmt.Sprintf("private-%p", r)
	}
	return r.label
}
