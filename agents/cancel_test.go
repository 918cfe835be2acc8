package agents_test

import (
	"context"
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

var (
	byUser   = events.Cause{Kind: events.ByUser}
	byParent = events.Cause{Kind: events.ByParent}
)

// gate lets a status listener hold the driver until it is opened.
func gate(t testing.TB, w *world, status agents.Status) (reached, open chan struct{}) {
	reached, open = make(chan struct{}), make(chan struct{})
	observe(t, w.owner, agents.StatusChanged, func(_ context.Context, n agents.StatusNotice) {
		if n.Status == status {
			select {
			case <-open:
			default:
				close(reached)
				<-open
			}
		}
	})
	return
}

//
func TestIdleCancel(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	must(t, a.Cancel(t.Context(), byUser, false))
	if n := a.Session().Len(); n != 0 {
		t.Errorf("%d events", n)
	}
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

// a cancel right after a waking send leaves no step behind.
func TestCancelRightAfterSend(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	reached, open := gate(t, w, agents.Running)
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	<-reached
	must(t, a.Cancel(t.Context(), byUser, false))
	close(open)
	must(t, a.WhenIdle(t.Context()))
	log := types(a.Session().Events(0))
	if slices.Contains(log, "step/start") || a.Session().State().InTurn || len(w.model.asked()) != 0 {
		t.Errorf("%v", log)
	}
}

// a cancel from the running listener drops the turn; what it sends instead
// is run.
func TestCancelFromRunningListener(t *testing.T) {
	w := newWorld(t)
	once := true
	observe(t, w.owner, agents.StatusChanged, func(ctx context.Context, n agents.StatusNotice) {
		if n.Status == agents.Running && once {
			once = false
			must(t, n.Agent.Cancel(ctx, byUser, false))
			must(t, n.Agent.Followup(ctx, llm.UserText("instead")))
		}
	})
	a := w.agent()
	ask(t, a, "x")
	same(t, "history", shapes(a.Session().Messages()), []string{"user: instead", "assistant: ok"})
	if n := a.Session().State().Turn; n != 1 {
		t.Errorf("%d turns", n)
	}
}

// a cancel from the idle listener does not hit what comes later.
func TestCancelFromIdleListener(t *testing.T) {
	w := newWorld(t)
	once := true
	observe(t, w.owner, agents.StatusChanged, func(ctx context.Context, n agents.StatusNotice) {
		if n.Status == agents.Idle && once {
			once = false
			must(t, n.Agent.Cancel(ctx, byUser, false))
			must(t, n.Agent.Followup(ctx, llm.UserText("later")))
		}
	})
	a := w.agent()
	ask(t, a, "x")
	same(t, "history", shapes(a.Session().Messages()), []string{"user: x", "assistant: ok", "user: later", "assistant: ok"})
}

// parked, and not restored.
func TestKeepInbox(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{}, 1)
	w.model.script(hang(began), say("ok"))
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("claimed")))
	<-began
	must(t, a.Followup(t.Context(), llm.UserText("waits")))
	must(t, a.Steer(t.Context(), llm.UserText("steers")))
	must(t, a.Cancel(t.Context(), byUser, true))
	must(t, a.WhenIdle(t.Context()))
	turns, steps := a.Pending()
	same(t, "parked", [][]string{shapes(turns), shapes(steps)}, [][]string{{"user: waits"}, {"user: steers"}})
	ask(t, a, "go")
	same(t, "history", shapes(a.Session().Messages()), []string{"user: claimed", "user: steers", "user: waits", "assistant: ok", "user: go", "assistant: ok"})
}

