package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ouro-run/ouro/seams"
)

// Check is one promise of a seam.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Failing runs all checks and returns the errors of those that fail, by name. A
// panic is a failure.
func Failing(ctx context.Context, checks []Check) map[string]error {
	out := map[string]error{}
	for _, c := range checks {
		if err := c.run(ctx); err != nil {
			out[c.Name] = err
		}
	}
	return out
}

func (c Check) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return c.Run(ctx)
}

// Bus is a [seams.Bus] without a container. Its owners are visible from the
// start and stay so until they are closed.
type Bus struct {
	mu        sync.Mutex
	listeners []*listener
}

type listener struct {
	event string
	owner *Owner
	h     seams.Handler
}

// NewBus makes a bus without listeners.
func NewBus() *Bus { return &Bus{} }

// Dispatch implements [seams.Bus]. Parallel is as Emit.
func (b *Bus) Dispatch(ctx context.Context, d seams.Dispatch) (any, error) {
	b.mu.Lock()
	var heard []*listener
	for _, l := range b.listeners {
		if l.event == d.Event && d.Scope.Within(l.owner.scope) {
			heard = append(heard, l)
		}
	}
	b.mu.Unlock()
	if d.Mode == seams.Waterfall {
		return waterfall(ctx, heard, d)
	}
	var errs []error
	for _, l := range heard {
		v, err := l.call(ctx, d.Payload, nil)
		if d.Mode == seams.Serial || d.Mode == seams.Bail {
			if err != nil || seams.Bails(v) {
				return v, err
			}
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func waterfall(ctx context.Context, heard []*listener, d seams.Dispatch) (any, error) {
	if len(heard) == 0 {
		if d.Default == nil {
			return nil, nil
		}
		return d.Default(ctx)
	}
	called := false
	return heard[0].call(ctx, d.Payload, func(ctx context.Context) (any, error) {
		if called {
			return nil, seams.Errorf(seams.NextTwice, d.Event, "next was called twice")
		}
		called = true
		return waterfall(ctx, heard[1:], d)
	})
}

func (l *listener) call(ctx context.Context, payload any, next seams.Next) (v any, err error) {
	ctx, exit, err := l.owner.Enter(ctx)
	if err != nil {
		if next != nil {
			return next(ctx)
		}
		return nil, nil
	}
	defer exit()
	defer func() {
		if p := recover(); p != nil {
			err = seams.Errorf(seams.Panicked, l.event, "a listener panicked: %v", p)
		}
	}()
	return l.h(ctx, payload, next)
}

// Owner is a [seams.Owner] and its own [seams.Claim].
type Owner struct {
	bus   *Bus
	name  string
	scope *seams.Scope

	mu     sync.Mutex
	closed bool
	leases sync.WaitGroup
	undos  []seams.Undo
	cut    context.CancelFunc
	drain  context.Context
}

// Owner makes an owner that registers into scope.
func (b *Bus) Owner(name string, scope *seams.Scope) *Owner {
	drain, cut := context.WithCancel(context.Background())
	return &Owner{bus: b, name: name, scope: scope, drain: drain, cut: cut}
}

// Effect implements [seams.Owner].
func (o *Owner) Effect(label string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	if !o.Visible() {
		return nil, seams.Errorf(seams.InactiveEffect, label, "%s is closed", o.name)
	}
	undo, err := setup(context.Background())
	if err != nil {
		return nil, err
	}
	var begun atomic.Bool
	once := func(ctx context.Context) error {
		if begun.Swap(true) {
			return nil
		}
		return undo(ctx)
	}
	o.mu.Lock()
	closed := o.closed
	if !closed {
		o.undos = append(o.undos, once)
	}
	o.mu.Unlock()
	if closed {
		return nil, errors.Join(seams.Errorf(seams.InactiveEffect, label, "%s is closed", o.name), once(context.Background()))
	}
	return once, nil
}

// On implements [seams.Owner].
func (o *Owner) On(event string, h seams.Handler) (seams.Undo, error) {
	l := &listener{event, o, h}
	return o.Effect("on("+event+")", func(context.Context) (seams.Undo, error) {
		o.bus.mu.Lock()
		defer o.bus.mu.Unlock()
		o.bus.listeners = append(o.bus.listeners, l)
		return func(context.Context) error {
			o.bus.mu.Lock()
			defer o.bus.mu.Unlock()
			o.bus.listeners = slices.DeleteFunc(slices.Clone(o.bus.listeners), func(x *listener) bool { return x == l })
			return nil
		}, nil
	})
}

// Scope implements [seams.Owner].
func (o *Owner) Scope() *seams.Scope { return o.scope }

// Claim implements [seams.Owner].
func (o *Owner) Claim() seams.Claim { return o }

// Visible implements [seams.Claim].
func (o *Owner) Visible() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed
}

// Kin implements [seams.Claim]: owners of a bus are never kin.
func (o *Owner) Kin(seams.Claim) bool { return false }

// Enter implements [seams.Claim].
func (o *Owner) Enter(ctx context.Context) (context.Context, func(), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ctx, nil, seams.Errorf(seams.InactiveEffect, "enter", "%s is closed", o.name)
	}
	o.leases.Add(1)
	frame, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(o.drain, cancel)
	return frame, func() { stop(); cancel(); o.leases.Done() }, nil
}

// String implements [seams.Claim].
func (o *Owner) String() string { return o.name }

// Cut cancels the frames of all leases, as a drain deadline that passes does.
func (o *Owner) Cut() { o.cut() }

// Close hides the owner, waits for its leases and undoes its effects, last
// first.
func (o *Owner) Close(ctx context.Context) error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil
	}
	o.closed = true
	o.mu.Unlock()
	o.leases.Wait()
	var errs []error
	for _, u := range slices.Backward(o.undos) {
		errs = append(errs, u(ctx))
	}
	o.cut()
	return errors.Join(errs...)
}
