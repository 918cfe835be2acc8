package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// lifecycle records what is announced of agents and their sessions.
func lifecycle(t testing.TB, w *world) *trace {
	l := &trace{}
	observe(t, w.owner, events.Created, func(_ context.Context, s events.Session) { l.add("session/created %s", s.Header().ID) })
	observe(t, w.owner, events.Disposed, func(_ context.Context, s events.Session) { l.add("session/disposed %s", s.Header().ID) })
	observe(t, w.owner, agents.Created, func(_ context.Context, n agents.Notice) { l.add("agent/created %s", n.Agent.ID()) })
	observe(t, w.owner, agents.Disposed, func(_ context.Context, n agents.Notice) { l.add("agent/disposed %s", n.Agent.ID()) })
	observe(t, w.owner, agents.SessionStart, func(_ context.Context, n agents.StartNotice) {
		l.add("agent/session-start %s %s", n.Agent.ID(), n.Source)
	})
	observe(t, w.owner, agents.StatusChanged, func(_ context.Context, n agents.StatusNotice) { l.add("agent/status %s", n.Status) })
	return l
}

var main = agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions}

// the order of publication and of teardown.
func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	l := lifecycle(t, w)
	o := &owner{name: "creator", bus: w.bus}
	s := main
	s.Setup = func(_ context.Context, a *agents.Agent) (seams.Undo, error) {
		l.add("setup %s", a.ID())
		if _, seen := w.agents.Get(nil, "main"); seen {
			t.Error("seen before its setup has ended")
		}
		if _, live := w.store.Get("main"); live {
			t.Error("live before its setup has ended")
		}
		return func(context.Context) error { l.add("unset"); return nil }, nil
	}
	observe(t, w.owner, agents.SessionStart, func(ctx context.Context, n agents.StartNotice) {
		must(t, n.Agent.Inject(ctx, llm.UserText("from session-start")))
		if n.Agent.Scope().Parent() != nil || n.Agent.Session().Header().ID != n.Agent.ID() {
			t.Error("it is another agent")
		}
	})
	on(t, w.owner, agents.SessionStart, func(context.Context, agents.StartNotice, func(context.Context) (struct{}, error)) (struct{}, error) {
		return struct{}{}, errors.New("contained")
	})
	a, err := w.agents.Create(t.Context(), o, s)
	must(t, err)
	if got, ok := w.agents.Get(nil, "main"); !ok || got != a || !slices.Equal(w.agents.List(nil), []*agents.Agent{a}) {
		t.Error("it is not found")
	}
	ask(t, a, "hi")
	same(t, "request", shapes(w.model.asked()[0].Messages), []string{"user: from session-start", "user: hi"})
	o.dispose(t)
	if _, ok := w.agents.Get(nil, "main"); ok || len(w.agents.List(nil)) != 0 {
		t.Error("it is still found")
	}
	same(t, "lifecycle", l.all(), []string{
		"setup main", "session/created main", "agent/created main", "agent/session-start main startup", "agent/status running", "agent/status idle",
		"unset", "agent/disposed main", "session/disposed main",
	})
	// resumed, with its history and its turns counted on.
	b, err := w.agents.Resume(t.Context(), w.owner, main)
	must(t, err)
	if l.all()[len(l.all())-1] != "agent/session-start main resume" {
		t.Errorf("%v", l.all())
	}
	ask(t, b, "again")
	if n := b.Session().State().Turn; n != 2 {
		t.Errorf("turn %d", n)
	}
}