// a cancel drops every waiting message, logged as cancelled.
func TestCancelDropsTheInbox(t *testing.T) {
	w := newWorld(t)
	var dropped []string
	observe(t, w.owner, agents.Discarded, func(_ context.Context, n agents.ItemNotice) { dropped = append(dropped, shape(n.Message)) })
	began := make(chan struct{}, 1)
	w.model.script(hang(began), say("ok"))
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("one")))
	<-began
	must(t, a.Followup(t.Context(), llm.UserText("two")))
	must(t, a.Followup(t.Context(), llm.UserText("three")))
	must(t, a.Steer(t.Context(), llm.UserText("four")))
	must(t, a.Cancel(t.Context(), byUser, false))
	must(t, a.WhenIdle(t.Context()))
	same(t, "end", lastEnd(t, a), events.EndReason{Kind: events.Aborted, Cause: &byUser})
	same(t, "dropped", dropped, []string{"user: two", "user: three", "user: four"})
	var canceled []events.Splice
	for _, s := range pick(t, a, events.InboxSpliced) {
		if s.Outcome == "canceled" {
			canceled = append(canceled, s)
		}
	}
	same(t, "splices", canceled, []events.Splice{
		{Target: events.NextTurn, RemovedCount: 2, Inserted: []llm.Message{}, Outcome: "canceled"},
		{Target: events.NextStep, RemovedCount: 1, Inserted: []llm.Message{}, Outcome: "canceled"},
	})
	if n := a.Session().State().Turn; n != 1 {
		t.Errorf("%d turns", n)
	}
}

// what wakes the agent between the cancel and idle is run afterwards,
// unless it is taken back, cancelled too, or the agent disposed.
func TestLatch(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(t *testing.T, a *agents.Agent, m llm.Message)
		runs bool
	}{
		{"runs", func(*testing.T, *agents.Agent, llm.Message) {}, true},
		{"kept by a second cancel", func(t *testing.T, a *agents.Agent, _ llm.Message) { must(t, a.Cancel(t.Context(), byUser, true)) }, true},
		{"replaced", func(t *testing.T, a *agents.Agent, m llm.Message) {
			must(t, a.Replace(t.Context(), m.ID, llm.UserText("replacement")))
		}, true},
		{"replaced and removed", func(t *testing.T, a *agents.Agent, m llm.Message) {
			other := llm.UserText("replacement")
			must(t, a.Replace(t.Context(), m.ID, other))
			must(t, a.Remove(t.Context(), other.ID))
		}, false},
		{"cancelled", func(t *testing.T, a *agents.Agent, _ llm.Message) { must(t, a.Cancel(t.Context(), byUser, false)) }, false},
		{"removed", func(t *testing.T, a *agents.Agent, m llm.Message) { must(t, a.Remove(t.Context(), m.ID)) }, false},
		{"disposed", func(t *testing.T, a *agents.Agent, _ llm.Message) {
			go func() { _ = a.Dispose(context.Background()) }()
			synctest.Wait()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				// The model is slow to notice the cancel.
				began := make(chan struct{}, 1)
				w.model.script(func(ctx context.Context, r llm.Request) llm.Stream {
					return func(yield func(llm.Chunk, error) bool) {
						began <- struct{}{}
						<-ctx.Done()
						time.Sleep(time.Second)
						yield(nil, ctx.Err())
					}
				}, say("ok"))
				a := w.agent()
				must(t, a.Followup(t.Context(), llm.UserText("x")))
				<-began
				must(t, a.Cancel(t.Context(), byUser, false))
				m := llm.UserText("latched")
				must(t, a.Steer(t.Context(), m)) // filed under next-turn, whatever its verb
				if turns, steps := a.Pending(); len(turns) != 1 || len(steps) != 0 {
					t.Errorf("pending %v %v", turns, steps)
				}
				c.then(t, a, m)
				must(t, a.WhenIdle(t.Context()))
				want := 1
				if c.runs {
					want = 2
				}
				if n := a.Session().State().Turn; n != want {
					t.Errorf("%d turns, want %d", n, want)
				}
			})
		})
	}
}

//
func TestWaiterOutlivesCancel(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	done := make(chan error, 1)
	on(t, w.owner, agents.PreStep, func(ctx context.Context, _ agents.Proposal, next func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
		go func() { done <- a.WhenIdle(context.Background()) }()
		must(t, a.Cancel(ctx, byUser, false))
		return next(ctx)
	})
	ask(t, a, "x")
	must(t, <-done)
}

