package cordis_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

var text = seams.Key[string]{Name: "text"}

// hangs registers an effect whose undo waits for release.
func hangs(ctx *cordis.Context, release <-chan struct{}) error {
	_, err := ctx.Effect("hang", func(context.Context) (seams.Undo, error) {
		return func(context.Context) error { <-release; return nil }, nil
	})
	return err
}

// Close returns though code does not: STUCK for what hangs, the end of its
// context for an undo that was abandoned.
func TestCloseIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		hang func(w *world, release <-chan struct{})
		want error
	}{
		{"goroutine of the root", func(w *world, release <-chan struct{}) {
			if _, err := w.root.Go("hang", func(context.Context) error { <-release; return nil }); err != nil {
				w.Fatal(err)
			}
		}, seams.Stuck},
		{"undo", func(w *world, release <-chan struct{}) {
			w.mount(plugin("p", func(ctx *cordis.Context) error { return hangs(ctx, release) }), nil)
		}, seams.Stuck},
		{"abandoned undo", func(w *world, release <-chan struct{}) {
			f := w.mount(plugin("p", func(ctx *cordis.Context) error { return hangs(ctx, release) }), nil)
			f.Dispose()
			if err := w.Settle(bg); !errors.Is(err, seams.Stuck) {
				w.Fatal(err)
			}
			w.Abandon(f)
		}, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				release := make(chan struct{})
				defer func() { close(release); synctest.Wait() }()
				c.hang(w, release)
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				defer cancel()
				if err := w.Close(ctx); !errors.Is(err, c.want) {
					t.Fatal(err)
				}
			})
		})
	}
}

// A closed container is at rest, whatever the root had registered.
func TestSettleAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.root.EffectSeq("seq", seq(w.undoing("1"), w.undoing("2"))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(bg); err != nil {
			t.Fatal(err)
		}
		w.want("2", "1")
		w.rest()
	})
}

// The root's context ends with the container.
func TestCloseEndsTheRootsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := w.root.Context()
		if err := w.Close(bg); err != nil {
			t.Fatal(err)
		}
		if err := context.Cause(ctx); !errors.Is(err, seams.Unloaded) {
			t.Error(err)
		}
		if err := w.root.Sleep(bg, time.Hour); !errors.Is(err, seams.Unloaded) {
			t.Error(err)
		}
	})
}

// An unload waits for the step that a sequence is in, and undoes what it lands.
func TestDisposeDuringStepOfEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ctx *cordis.Context
		f := w.mount(plugin("p", func(c *cordis.Context) error { ctx = c; w.effect(ctx, "older"); return nil }), nil)
		enter, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			_, err := ctx.EffectSeq("seq", seq(func() { close(enter); <-leave }, w.undoing("1"), w.undoing("2")))
			done <- err
		}()
		<-enter
		d := f.Dispose()
		synctest.Wait()
		w.want()
		close(leave)
		if err := <-done; !errors.Is(err, seams.InactiveEffect) {
			t.Fatal(err)
		}
		if err := d.Wait(bg); err != nil {
			t.Fatal(err)
		}
		w.want("1", "older")
	})
}

// An undo that another one has begun, and that outlives it, runs once; what is
// older waits for it.
func TestUndoOutlivesTheOneItIsPartOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		enter, leave := make(chan struct{}), make(chan struct{})
		f := w.mount(plugin("p", func(ctx *cordis.Context) error {
			w.effect(ctx, "older")
			inner, err := ctx.Effect("inner", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { w.note("inner"); close(enter); <-leave; return nil }, nil
			})
			if err != nil {
				return err
			}
			_, err = ctx.Effect("outer", func(context.Context) (seams.Undo, error) {
				return func(c context.Context) error { go func() { _ = inner(c) }(); <-enter; return nil }, nil
			})
			return err
		}), nil)
		d := f.Dispose()
		synctest.Wait()
		w.want("inner")
		close(leave)
		if err := d.Wait(bg); err != nil {
			t.Fatal(err)
		}
		w.want("older")
		w.rest()
		if r := w.errs(); len(r) != 0 {
			t.Error(r)
		}
	})
}

