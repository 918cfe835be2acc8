package cordis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// C-30, C-31
func TestConfigReachesApply(t *testing.T) {
	w := newWorld(t)
	type config struct{ N int }
	w.mount(cordis.Define("p", func(_ *cordis.Context, c config) error {
		if c.N != 3 {
			t.Error(c)
		}
		return nil
	}), config{3})
	bad := w.mount(cordis.Define("p", func(*cordis.Context, config) error { return nil }), "text")
	if !errors.Is(bad.Err(), seams.WrongType) {
		t.Fatal(bad.Err())
	}
}

// C-32
func TestNotAPlugin(t *testing.T) {
	w := newWorld(t)
	for _, p := range []*cordis.Plugin{nil, {}, {Name: "x", Inject: cordis.Inject("a", "a"), Apply: func(*cordis.Context, any) error { return nil }}} {
		if _, err := w.root.Plugin(p, nil); !errors.Is(err, seams.InvalidPlugin) {
			t.Error(err)
		}
	}
}

// C-34
func TestNames(t *testing.T) {
	w := newWorld(t)
	if n := w.root.Fiber().Name(); n != "root" {
		t.Fatal(n)
	}
	var inner *cordis.Fiber
	w.mount(plugin("outer", func(ctx *cordis.Context) (err error) {
		inner, err = ctx.Plugin(plugin("", func(*cordis.Context) error { return nil }), nil)
		return err
	}), nil)
	if n := inner.Name(); n != "outer" {
		t.Fatal(n)
	}
}

// C-35
func TestNestedPlugins(t *testing.T) {
	w := newWorld(t)
	hear := func(ctx *cordis.Context) error {
		_, err := ctx.On("ping", func(context.Context, any, seams.Next) (any, error) { w.note("heard"); return nil, nil })
		return err
	}
	f := w.mount(plugin("a", func(ctx *cordis.Context) error {
		if err := hear(ctx); err != nil {
			return err
		}
		_, err := ctx.Plugin(plugin("b", func(ctx *cordis.Context) error {
			if err := hear(ctx); err != nil {
				return err
			}
			_, err := ctx.Plugin(plugin("c", hear), nil)
			return err
		}), nil)
		return err
	}), nil)
	w.ping()
	w.want("heard", "heard", "heard")
	w.dispose(f)
	w.dispose(f)
	w.ping()
	w.want()
	if s := w.Inspect(); len(s.Fibers) != 1 || len(s.Events) != 0 {
		t.Fatalf("%+v", s)
	}
}

func (w *world) ping() {
	w.Helper()
	if _, err := w.root.Dispatch(bg, seams.Dispatch{Event: "ping"}); err != nil {
		w.Fatal(err)
	}
}

// C-36, E6
func TestApplyAgainEqualsFirst(t *testing.T) {
	w := newWorld(t)
	p := plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.On("ping", func(context.Context, any, seams.Next) (any, error) { return nil, nil })
		return err
	})
	before := w.Inspect()
	f := w.mount(p, nil)
	once := w.Inspect()
	w.dispose(f)
	if got := w.Inspect(); len(got.Fibers) != len(before.Fibers) || len(got.Events) != 0 {
		t.Fatalf("%+v", got)
	}
	w.mount(p, nil)
	if got := w.Inspect(); len(got.Events) != 1 || got.Events[0] != once.Events[0] {
		t.Fatalf("%+v", got.Events)
	}
}

// C-37, C11
func TestRootDispose(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error { w.effect(ctx, "undo"); return nil }), nil)
	for range 2 {
		w.dispose(w.root.Fiber())
		w.state(f, cordis.Disposed)
		if w.root.Fiber().ID() != 0 || w.root.Fiber().State() != cordis.Active {
			t.Fatal("the root stays")
		}
	}
	w.want("undo")
	w.mount(plugin("p", func(*cordis.Context) error { return nil }), nil)
}

