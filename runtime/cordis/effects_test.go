package cordis_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a container under test: what it reported, what its plugins noted.
type world struct {
	*testing.T
	*cordis.Container
	root *cordis.Context

	mu      sync.Mutex
	log     []string
	reports []cordis.Report
}

func newWorld(t *testing.T) *world {
	w := &world{T: t}
	w.Container = cordis.New(cordis.Options{Report: func(r cordis.Report) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, r)
	}})
	w.root = w.Container.Root()
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *world) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, s)
}

// took returns what was noted since the last call.
func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.log
	w.log = nil
	return out
}

func (w *world) errs() []cordis.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports)
}

func (w *world) want(steps ...string) {
	w.Helper()
	if got := w.took(); !slices.Equal(got, steps) {
		w.Fatalf("got %q, want %q", got, steps)
	}
}

func (w *world) rest() {
	w.Helper()
	if err := w.Settle(context.Background()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) mount(p *cordis.Plugin, cfg any) *cordis.Fiber {
	w.Helper()
	f, err := w.root.Plugin(p, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.rest()
	return f
}

func (w *world) dispose(f *cordis.Fiber) {
	w.Helper()
	if err := f.Dispose().Wait(context.Background()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) state(f *cordis.Fiber, want cordis.State) {
	w.Helper()
	if got := f.State(); got != want {
		w.Fatalf("%s is %s, want %s: %q", f, got, want, w.Explain(f))
	}
}

func plugin(name string, apply func(*cordis.Context) error, needs ...string) *cordis.Plugin {
	return &cordis.Plugin{Name: name, Inject: cordis.Inject(needs...), Apply: func(ctx *cordis.Context, _ any) error { return apply(ctx) }}
}

// undoing notes s when it is undone.
func (w *world) undoing(s string) seams.Undo {
	return func(context.Context) error { w.note(s); return nil }
}

func (w *world) effect(ctx *cordis.Context, s string) seams.Undo {
	undo, err := ctx.Effect(s, func(context.Context) (seams.Undo, error) { return w.undoing(s), nil })
	if err != nil {
		w.Error(err)
	}
	return undo
}

func seq(steps ...any) iter.Seq2[seams.Undo, error] {
	return func(yield func(seams.Undo, error) bool) {
		for _, s := range steps {
			switch s := s.(type) {
			case seams.Undo:
				if !yield(s, nil) {
					return
				}
			case error:
				yield(nil, s)
				return
			case func():
				s()
			}
		}
	}
}

var bg = context.Background()

var errBoom = errors.New("boom")

// C-01
func TestDisposeRunsUndoOnce(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error { w.effect(ctx, "undo"); return nil }), nil)
	w.dispose(f)
	w.dispose(f)
	w.want("undo")
}

// C-02, C-64
func TestManualUndoRunsOnce(t *testing.T) {
	w := newWorld(t)
	var undo seams.Undo
	f := w.mount(plugin("p", func(ctx *cordis.Context) error { undo = w.effect(ctx, "undo"); return nil }), nil)
	for range 2 {
		if err := undo(bg); err != nil {
			t.Fatal(err)
		}
	}
	w.want("undo")
	w.dispose(f)
	w.want()
}

// C-03, C-07, C-10
func TestStepsAreUndoneLastFirst(t *testing.T) {
	w := newWorld(t)
	undo, err := w.root.EffectSeq("seq", seq(w.undoing("1"), w.undoing("2"), w.undoing("3")))
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(bg); err != nil {
		t.Fatal(err)
	}
	w.want("3", "2", "1")
}

// C-04
func TestEffectTree(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.EffectSeq("outer", seq(w.undoing("a"), w.undoing("b")))
		return err
	}), nil)
	for _, i := range w.Inspect().Fibers {
		if i.ID == f.ID() {
			if len(i.Effects) != 1 || i.Effects[0].Label != "outer" || len(i.Effects[0].Children) != 2 {
				t.Fatalf("%+v", i.Effects)
			}
			return
		}
	}
	t.Fatal("not in the snapshot")
}

