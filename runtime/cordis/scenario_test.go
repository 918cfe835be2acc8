package cordis

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"github.com/ouro-run/ouro/seams"
)

// Named plans: what random ones find rarely.

// scenario is a plan with its schedule.
type scenario struct {
	name     string
	plan     model.Plan
	schedule []int
	adv      adversary
}

// script is a script of takes and binds.
func script(name, needs, provides string, takes int) *model.Script {
	s := &model.Script{Name: name, Needs: strings.Fields(needs), Provides: strings.Fields(provides)}
	for _, k := range s.Provides {
		s.Steps = append(s.Steps, model.Step{Kind: model.Bind, Name: k})
	}
	for range takes {
		s.Steps = append(s.Steps, model.Step{Kind: model.Take})
	}
	return s
}

// slotOf is a slot at the root; the variants it lacks are its first.
func slotFor(variants ...*model.Script) model.Slot {
	for len(variants) < 4 {
		variants = append(variants, variants[0])
	}
	return model.Slot{Parent: -1, Variants: variants}
}

func set(slot, variant int) model.Op { return model.Op{Kind: model.Set, Slot: slot, Variant: variant} }
func run(n int) model.Op             { return model.Op{Kind: model.Run, N: n} }

var scenarios = append(landings(), []scenario{
	{
		name: "a successor that needs what its predecessor's dependant provides",
		plan: model.Plan{Plain: true,
			Slots: []model.Slot{
				slotFor(script("p", "", "k", 1), script("p2", "", "k", 1), script("q", "kc", "k", 1)),
				slotFor(script("c", "k", "kc", 1), script("c2", "", "kc", 1)),
			},
			Ops: []model.Op{set(0, 0), set(1, 0), run(99), set(0, 2), run(99), set(1, 1), run(99)},
		},
	},
	{
		name: "a call in flight when its plugin is unmounted",
		adv:  "calls",
		plan: model.Plan{Plain: true,
			Slots: []model.Slot{slotFor(script("p", "", "k", 2))},
			Ops:   []model.Op{set(0, 0), run(99), {Kind: model.Call}, {Kind: model.Unmount}, run(99)},
		},
	},
	{
		name: "replaced while the holder restarts",
		plan: model.Plan{Plain: true,
			Slots: []model.Slot{
				slotFor(script("p", "kq", "k", 3), script("p2", "kq nobody", "k", 0)),
				slotFor(script("q", "", "kq", 0)),
			},
			Ops: []model.Op{set(1, 0), set(0, 0), run(99), {Kind: model.Restart, Slot: 1}, run(4), set(0, 1), run(99)},
		},
	},
	{
		name: "a diamond",
		plan: model.Plan{Plain: true,
			Slots: []model.Slot{
				slotFor(script("p", "", "k", 0)),
				slotFor(script("d", "k", "kd", 0)),
				slotFor(script("e", "k kd", "", 1)),
			},
			Ops: []model.Op{set(0, 0), set(1, 0), set(2, 0), run(99), {Kind: model.Restart}, run(99)},
		},
	},
}...)

// landings are plans in which a provider is replaced, and a successor elsewhere
// that relies on the provider's dependant finishes, in one batch: the successor
// must not take over (N6).
func landings() (out []scenario) {
	plain := func(s *model.Script) *model.Script { s.Plain = true; return s }
	for _, first := range []model.Op{{Kind: model.Restart}, set(2, 1)} {
		last := set(2, 1)
		if first.Kind == model.Set {
			last = model.Op{Kind: model.Restart}
		}
		out = append(out, scenario{
			name: "two landings in a batch",
			adv:  "batches",
			plan: model.Plan{Plain: true,
				Slots: []model.Slot{
					slotFor(plain(script("p", "", "k", 0))),
					slotFor(plain(script("c", "k", "kc", 1))),
					slotFor(plain(script("e", "", "ke", 0)), plain(script("q", "kc", "ke", 0))),
				},
				Ops: []model.Op{set(0, 0), set(1, 0), set(2, 0), run(99), first, last, run(99)},
			},
		})
	}
	return
}

// TestScenarios: the plans that find the rare faults find none.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		for _, list := range [][]int{nil, {1, 0, 2}, {3, 1, 4, 1, 5}} {
			if bad := play(s.plan, list, s.adv, 0); len(bad) > 0 {
				t.Errorf("%s: %v", s.name, bad)
			}
		}
		for i := range uint64(4) {
			if bad := playReal(s.plan, i, 0); len(bad) > 0 {
				t.Errorf("%s, in real time: %v", s.name, bad)
			}
		}
	}
}

// Re-entrancy: what plugin code may do to the container that runs it.

// stage is a container in virtual time, with a log.
type stage struct {
	*testing.T
	c    *Container
	root *Context
	mu   sync.Mutex
	log  []string
	errs []error
}