// C11
func TestCancelledContextDisposesRoot(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	c := cordis.New(cordis.Options{Context: ctx})
	f, err := c.Root().Plugin(plugin("p", func(*cordis.Context) error { return nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(bg); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := f.Gone().Wait(bg); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(bg); err != nil {
		t.Fatal(err)
	}
}

// C-67
func TestObserverAddsNeed(t *testing.T) {
	w := newWorld(t)
	_, err := cordis.PluginEvent.On(w.root, func(_ context.Context, f *cordis.Fiber, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if f.State() == cordis.Pending {
			return struct{}{}, f.AddNeed("later")
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f := w.mount(plugin("p", func(*cordis.Context) error { return nil }), nil)
	w.state(f, cordis.Pending)
	if _, err := cordis.Provide(w.root, seams.Key[int]{Name: "later"}, 1); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.state(f, cordis.Active)
	if err := f.AddNeed("more"); !errors.Is(err, seams.InactiveEffect) {
		t.Fatal(err)
	}
}

// C-68
func TestObserverRefusesMount(t *testing.T) {
	w := newWorld(t)
	off, err := cordis.PluginEvent.On(w.root, func(_ context.Context, f *cordis.Fiber, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if f.State() == cordis.Pending {
			return struct{}{}, errBoom
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.root.Plugin(plugin("p", func(*cordis.Context) error { w.note("applied"); return nil }), nil); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	w.rest()
	w.want()
	if n := len(w.Inspect().Fibers); n != 1 {
		t.Fatal(n)
	}
	_ = off(bg)
}

// C-69
func TestFailingObserverAtDisposal(t *testing.T) {
	w := newWorld(t)
	for _, err := range []error{errBoom, nil} {
		_, e := cordis.PluginEvent.On(w.root, func(_ context.Context, f *cordis.Fiber, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			if f.State() == cordis.Disposed {
				w.note("told")
				return struct{}{}, err
			}
			return struct{}{}, nil
		})
		if e != nil {
			t.Fatal(e)
		}
	}
	f := w.mount(plugin("p", func(ctx *cordis.Context) error { w.effect(ctx, "undo"); return nil }), nil)
	w.dispose(f)
	w.rest()
	w.want("undo", "told", "told")
	if r := w.errs(); len(r) != 1 || r[0].Phase != "observer" {
		t.Fatalf("%+v", r)
	}
}

// C-70: a loading parent joins the clean-up of a child that began before its own.
func TestParentJoinsChild(t *testing.T) {
	w := newWorld(t)
	enter, leave := make(chan struct{}), make(chan struct{})
	slow, applied := make(chan struct{}), make(chan struct{})
	f, err := w.root.Plugin(plugin("parent", func(ctx *cordis.Context) error {
		w.effect(ctx, "parent")
		ch, err := ctx.Plugin(plugin("child", func(ctx *cordis.Context) error {
			_, err := ctx.Effect("slow", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { close(slow); <-leave; w.note("child"); return nil }, nil
			})
			return err
		}), nil)
		if err != nil {
			return err
		}
		if err := ch.Ready().Wait(ctx.Context()); err != nil {
			return err
		}
		ch.Dispose()
		close(enter)
		<-applied
		return nil
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-enter
	<-slow
	d := f.Dispose()
	close(applied)
	close(leave)
	if err := d.Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want("child", "parent")
}

// C-71: a parent disposed while its child is announced waits for it; the child's
// apply never runs.
func TestParentDisposedDuringAnnouncement(t *testing.T) {
	w := newWorld(t)
	var parent *cordis.Fiber
	_, err := cordis.PluginEvent.On(w.root, func(_ context.Context, f *cordis.Fiber, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if f.Name() == "child" && f.State() == cordis.Pending {
			parent.Dispose()
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var ctx *cordis.Context
	parent = w.mount(plugin("parent", func(c *cordis.Context) error { ctx = c; return nil }), nil)
	_, err = ctx.Plugin(plugin("child", func(*cordis.Context) error { w.note("applied"); return nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Gone().Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want()
}

// Q11: a handle to a removed fiber stays dead, and ids grow.
func TestHandlesStayDead(t *testing.T) {
	w := newWorld(t)
	p := plugin("p", func(*cordis.Context) error { return nil })
	a := w.mount(p, nil)
	w.dispose(a)
	b := w.mount(p, nil)
	if b.ID() <= a.ID() {
		t.Fatal(a.ID(), b.ID())
	}
	if err := a.Ready().Wait(bg); !errors.Is(err, seams.Unloaded) {
		t.Fatal(err)
	}
}

// A12, A16 and the in-place update of a configuration.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	p := cordis.Define("p", func(ctx *cordis.Context, cfg string) error {
		w.note("apply " + cfg)
		w.effect(ctx, "undo "+cfg)
		return ctx.OnUpdate(func(cfg any) (bool, error) {
			if cfg == "bad" {
				return false, errBoom
			}
			w.note("offered " + cfg.(string))
			return cfg == "inplace", nil
		})
	})
	f := w.mount(p, "a")
	if g, err := f.Update("a"); g != f || err != nil {
		t.Fatal(g, err)
	}
	if g, err := f.Update("inplace"); g != f || err != nil || f.Config() != "inplace" {
		t.Fatal(g, err, f.Config())
	}
	if _, err := f.Update("bad"); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	g, err := f.Update("b")
	if err != nil || g == f {
		t.Fatal(err)
	}
	w.rest()
	w.state(f, cordis.Disposed)
	w.state(g, cordis.Active)
	w.want("apply a", "offered inplace", "offered b", "apply b", "undo a")
}
