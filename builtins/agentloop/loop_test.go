package agentloop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins/agentloop"
	"github.com/ouro-run/ouro/builtins/events"
	llmplugin "github.com/ouro-run/ouro/builtins/llm"
	"github.com/ouro-run/ouro/builtins/tools"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with the model it was asked as, after wait, and notes prompts.
type echo struct {
	mu     sync.Mutex
	system []string
	enter  chan struct{} // told of each request, if set
	leave  chan struct{} // waited for, if set
}

func (e *echo) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		e.mu.Lock()
		e.system = append(e.system, req.System)
		e.mu.Unlock()
		if e.enter != nil {
			e.enter <- struct{}{}
			<-e.leave
		}
		for _, c := range []llm.Chunk{
			llm.BlockStart{Index: 0, BlockType: llm.KindText},
			llm.TextDelta{Index: 0, Text: req.Model},
			llm.BlockEnd{Index: 0, Block: llm.Text{Text: req.Model}},
			llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}},
		} {
			if !yield(c, nil) {
				return
			}
		}
	}
}

type world struct {
	*testing.T
	root    *cordis.Context
	entry   *cordis.Entry
	plugin  *cordis.Plugin
	adapter *echo
	mu      sync.Mutex
	reports []cordis.Report
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, adapter: &echo{}, plugin: agentloop.Plugin(t.TempDir())}
	c := cordis.New(cordis.Options{Report: func(r cordis.Report) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, r)
	}})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.root = c.Root()
	w.entry = w.root.Entry("agent-loop")
	for _, p := range []*cordis.Plugin{llmplugin.Plugin(), tools.Plugin(), events.Plugin(), {
		Name: "echo", Inject: cordis.Inject("llm"), Apply: func(ctx *cordis.Context, _ any) error {
			reg, err := cordis.Get(ctx, llm.Key)
			if err != nil {
				return err
			}
			_, err = reg.RegisterAdapter(ctx, llm.Registration{Entry: "echo", Routes: []string{"echo"}, Adapter: w.adapter})
			return err
		}}} {
		if _, err := w.root.Plugin(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	return w
}

// configure sets the entry and waits for it.
func (w *world) configure(cfg map[string]any) *cordis.Fiber {
	w.Helper()
	f, err := w.entry.Set(w.plugin, cfg, nil)
	if err != nil {
		w.Fatal(err)
	}
	if err := f.Ready().Wait(context.Background()); err != nil {
		w.Fatal(err)
	}
	return f
}

func (w *world) agent(name string) *agents.Agent {
	w.Helper()
	l, ok := cordis.Lookup(w.root, agentloop.Key)
	if !ok {
		w.Fatal("no loop")
	}
	a, err := l.Agent(name)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func agentList(as ...map[string]any) []any {
	var out []any
	for _, a := range as {
		out = append(out, a)
	}
	return out
}

type m = map[string]any

func ask(w *world, a *agents.Agent) string {
	w.Helper()
	r := a.Run(context.Background(), llm.UserText("hi"))
	if r.IsError {
		w.Fatal(r.Error)
	}
	return r.Text
}

// declared agents are made at the start, with their directory, the
// common model and the persona.
func TestDeclaredAgents(t *testing.T) {
	w := newWorld(t)
	w.configure(m{"model": "common", "persona": "You are careful.", "agents": agentList(
		m{"id": "main", "provider": "echo"}, m{"id": "two", "provider": "echo", "model": "own", "cwd": "sub"})})
	if got := ask(w, w.agent("")); got != "common" {
		t.Error(got)
	}
	if got := ask(w, w.agent("two")); got != "own" {
		t.Error(got)
	}
	if cwd := w.agent("two").Session().Header().CWD; !strings.HasSuffix(cwd, "/sub") {
		t.Error(cwd)
	}
	if s := w.adapter.system[0]; !strings.Contains(s, "Ouro") || !strings.Contains(s, "You are careful.") {
		t.Error(s)
	}
	if !strings.HasPrefix(w.agent("main").ID(), "main-session-") {
		t.Error(w.agent("main").ID())
	}
	l, _ := cordis.Lookup(w.root, agentloop.Key)
	if _, err := l.Agent("three"); !errors.Is(err, seams.NotFound) || !strings.Contains(err.Error(), "main, two") {
		t.Error(err)
	}
}

// an exact id is used, two of one id or both kinds of id fail that agent
// alone, and are reported.
func TestIdentities(t *testing.T) {
	w := newWorld(t)
	w.configure(m{"model": "x", "provider": "echo", "agents": agentList(
		m{"id": "a", "sessionId": "exact"}, m{"id": "b", "sessionId": "exact"},
		m{"id": "c", "sessionId": "s", "resumeSessionId": "r"}, m{"id": "d", "resumeSessionId": "nobody"}, m{"id": "e"})})
	if id := w.agent("a").ID(); id != "exact" {
		t.Error(id)
	}
	if got := ask(w, w.agent("e")); got != "x" {
		t.Error(got)
	}
	l, _ := cordis.Lookup(w.root, agentloop.Key)
	for name, code := range map[string]seams.Code{"b": seams.SessionAlreadyExists, "c": seams.InvalidArgument, "d": seams.SessionNotFound} {
		if _, err := l.Agent(name); !errors.Is(err, code) {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reports) != 3 {
		t.Errorf("%d reports", len(w.reports))
	}
}

// A changed configuration is taken in place: no new version, the running turn
// goes on, and an agent that was taken out goes when its turn has ended.
func TestChangeInPlace(t *testing.T) {
	w := newWorld(t)
	w.adapter.enter, w.adapter.leave = make(chan struct{}), make(chan struct{})
	f := w.configure(m{"provider": "echo", "model": "one", "agents": agentList(m{"id": "stays"}, m{"id": "goes"})})
	stays, goes := w.agent("stays"), w.agent("goes")
	answers := make(chan agents.Result, 2)
	for _, a := range []*agents.Agent{stays, goes} {
		go func() { answers <- a.Run(context.Background(), llm.UserText("hi")) }()
		<-w.adapter.enter
	}
	g := w.configure(m{"provider": "echo", "model": "two", "agents": agentList(m{"id": "stays"}, m{"id": "new"})})
	if g != f || w.agent("stays") != stays {
		t.Fatal("the entry restarted")
	}
	close(w.adapter.leave)
	for range 2 {
		if r := <-answers; r.IsError || r.Text != "one" {
			t.Fatalf("%+v %v", r, r.Error)
		}
	}
	w.adapter.enter = nil
	if got := ask(w, stays); got != "two" {
		t.Error(got)
	}
	if got := ask(w, w.agent("new")); got != "two" {
		t.Error(got)
	}
	if err := goes.Dispose(context.Background()); err != nil {
		t.Error(err)
	}
}

// Agents that stay are found at every moment of a change, and none is made twice
// when two changes come at once.
func TestChangesAtOnce(t *testing.T) {
	w := newWorld(t)
	l, found, created := (*agentloop.Loop)(nil), 0, 0
	if _, err := agents.Created.On(w.root, func(_ context.Context, _ agents.Notice, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if created++; l != nil {
			if _, err := l.Agent("b"); err != nil {
				t.Error(err)
			}
			found++
		}
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	list := []m{{"id": "a", "sessionId": "a"}, {"id": "b", "sessionId": "b"}}
	w.configure(m{"provider": "echo", "model": "x", "agents": agentList(list...)})
	l, _ = cordis.Lookup(w.root, agentloop.Key)
	b := w.agent("b")
	w.configure(m{"provider": "echo", "model": "x", "agents": agentList(m{"id": "c", "sessionId": "c"}, list[0], list[1])})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := l.Override(func(o agents.Options) agents.Options { return o }); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if got, err := l.Agent("b"); err != nil || got != b {
				t.Error(got, err)
			}
		})
	}
	wg.Wait()
	if found != 1 || created != 3 {
		t.Errorf("%d agents were made, %d of them by a change", created, found)
	}
}

// What the program overrides wins over the file, also over later edits.
func TestOverride(t *testing.T) {
	w := newWorld(t)
	w.configure(m{"provider": "echo", "model": "file"})
	l, _ := cordis.Lookup(w.root, agentloop.Key)
	if err := l.Override(func(o agents.Options) agents.Options { o.Model = "flag"; return o }); err != nil {
		t.Fatal(err)
	}
	a := w.agent("")
	if got := ask(w, a); got != "flag" {
		t.Error(got)
	}
	w.configure(m{"provider": "echo", "model": "edited"})
	if got := ask(w, a); got != "flag" {
		t.Error(got)
	}
}

// A configuration that is wrong names its place and starts nothing.
func TestBadConfig(t *testing.T) {
	w := newWorld(t)
	f, err := w.entry.Set(w.plugin, m{"maxParallelToolCalls": 0.0, "agents": agentList(m{"id": "with space"})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(context.Background()); !errors.Is(err, seams.InvalidConfig) || !strings.Contains(err.Error(), "maxParallelToolCalls") || !strings.Contains(err.Error(), "agents[0].id") {
		t.Fatal(err)
	}
}