// a creation that fails leaves nothing, and frees the id.
func TestFailedCreation(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		arrange func(t *testing.T, w *world, s *agents.Spec) (fix seams.Undo)
		want    []string
	}{
		{"setup", func(_ *testing.T, _ *world, s *agents.Spec) seams.Undo {
			s.Setup = func(context.Context, *agents.Agent) (seams.Undo, error) { return nil, boom }
			return nil
		}, nil},
		{"session listener", func(t *testing.T, w *world, _ *agents.Spec) seams.Undo {
			undo, err := events.Created.On(w.owner, func(context.Context, events.Session, func(context.Context) (struct{}, error)) (struct{}, error) {
				return struct{}{}, boom
			})
			must(t, err)
			return undo
		}, []string{"session/created main", "session/disposed main"}},
		{"agent listener", func(t *testing.T, w *world, _ *agents.Spec) seams.Undo {
			undo, err := agents.Created.On(w.owner, func(context.Context, agents.Notice, func(context.Context) (struct{}, error)) (struct{}, error) {
				return struct{}{}, boom
			})
			must(t, err)
			return undo
		}, []string{"session/created main", "agent/created main", "agent/disposed main", "session/disposed main"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			l := lifecycle(t, w)
			s := main
			fix := c.arrange(t, w, &s)
			if _, err := w.agents.Create(t.Context(), w.owner, s); !errors.Is(err, boom) {
				t.Fatalf("got %v", err)
			}
			same(t, "lifecycle", l.all(), c.want)
			if fix != nil {
				must(t, fix(t.Context()))
			}
			if _, ok := w.agents.Get(nil, "main"); ok {
				t.Error("it is found")
			}
			if r := ask(t, w.agent(), "x"); r.Subtype != agents.Success {
				t.Errorf("%+v", r)
			}
		})
	}
}

// ids are unique, and what is live is not resumed over.
func TestIDs(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	for _, c := range []struct {
		make func(context.Context, seams.Owner, agents.Spec) (*agents.Agent, error)
		spec agents.Spec
		code seams.Code
	}{
		{w.agents.Create, main, seams.SessionAlreadyExists},
		{w.agents.Resume, main, seams.SessionAlreadyLive},
		{w.agents.Resume, agents.Spec{Header: events.Header{ID: "nobody"}}, seams.SessionNotFound},
		{w.agents.Create, agents.Spec{}, seams.InvalidEvent},
	} {
		if _, err := c.make(t.Context(), w.owner, c.spec); !errors.Is(err, c.code) {
			t.Errorf("got %v, want %s", err, c.code)
		}
	}
	if got, _ := w.agents.Get(nil, "main"); got != a {
		t.Error("another agent has its name")
	}
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

// the context of a creation bounds the creation alone; an owner that ends
// meanwhile frees the id.
func TestCreationContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := main
	s.Setup = func(context.Context, *agents.Agent) (seams.Undo, error) { cancel(); return nil, nil }
	if _, err := w.agents.Create(ctx, w.owner, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	o := &owner{name: "leaves", bus: w.bus}
	s.Setup = func(context.Context, *agents.Agent) (seams.Undo, error) { o.dispose(t); return nil, nil }
	if _, err := w.agents.Create(t.Context(), o, s); !errors.Is(err, seams.InactiveEffect) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	a, err := w.agents.Create(ctx, w.owner, main)
	must(t, err)
	cancel()
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

// an agent may be disposed by a listener of its creation, and is then not
// published; it cannot be disposed by its setup.
func TestDisposedWhilePublished(t *testing.T) {
	w := newWorld(t)
	l := lifecycle(t, w)
	s := main
	s.Setup = func(ctx context.Context, a *agents.Agent) (seams.Undo, error) {
		if err := a.Dispose(ctx); !errors.Is(err, seams.AgentBusy) {
			t.Errorf("got %v", err)
		}
		return nil, nil
	}
	observe(t, w.owner, agents.Created, func(ctx context.Context, n agents.Notice) {
		must(t, n.Agent.Followup(ctx, llm.UserText("x")))
		must(t, n.Agent.Dispose(ctx))
	})
	if _, err := w.agents.Create(t.Context(), w.owner, s); !errors.Is(err, seams.InactiveEffect) {
		t.Errorf("got %v", err)
	}
	if len(w.model.asked()) != 0 {
		t.Error("a turn was run")
	}
	got := l.all()
	for _, twice := range []string{"agent/disposed main", "session/disposed main"} {
		if i := slices.Index(got, twice); i < 0 || slices.Contains(got[i+1:], twice) {
			t.Errorf("%v", got)
		}
	}
}

// a disposed agent is found until it was said that it is, and no longer.
func TestFoundUntilDisposed(t *testing.T) {
	w := newWorld(t)
	l := &trace{}
	found := func(when string) {
		_, ok := w.agents.Get(nil, "main")
		l.add("%s %v", when, ok)
	}
	observe(t, w.owner, agents.Disposed, func(context.Context, agents.Notice) { found("agent/disposed") })
	observe(t, w.owner, events.Disposed, func(context.Context, events.Session) { found("session/disposed") })
	must(t, w.agent().Dispose(t.Context()))
	same(t, "found", l.all(), []string{"agent/disposed true", "session/disposed false"})
}

// what is left of an agent takes nothing from the one that replaced it.
func TestStaleDisposal(t *testing.T) {
	w := newWorld(t)
	l := &trace{}
	observe(t, w.owner, agents.Disposed, func(_ context.Context, n agents.Notice) { l.add("disposed %s", n.Agent.ID()) })
	o := &owner{name: "first", bus: w.bus}
	a, err := w.agents.Create(t.Context(), o, main)
	must(t, err)
	must(t, a.Dispose(t.Context()))
	b, err := w.agents.Create(t.Context(), w.owner, main)
	must(t, err)
	must(t, a.Dispose(t.Context()))
	o.dispose(t)
	if got, ok := w.agents.Get(nil, "main"); !ok || got != b {
		t.Error("the replacement is not found")
	}
	if r := ask(t, b, "hi"); r.IsError {
		t.Errorf("%+v", r.Error)
	}
	same(t, "announced", l.all(), []string{"disposed main"})
}

// Dispose ends one agent ahead of its owner; all who call it wait for the end.
func TestDispose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.agent()
		w.model.script(func(ctx context.Context, _ llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) {
				<-ctx.Done()
				time.Sleep(time.Second)
				yield(nil, ctx.Err())
			}
		})
		must(t, a.Followup(t.Context(), llm.UserText("x")))
		synctest.Wait()
		began := time.Now()
		first := make(chan error, 1)
		go func() { first <- a.Dispose(context.Background()) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := a.WhenIdle(short); !errors.Is(err, seams.Aborted) {
			t.Errorf("got %v", err)
		}
		must(t, a.Dispose(t.Context()))
		must(t, <-first)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
		if _, ok := w.agents.Get(nil, "main"); ok {
			t.Error("it is found")
		}
	})
}

