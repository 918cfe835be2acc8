package cordis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

var (
	key  = seams.Key[string]{Name: "key"}
	key2 = seams.Key[string]{Name: "key2"}
)

func provider(name string, k seams.Key[string], v string, needs ...string) *cordis.Plugin {
	return plugin(name, func(ctx *cordis.Context) error {
		_, err := cordis.Provide(ctx, k, v)
		return err
	}, needs...)
}

func (w *world) consumer(name string, k seams.Key[string]) *cordis.Plugin {
	return plugin(name, func(ctx *cordis.Context) error {
		v, err := cordis.Get(ctx, k)
		if err != nil {
			return err
		}
		w.note(name + " up " + v)
		_, err = ctx.Effect("down", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error {
				v, err := cordis.Get(ctx, k)
				w.note(fmt.Sprint(name, " down ", v, err))
				return nil
			}, nil
		})
		return err
	}, k.Name)
}

// C-15, C-16: a dependency that is lost while its consumer loads does not
// interrupt the load; restored by the same provider, nothing restarts; still
// lost at the end, the consumer is undone and begins again when it is back.
func TestDependencyLostWhileLoading(t *testing.T) {
	for _, restored := range []bool{true, false} {
		w := newWorld(t)
		undo, err := cordis.Provide(w.root, key, "one")
		if err != nil {
			t.Fatal(err)
		}
		enter, leave := make(chan struct{}), make(chan struct{})
		first := true
		f, err := w.root.Plugin(plugin("c", func(ctx *cordis.Context) error {
			w.note("begin")
			if first {
				first = false
				close(enter)
				<-leave
			}
			w.note("end")
			w.effect(ctx, "undone")
			return nil
		}, "key"), nil)
		if err != nil {
			t.Fatal(err)
		}
		<-enter
		gone := make(chan error)
		go func() { gone <- undo(bg) }()
		for {
			if _, ok := cordis.Lookup(w.root, key); !ok {
				break
			}
		}
		if restored {
			if _, err := cordis.Provide(w.root, key, "two"); err != nil {
				t.Fatal(err)
			}
		}
		w.state(f, cordis.Loading)
		close(leave)
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		w.rest()
		if restored {
			w.state(f, cordis.Active)
			w.want("begin", "end")
			continue
		}
		w.state(f, cordis.Pending)
		w.want("begin", "end", "undone")
		if _, err := cordis.Provide(w.root, key, "two"); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.state(f, cordis.Active)
		w.want("begin", "end")
	}
}

// C-17, A4, A5: the provider's dispose waits for its consumer, which reads the
// service to its last undo.
func TestProviderWaitsForConsumer(t *testing.T) {
	w := newWorld(t)
	p := w.mount(plugin("p", func(ctx *cordis.Context) error {
		if _, err := cordis.Provide(ctx, key, "v"); err != nil {
			return err
		}
		w.effect(ctx, "provider down")
		return nil
	}), nil)
	c := w.mount(w.consumer("c", key), nil)
	w.dispose(p)
	w.state(c, cordis.Pending)
	w.want("c up v", "c down v<nil>", "provider down")
}

// A4: a consumer that is retired together with its provider is counted too.
func TestRetiredTogether(t *testing.T) {
	w := newWorld(t)
	p := w.mount(plugin("p", func(ctx *cordis.Context) error {
		if _, err := cordis.Provide(ctx, key, "v"); err != nil {
			return err
		}
		w.effect(ctx, "provider down")
		return nil
	}), nil)
	release := make(chan struct{})
	c := w.mount(plugin("c", func(ctx *cordis.Context) error {
		_, err := ctx.Effect("slow", func(context.Context) (seams.Undo, error) {
			return func(context.Context) error { <-release; w.note("consumer down"); return nil }, nil
		})
		return err
	}, "key"), nil)
	dc, dp := c.Dispose(), p.Dispose()
	w.want()
	close(release)
	if err := errors.Join(dc.Wait(bg), dp.Wait(bg)); err != nil {
		t.Fatal(err)
	}
	w.want("consumer down", "provider down")
}