// Who kept the context of a call that has returned does not stand in it: he
// waits for other calls, and for the owners of those that were called with it.
func TestKeptContextStandsInNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var kept context.Context
		var off seams.Undo
		enter, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		f := w.mount(plugin("f", func(ctx *cordis.Context) (err error) {
			w.effect(ctx, "f gone")
			if _, err = ctx.On("e", func(c context.Context, _ any, _ seams.Next) (any, error) {
				kept = context.WithoutCancel(c)
				return nil, nil
			}); err != nil {
				return err
			}
			off, err = ctx.On("slow", func(context.Context, any, seams.Next) (any, error) {
				close(enter)
				<-leave
				w.note("left")
				return nil, nil
			})
			return err
		}), nil)
		_, _ = w.send(seams.Emit)
		go func() { _, _ = w.root.Dispatch(bg, seams.Dispatch{Event: "slow"}) }()
		<-enter
		go func() { _ = off(kept); w.note("off"); close(done) }()
		synctest.Wait()
		w.want()
		close(leave)
		<-done
		w.want("left", "off")

		g := w.mount(plugin("g", func(ctx *cordis.Context) error {
			w.effect(ctx, "g gone")
			w.on(ctx, "g", nil, nil)
			return nil
		}), nil)
		_, _ = w.send(seams.Emit)
		for _, f := range []*cordis.Fiber{g, f} {
			if err := f.Dispose().Wait(kept); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
		w.want("g", "g gone", "f gone")
	})
}

// The context of a call is over when the call is; the plugin holds none of those
// that were kept.
func TestContextEndsWithItsCall(t *testing.T) {
	w := newWorld(t)
	var claim seams.Claim
	w.mount(plugin("p", func(ctx *cordis.Context) error { claim = ctx.Claim(); return nil }), nil)
	type mark struct{ _ [64]byte }
	var kept []weak.Pointer[mark]
	for range 100 {
		m := new(mark)
		kept = append(kept, weak.Make(m))
		c, exit, err := claim.Enter(context.WithValue(bg, text, m))
		if err != nil {
			t.Fatal(err)
		}
		exit()
		of, cancel := context.WithCancel(c)
		if c.Err() == nil || of.Err() == nil {
			t.Fatal("a call has returned and its context goes on")
		}
		cancel()
	}
	runtime.GC()
	alive := 0
	for _, m := range kept {
		if m.Value() != nil {
			alive++
		}
	}
	if alive > 10 {
		t.Errorf("%d of 100 contexts are alive", alive)
	}
}

// Err alone tells of the drain deadline.
func TestErrTellsOfTheDrainDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var claim seams.Claim
		f := w.mount(plugin("p", func(ctx *cordis.Context) error { claim = ctx.Claim(); return nil }), nil)
		c, exit, err := claim.Enter(bg)
		if err != nil {
			t.Fatal(err)
		}
		d := f.Dispose()
		time.Sleep(29 * time.Second)
		if c.Err() != nil {
			t.Error(c.Err())
		}
		time.Sleep(2 * time.Second)
		if c.Err() == nil || !errors.Is(context.Cause(c), seams.Unloaded) {
			t.Error(c.Err(), context.Cause(c))
		}
		exit()
		if err := d.Wait(bg); err != nil {
			t.Fatal(err)
		}
	})
}

// What a plugin registered can be seen when Ready returns, however early the
// state shows it.
func TestReadyIsSeen(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		begin := make(chan struct{})
		f, err := w.root.Plugin(plugin("p", func(ctx *cordis.Context) error {
			<-begin
			for i := range 200 { // a long step
				if _, err := ctx.On(fmt.Sprint("e", i), func(context.Context, any, seams.Next) (any, error) { return nil, nil }); err != nil {
					return err
				}
			}
			w.on(ctx, "heard", nil, nil)
			return nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		close(begin)
		for f.State() != cordis.Active {
			runtime.Gosched()
		}
		if err := f.Ready().Wait(bg); err != nil {
			t.Fatal(err)
		}
		_, _ = w.send(seams.Emit)
		w.want("heard")
		w.dispose(f)
	}
}

// Code that the container's rest waits for is refused to wait for it, and the
// announcement of a fiber to wait for that fiber.
func TestWaitForRestInside(t *testing.T) {
	refused := func(t *testing.T, what string, err error) {
		if !errors.Is(err, seams.WouldDeadlock) {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Run("status", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.mount(plugin("observer", func(ctx *cordis.Context) error {
				_, err := cordis.StatusEvent.On(ctx, func(c context.Context, s cordis.StatusChange, _ func(context.Context) (struct{}, error)) (struct{}, error) {
					if s.New == cordis.Active {
						w.note(s.Fiber.Name())
						refused(t, "Settle", w.Settle(c))
					}
					return struct{}{}, nil
				})
				return err
			}), nil)
			w.took()
			w.mount(plugin("p", func(*cordis.Context) error { return nil }), nil)
			w.want("p")
		})
	})
	t.Run("undo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			undo, err := w.root.Effect("e", func(context.Context) (seams.Undo, error) {
				return func(c context.Context) error { w.note("undo"); refused(t, "Settle", w.Settle(c)); return nil }, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := undo(bg); err != nil {
				t.Fatal(err)
			}
			w.want("undo")
		})
	})
	t.Run("announcement", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			if _, err := cordis.PluginEvent.On(w.root, func(c context.Context, f *cordis.Fiber, _ func(context.Context) (struct{}, error)) (struct{}, error) {
				if f.State() == cordis.Pending {
					w.note("announced")
					refused(t, "fiber.Settle", f.Settle(c))
					refused(t, "fiber.Ready", f.Ready().Wait(c))
					refused(t, "Settle", w.Settle(c))
				}
				return struct{}{}, nil
			}); err != nil {
				t.Fatal(err)
			}
			w.state(w.mount(plugin("p", func(*cordis.Context) error { return nil }), nil), cordis.Active)
			w.want("announced")
		})
	})
}

