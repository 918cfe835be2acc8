package cordis

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// clock is a timer of an activation: an effect whose callback enters the
// activation's lease, so that it never runs after the activation was undone.
type clock struct {
	ctx   *Context
	label string
	fn    func(context.Context)

	inside gate // callbacks that run

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func (ctx *Context) clock(label string, fn func(context.Context)) (*clock, seams.Undo, error) {
	k := &clock{ctx: ctx, label: label, fn: fn}
	undo, err := ctx.Effect(label, func(context.Context) (seams.Undo, error) { return k.stop, nil })
	return k, undo, err
}

// arm starts or restarts the timer; nothing once it is over.
func (k *clock) arm(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.over:
	case k.timer == nil:
		k.timer = time.AfterFunc(d, k.fire)
	default:
		k.timer.Reset(d)
	}
}

func (k *clock) fire() { k.run(k.fn) }

// run calls fn under the activation's lease, unless the clock is over.
func (k *clock) run(fn func(context.Context)) {
	err := k.ctx.Own(k.ctx.ep.f.c.ctx, func(c context.Context) error {
		t, _ := k.inside.enter()
		defer k.inside.exit(t)
		k.mu.Lock()
		over := k.over
		k.mu.Unlock()
		if !over {
			fn(context.WithValue(c, k, t))
		}
		return nil
	})
	if err != nil && !errors.Is(err, seams.InactiveEffect) {
		k.ctx.ep.f.c.report(Report{Fiber: k.ctx.ep.f, Phase: "timer", Label: k.label, Err: err})
	}
}

// stop ends the clock and joins a callback that runs, unless the caller is it.
func (k *clock) stop(c context.Context) error {
	k.mu.Lock()
	k.over = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	var own [2]uint64
	if t, ok := c.Value(k).(ticket); ok {
		own[t]++
	}
	if k.inside.alone(own) {
		return nil
	}
	return k.ctx.ep.join(c, func() error { return k.inside.barrier(c, own) })
}

// Timeout runs fn once, after d. The undo cancels it (C-72).
func (ctx *Context) Timeout(d time.Duration, fn func(context.Context)) (seams.Undo, error) {
	var undo seams.Undo
	ready := make(chan struct{})
	k, undo, err := ctx.clock("ctx.timeout", func(c context.Context) {
		<-ready
		fn(c)
		_ = undo(c) // what has fired leaves the list of effects
	})
	close(ready)
	if err != nil {
		return nil, err
	}
	k.arm(d)
	return undo, nil
}

// Sleep returns after d, or with the cause when c ends or the activation does
// (C-73).
func (ctx *Context) Sleep(c context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	end := ctx.Context()
	select {
	case <-t.C:
		return nil
	case <-c.Done():
		return context.Cause(c)
	case <-end.Done():
		return context.Cause(end)
	}
}

// Interval runs fn every d until the undo is called (C-74). Calls never overlap.
func (ctx *Context) Interval(d time.Duration, fn func(context.Context)) (seams.Undo, error) {
	var k *clock
	ready := make(chan struct{})
	k, undo, err := ctx.clock("ctx.interval", func(c context.Context) {
		<-ready
		defer k.arm(d)
		fn(c)
	})
	close(ready)
	if err != nil {
		return nil, err
	}
	k.arm(d)
	return undo, nil
}

// Ticks yields the time every d. It ends when the loop over it is left, and with
// an error when c or the activation ends (C-75, C-76).
func (ctx *Context) Ticks(c context.Context, d time.Duration) iter.Seq2[time.Time, error] {
	return func(yield func(time.Time, error) bool) {
		for {
			if err := ctx.Sleep(c, d); err != nil {
				yield(time.Time{}, err)
				return
			}
			if !yield(time.Now(), nil) {
				return
			}
		}
	}
}

// Throttle returns a function that runs fn at once, then at most once in each
// window of d, the last call of a window at its end (C-77). After the undo it
// does nothing.
func (ctx *Context) Throttle(d time.Duration, fn func(context.Context)) (call func(), undo seams.Undo, err error) {
	var mu sync.Mutex
	waiting, again := false, false
	var k *clock
	ready := make(chan struct{})
	k, undo, err = ctx.clock("ctx.throttle", func(c context.Context) {
		<-ready
		mu.Lock()
		run := again
		waiting, again = again, false
		mu.Unlock()
		if run {
			k.arm(d)
			fn(c)
		}
	})
	close(ready)
	if err != nil {
		return nil, nil, err
	}
	return func() {
		mu.Lock()
		if waiting {
			again = true
			mu.Unlock()
			return
		}
		waiting = true
		mu.Unlock()
		k.arm(d)
		k.run(fn)
	}, undo, nil
}

// Debounce returns a function; fn runs once when it has not been called for d
// (C-78). After the undo it does nothing.
func (ctx *Context) Debounce(d time.Duration, fn func(context.Context)) (call func(), undo seams.Undo, err error) {
	k, undo, err := ctx.clock("ctx.debounce", fn)
	if err != nil {
		return nil, nil, err
	}
	return func() { k.arm(d) }, undo, nil
}
