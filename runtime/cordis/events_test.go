package cordis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

func (w *world) on(ctx *cordis.Context, name string, answer any, err error, opts ...cordis.ListenOption) seams.Undo {
	w.Helper()
	undo, e := ctx.Listen("e", func(ctx context.Context, _ any, next seams.Next) (any, error) {
		w.note(name)
		if next != nil && answer == nil && err == nil {
			v, err := next(ctx)
			if s, ok := v.(string); ok {
				v = name + "(" + s + ")"
			}
			return v, err
		}
		return answer, err
	}, opts...)
	if e != nil {
		w.Fatal(e)
	}
	return undo
}

func (w *world) send(mode seams.Mode) (any, error) {
	return w.root.Dispatch(bg, seams.Dispatch{Event: "e", Mode: mode, Default: func(context.Context) (any, error) { return "default", nil }})
}

// C-20
func TestListenerUntilUndone(t *testing.T) {
	w := newWorld(t)
	off := w.on(w.root, "l", nil, nil)
	for range 2 {
		_, _ = w.send(seams.Emit)
	}
	w.want("l", "l")
	if err := off(bg); err != nil {
		t.Fatal(err)
	}
	_, _ = w.send(seams.Emit)
	w.want()
}

// C-21, E4
func TestOnce(t *testing.T) {
	w := newWorld(t)
	var n atomic.Int32
	off, err := w.root.Listen("e", func(context.Context, any, seams.Next) (any, error) { n.Add(1); return nil, nil }, cordis.Once())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	for range 8 {
		go func() { _, _ = w.send(seams.Emit); done <- struct{}{} }()
	}
	for range 8 {
		<-done
	}
	if n.Load() != 1 {
		t.Fatal(n.Load())
	}
	if err := off(bg); err != nil {
		t.Fatal(err)
	}
	if ev := w.Inspect().Events; len(ev) != 0 {
		t.Fatal(ev)
	}
}

// C-22 (decided differently: all are called, errors joined), E3
func TestEmitCallsAll(t *testing.T) {
	w := newWorld(t)
	w.on(w.root, "a", nil, errBoom)
	if _, err := w.root.Listen("e", func(context.Context, any, seams.Next) (any, error) { panic("p") }); err != nil {
		t.Fatal(err)
	}
	w.on(w.root, "b", nil, nil)
	_, err := w.send(seams.Emit)
	if !errors.Is(err, errBoom) || !errors.Is(err, seams.Panicked) {
		t.Fatal(err)
	}
	w.want("a", "b")
}

// C-24
func TestParallelJoins(t *testing.T) {
	w := newWorld(t)
	w.on(w.root, "a", nil, errBoom)
	meet := make(chan struct{})
	for range 2 {
		if _, err := w.root.Listen("e", func(context.Context, any, seams.Next) (any, error) {
			select {
			case meet <- struct{}{}:
			case <-meet:
			}
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.send(seams.Parallel); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
}

// C-25, C-26: the first bail value ends it; 0 and "" are ones, false is none.
func TestSerialAndBail(t *testing.T) {
	for _, mode := range []seams.Mode{seams.Serial, seams.Bail} {
		for _, c := range []struct {
			answer any
			bails  bool
		}{{nil, false}, {false, false}, {0, true}, {"", true}, {"x", true}} {
			w := newWorld(t)
			w.on(w.root, "a", c.answer, nil)
			w.on(w.root, "b", nil, nil)
			v, err := w.send(mode)
			if err != nil || c.bails && v != c.answer || !c.bails && v != nil {
				t.Fatal(mode, c.answer, v, err)
			}
			if c.bails {
				w.want("a")
			} else {
				w.want("a", "b")
			}
		}
		w := newWorld(t)
		w.on(w.root, "a", nil, errBoom)
		w.on(w.root, "b", nil, nil)
		if _, err := w.send(mode); !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		w.want("a")
	}
}

// C-27, C-28: listeners wrap the default, earliest outermost; one that does not
// call next vetoes; prepended ones come before.
func TestWaterfall(t *testing.T) {
	w := newWorld(t)
	w.on(w.root, "a", nil, nil)
	w.on(w.root, "b", nil, nil)
	w.on(w.root, "first", nil, nil, cordis.Prepend())
	if v, err := w.send(seams.Waterfall); v != "first(a(b(default)))" || err != nil {
		t.Fatal(v, err)
	}
	w.want("first", "a", "b")
	w.on(w.root, "veto", "no", nil, cordis.Prepend())
	if v, _ := w.send(seams.Waterfall); v != "no" {
		t.Fatal(v)
	}
	w.want("veto")
}

// C-28's other half (decided differently): next serves one call.
func TestNextTwice(t *testing.T) {
	w := newWorld(t)
	if _, err := w.root.On("e", func(ctx context.Context, _ any, next seams.Next) (any, error) {
		_, _ = next(ctx)
		return next(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.send(seams.Waterfall); !errors.Is(err, seams.NextTwice) {
		t.Fatal(err)
	}
}

// C-29
func TestNobodyListens(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []seams.Mode{seams.Emit, seams.Parallel, seams.Serial, seams.Bail} {
		if v, err := w.send(mode); v != nil || err != nil {
			t.Fatal(mode, v, err)
		}
	}
	if v, err := w.send(seams.Waterfall); v != "default" || err != nil {
		t.Fatal(v, err)
	}
}

// S-03: a scoped listener hears its scope and those below it, an untagged one all.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	outer := seams.NewScope("outer", nil)
	inner := seams.NewScope("inner", outer)
	w.on(w.root, "all", nil, nil)
	w.on(w.root.WithScope(outer), "outer", nil, nil)
	w.on(w.root.WithScope(inner), "inner", nil, nil)
	w.on(w.root.WithScope(inner), "global", nil, nil, cordis.Global())
	for _, c := range []struct {
		scope *seams.Scope
		want  []string
	}{{nil, []string{"all", "global"}}, {outer, []string{"all", "outer", "global"}}, {inner, []string{"all", "outer", "inner", "global"}}} {
		if _, err := w.root.WithScope(c.scope).Dispatch(bg, seams.Dispatch{Event: "e"}); err != nil {
			t.Fatal(err)
		}
		w.want(c.want...)
	}
}

// E2: when dispose has returned, the listener runs no more and is not inside.
func TestNoCallAfterDispose(t *testing.T) {
	w := newWorld(t)
	var inside, sent atomic.Int32
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.On("e", func(context.Context, any, seams.Next) (any, error) {
			inside.Add(1)
			defer inside.Add(-1)
			time.Sleep(time.Millisecond)
			return nil, nil
		})
		return err
	}), nil)
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = w.send(seams.Emit)
					sent.Add(1)
				}
			}
		}()
	}
	more := func(n int32) {
		for until := sent.Load() + n; sent.Load() < until; {
			time.Sleep(time.Millisecond)
		}
	}
	more(10)
	w.dispose(f)
	after := inside.Load()
	more(1000)
	after += inside.Load()
	close(stop)
	for range 4 {
		<-done
	}
	if after != 0 {
		t.Fatal("a listener ran after dispose")
	}
}