// a cancel from an observer of the log takes effect before what
// would come next.
func TestCancelFromLogObserver(t *testing.T) {
	for _, typ := range []string{events.StepStart.Name, events.AssistantMessage.Name} {
		t.Run(typ, func(t *testing.T) {
			w := newWorld(t)
			w.tool("boom", func(context.Context, map[string]any) (any, error) { t.Error("it ran"); return nil, nil })
			w.model.script(want(use("c1", "boom", "{}"), use("c2", "boom", "{}")))
			a := w.agent()
			observe(t, w.owner, events.Appended, func(ctx context.Context, n events.Notice) {
				if n.Event.Type == typ {
					must(t, a.Cancel(ctx, byUser, false))
				}
			})
			if r := ask(t, a, "x"); r.Subtype != agents.Cancelled {
				t.Errorf("%+v", r)
			}
			if typ == events.StepStart.Name {
				if len(w.model.asked()) != 0 {
					t.Error("the model was asked")
				}
				return
			}
			same(t, "history", shapes(a.Session().Messages())[1:], []string{
				"assistant: (c1,c2)",
				"result c1!: Error: the turn ended before this call was started; it had no effect [ABORTED_BEFORE_DISPATCH]",
				"result c2!: Error: the turn ended before this call was started; it had no effect [ABORTED_BEFORE_DISPATCH]",
			})
		})
	}
}