// onStage runs fn with a container that is closed afterwards; what is reported
// must be among codes.
func onStage(t *testing.T, fn func(*stage), codes ...seams.Code) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.c = New(Options{Report: func(r Report) {
			if !slices.Contains(codes, seams.CodeOf(r.Err)) {
				t.Errorf("reported: %v", r.Err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, r.Err)
		}})
		s.root = s.c.Root()
		fn(s)
		if err := s.c.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// said checks and clears the log.
func (s *stage) said(want ...string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		s.Errorf("log %q, want %q", s.log, want)
	}
	s.log = nil
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

func (s *stage) is(err error, code seams.Code) {
	s.Helper()
	if !errors.Is(err, code) {
		s.Errorf("got %v, want %s", err, code)
	}
}

// mount mounts below ctx and settles the container.
func (s *stage) mount(ctx *Context, p *Plugin) *Fiber {
	s.Helper()
	f, err := ctx.Plugin(p, nil)
	s.must(err)
	s.settle()
	return f
}

func (s *stage) settle() {
	s.Helper()
	s.must(s.c.Settle(context.Background()))
}

func (s *stage) state(f *Fiber, want State) {
	s.Helper()
	if f.State() != want {
		s.Errorf("%v is %v, want %v", f, f.State(), want)
	}
}

func apply(name string, fn func(*Context) error, needs ...string) *Plugin {
	return &Plugin{Name: name, Inject: Inject(needs...), Apply: func(ctx *Context, _ any) error { return fn(ctx) }}
}

// undone makes an undo of ctx that says so, after d.
func (s *stage) undone(ctx *Context, what string, d time.Duration) {
	_, err := ctx.Effect(what, func(context.Context) (seams.Undo, error) {
		return func(context.Context) error { time.Sleep(d); s.note("undo %s", what); return nil }, nil
	})
	s.must(err)
}

var bg = context.Background()

func num(name string) seams.Key[int] { return seams.Key[int]{Name: name} }

// provider provides an int.
func (s *stage) provider(name string, v int) *Plugin {
	return apply("provider of "+name, func(ctx *Context) error {
		s.undone(ctx, name, 0)
		_, err := Provide(ctx, num(name), v)
		return err
	})
}

func TestMountInApplyAndAwait(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, apply("outer", func(ctx *Context) error {
			in, err := ctx.Plugin(apply("inner", func(*Context) error { time.Sleep(time.Second); s.note("inner"); return nil }), nil)
			s.must(err)
			s.must(in.Ready().Wait(ctx.Context()))
			s.note("outer")
			return nil
		}))
		s.state(f, Active)
		s.said("inner", "outer")
	})
}

func TestAwaitChildThatNeedsParent(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, &Plugin{Name: "outer", Provide: []string{"k"}, Apply: func(ctx *Context, _ any) error {
			_, err := Provide(ctx, num("k"), 1)
			s.must(err)
			in, err := ctx.Plugin(apply("inner", func(*Context) error { s.note("inner"); return nil }, "k"), nil)
			s.must(err)
			s.is(in.Ready().Wait(ctx.Context()), seams.WouldDeadlock)
			return nil
		}})
		s.state(f, Active)
		s.said("inner")
	})
}

// A listener disposes of itself, its own plugin, its parent, or a sibling, in the
// middle of a dispatch.
func TestListenerDisposes(t *testing.T) {
	onStage(t, func(s *stage) {
		var parent, second, third *Fiber
		var self seams.Undo
		hear := func(ctx *Context, name string, do func(context.Context)) seams.Undo {
			undo, err := ctx.On("e", func(c context.Context, _ any, _ seams.Next) (any, error) {
				s.note("%s", name)
				do(c)
				return nil, nil
			})
			s.must(err)
			return undo
		}
		first := apply("first", func(ctx *Context) error {
			s.undone(ctx, "first", 0)
			self = hear(ctx, "itself", func(c context.Context) { s.must(self(c)) })
			hear(ctx, "sibling", func(c context.Context) { s.must(third.Dispose().Wait(c)) })
			hear(ctx, "own", func(c context.Context) { s.is(ctx.Fiber().Dispose().Wait(c), seams.WouldDeadlock) })
			return nil
		})
		s.mount(s.root, first)
		parent = s.mount(s.root, apply("parent", func(ctx *Context) error {
			s.undone(ctx, "parent", 0)
			var err error
			second, err = ctx.Plugin(apply("second", func(ctx *Context) error {
				s.undone(ctx, "second", 0)
				hear(ctx, "child", func(c context.Context) { s.is(parent.Dispose().Wait(c), seams.WouldDeadlock) })
				return nil
			}), nil)
			return err
		}))
		third = s.mount(s.root, apply("third", func(ctx *Context) error {
			hear(ctx, "never", func(context.Context) {})
			return nil
		}))
		_, err := s.root.Dispatch(bg, seams.Dispatch{Event: "e"})
		s.must(err)
		s.settle()
		s.state(parent, Disposed)
		s.state(second, Disposed)
		slices.Sort(s.log) // undoing goes on beside the dispatch
		s.said("child", "itself", "own", "sibling", "undo first", "undo parent", "undo second")
		_, err = s.root.Dispatch(bg, seams.Dispatch{Event: "e"})
		s.must(err)
		s.said()
	})
}