// C-05: the effect's setup is awaited, then its undo runs when asked.
// C-06, C-61, C-63: an owner that goes during setup waits for setup and undo.
func TestDisposeDuringSetup(t *testing.T) {
	w := newWorld(t)
	enter, leave := make(chan struct{}), make(chan struct{})
	f, err := w.root.Plugin(plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.Effect("slow", func(context.Context) (seams.Undo, error) {
			close(enter)
			<-leave
			w.note("set up")
			return w.undoing("undone"), nil
		})
		return err
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-enter
	d := f.Dispose()
	w.want()
	close(leave)
	if err := d.Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want("set up", "undone")
}

// R10, C-61: a registration whose owner ends during its setup is undone before
// Effect returns, and says so.
func TestRegistrationTooLate(t *testing.T) {
	w := newWorld(t)
	var ctx *cordis.Context
	f := w.mount(plugin("p", func(c *cordis.Context) error { ctx = c; return nil }), nil)
	enter, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := ctx.Effect("late", func(context.Context) (seams.Undo, error) {
			close(enter)
			<-leave
			return w.undoing("undone"), nil
		})
		w.note("returned")
		done <- err
	}()
	<-enter
	d := f.Dispose()
	close(leave)
	if err := <-done; !errors.Is(err, seams.InactiveEffect) {
		t.Fatal(err)
	}
	if err := d.Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want("undone", "returned")
}

// C-08, C-09: disposal during a step lets it land, undoes it, and starts no other.
func TestDisposeDuringSteps(t *testing.T) {
	for at := 1; at <= 2; at++ {
		w := newWorld(t)
		enter, leave := make(chan struct{}), make(chan struct{})
		wait := func() { close(enter); <-leave }
		steps := []any{w.undoing("1"), w.undoing("2"), w.undoing("3")}
		steps = slices.Insert(steps, at-1, any(wait))
		f, err := w.root.Plugin(&cordis.Plugin{Steps: func(ctx *cordis.Context, _ any) iter.Seq2[seams.Undo, error] { return seq(steps...) }}, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-enter
		d := f.Dispose()
		close(leave)
		if err := d.Wait(bg); err != nil {
			t.Fatal(err)
		}
		w.want([]string{"2", "1"}[2-at:]...)
	}
}

// C-11, C-13, C-62
func TestFailingSetupRecordsNothing(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		if _, err := ctx.Effect("e", func(context.Context) (seams.Undo, error) { return nil, errBoom }); !errors.Is(err, errBoom) {
			t.Error(err)
		}
		return nil
	}), nil)
	for _, i := range w.Inspect().Fibers {
		if i.ID == f.ID() && len(i.Effects) != 0 {
			t.Fatal(i.Effects)
		}
	}
}

// C-12, C-14, C-62
func TestFailingStepUndoesWhatLanded(t *testing.T) {
	w := newWorld(t)
	if _, err := w.root.EffectSeq("seq", seq(w.undoing("1"), errBoom, w.undoing("2"))); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	w.want("1")
}

// C-18: a failing apply fails that fiber alone, undoes its prefix, reports once.
func TestFailingApply(t *testing.T) {
	w := newWorld(t)
	p := cordis.Define("p", func(ctx *cordis.Context, fail bool) error {
		if _, err := ctx.On("ping", func(context.Context, any, seams.Next) (any, error) { w.note("heard"); return nil, nil }); err != nil {
			return err
		}
		w.effect(ctx, "undo")
		if fail {
			return errBoom
		}
		return nil
	})
	good, bad := w.mount(p, false), w.mount(p, true)
	w.state(good, cordis.Active)
	w.state(bad, cordis.Failed)
	w.want("undo")
	if !errors.Is(bad.Err(), errBoom) || !errors.Is(bad.Settle(bg), errBoom) {
		t.Fatal(bad.Err())
	}
	if _, err := w.root.Dispatch(bg, seams.Dispatch{Event: "ping"}); err != nil {
		t.Fatal(err)
	}
	w.want("heard")
	if r := w.errs(); len(r) != 1 || r[0].Fiber != bad || r[0].Phase != "apply" {
		t.Fatalf("%+v", r)
	}
}

