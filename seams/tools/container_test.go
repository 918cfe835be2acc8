package tools_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// house is a registry in the real container.
type house struct {
	*testing.T
	c   *cordis.Container
	reg *tools.Registry
}

func newHouse(t *testing.T) house {
	c := cordis.New(cordis.Options{})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return house{t, c, tools.New(tools.Options{Bus: c.Root(), Stamp: c.Stamp})}
}

// plugin registers tools and then runs more.
func (h house) plugin(more func(*cordis.Context) error, defs ...tools.Definition) *cordis.Plugin {
	return &cordis.Plugin{Name: "plugin", Apply: func(ctx *cordis.Context, _ any) error {
		for _, d := range defs {
			if _, err := h.reg.Register(ctx, d); err != nil {
				return err
			}
		}
		if more != nil {
			return more(ctx)
		}
		return nil
	}}
}

func (h house) call(name string) *tools.Result {
	return h.reg.Execute(context.Background(), tools.Call{ID: "c", Name: name})
}

func (h house) wait(d *cordis.Done) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := d.Wait(ctx); err != nil {
		h.Fatal(err)
	}
}

// A plugin's tools become visible in the step in which it becomes active, and
// none of them if it fails (T-01, T-38, T-39).
func TestToolsAppearWithTheirPlugin(t *testing.T) {
	h := newHouse(t)
	inApply := 0
	f, err := h.c.Root().Plugin(h.plugin(func(*cordis.Context) error { inApply = len(h.reg.Schemas(nil)); return nil },
		tools.Definition{Name: "a", Execute: body("a")}, tools.Definition{Name: "b", Execute: body("b")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(f.Ready())
	if n := len(h.reg.Schemas(nil)); inApply != 0 || n != 2 {
		t.Errorf("%d tools during apply, %d after; want 0 and 2", inApply, n)
	}
	broken, err := h.c.Root().Plugin(h.plugin(func(*cordis.Context) error { return errors.New("no") }, tools.Definition{Name: "c", Execute: body("c")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = broken.Settle(context.Background())
	if r := h.call("c"); !r.IsError || r.Error.Code != seams.UnknownTool {
		t.Errorf("the tool of a failed plugin: %+v", r)
	}
	h.wait(f.Dispose())
	if n := len(h.reg.Schemas(nil)); n != 0 {
		t.Errorf("%d tools after dispose", n)
	}
}

// A version that is replaced while a call runs keeps that call to its end; the
// next call runs the new code, and there is no moment without the tool.
func TestReplacedWhileACallRuns(t *testing.T) {
	h := newHouse(t)
	begun, release := make(chan struct{}), make(chan struct{})
	entry := h.c.Root().Entry("e")
	old, err := entry.Set(h.plugin(nil, tools.Definition{Name: "t", Execute: func(context.Context, *tools.Exec, any) (any, error) {
		close(begun)
		<-release
		return "old", nil
	}}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(old.Ready())
	result := make(chan *tools.Result)
	go func() { result <- h.call("t") }()
	<-begun
	next, err := entry.Set(h.plugin(nil, tools.Definition{Name: "t", Execute: body("new")}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(next.Ready())
	if r := h.call("t"); r.Value != "new" {
		t.Errorf("a call after the swap: %+v", r)
	}
	close(release)
	if r := <-result; r.Value != "old" {
		t.Errorf("the call in flight: %+v", r)
	}
	h.wait(old.Gone())
	if r := h.call("t"); r.Value != "new" {
		t.Errorf("a call after the old one went: %+v", r)
	}
}

// Nothing of a tool runs after dispose has returned, also for calls that begin
// meanwhile, and every call has a result.
func TestNothingRunsAfterDispose(t *testing.T) {
	h := newHouse(t)
	for range 20 {
		gone := make(chan struct{})
		f, err := h.c.Root().Plugin(h.plugin(nil, tools.Definition{Name: "t", Execute: func(context.Context, *tools.Exec, any) (any, error) {
			select {
			case <-gone:
				t.Error("the body ran after dispose had returned")
			default:
			}
			return "ran", nil
		}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		h.wait(f.Ready())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if r := h.call("t"); r.IsError {
					if r.Error.Code != seams.UnknownTool {
						t.Errorf("got %+v", r.Error)
					}
					return
				}
			}
		}()
		h.wait(f.Dispose())
		close(gone)
		<-done
	}
}

// A listener of tools/change in the container vetoes, and hears what goes.
func TestChangeInTheContainer(t *testing.T) {
	h := newHouse(t)
	var gone []string
	watcher, err := h.c.Root().Plugin(&cordis.Plugin{Name: "watcher", Apply: func(ctx *cordis.Context, _ any) error {
		_, err := tools.Changed.On(ctx, func(_ context.Context, c tools.Change, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			if c.Gone {
				gone = append(gone, c.Name)
			}
			if c.Name == "bad" {
				return struct{}{}, errors.New("not this one")
			}
			return struct{}{}, nil
		})
		return err
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(watcher.Ready())
	f, err := h.c.Root().Plugin(h.plugin(func(ctx *cordis.Context) error {
		_, err := h.reg.Register(ctx, tools.Definition{Name: "bad", Execute: body(nil)})
		if err == nil {
			t.Error("the veto was not heard")
		}
		return nil
	}, tools.Definition{Name: "good", Execute: body(nil)}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(f.Ready())
	if n := len(h.reg.Schemas(nil)); n != 1 {
		t.Errorf("%d tools, want the good one", n)
	}
	h.wait(f.Dispose())
	if len(gone) != 1 || gone[0] != "good" {
		t.Errorf("gone: %v", gone)
	}
}

// The policy of a cancelled call still runs in the container, and so does a
// body's failure (T-28, T-29).
func TestPolicyOfACancelledCall(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(context.Background())
	posts, results := 0, 0
	f, err := h.c.Root().Plugin(h.plugin(func(ctx *cordis.Context) error {
		_, err1 := tools.PostExecute.On(ctx, func(ctx context.Context, _ tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			posts++
			return next(ctx)
		})
		_, err2 := tools.Results.On(ctx, func(context.Context, tools.Outcome, func(context.Context) (struct{}, error)) (struct{}, error) {
			results++
			return struct{}{}, nil
		})
		return errors.Join(err1, err2)
	}, tools.Definition{Name: "t", Execute: func(context.Context, *tools.Exec, any) (any, error) {
		cancel()
		return nil, errors.New("disk full")
	}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(f.Ready())
	r := h.reg.Execute(ctx, tools.Call{ID: "c", Name: "t"})
	if !r.IsError || r.Error.Message != "disk full" || posts != 1 || results != 1 {
		t.Errorf("got %+v with %d posts and %d results", r.Error, posts, results)
	}
}

// A context's scope is the nearest one given to it, plugins mounted through it
// have it too, and what was registered in it goes with its plugin, once (S-01,
// S-02, S-05, S-06).
func TestScopesInTheContainer(t *testing.T) {
	h := newHouse(t)
	agent := seams.NewScope("agent", nil)
	inner := seams.NewScope("inner", agent)
	root := h.c.Root().WithScope(agent)
	f, err := root.Plugin(h.plugin(func(ctx *cordis.Context) error {
		_, err := h.reg.Register(ctx.WithScope(inner), tools.Definition{Name: "t", Execute: body("inner")})
		return err
	}, tools.Definition{Name: "t", Execute: body("agent")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wait(f.Ready())
	see := func(s *seams.Scope) any {
		return h.reg.Execute(context.Background(), tools.Call{ID: "c", Name: "t", Scope: s}).Value
	}
	if see(nil) != nil || see(agent) != "agent" || see(inner) != "inner" || see(seams.NewScope("below", inner)) != "inner" {
		t.Errorf("seen: %v, %v, %v", see(nil), see(agent), see(inner))
	}
	one, two := f.Dispose(), f.Dispose()
	h.wait(one)
	h.wait(two)
	if see(agent) != nil || see(inner) != nil {
		t.Errorf("after dispose: %v, %v", see(agent), see(inner))
	}
}