func TestUndoMounts(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, apply("p", func(ctx *Context) error {
			_, err := ctx.Effect("e", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error {
					_, err := ctx.Plugin(apply("late", func(*Context) error { s.note("late"); return nil }), nil)
					s.is(err, seams.InactiveEffect)
					return nil
				}, nil
			})
			return err
		}))
		s.must(f.Dispose().Wait(bg))
		s.said()
	})
}

// An undo emits an event whose listener disposes of the fiber that is undone.
func TestUndoEmitsAndListenerDisposesSame(t *testing.T) {
	onStage(t, func(s *stage) {
		var f *Fiber
		s.mount(s.root, apply("other", func(ctx *Context) error {
			_, err := ctx.On("bye", func(c context.Context, _ any, _ seams.Next) (any, error) {
				s.note("heard")
				s.is(f.Dispose().Wait(c), seams.WouldDeadlock)
				return nil, nil
			})
			return err
		}))
		f = s.mount(s.root, apply("p", func(ctx *Context) error {
			_, err := ctx.Effect("e", func(context.Context) (seams.Undo, error) {
				return func(c context.Context) error {
					s.note("undo")
					_, err := ctx.Dispatch(c, seams.Dispatch{Event: "bye"})
					return err
				}, nil
			})
			return err
		}))
		s.must(f.Dispose().Wait(bg))
		s.said("undo", "heard")
	})
}

// tool enters a plugin as a tool call does.
func tool(s *stage, ctx *Context, fn func(context.Context) string) string {
	c, exit, err := ctx.Claim().Enter(bg)
	s.must(err)
	defer exit()
	return fn(c)
}

func TestCallUnmountsItsOwnPlugin(t *testing.T) {
	onStage(t, func(s *stage) {
		var ctx *Context
		f := s.mount(s.root, apply("p", func(x *Context) error { ctx = x; s.undone(x, "p", 0); return nil }))
		out := tool(s, ctx, func(c context.Context) string {
			f.Dispose()
			time.Sleep(time.Second)
			s.must(c.Err())
			s.state(f, Unloading)
			s.note("answer")
			return "value"
		})
		s.settle()
		if out != "value" {
			t.Error(out)
		}
		s.state(f, Disposed)
		s.said("answer", "undo p")
	})
}

func TestCallReplacesItsOwnPlugin(t *testing.T) {
	onStage(t, func(s *stage) {
		var old, young *Context
		e := s.root.Entry("p")
		version := func(name string, at **Context) *Plugin {
			return apply(name, func(x *Context) error { *at = x; s.undone(x, name, 0); _, err := Provide(x, num("k"), 1); return err })
		}
		_, err := e.Set(version("old", &old), nil, nil)
		s.must(err)
		s.settle()
		tool(s, old, func(c context.Context) string {
			f, err := e.Set(version("new", &young), nil, nil)
			s.must(err)
			s.must(f.Ready().Wait(c))
			tool(s, young, func(context.Context) string { s.note("new answers"); return "" })
			s.is(old.Fiber().Gone().Wait(c), seams.WouldDeadlock)
			s.note("old answers")
			return ""
		})
		s.settle()
		s.said("new answers", "old answers", "undo old")
	})
}

func TestTwoDisposeEachOther(t *testing.T) {
	onStage(t, func(s *stage) {
		ctxs := make([]*Context, 2)
		fs := make([]*Fiber, 2)
		for i := range fs {
			fs[i] = s.mount(s.root, apply(fmt.Sprint(i), func(x *Context) error { ctxs[i] = x; s.undone(x, "", time.Second); return nil }))
		}
		var wg sync.WaitGroup
		answers := make([]error, 2)
		for i := range fs {
			wg.Go(func() {
				tool(s, ctxs[i], func(c context.Context) string {
					time.Sleep(time.Second)
					answers[i] = fs[1-i].Dispose().Wait(c)
					return ""
				})
			})
		}
		wg.Wait()
		s.settle()
		s.state(fs[0], Disposed)
		s.state(fs[1], Disposed)
		if (answers[0] == nil) == (answers[1] == nil) {
			t.Error("one of the two has to be refused", answers)
		}
	})
}

// Two calls each remove a listener of the other's plugin.
func TestTwoUnlistenEachOther(t *testing.T) {
	onStage(t, func(s *stage) {
		undos := make([]seams.Undo, 2)
		for i := range undos {
			s.mount(s.root, apply(fmt.Sprint(i), func(x *Context) error {
				var err error
				undos[i], err = x.On(fmt.Sprint(i), func(c context.Context, _ any, _ seams.Next) (any, error) {
					time.Sleep(time.Second)
					return nil, undos[1-i](c)
				})
				return err
			}))
		}
		var wg sync.WaitGroup
		for i := range undos {
			wg.Go(func() {
				_, err := s.root.Dispatch(bg, seams.Dispatch{Event: fmt.Sprint(i)})
				s.must(err)
			})
		}
		wg.Wait()
	})
}