// The limit of Apply is one for all of its steps, and who ignores it fails when
// he returns.
func TestApplyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, p := range []*cordis.Plugin{
			{Name: "deaf", Apply: func(*cordis.Context, any) error { time.Sleep(2 * time.Second); return nil }},
			{Name: "steps", Steps: func(ctx *cordis.Context, _ any) iter.Seq2[seams.Undo, error] {
				return seq(w.undoing("undone"), func() { <-ctx.Context().Done() }, w.undoing("late"))
			}},
		} {
			p.ApplyTimeout = time.Second
			f := w.mount(p, nil)
			w.state(f, cordis.Failed)
			if !errors.Is(f.Err(), seams.Timeout) {
				t.Errorf("%s: %v", f, f.Err())
			}
		}
		w.want("late", "undone")
	})
}

// A plugin that is disposed while it loads, and returns why its context has
// ended, has not failed.
func TestDisposedWhileLoadingIsNoFailure(t *testing.T) {
	w := newWorld(t)
	enter := make(chan struct{})
	f, err := w.root.Plugin(plugin("p", func(ctx *cordis.Context) error {
		c := ctx.Context()
		close(enter)
		<-c.Done()
		return context.Cause(c)
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-enter
	w.dispose(f)
	w.rest()
	if r := w.errs(); len(r) != 0 {
		t.Fatal(r)
	}
}

// Undoing a throttle joins the call that runs.
func TestThrottleUndoJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		enter, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		call, undo, err := w.root.Throttle(time.Hour, func(context.Context) { close(enter); <-leave; w.note("left") })
		if err != nil {
			t.Fatal(err)
		}
		go call()
		<-enter
		go func() { _ = undo(bg); w.note("undone"); close(done) }()
		synctest.Wait()
		w.want()
		close(leave)
		<-done
		w.want("left", "undone")
	})
}

// A reference reads what Get does, also when the provider was replaced while its
// reader loaded.
func TestRefFollowsTheCommitment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		undo, err := cordis.Provide(w.root, text, "one")
		if err != nil {
			t.Fatal(err)
		}
		enter, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
		var ctx *cordis.Context
		var ref cordis.Ref[string]
		f, err := w.root.Plugin(plugin("p", func(c *cordis.Context) (err error) {
			ctx = c
			ref, err = cordis.Resolve(c, text)
			close(enter)
			<-leave
			return err
		}, text.Name), nil)
		if err != nil {
			t.Fatal(err)
		}
		<-enter
		go func() { done <- undo(bg) }()
		synctest.Wait()
		if _, err := cordis.Provide(w.root, text, "two"); err != nil {
			t.Fatal(err)
		}
		close(leave)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.state(f, cordis.Active)
		if v, err := cordis.Get(ctx, text); v != "two" || ref.Load() != v {
			t.Errorf("Get reads %q, %v, the reference %q", v, err, ref.Load())
		}
	})
}

// An entry that moves to another realm takes along what it has mounted.
func TestChildrenMoveWithTheirEntry(t *testing.T) {
	w := newWorld(t)
	var read string
	p := plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.Plugin(plugin("child", func(ctx *cordis.Context) (err error) { read, err = cordis.Get(ctx, text); return err }, text.Name), nil)
		return err
	})
	for _, realm := range []string{"a", "b"} {
		in := w.root.Isolate(text.Name, realm)
		if _, err := cordis.Provide(in, text, realm); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Entry("e").Set(p, nil, nil); err != nil {
			t.Fatal(err)
		}
		w.rest()
		if read != realm {
			t.Errorf("the child reads %q in realm %q", read, realm)
		}
	}
}