//
func TestInterruptedReply(t *testing.T) {
	for _, c := range []struct {
		name string
		came []llm.Chunk
		keep []string
	}{
		{"text, reasoning and half a call", slices.Concat(
			[]llm.Chunk{llm.BlockStart{Index: 0, BlockType: llm.KindReasoning}, llm.ReasoningDelta{Index: 0, Text: "hm"}, llm.BlockEnd{Index: 0, Block: llm.Reasoning{Text: "hm"}}},
			[]llm.Chunk{llm.BlockStart{Index: 1, BlockType: llm.KindText}, llm.TextDelta{Index: 1, Text: "so"}},
			[]llm.Chunk{llm.BlockStart{Index: 2, BlockType: llm.KindToolCall}, llm.ToolCallDelta{Index: 2, ID: "c", Name: "x", ArgumentsDelta: "{"}},
		), []string{"user: x", "assistant: so"}},
		{"blank", text(0, " \n"), []string{"user: x"}},
		{"nothing", nil, []string{"user: x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			began := make(chan struct{}, 1)
			w.model.script(hang(began, c.came...))
			a := w.agent()
			must(t, a.Followup(t.Context(), llm.UserText("x")))
			<-began
			must(t, a.Cancel(t.Context(), byUser, false))
			must(t, a.WhenIdle(t.Context()))
			same(t, "kept", shapes(a.Session().Messages()), c.keep)
			for _, r := range pick(t, a, events.AssistantMessage) {
				if !r.Interrupted || r.Message.Content.Reasoning() != "hm" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// a cancel during recovery keeps nothing.
func TestCancelDuringRecovery(t *testing.T) {
	w := newWorld(t)
	w.model.script(chunks(append(text(0, "half"), llm.Finish{Reason: llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Code: seams.Server, Message: "m"}}})...))
	a := w.agent()
	on(t, w.owner, agents.RequestFailed, func(ctx context.Context, _ agents.RequestFailure, _ func(context.Context) (agents.Recovery, error)) (agents.Recovery, error) {
		must(t, a.Cancel(ctx, byUser, false))
		return agents.Recovery{Kind: agents.Retry}, nil // the cancel counts
	})
	if r := ask(t, a, "x"); r.Subtype != agents.Cancelled || len(w.model.asked()) != 1 {
		t.Errorf("%+v", r)
	}
	same(t, "history", shapes(a.Session().Messages()), []string{"user: x"})
}

//
func TestCancelWhenStopping(t *testing.T) {
	for _, steer := range []bool{false, true} {
		w := newWorld(t)
		a := w.agent()
		on(t, w.owner, agents.TurnStopping, func(ctx context.Context, n agents.TurnNotice, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			if steer {
				must(t, a.Steer(ctx, llm.UserText("more")))
			}
			return struct{}{}, a.Cancel(ctx, events.Cause{Kind: events.ByHook, Reason: "enough"}, true)
		})
		ask(t, a, "x")
		same(t, "end", lastEnd(t, a), events.EndReason{Kind: events.Aborted, Cause: &events.Cause{Kind: events.ByHook, Reason: "enough"}})
		if len(w.model.asked()) != 1 {
			t.Error("another step was run")
		}
	}
}

// what a cancelled turn has not claimed yet, it leaves where it is.
func TestCancelBeforeTheClaim(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	observe(t, w.owner, events.Appended, func(ctx context.Context, n events.Notice) {
		if events.TurnStart.Is(n.Event) {
			must(t, a.Cancel(ctx, byUser, true))
		}
	})
	ask(t, a, "x")
	if turns, _ := a.Pending(); len(turns) != 1 {
		t.Errorf("pending %v", turns)
	}
	same(t, "log", types(a.Session().Events(0)), []string{"turn/start", "turn/end"})
}

//
func TestFirstCauseWins(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{}, 1)
	w.model.script(hang(began))
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	<-began
	must(t, a.Cancel(t.Context(), byParent, false))
	must(t, a.Cancel(t.Context(), byUser, false))
	must(t, a.Dispose(t.Context()))
	same(t, "end", lastEnd(t, a), events.EndReason{Kind: events.Aborted, Cause: &byParent})
}

// disposal stops a turn, and the queued tail never starts.
func TestDisposeMidTurn(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{}, 1)
	w.model.script(hang(began))
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	<-began
	must(t, a.Followup(t.Context(), llm.UserText("tail")))
	w.owner.dispose(t)
	same(t, "end", lastEnd(t, a), events.EndReason{Kind: events.Aborted, Cause: &events.Cause{Kind: events.ByDisposal}})
	if len(w.model.asked()) != 1 || a.Status() != agents.Idle {
		t.Error("it went on")
	}
	for _, err := range []error{
		a.Followup(t.Context(), llm.UserText("late")), a.Steer(t.Context(), llm.UserText("late")),
		a.RunMaintenance(t.Context(), func(context.Context) error { t.Error("it ran"); return nil }),
	} {
		if !errors.Is(err, seams.InactiveEffect) {
			t.Errorf("got %v", err)
		}
	}
	if err := a.Inject(t.Context(), llm.UserText("late")); !errors.Is(err, seams.SessionNotLive) {
		t.Errorf("got %v", err)
	}
	must(t, a.Dispose(t.Context())) // idempotent
}

//
func TestMaintenance(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	m := llm.UserText("meanwhile")
	run := func(task func(ctx context.Context)) error {
		return a.RunMaintenance(t.Context(), func(ctx context.Context) error { task(ctx); return ctx.Err() })
	}
	turns := func() int {
		must(t, a.WhenIdle(t.Context()))
		return a.Session().State().Turn
	}
	// What is sent meanwhile is run afterwards.
	must(t, run(func(ctx context.Context) {
		if err := a.RunMaintenance(ctx, nil); !errors.Is(err, seams.AgentBusy) {
			t.Errorf("got %v", err)
		}
		must(t, a.Followup(t.Context(), m))
		if a.Status() != agents.Idle || a.Session().State().Turn != 0 {
			t.Error("a turn began during maintenance")
		}
	}))
	if n := turns(); n != 1 {
		t.Errorf("%d turns", n)
	}
	// A cancel takes both, and what is sent after it is run.
	if err := run(func(ctx context.Context) {
		must(t, a.Followup(t.Context(), m))
		must(t, a.Cancel(t.Context(), byUser, false))
		<-ctx.Done()
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := turns(); n != 1 {
		t.Errorf("%d turns", n)
	}
	_ = run(func(context.Context) {
		must(t, a.Cancel(t.Context(), byUser, false))
		must(t, a.Followup(t.Context(), m))
	})
	if n := turns(); n != 2 {
		t.Errorf("%d turns", n)
	}
	// What is taken back does not wake.
	must(t, run(func(context.Context) {
		must(t, a.Followup(t.Context(), m))
		must(t, a.Remove(t.Context(), m.ID))
	}))
	if n := turns(); n != 2 {
		t.Errorf("%d turns", n)
	}
	// Its context ends with the caller's.
	ctx, cancel := context.WithCancel(t.Context())
	err := a.RunMaintenance(ctx, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	began := make(chan struct{}, 1)
	w.model.script(hang(began))
	must(t, a.Followup(t.Context(), m))
	<-began
	if err := run(func(context.Context) { t.Error("it ran") }); !errors.Is(err, seams.AgentBusy) {
		t.Errorf("got %v", err)
	}
}