func TestProviderAndConsumerRetiredTogether(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.mount(s.root, s.provider("k", 7))
		c := s.mount(s.root, apply("consumer", func(ctx *Context) error {
			_, err := ctx.Effect("slow", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error {
					time.Sleep(3 * time.Second)
					v, err := Get(ctx, num("k"))
					s.note("consumer reads %d %v", v, err)
					return nil
				}, nil
			})
			return err
		}, "k"))
		b := s.root.Batch()
		b.Dispose(p)
		b.Dispose(c)
		_, err := b.Commit()
		s.must(err)
		s.must(p.Gone().Wait(bg))
		s.said("consumer reads 7 <nil>", "undo k")
	})
}

func TestChildDisposesParentInApply(t *testing.T) {
	onStage(t, func(s *stage) {
		parent := s.mount(s.root, apply("parent", func(ctx *Context) error {
			s.undone(ctx, "parent", 0)
			parent := ctx.Fiber()
			_, err := ctx.Plugin(apply("child", func(ctx *Context) error {
				s.undone(ctx, "child", 0)
				s.is(parent.Dispose().Wait(ctx.Context()), seams.WouldDeadlock)
				return nil
			}), nil)
			return err
		}))
		s.state(parent, Disposed)
		s.said("undo child", "undo parent")
	})
}

// A → B → A while A loads: the last one asked for runs (A12).
func TestUpdateWhileLoading(t *testing.T) {
	onStage(t, func(s *stage) {
		p := &Plugin{Name: "p", Apply: func(ctx *Context, cfg any) error {
			time.Sleep(time.Second)
			s.note("%v", cfg)
			return nil
		}}
		f, err := s.root.Plugin(p, "a")
		s.must(err)
		s.settle()
		s.said("a")
		for _, cfg := range []string{"b", "c", "a"} {
			_, err = f.Update(cfg)
			s.must(err)
			time.Sleep(time.Millisecond)
		}
		s.settle()
		s.state(f, Disposed)
		hold := s.root.Fiber().c.st.root.kids.first
		if hold.Config() != "a" || hold.State() != Active || hold.sib.next != nil {
			t.Error(hold, hold.Config(), hold.State())
		}
		// In place: nothing is on its way, and equal is no change.
		g, err := hold.Update("a")
		if g != hold || err != nil {
			t.Error(g, err)
		}
		s.is(second(f.Update("z")), seams.InactiveEffect)
		s.is(second(f.Restart()), seams.InactiveEffect)
	})
}

func second(_ *Fiber, err error) error { return err }

// Cancelling the container's context is disposing of its root (C11).
func TestCancelRootWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		c := New(Options{Context: ctx})
		var f *Fiber
		var cause error
		f, err := c.Root().Plugin(apply("p", func(ctx *Context) error {
			<-ctx.Context().Done()
			cause = context.Cause(ctx.Context())
			return cause
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		if err := f.Gone().Wait(bg); err != nil {
			t.Error(err)
		}
		if !errors.Is(cause, seams.Unloaded) {
			t.Error(cause)
		}
		if err := c.Close(bg); err != nil {
			t.Error(err)
		}
	})
}

// A provider withdraws and provides again while its consumer loads: the consumer
// goes on with the new value (C-16), and a stage sequence that was ended for the
// loss does not count as a whole one.
func TestProvideWithdrawProvideWhileLoading(t *testing.T) {
	onStage(t, func(s *stage) {
		undo, err := Provide(s.root, num("k"), 1)
		s.must(err)
		f, err := s.root.Plugin(apply("consumer", func(ctx *Context) error {
			time.Sleep(time.Second)
			v, err := Get(ctx, num("k"))
			s.note("loads with %d", v)
			return err
		}, "k"), nil)
		s.must(err)
		synctest.Wait()
		go func() { s.must(undo(bg)) }()
		synctest.Wait()
		_, err = Provide(s.root, num("k"), 2)
		s.must(err)
		s.settle()
		s.state(f, Active)
		if f.Begins() != 1 {
			t.Error("began", f.Begins())
		}
		s.said("loads with 1")
	})
}

func TestFinishWhenProviderLeaves(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.mount(s.root, s.provider("k", 1))
		gate := make(chan struct{})
		f, err := s.root.Plugin(apply("consumer", func(ctx *Context) error {
			s.undone(ctx, "consumer", 0)
			<-gate
			return nil
		}, "k"), nil)
		s.must(err)
		synctest.Wait()
		// The completion and the request reach the scheduler in one batch.
		s.c.sched.mu.Lock()
		s.c.sched.busy = true
		s.c.sched.mu.Unlock()
		close(gate)
		go p.Dispose()
		synctest.Wait()
		s.c.sched.mu.Lock()
		s.c.exec.start(s.c, s.c.drain(drainBound))
		s.settle()
		s.state(f, Pending)
		s.state(p, Disposed)
		if f.Begins() != 1 || f.acts > 1 {
			t.Error(f.Begins(), f.acts)
		}
		s.said("undo consumer", "undo k")
	})
}