// C-40, A3: what a loading plugin provides is not there for others.
func TestProvisionalBinding(t *testing.T) {
	w := newWorld(t)
	enter, leave := make(chan struct{}), make(chan struct{})
	p, err := w.root.Plugin(plugin("p", func(ctx *cordis.Context) error {
		if _, err := cordis.Provide(ctx, key, "v"); err != nil {
			return err
		}
		if v, err := cordis.Get(ctx, key); v != "v" || err != nil { // A6
			t.Error(v, err)
		}
		close(enter)
		<-leave
		return nil
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-enter
	c, err := w.root.Plugin(w.consumer("c", key), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := cordis.Lookup(w.root, key); ok {
		t.Fatal("visible while loading")
	}
	w.state(c, cordis.Pending)
	close(leave)
	if err := p.Ready().Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.state(c, cordis.Active)
}

type greeter struct{ caller *cordis.Context }

func (g greeter) hello() string { return fmt.Sprint("hello ", g.caller.Meta("greeter")["name"]) }

// C-41, C-42, C-58, C-59, A15: a service made for each reader works with the
// reader's context and metadata, inner layers over outer ones.
func TestServiceForEachReader(t *testing.T) {
	w := newWorld(t)
	gk := seams.Key[greeter]{Name: "greeter"}
	w.mount(plugin("p", func(ctx *cordis.Context) error {
		_, err := cordis.ProvideEach(ctx, gk, func(r *cordis.Context) greeter { return greeter{r} })
		return err
	}), nil)
	say := plugin("c", func(ctx *cordis.Context) error {
		g, err := cordis.Get(ctx, gk)
		if err != nil {
			return err
		}
		w.note(g.hello())
		g, err = cordis.Get(ctx.Intercept("greeter", map[string]any{"name": "inner"}), gk)
		w.note(g.hello())
		return err
	}, "greeter")
	outer := w.root.Intercept("greeter", map[string]any{"name": "outer", "x": 1})
	if _, err := outer.Plugin(say, nil); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.want("hello outer", "hello inner")
	m := outer.Intercept("greeter", map[string]any{"name": "n"}).Meta("greeter")
	if m["name"] != "n" || m["x"] != 1 {
		t.Fatal(m)
	}
}

// C-43: a plugin whose child injects what the plugin itself provides.
func TestChildUsesParentsService(t *testing.T) {
	w := newWorld(t)
	p := plugin("p", func(ctx *cordis.Context) error {
		if _, err := cordis.Provide(ctx, key, "own"); err != nil {
			return err
		}
		_, err := ctx.Plugin(w.consumer("child", key), nil)
		return err
	})
	for range 2 {
		f := w.mount(p, nil)
		w.want("child up own")
		w.dispose(f)
		w.want("child down own<nil>")
	}
}

// C-44: a chain started in any order begins each member once.
func TestChainInAnyOrder(t *testing.T) {
	chain := []*cordis.Plugin{
		provider("a", seams.Key[string]{Name: "a"}, "a"),
		provider("b", seams.Key[string]{Name: "b"}, "b", "a"),
		provider("c", seams.Key[string]{Name: "c"}, "c", "b"),
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		w := newWorld(t)
		for _, i := range order {
			f := w.mount(chain[i], nil)
			defer func() {
				if f.Begins() != 1 {
					t.Error(order, f, f.Begins())
				}
			}()
		}
		if _, ok := cordis.Lookup(w.root, seams.Key[string]{Name: "c"}); !ok {
			t.Fatal(order)
		}
	}
}

// C-46: reading what is not injected names the service and the fix.
// C-49: an absent service is absent, not an error, for Lookup.
func TestNotInjected(t *testing.T) {
	w := newWorld(t)
	if _, err := cordis.Provide(w.root, key, "v"); err != nil {
		t.Fatal(err)
	}
	w.mount(plugin("p", func(ctx *cordis.Context) error {
		if _, err := cordis.Get(ctx, key); !errors.Is(err, seams.NotInjected) {
			t.Error(err)
		}
		if v, ok := cordis.Lookup(ctx, key); !ok || v != "v" {
			t.Error(v, ok)
		}
		if _, ok := cordis.Lookup(ctx, key2); ok {
			t.Error("found what nobody provides")
		}
		return nil
	}), nil)
	if _, err := cordis.Get(w.root, key2); !errors.Is(err, seams.NotProvided) {
		t.Fatal(err)
	}
}

// C-48, A17: a second provider is refused and told who the first is.
func TestClash(t *testing.T) {
	w := newWorld(t)
	declared := func(name string) *cordis.Plugin {
		p := provider(name, key, name)
		p.Provide = []string{"key"}
		return p
	}
	first := w.mount(declared("first"), nil)
	if _, err := w.root.Plugin(declared("second"), nil); !errors.Is(err, seams.Clash) {
		t.Fatal(err)
	}
	undeclared := w.mount(provider("third", key, "third"), nil)
	if !errors.Is(undeclared.Err(), seams.Clash) {
		t.Fatal(undeclared.Err())
	}
	if v, err := cordis.Get(w.root, key); v != "first" || err != nil {
		t.Fatal(v, err)
	}
	w.dispose(first)
	second := w.mount(declared("second"), nil)
	w.state(second, cordis.Active)
	if _, err := cordis.Provide(w.root, key2, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := cordis.Provide(w.root, key2, "b"); !errors.Is(err, seams.Duplicate) {
		t.Fatal(err)
	}
}

// C-47, C-11 of the store: only the owner sets, in place, and nobody restarts (A11).
func TestSet(t *testing.T) {
	w := newWorld(t)
	var ctx *cordis.Context
	w.mount(plugin("p", func(c *cordis.Context) error { ctx = c; _, err := cordis.Provide(c, key, "one"); return err }), nil)
	c := w.mount(w.consumer("c", key), nil)
	if err := cordis.Set(w.root, key, "x"); !errors.Is(err, seams.NotOwner) {
		t.Fatal(err)
	}
	if err := cordis.Set(ctx, key2, "x"); !errors.Is(err, seams.NotProvided) {
		t.Fatal(err)
	}
	if err := cordis.Set(ctx, seams.Key[int]{Name: "key"}, 1); !errors.Is(err, seams.WrongType) {
		t.Fatal(err)
	}
	told := 0
	if _, err := cordis.ServiceEvent.On(w.root, func(_ context.Context, s cordis.ServiceChange, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if s.Name == "key" {
			told++
		}
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := cordis.Set(ctx, key, "two"); err != nil {
		t.Fatal(err)
	}
	w.rest()
	if c.Begins() != 1 || told != 1 {
		t.Fatal(c.Begins(), told)
	}
	if v, _ := cordis.Get(w.root, key); v != "two" {
		t.Fatal(v)
	}
}

// C-51: a saved context reads nothing once its activation is over.
func TestSavedContext(t *testing.T) {
	w := newWorld(t)
	p := w.mount(provider("p", key, "v"), nil)
	var ctx *cordis.Context
	var ref cordis.Ref[string]
	w.mount(plugin("c", func(c *cordis.Context) (err error) { ctx = c; ref, err = cordis.Resolve(c, key); return err }, "key"), nil)
	if ref.Load() != "v" {
		t.Fatal(ref.Load())
	}
	w.dispose(p)
	if _, err := cordis.Get(ctx, key); !errors.Is(err, seams.InactiveEffect) {
		t.Fatal(err)
	}
	if _, ok := cordis.Lookup(ctx, key); ok {
		t.Fatal("found")
	}
}

// C-52, C-53, C-54, A14
func TestRealms(t *testing.T) {
	w := newWorld(t)
	one, two, other := w.root.Isolate("key", "x"), w.root.Isolate("key", "x"), w.root.Isolate("key", "")
	mount := func(ctx *cordis.Context, p *cordis.Plugin) *cordis.Fiber {
		f, err := ctx.Plugin(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		return f
	}
	outer := mount(w.root, provider("outer", key, "outer"))
	inX, inOther := mount(two, w.consumer("x", key)), mount(other, w.consumer("other", key))
	w.state(inX, cordis.Pending)
	w.state(inOther, cordis.Pending)
	px := mount(one, provider("px", key, "in x"))
	w.state(inX, cordis.Active)
	w.state(inOther, cordis.Pending)
	mount(other, provider("po", key, "private"))
	w.state(inOther, cordis.Active)
	w.want("x up in x", "other up private")
	w.dispose(outer)
	w.want()
	w.dispose(px)
	w.want("x down in x<nil>")
	w.state(inX, cordis.Pending)
	w.state(inOther, cordis.Active)
	// The label of one name is not that of another.
	if _, err := cordis.Provide(w.root.Isolate("key2", "x"), key2, "v"); err != nil {
		t.Fatal(err)
	}
	if _, ok := cordis.Lookup(w.root.Isolate("key", "x"), key); ok {
		t.Fatal("a realm is shared across names")
	}
}

// C-23…C-26, C-55: a dispatch in a service's realm reaches only listeners there.
func TestDispatchInRealm(t *testing.T) {
	w := newWorld(t)
	inner := w.root.Isolate("key", "")
	listen := func(ctx *cordis.Context, name string, opts ...cordis.ListenOption) {
		if _, err := ctx.Listen("ping", func(context.Context, any, seams.Next) (any, error) { w.note(name); return nil, nil }, opts...); err != nil {
			t.Fatal(err)
		}
	}
	listen(w.root, "outer")
	listen(inner, "inner")
	listen(w.root, "global", cordis.Global())
	for _, mode := range []seams.Mode{seams.Emit, seams.Serial, seams.Bail} {
		if _, err := inner.DispatchIn(bg, "key", seams.Dispatch{Event: "ping", Mode: mode}); err != nil {
			t.Fatal(err)
		}
		w.want("inner", "global")
	}
	if _, err := inner.DispatchIn(bg, "key", seams.Dispatch{Event: "ping", Mode: seams.Parallel}); err != nil {
		t.Fatal(err)
	}
	got := w.took()
	slices.Sort(got)
	if !slices.Equal(got, []string{"global", "inner"}) {
		t.Fatal(got)
	}
}

// A13: an optional service comes and goes without a restart.
func TestOptionalNeed(t *testing.T) {
	w := newWorld(t)
	var ctx *cordis.Context
	c := w.mount(&cordis.Plugin{Name: "c", Inject: []cordis.Need{{Name: "key", Optional: true}}, Apply: func(x *cordis.Context, _ any) error { ctx = x; return nil }}, nil)
	w.state(c, cordis.Active)
	if _, ok := cordis.Lookup(ctx, key); ok {
		t.Fatal("found")
	}
	p := w.mount(provider("p", key, "v"), nil)
	v, give, ok := cordis.Borrow(ctx, key)
	if !ok || v != "v" {
		t.Fatal(v, ok)
	}
	d := p.Dispose()
	w.state(p, cordis.Unloading)
	give()
	if err := d.Wait(bg); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := cordis.Borrow(ctx, key); ok || c.Begins() != 1 {
		t.Fatal(ok, c.Begins())
	}
}

// cor-03 of the field cases, as a container script.
func TestNeedsTwo(t *testing.T) {
	w := newWorld(t)
	f := w.mount(plugin("needs-two", func(ctx *cordis.Context) error { w.note("up"); w.effect(ctx, "down"); return nil }, "key", "key2"), nil)
	w.state(f, cordis.Pending)
	if why := w.Explain(f); len(why) != 2 {
		t.Fatal(why)
	}
	e := w.root.Entry("memory")
	set := func() {
		if _, err := e.Set(provider("memory", key, "m"), nil, nil); err != nil {
			t.Fatal(err)
		}
		w.rest()
	}
	set()
	if why := w.Explain(f); len(why) != 1 {
		t.Fatal(why)
	}
	clock := w.root.Entry("clock")
	if _, err := clock.Set(provider("clock", key2, "c"), nil, nil); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.want("up")
	if err := e.Unmount().Wait(bg); err != nil {
		t.Fatal(err)
	}
	w.want("down")
	w.state(f, cordis.Pending)
	set()
	w.want("up")
	if _, err := clock.Set(provider("clock", key2, "another"), nil, nil); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.want("down", "up")
}

// A1, A19: plugins that wait for each other, or for themselves, stay pending and
// say so.
func TestCycle(t *testing.T) {
	w := newWorld(t)
	declare := func(name string, k seams.Key[string], needs ...string) *cordis.Plugin {
		p := provider(name, k, name, needs...)
		p.Provide = []string{k.Name}
		return p
	}
	a := w.mount(declare("a", key, "key2"), nil)
	b := w.mount(declare("b", key2, "key"), nil)
	for _, f := range []*cordis.Fiber{a, b} {
		w.state(f, cordis.Pending)
		if why := w.Explain(f); len(why) == 0 || why[0][:len("waits in a cycle")] != "waits in a cycle" {
			t.Fatal(why)
		}
	}
}