// an agent whose session was forked goes on from where it was cut.
func TestFork(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	ask(t, a, "one")
	s, err := w.store.Fork(t.Context(), "main", events.ForkSpec{ID: "child"})
	must(t, err)
	must(t, s.Enter())
	must(t, s.Announce(t.Context()))
	must(t, s.Close(t.Context()))
	b, err := w.agents.Resume(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "child"}, Options: testOptions})
	must(t, err)
	ask(t, b, "two")
	same(t, "history", shapes(b.Session().Messages()), []string{"user: one", "assistant: ok", "user: two", "assistant: ok"})
	if n := b.Session().State().Turn; n != 2 {
		t.Errorf("turn %d", n)
	}
}

// a context that was injected but not claimed outlives the session's pause.
func TestPendingContextIsResumed(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	must(t, a.Inject(t.Context(), llm.UserText("note")))
	must(t, a.Dispose(t.Context()))
	b, err := w.agents.Resume(t.Context(), w.owner, main)
	must(t, err)
	ask(t, b, "hi")
	same(t, "request", shapes(w.model.asked()[0].Messages), []string{"user: note", "user: hi"})
}

// what a plugin listened to, it no longer hears when it is gone.
func TestPluginListenersLeave(t *testing.T) {
	w := newWorld(t)
	plugin := &owner{name: "plugin", bus: w.bus}
	on(t, plugin, agents.PreStep, func(context.Context, agents.Proposal, func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
		return agents.Admission{Kind: agents.Reject}, nil
	})
	a := w.agent()
	if r := ask(t, a, "x"); r.Error == nil || r.Error.Code != seams.Rejected {
		t.Errorf("%+v", r)
	}
	plugin.dispose(t)
	if r := ask(t, a, "y"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

func TestAgentJSON(t *testing.T) {
	w := newWorld(t)
	b, err := json.Marshal(agents.Notice{Agent: w.agent()})
	must(t, err)
	if string(b) != `{"agent":{"id":"main","status":"idle"}}` {
		t.Errorf("%s", b)
	}
}