// A resolver of a configuration reads a service that is there for its plugin's
// whole activation, though its provider leaves meanwhile.
func TestResolverReadsServiceThatLeaves(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.mount(s.root, s.provider("k", 5))
		f, err := s.root.Entry("c").Set(&Plugin{Name: "c", Inject: Inject("k"), Apply: func(_ *Context, cfg any) error { s.note("cfg %v", cfg); return nil }}, nil,
			func(ctx *Context) (any, error) {
				p.Dispose()
				time.Sleep(time.Second)
				return Get(ctx, num("k"))
			})
		s.must(err)
		s.settle()
		s.state(f, Pending)
		s.state(p, Disposed)
		s.said("cfg 5", "undo k")
	})
}

// Settling inside a call is refused as soon as the call's own plugin has to go.
func TestSettleInsideAPluginThatHasToGo(t *testing.T) {
	onStage(t, func(s *stage) {
		var ctx *Context
		f := s.mount(s.root, apply("p", func(x *Context) error { ctx = x; return nil }))
		s.mount(s.root, apply("slow", func(x *Context) error { s.undone(x, "slow", 4*time.Second); return nil })).Dispose()
		tool(s, ctx, func(c context.Context) string {
			go func() { time.Sleep(time.Second); f.Dispose() }()
			s.is(s.c.Settle(c), seams.WouldDeadlock)
			return ""
		})
		s.settle()
		s.said("undo slow")
	})
}

// What a listener sets up while its plugin is unloaded is undone before the
// registration is refused (R10).
func TestEffectSetUpWhileUnloading(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, apply("p", func(ctx *Context) error {
			s.undone(ctx, "older", 0)
			_, err := ctx.On("e", func(c context.Context, _ any, _ seams.Next) (any, error) {
				_, err := ctx.Effect("late", func(context.Context) (seams.Undo, error) {
					ctx.Fiber().Dispose()
					time.Sleep(time.Second)
					return func(context.Context) error { s.note("undo late"); return nil }, nil
				})
				s.is(err, seams.InactiveEffect)
				s.note("refused")
				return nil, nil
			})
			return err
		}))
		_, err := s.root.Dispatch(bg, seams.Dispatch{Event: "e"})
		s.must(err)
		s.must(f.Gone().Wait(bg))
		s.said("undo late", "refused", "undo older")
	})
}

// A place that is mounted again does not hold up who waits for what stood there.
func TestUnmountDoesNotWaitForTheNext(t *testing.T) {
	onStage(t, func(s *stage) {
		e := s.root.Entry("p")
		slow := apply("p", func(ctx *Context) error { s.undone(ctx, "p", time.Second); return nil })
		_, err := e.Set(slow, nil, nil)
		s.must(err)
		s.settle()
		done := e.Unmount()
		f, err := e.Set(slow, nil, nil)
		s.must(err)
		s.must(done.Wait(bg))
		s.state(f, Active)
		s.said("undo p")
	})
}

// An undo that does not end holds what it relies on, is reported once, and is
// given up only when asked (F6).
func TestStuck(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.mount(s.root, s.provider("k", 1))
		gate := make(chan struct{})
		f := s.mount(s.root, apply("hangs", func(ctx *Context) error {
			s.undone(ctx, "older", 0)
			_, err := ctx.Effect("hang", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { <-gate; return nil }, nil
			})
			return err
		}, "k"))
		b := s.root.Batch()
		b.Dispose(f)
		b.Dispose(p)
		_, err := b.Commit()
		s.must(err)
		s.is(s.c.Settle(bg), seams.Stuck)
		s.said()
		s.state(p, Unloading)
		synctest.Wait()
		if len(s.errs) != 1 {
			t.Error(s.errs)
		}
		s.c.Abandon(f)
		s.settle()
		s.said("undo older", "undo k")
		if len(s.errs) != 2 {
			t.Error(s.errs)
		}
		close(gate)
	}, seams.Stuck)
}

// Any number of callers share one disposal (C2).
func TestDisposeIsShared(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, apply("p", func(ctx *Context) error { s.undone(ctx, "p", time.Second); return nil }))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				s.must(f.Dispose().Wait(bg))
				s.state(f, Disposed)
			})
		}
		wg.Wait()
		s.said("undo p")
	})
}