// An entry whose scope has changed is mounted anew, though its plugin would take
// its configuration in place.
func TestChangedScopeMountsAnew(t *testing.T) {
	w := newWorld(t)
	p := plugin("p", func(ctx *cordis.Context) error {
		w.on(ctx, "heard", nil, nil)
		return ctx.OnUpdate(func(any) (bool, error) { return true, nil })
	})
	scope := seams.NewScope("s", nil)
	for cfg, s := range []*seams.Scope{nil, scope} {
		if _, err := w.root.WithScope(s).Entry("e").Set(p, cfg, nil); err != nil {
			t.Fatal(err)
		}
		w.rest()
	}
	_, _ = w.send(seams.Emit)
	w.want()
	if _, err := w.root.WithScope(scope).Dispatch(bg, seams.Dispatch{Event: "e"}); err != nil {
		t.Fatal(err)
	}
	w.want("heard")
}

// A snapshot names the provider of a need: of an optional one whose slot was
// made anew, and of one that only the inside of a loading plugin sees.
func TestInspectNamesProviders(t *testing.T) {
	w := newWorld(t)
	provide := plugin("provider", func(ctx *cordis.Context) error { _, err := cordis.Provide(ctx, text, "v"); return err })
	nothing := func(*cordis.Context) error { return nil }
	from := func(f, p *cordis.Fiber) {
		t.Helper()
		for _, i := range w.Inspect().Fibers {
			if i.ID == f.ID() && i.Inject[0].Provider != p.ID() {
				t.Errorf("the need of %s is met by #%d, should be by %s", f, i.Inject[0].Provider, p)
			}
		}
	}
	f, err := w.root.Plugin(plugin("outer", func(ctx *cordis.Context) error {
		p, err := ctx.Load(bg, provide, nil)
		if err != nil {
			return err
		}
		inner, err := ctx.Load(bg, plugin("inner", nothing, text.Name), nil)
		if err == nil {
			from(inner, p)
		}
		return err
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.dispose(f)

	optional := plugin("optional", nothing, text.Name)
	optional.Inject[0].Optional = true
	f = w.mount(optional, nil)
	for _, name := range []string{text.Name, "other"} { // the last slot that nobody uses is kept
		w.dispose(w.mount(plugin("required", nothing, name), nil))
	}
	from(f, w.mount(provide, nil))
}

// An observer that does not return holds up no report.
func TestReportsPassBlockedObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		leave := make(chan struct{})
		if _, err := cordis.StatusEvent.On(w.root, func(context.Context, cordis.StatusChange, func(context.Context) (struct{}, error)) (struct{}, error) {
			<-leave
			return struct{}{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.root.Plugin(plugin("p", func(*cordis.Context) error { return errBoom }), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := w.errs(); len(r) != 1 || !errors.Is(r[0].Err, errBoom) {
			t.Error(r)
		}
		close(leave)
		w.rest()
	})
}

// A lease that is given back twice is given back once: the next one still holds.
func TestGivenBackTwice(t *testing.T) {
	for name, take := range map[string]func(w *world, provider *cordis.Context) func(){
		"borrow": func(w *world, _ *cordis.Context) func() {
			_, give, ok := cordis.Borrow(w.root, key)
			if !ok {
				t.Fatal("not there")
			}
			return give
		},
		"claim": func(_ *world, provider *cordis.Context) func() {
			_, exit, err := provider.Claim().Enter(bg)
			if err != nil {
				t.Fatal(err)
			}
			return exit
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var ctx *cordis.Context
				undone := false
				f := w.mount(plugin("p", func(x *cordis.Context) error {
					ctx = x
					_, err := cordis.Provide(x, key, "v")
					if err == nil {
						_, err = x.Effect("e", func(context.Context) (seams.Undo, error) {
							return func(context.Context) error { undone = true; return nil }, nil
						})
					}
					return err
				}), nil)
				first := take(w, ctx)
				first()
				second := take(w, ctx)
				first()
				f.Dispose()
				synctest.Wait()
				if undone {
					t.Error("undone under a lease")
				}
				second()
				if err := f.Gone().Wait(bg); err != nil || !undone {
					t.Error(err, undone)
				}
			})
		})
	}
}