// E2 for one listener: off joins the calls that are inside, but not the caller's
// own.
func TestOffJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		enter, leave := make(chan struct{}), make(chan struct{})
		off, err := w.root.On("e", func(context.Context, any, seams.Next) (any, error) {
			close(enter)
			<-leave
			w.note("left")
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = w.send(seams.Emit) }()
		<-enter
		done := make(chan struct{})
		go func() { _ = off(bg); w.note("off"); close(done) }()
		synctest.Wait()
		w.want()
		close(leave)
		<-done
		w.want("left", "off")

		var self seams.Undo
		self, err = w.root.On("e", func(ctx context.Context, _ any, _ seams.Next) (any, error) { w.note("self"); return nil, self(ctx) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.send(seams.Emit); err != nil {
			t.Fatal(err)
		}
		_, _ = w.send(seams.Emit)
		w.want("self")
	})
}

// E5: a listener disposes its own plugin; waiting for that is refused, the
// disposal happens.
func TestListenerDisposesItself(t *testing.T) {
	w := newWorld(t)
	var f *cordis.Fiber
	f = w.mount(plugin("p", func(ctx *cordis.Context) error {
		w.effect(ctx, "undo")
		_, err := ctx.On("e", func(c context.Context, _ any, _ seams.Next) (any, error) {
			d := f.Dispose()
			if err := d.Wait(c); !errors.Is(err, seams.WouldDeadlock) {
				t.Error(err)
			}
			w.note("answered")
			return nil, nil
		})
		return err
	}), nil)
	if _, err := w.send(seams.Emit); err != nil {
		t.Fatal(err)
	}
	if err := f.Gone().Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want("answered", "undo")
}

// E7
func TestModeConflict(t *testing.T) {
	w := newWorld(t)
	w.on(w.root, "a", nil, nil)
	_, _ = w.send(seams.Emit)
	_, _ = w.send(seams.Parallel)
	if r := w.errs(); len(r) != 0 {
		t.Fatal(r)
	}
	for range 3 {
		_, _ = w.send(seams.Waterfall)
	}
	if r := w.errs(); len(r) != 1 || !errors.Is(r[0].Err, seams.ModeConflict) {
		t.Fatal(r)
	}
}

// The drain deadline ends the context of a call that does not return.
func TestDrainDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		enter := make(chan struct{})
		f := w.mount(plugin("p", func(ctx *cordis.Context) error {
			_, err := ctx.On("e", func(c context.Context, _ any, _ seams.Next) (any, error) {
				close(enter)
				<-c.Done()
				w.note(string(seams.CodeOf(context.Cause(c))))
				return nil, nil
			})
			return err
		}), nil)
		go func() { _, _ = w.send(seams.Emit) }()
		<-enter
		began := time.Now()
		w.dispose(f)
		if took := time.Since(began); took != 30*time.Second {
			t.Fatal(took)
		}
		w.want("UNLOADED")
	})
}

// Q10: states change along the automaton's edges and are told once, in order.
func TestStatusEvents(t *testing.T) {
	w := newWorld(t)
	if _, err := cordis.StatusEvent.On(w.root, func(_ context.Context, c cordis.StatusChange, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		w.note(c.Old.String() + ">" + c.New.String())
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	f := w.mount(plugin("p", func(*cordis.Context) error { return nil }), nil)
	w.dispose(f)
	w.rest()
	w.want("pending>loading", "loading>active", "active>unloading", "unloading>pending", "pending>disposed")
}