// A plugin that never returns stops nobody else (C8).
func TestBlockedPluginStopsNobody(t *testing.T) {
	onStage(t, func(s *stage) {
		gate := make(chan struct{})
		block := func(*Context) error { <-gate; return nil }
		_, err := s.root.Plugin(apply("apply", block), nil)
		s.must(err)
		_, err = s.root.On("e", func(context.Context, any, seams.Next) (any, error) { <-gate; return nil, nil })
		s.must(err)
		go func() { _, _ = s.root.Dispatch(bg, seams.Dispatch{Event: "e"}) }()
		synctest.Wait()
		f, err := s.root.Plugin(s.provider("k", 1), nil)
		s.must(err)
		s.must(f.Ready().Wait(bg))
		v, err := Get(s.root, num("k"))
		if v != 1 || err != nil {
			t.Error(v, err)
		}
		s.must(f.Dispose().Wait(bg))
		_, err = s.root.Dispatch(bg, seams.Dispatch{Event: "other"})
		s.must(err)
		close(gate)
		s.settle()
		s.said("undo k")
	})
}

// Inside a group that loads, what a part of it provides is not seen by another
// part as long as the provider's own parent loads (N3, of nested shadows).
func TestNestedShadows(t *testing.T) {
	onStage(t, func(s *stage) {
		inner, outer := make(chan struct{}), make(chan struct{})
		var reader *Fiber
		f, err := s.root.Plugin(apply("group", func(ctx *Context) error {
			_, err := ctx.Plugin(apply("part", func(ctx *Context) error {
				p, err := ctx.Plugin(s.provider("k", 1), nil)
				s.must(err)
				s.must(p.Ready().Wait(ctx.Context()))
				<-inner
				return nil
			}), nil)
			s.must(err)
			reader, err = ctx.Plugin(apply("reader", func(*Context) error { s.note("reads"); return nil }, "k"), nil)
			s.must(err)
			<-outer
			return nil
		}), nil)
		s.must(err)
		synctest.Wait()
		s.state(reader, Pending)
		close(inner)
		synctest.Wait()
		s.state(reader, Active) // both stand in the shadow of the group
		if _, ok := Lookup(s.root, num("k")); ok {
			t.Error("seen from outside")
		}
		close(outer)
		s.must(f.Ready().Wait(bg))
		if _, ok := Lookup(s.root, num("k")); !ok {
			t.Error("not seen from outside")
		}
		s.said("reads")
	})
}

// Of two bindings that a fiber could read, which are those of versions of one
// entry, the nearer wins: what is below an old version stays with its siblings
// until it goes (N3).
func TestNearestShadowWins(t *testing.T) {
	onStage(t, func(s *stage) {
		version := func(name string, wait time.Duration, needs ...string) *Plugin {
			return &Plugin{Name: name, Inject: Inject(needs...), Apply: func(ctx *Context, _ any) error {
				_, err := ctx.Plugin(s.provider("c", 1), nil)
				s.must(err)
				_, err = ctx.Plugin(apply("reader", func(ctx *Context) error {
					s.undone(ctx, "reader of "+name, 0)
					return nil
				}, "c"), nil)
				s.must(err)
				time.Sleep(wait)
				_, err = ctx.Effect("slow", func(context.Context) (seams.Undo, error) {
					return func(context.Context) error { time.Sleep(time.Second); return nil }, nil
				})
				return err
			}}
		}
		base := s.root.Entry("base")
		set := func(e *Entry, p *Plugin) {
			t.Helper()
			_, err := e.Set(p, nil, nil)
			s.must(err)
		}
		e := s.root.Entry("e")
		set(base, s.provider("base", 1))
		s.settle()
		set(e, version("old", 0, "base"))
		s.settle()
		set(e, version("new", 3*time.Second)) // its c is bound before the old one's next
		time.Sleep(time.Second)
		hold, _ := base.Versions()
		_, err := hold.Restart() // and with it the old version
		s.must(err)
		time.Sleep(1500 * time.Millisecond) // past the old version's slow undo
		old, young := e.Versions()
		s.state(old, Active)
		s.state(young, Loading)
		s.log = nil
		time.Sleep(600 * time.Millisecond) // the new one has taken over
		s.state(young, Active)
		s.state(old, Unloading) // in its slow undo, with its children in its shadow
		s.said()
		s.settle()
		s.said("undo reader of old", "undo c")
	})
}

// Undos that are asked for at the same time run one after the other (R6); one
// that is asked for inside another is a part of it.
func TestManualUndosAreSerial(t *testing.T) {
	onStage(t, func(s *stage) {
		var undos []seams.Undo
		var inner seams.Undo
		s.mount(s.root, apply("p", func(ctx *Context) error {
			effect := func(name string, fn func(context.Context)) {
				undo, err := ctx.Effect(name, func(context.Context) (seams.Undo, error) {
					return func(c context.Context) error {
						s.note("%s", name)
						fn(c)
						time.Sleep(time.Second)
						s.note("%s ends", name)
						return nil
					}, nil
				})
				s.must(err)
				undos = append(undos, undo)
			}
			effect("a", func(context.Context) {})
			effect("b", func(c context.Context) { s.must(inner(c)) })
			effect("c", func(context.Context) {})
			inner = undos[2]
			return nil
		}))
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() { time.Sleep(time.Duration(i) * time.Millisecond); s.must(undos[i](bg)) })
		}
		wg.Wait()
		s.must(undos[0](bg))
		s.must(undos[2](bg))
		s.said("a", "a ends", "b", "c", "c ends", "b ends")
	})
}