// C-19, R7: all undos are attempted; the failing ones are reported.
func TestFailingUndos(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		w.effect(ctx, "1")
		_, _ = ctx.Effect("error", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error { return errBoom }, nil
		})
		_, _ = ctx.Effect("panic", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error { panic("boom") }, nil
		})
		w.effect(ctx, "2")
		return nil
	}), nil)
	w.dispose(f)
	w.want("2", "1")
	w.rest()
	if r := w.errs(); len(r) != 2 || r[0].Label != "panic" || r[1].Label != "error" {
		t.Fatalf("%+v", r)
	}
}

// C-33, C-65: an undo registers nothing.
func TestRegisterInUndo(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.Effect("e", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error {
				_, e1 := ctx.Plugin(plugin("x", func(*cordis.Context) error { return nil }), nil)
				_, e2 := ctx.Effect("x", func(context.Context) (seams.Undo, error) { w.note("ran"); return nil, nil })
				_, e3 := ctx.On("x", nil)
				_, e4 := cordis.Provide(ctx, seams.Key[int]{Name: "x"}, 1)
				for _, err := range []error{e1, e2, e3, e4} {
					if !errors.Is(err, seams.InactiveEffect) {
						t.Error(err)
					}
				}
				return nil
			}, nil
		})
		return err
	}), nil)
	w.dispose(f)
	w.want()
}

// C-66: registration while loading is legal. C5: an undo's context has a deadline.
func TestUndoContext(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		_, err := ctx.Effect("e", func(context.Context) (seams.Undo, error) {
			return func(c context.Context) error {
				if _, ok := c.Deadline(); !ok || c.Err() != nil {
					t.Error("an undo wants a live context with a deadline")
				}
				if ctx.Context().Err() == nil {
					t.Error("the activation's context must be over by now")
				}
				if !errors.Is(context.Cause(ctx.Context()), seams.Unloaded) {
					t.Error(context.Cause(ctx.Context()))
				}
				return nil
			}, nil
		})
		return err
	}), nil)
	w.dispose(f)
}

// F6: an undo that hangs is reported as stuck, not skipped; Settle names it.
func TestStuckUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		f := w.mount(plugin("p", func(ctx *cordis.Context) error {
			w.effect(ctx, "older")
			_, err := ctx.Effect("hang", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { <-release; return nil }, nil
			})
			return err
		}), nil)
		d := f.Dispose()
		if err := w.Settle(bg); !errors.Is(err, seams.Stuck) {
			t.Fatal(err)
		}
		w.want()
		close(release)
		if err := d.Wait(bg); err != nil {
			t.Fatal(err)
		}
		w.want("older")
	})
}

// F6: a stuck undo can be given up on.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		f := w.mount(plugin("p", func(ctx *cordis.Context) error {
			_, err := ctx.Effect("hang", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { <-release; return nil }, nil
			})
			return err
		}), nil)
		d := f.Dispose()
		if err := w.Settle(bg); !errors.Is(err, seams.Stuck) {
			t.Fatal(err)
		}
		w.Abandon(f)
		if err := d.Wait(bg); !errors.Is(err, nil) {
			t.Fatal(err)
		}
		close(release)
	})
}

// C4: an owned goroutine serves the undos of what is younger than it.
func TestOwnedGoroutine(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("p", func(ctx *cordis.Context) error {
		ping := make(chan chan struct{})
		if _, err := ctx.Go("pump", func(c context.Context) error {
			for {
				select {
				case <-c.Done():
					w.note("pump ended")
					return nil
				case r := <-ping:
					close(r)
				}
			}
		}); err != nil {
			return err
		}
		_, err := ctx.Effect("younger", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error { r := make(chan struct{}); ping <- r; <-r; w.note("served"); return nil }, nil
		})
		return err
	}), nil)
	w.dispose(f)
	w.want("served", "pump ended")
}