// A group is undone whole, whatever fails in it (R7).
func TestGroupUndoesAll(t *testing.T) {
	onStage(t, func(s *stage) {
		var undo seams.Undo
		f := s.mount(s.root, apply("p", func(ctx *Context) (err error) {
			undo, err = ctx.EffectSeq("seq", func(yield func(seams.Undo, error) bool) {
				for i := range 3 {
					yield(func(context.Context) error {
						s.note("undo %d", i)
						if i == 1 {
							panic("no")
						}
						return errors.New("no")
					}, nil)
				}
			})
			return err
		}))
		s.is(undo(bg), seams.UndoFailed)
		s.said("undo 2", "undo 1", "undo 0")
		f.Dispose()
		s.settle()
		s.said()
	}, seams.UndoFailed)
}

// Goexit in plugin code ends what it was in, and nothing waits for it (F3).
func TestGoexitIsContained(t *testing.T) {
	onStage(t, func(s *stage) {
		var undo seams.Undo
		_, err := s.root.On(StatusEvent.Name, func(context.Context, any, seams.Next) (any, error) { runtime.Goexit(); return nil, nil })
		s.must(err)
		f := s.mount(s.root, apply("p", func(ctx *Context) (err error) {
			s.undone(ctx, "older", 0)
			undo, err = ctx.Effect("manual", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { runtime.Goexit(); return nil }, nil
			})
			s.must(err)
			_, err = ctx.Go("go", func(context.Context) error {
				_, err := ctx.Effect("setup", func(context.Context) (seams.Undo, error) { runtime.Goexit(); return nil, nil })
				return err
			})
			return err
		}))
		own(func() { _ = undo(bg) })
		s.must(f.Dispose().Wait(bg))
		g, err := s.root.Plugin(apply("apply", func(*Context) error { runtime.Goexit(); return nil }), nil)
		s.must(err)
		s.is(g.Settle(bg), seams.Panicked)
		s.said("undo older")
	}, seams.Panicked, seams.UndoFailed)
}

// The place of an effect is taken before its setup runs: an unload that gets
// there waits for the setup, and what is older waits for it.
func TestUnloadWaitsForSetup(t *testing.T) {
	onStage(t, func(s *stage) {
		f := s.mount(s.root, apply("p", func(ctx *Context) error {
			s.undone(ctx, "older", 0)
			go func() {
				time.Sleep(time.Second)
				_, err := ctx.Effect("late", func(context.Context) (seams.Undo, error) {
					time.Sleep(2 * time.Second)
					return func(context.Context) error { s.note("undo late"); return nil }, nil
				})
				s.is(err, seams.InactiveEffect)
				s.note("refused")
			}()
			return nil
		}))
		time.Sleep(1500 * time.Millisecond)
		f.Dispose()
		time.Sleep(time.Second)
		s.state(f, Unloading)
		s.said()
		s.must(f.Gone().Wait(bg))
		synctest.Wait()
		slices.Sort(s.log[1:])
		s.said("undo late", "refused", "undo older")
	})
}

// A mount that an observer refuses changes nothing: neither the holder that has
// failed nor a successor before it is given up for it.
func TestRefusedMountChangesNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		refuse := false
		_, err := s.root.On(PluginEvent.Name, func(_ context.Context, payload any, _ seams.Next) (any, error) {
			if refuse && payload.(*Fiber).State() == Pending {
				return nil, errRefused
			}
			return nil, nil
		})
		s.must(err)
		e := s.root.Entry("e")
		_, err = e.Set(apply("holder", func(*Context) error { return nil }), nil, nil)
		s.must(err)
		s.settle()
		_, err = e.Set(apply("successor", func(*Context) error { return nil }, "nothing"), nil, nil)
		s.must(err)
		hold, next := e.Versions()
		refuse = true
		f, err := e.Set(apply("refused", func(*Context) error { s.note("began"); return nil }), nil, nil)
		if f != nil || !errors.Is(err, errRefused) {
			t.Error(f, err)
		}
		s.settle()
		if h, n := e.Versions(); h != hold || n != next || hold.State() != Active || next.State() != Pending {
			t.Error(h, n)
		}
		s.said()
	})
}

func TestClosedTakesNothing(t *testing.T) {
	c := New(Options{})
	if err := c.Close(bg); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Root().Plugin(apply("p", func(*Context) error { return nil }), nil); !errors.Is(err, seams.InactiveEffect) {
		t.Error(err)
	}
	if _, err := Provide(c.Root(), num("k"), 1); !errors.Is(err, seams.InactiveEffect) {
		t.Error(err)
	}
	if err := c.Close(bg); err != nil {
		t.Error(err)
	}
}

// A once listener hears one of many dispatches that come together (E4): here
// while the scheduler is at something else.
func TestOnceUnderConcurrentDispatch(t *testing.T) {
	onStage(t, func(s *stage) {
		var n atomic.Int32
		_, err := s.root.Listen("e", func(context.Context, any, seams.Next) (any, error) { n.Add(1); return nil, nil }, Once())
		s.must(err)
		s.c.sched.mu.Lock()
		s.c.sched.busy = true
		s.c.sched.mu.Unlock()
		for _, mode := range []seams.Mode{seams.Emit, seams.Parallel, seams.Waterfall, seams.Emit} {
			go func() { _, _ = s.root.Dispatch(bg, seams.Dispatch{Event: "e", Mode: mode}) }()
		}
		synctest.Wait()
		s.c.sched.mu.Lock()
		s.c.exec.start(s.c, s.c.drain(drainBound))
		synctest.Wait()
		if n.Load() != 1 {
			t.Error("heard", n.Load())
		}
	}, seams.ModeConflict)
}

// A barrier that gave up leaves frames in the phase that the next one opens:
// that one waits for them too.
func TestBarrierAfterOneThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		first, _ := g.enter()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := g.barrier(ctx, [2]uint64{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		second, _ := g.enter()
		over := false
		go func() {
			if err := g.barrier(bg, [2]uint64{}); err != nil {
				t.Error(err)
			}
			over = true
		}()
		for _, k := range []ticket{second, first} {
			synctest.Wait()
			if over {
				t.Error("a frame was not waited for")
			}
			g.exit(k)
		}
		synctest.Wait()
		if !over {
			t.Error("nobody is inside")
		}
	})
}

// A consumer's call withdraws the service it relies on: it cannot wait for itself
// to leave. It can wait for another service of the same provider to be gone.
func TestConsumerWithdrawsItsService(t *testing.T) {
	onStage(t, func(s *stage) {
		var mine, other seams.Undo
		s.mount(s.root, apply("provider", func(ctx *Context) (err error) {
			if mine, err = Provide(ctx, num("mine"), 1); err != nil {
				return err
			}
			other, err = Provide(ctx, num("other"), 1)
			return err
		}))
		var ctx *Context
		c := s.mount(s.root, apply("consumer", func(x *Context) error { ctx = x; s.undone(x, "consumer", 0); return nil }, "mine"))
		bystander := s.mount(s.root, apply("bystander", func(x *Context) error { s.undone(x, "bystander", 0); return nil }, "other"))
		tool(s, ctx, func(in context.Context) string {
			s.must(other(in))
			s.said("undo bystander")
			s.is(mine(in), seams.WouldDeadlock)
			s.state(c, Unloading)
			return ""
		})
		s.settle()
		s.said("undo consumer")
		s.state(c, Pending)
		s.state(bystander, Pending)
		if _, ok := Lookup(s.root, num("mine")); ok {
			t.Error("it is still there")
		}
	})
}

// Whoever drains the queue hands it on when others keep it full.
func TestDrainIsHandedOn(t *testing.T) {
	onStage(t, func(s *stage) {
		var n atomic.Int64
		var more func(*state)
		more = func(*state) {
			if n.Add(1) < 10*drainBound {
				s.c.post(&event{kind: evFunc, fn: more})
			}
		}
		s.c.do(more)
		if kept := n.Load(); kept > 3*drainBound {
			t.Error("the caller was kept for", kept)
		}
		synctest.Wait()
		if n.Load() != 10*drainBound {
			t.Error(n.Load())
		}
		s.settle()
	})
}

// Undoing a listener or a timer waits for its own code, not for whatever else
// its plugin is at.
func TestUndoWaitsForItsOwnCodeOnly(t *testing.T) {
	onStage(t, func(s *stage) {
		var ctx *Context
		var unlisten, untime seams.Undo
		began := time.Now()
		s.mount(s.root, apply("p", func(x *Context) (err error) {
			ctx = x
			slow := func(what string) { time.Sleep(2 * time.Second); s.note("%s ends", what) }
			if unlisten, err = x.On("e", func(context.Context, any, seams.Next) (any, error) { slow("listener"); return nil, nil }); err != nil {
				return err
			}
			untime, err = x.Interval(3*time.Second, func(context.Context) { slow("timer") })
			return err
		}))
		go tool(s, ctx, func(context.Context) string { time.Sleep(time.Minute); return "" })
		go func() { _, _ = s.root.Dispatch(bg, seams.Dispatch{Event: "e"}) }()
		time.Sleep(time.Second)
		s.must(unlisten(bg))
		s.said("listener ends")
		time.Sleep(2 * time.Second) // the timer has begun
		s.must(untime(bg))
		s.said("timer ends")
		if d := time.Since(began); d > 10*time.Second {
			t.Error("took", d)
		}
	})
}
