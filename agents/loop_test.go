package agents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

//
func TestTurnOrder(t *testing.T) {
	w := newWorld(t)
	w.model.script(say("hello"))
	a := w.agent()
	r := ask(t, a, "hi")
	if r.Subtype != agents.Success || r.Text != "hello" {
		t.Fatalf("%+v", r)
	}
	same(t, "log", types(a.Session().Events(0)), []string{
		"turn/start", "step/start", "user/message", "request/header", "request/context", "assistant/message", "step/end", "turn/end",
	})
	same(t, "request", shapes(w.model.asked()[0].Messages), []string{"user: hi"})
}

//
func TestToolRoundTrip(t *testing.T) {
	w := newWorld(t)
	w.model.script(want(use("c1", "look", `{"at":"sky"}`)), say("it is blue"))
	var saw map[string]any
	w.tool("look", func(ctx context.Context, args map[string]any) (any, error) {
		saw = args
		if a, ok := agents.From(ctx); !ok || a.ID() != "main" {
			t.Error("the body does not know its agent")
		}
		return "blue", nil
	})
	a := w.agent()
	if r := ask(t, a, "look"); r.Text != "it is blue" || r.NumSteps != 2 || r.NumTurns != 1 {
		t.Fatalf("%+v", r)
	}
	same(t, "arguments", saw, map[string]any{"at": "sky"})
	same(t, "second request", shapes(w.model.asked()[1].Messages), []string{"user: look", "assistant: (c1)", "result c1: blue"})
	same(t, "call", pick(t, a, events.ToolCall), []events.Call{{Turn: 1, Step: 1, CallID: "c1", Name: "look", Arguments: `{"at":"sky"}`}})
	if _, ok := agents.From(t.Context()); ok {
		t.Error("a context outside of agents has one")
	}
}

// one running, one idle; a failing observer changes nothing.
func TestStatus(t *testing.T) {
	w := newWorld(t)
	var seen []agents.Status
	observe(t, w.owner, agents.StatusChanged, func(_ context.Context, n agents.StatusNotice) { seen = append(seen, n.Status) })
	on(t, w.owner, agents.StatusChanged, func(context.Context, agents.StatusNotice, func(context.Context) (struct{}, error)) (struct{}, error) {
		panic("observer")
	})
	a := w.agent()
	if a.Status() != agents.Idle {
		t.Error("a new agent is not idle")
	}
	began := make(chan struct{}, 1)
	release := make(chan struct{})
	w.model.script(func(ctx context.Context, r llm.Request) llm.Stream {
		began <- struct{}{}
		<-release
		return say("ok")(ctx, r)
	})
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	if a.Status() != agents.Running { // at once
		t.Error("not running after a waking send")
	}
	<-began
	close(release)
	must(t, a.WhenIdle(t.Context()))
	same(t, "statuses", seen, []agents.Status{agents.Running, agents.Idle})
	if len(w.contained()) != 2 {
		t.Errorf("contained %v", w.contained())
	}
}

// each agent goes from idle to running and back, whatever the others do.
func TestStatusAlternates(t *testing.T) {
	w := newWorld(t)
	seen := map[string]*trace{"a": {}, "b": {}, "c": {}}
	observe(t, w.owner, agents.StatusChanged, func(_ context.Context, n agents.StatusNotice) {
		seen[n.Agent.ID()].add("%s", n.Status)
	})
	var all sync.WaitGroup
	for id := range seen {
		a := w.agent(func(s *agents.Spec) { s.Header.ID = id })
		for range 4 { // some of them in one stretch of running
			all.Go(func() {
				if err := a.Followup(t.Context(), llm.UserText("x")); err != nil {
					t.Error(err)
				}
				if err := a.WhenIdle(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for id, l := range seen {
		got := l.all()
		if len(got) == 0 || len(got)%2 != 0 {
			t.Errorf("%s: %v", id, got)
		}
		for i, s := range got {
			if want := []agents.Status{agents.Running, agents.Idle}[i%2]; s != string(want) {
				t.Errorf("%s: %v", id, got)
			}
		}
	}
}

//
func TestWhenIdle(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	must(t, a.WhenIdle(t.Context())) // at once
	w.model.script(failing(seams.Server, 503))
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	must(t, a.WhenIdle(t.Context())) // after a failure too
	began := make(chan struct{}, 1)
	w.model.script(hang(began))
	must(t, a.Followup(t.Context(), llm.UserText("y")))
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.WhenIdle(ctx); !errors.Is(err, seams.Aborted) {
		t.Errorf("got %v", err)
	}
}

// Waiting for the agent from within what it runs does not hang.
func TestSelfWait(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	var errs []error
	observe(t, w.owner, agents.StatusChanged, func(ctx context.Context, n agents.StatusNotice) {
		if n.Status == agents.Running {
			errs = append(errs, a.WhenIdle(ctx), a.Dispose(ctx))
		}
	})
	observe(t, w.owner, events.Appended, func(ctx context.Context, n events.Notice) {
		if events.InboxSpliced.Is(n.Event) {
			errs = append(errs, a.Steer(ctx, llm.UserText("again")))
		}
	})
	ask(t, a, "x")
	for _, err := range errs {
		if c := seams.CodeOf(err); c != seams.WouldDeadlock && c != seams.ReentrantAppend {
			t.Errorf("got %v", err)
		}
	}
	if len(errs) != 4 { // two from the status, two from the splices of insert and claim
		t.Errorf("%d errors", len(errs))
	}
}

//
func TestReplyIsLogged(t *testing.T) {
	w := newWorld(t)
	state := &llm.ReplayState{Response: []byte(`{"id":"r1"}`)}
	w.model.script(
		chunks(append(text(0, "one"), llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}, ReplayState: state})...),
		chunks(finish(llm.Stop)))
	a := w.agent()
	ask(t, a, "x")
	ask(t, a, "y")
	var seqs []int
	for _, e := range a.Session().Events(0) {
		switch e.Type {
		case events.AssistantChunk.Name:
			seqs = append(seqs, e.Seq)
		case events.AssistantMessage.Name:
			same(t, "sources", e.SourceEventSeqs, seqs)
			seqs = nil
		}
	}
	got := pick(t, a, events.AssistantMessage)
	if len(got) != 2 || got[1].Usage != nil || len(got[1].Message.Content) != 0 {
		t.Fatalf("%+v", got)
	}
	same(t, "source", got[0].Message.Source, llm.Source{Kind: llm.FromModel, Provider: "test", Model: "m", ReplayState: state})
	same(t, "empty replies are not sent", shapes(a.Session().Messages()), []string{"user: x", "assistant: one", "user: y"})
}

// sticky within the turn, no tools from a cut-off reply.
func TestMaxTokens(t *testing.T) {
	w := newWorld(t)
	cut := append(text(0, "so far"), llm.BlockStart{Index: 1, BlockType: llm.KindToolCall}, llm.ToolCallDelta{Index: 1, ID: "c", Name: "boom", ArgumentsDelta: "{"},
		llm.BlockEnd{Index: 1, Block: use("c", "boom", "{")}, finish(llm.MaxTokens))
	w.model.script(chunks(cut...), say("rest"))
	w.tool("boom", func(context.Context, map[string]any) (any, error) { t.Error("it ran"); return nil, nil })
	a := w.agent()
	steered := false
	on(t, w.owner, agents.TurnStopping, func(ctx context.Context, n agents.TurnNotice, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if !steered {
			steered = true
			return struct{}{}, n.Agent.Steer(ctx, llm.UserText("go on"))
		}
		return struct{}{}, nil
	})
	r := ask(t, a, "x")
	if lastEnd(t, a).Kind != events.MaxTokens || r.Subtype != agents.Limit || r.Error.Code != seams.MaxTokensReached || r.NumSteps != 2 {
		t.Errorf("%+v", r)
	}
	same(t, "history", shapes(a.Session().Messages()), []string{"user: x", "assistant: so far",
		"user: Your reply was cut off at its output limit; tool calls in it were not run.", "user: go on", "assistant: rest"})
	if r := ask(t, a, "y"); r.Subtype != agents.Success {
		t.Errorf("next turn: %+v", r)
	}
}

//
func TestTurnStopping(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	fail := false
	on(t, w.owner, agents.TurnStopping, func(context.Context, agents.TurnNotice, func(context.Context) (struct{}, error)) (struct{}, error) {
		if fail {
			return struct{}{}, errors.New("no")
		}
		return struct{}{}, nil
	})
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
	fail = true
	if r := ask(t, a, "y"); r.Subtype != agents.Errored || !strings.Contains(r.Error.Message, "no") {
		t.Errorf("%+v", r)
	}
}

// a turn with messages for its next step is not stopping.
func TestSteeredTurnIsNotStopping(t *testing.T) {
	w := newWorld(t)
	stopping := 0
	observe(t, w.owner, agents.TurnStopping, func(context.Context, agents.TurnNotice) { stopping++ })
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
		a, _ := w.agents.Get(nil, "main")
		must(t, a.Steer(ctx, llm.UserText("more")))
		return say("one")(ctx, q)
	}, say("two"))
	if r := ask(t, w.agent(), "x"); stopping != 1 || r.NumSteps != 2 || r.NumTurns != 1 {
		t.Errorf("stopping %d times, %+v", stopping, r)
	}
}

//
func TestConcludingTool(t *testing.T) {
	for _, steer := range []bool{false, true} {
		w := newWorld(t)
		w.model.script(want(use("c1", "done", "")), say("after"))
		var a *agents.Agent
		if _, err := w.tools.Register(w.owner, tools.Definition{Name: "done", Execute: func(ctx context.Context, e *tools.Exec, _ any) (any, error) {
			e.ConcludeTurn()
			if steer {
				must(t, a.Steer(ctx, llm.UserText("one more")))
			}
			return "bye", nil
		}}); err != nil {
			t.Fatal(err)
		}
		a = w.agent()
		r := ask(t, a, "x")
		if wantSteps := map[bool]int{false: 1, true: 2}[steer]; r.NumSteps != wantSteps || r.Subtype != agents.Success {
			t.Errorf("steer %v: %+v", steer, r)
		}
	}
}

//
func TestModelFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply reply
		code  seams.Code
	}{
		{"coded", failing(seams.RateLimit, 429), seams.RateLimit},
		{"foreign", func(context.Context, llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) { yield(nil, fmt.Errorf("a: %w", errors.New("b"))) }
		}, seams.Unknown},
		{"aborted by the adapter", chunks(llm.Finish{Reason: llm.FinishReason{Kind: llm.Aborted, Failure: &llm.Failure{Code: seams.Aborted, Message: "m"}}}), seams.Aborted},
		{"no reason given", chunks(finish(llm.Failed)), seams.Unknown},
		{"cut", chunks(text(0, "half")...), seams.StreamClosed},
		{"panic", func(context.Context, llm.Request) llm.Stream { panic("adapter") }, seams.Panicked},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var told []agents.FailureNotice
			observe(t, w.owner, agents.Failed, func(_ context.Context, n agents.FailureNotice) { told = append(told, n) })
			w.model.script(c.reply, say("fine"))
			a := w.agent()
			r := ask(t, a, "x")
			end := lastEnd(t, a)
			if end.Kind != events.Failed || end.Error.Code != c.code || r.Subtype != agents.Errored || r.Error.Code != c.code {
				t.Errorf("end %+v result %+v", end, r)
			}
			if len(told) != 1 || told[0].Error.Code != c.code || told[0].Step != 1 {
				t.Errorf("told %+v", told)
			}
			if r := ask(t, a, "y"); r.Subtype != agents.Success {
				t.Errorf("the agent did not survive: %+v", r)
			}
			same(t, "failed chunks are not history", shapes(a.Session().Messages()), []string{"user: x", "user: y", "assistant: fine"})
		})
	}
}

//
func TestPreStep(t *testing.T) {
	w := newWorld(t)
	w.tool("look", echo("seen"))
	w.model.script(want(use("c1", "look", "{}")), say("ok"))
	var at []string
	on(t, w.owner, agents.PreStep, func(ctx context.Context, p agents.Proposal, next func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
		at = append(at, fmt.Sprint(p.Turn, p.Step, shapes(p.Messages), len(p.Agent.Session().Events(0)) > 0 && p.Agent.Session().State().InStep))
		p.Messages = append(p.Messages[:0], llm.UserText("scribble")) // the dispatch's own list
		adm, err := next(ctx)
		if p.Step == 1 {
			adm.Messages = append(adm.Messages, llm.UserText("extra"))
		}
		return adm, err
	})
	a := w.agent()
	ask(t, a, "hi")
	same(t, "proposals", at, []string{"1 1 [user: hi] false", "1 2 [] false"})
	same(t, "request", shapes(w.model.asked()[0].Messages), []string{"user: hi", "user: extra"})
}

// a failure fails the proposal only; a rejection blocks; what waits
// stays, and is run by the next waking send.
func TestPreStepRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func() (agents.Admission, error)
		end    events.EndKind
	}{
		{"reject", func() (agents.Admission, error) { return agents.Admission{Kind: agents.Reject}, nil }, events.Blocked},
		{"fail", func() (agents.Admission, error) { return agents.Admission{}, errors.New("no") }, events.Failed},
		{"answer nothing", func() (agents.Admission, error) { return agents.Admission{}, nil }, events.Failed},
		{"not JSON", func() (agents.Admission, error) {
			return agents.Admission{Kind: agents.Enter, Messages: []llm.Message{{ID: "x", Role: llm.User, Source: llm.Source{Kind: "k", Extra: map[string]jsonRaw{"a": jsonRaw("{")}}}}}, nil
		}, events.Failed},
		{"empty", func() (agents.Admission, error) { return agents.Admission{Kind: agents.Enter}, nil }, events.Completed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.agent()
			first := true
			on(t, w.owner, agents.PreStep, func(ctx context.Context, p agents.Proposal, next func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
				if first {
					first = false
					must(t, a.Followup(ctx, llm.UserText("queued")))
					return c.answer()
				}
				return next(ctx)
			})
			r := ask(t, a, "refused")
			if k := lastEnd(t, a).Kind; k != c.end || len(w.model.asked()) != 0 {
				t.Fatalf("end %v result %+v", k, r)
			}
			if turns, _ := a.Pending(); len(turns) != 1 {
				t.Fatalf("pending %v", turns)
			}
			ask(t, a, "next")
			same(t, "requests", shapes(w.model.asked()[1].Messages), []string{"user: queued", "assistant: ok", "user: next"})
		})
	}
}

// a cancel while a step is prepared closes the turn without one.
func TestCancelBeforeTheStep(t *testing.T) {
	for _, place := range []string{"assembly", "pre-step"} {
		w := newWorld(t)
		a := w.agent()
		stop := func(ctx context.Context) { must(t, a.Cancel(ctx, events.Cause{Kind: events.ByUser}, false)) }
		if place == "assembly" {
			_, err := w.prompt.Section(w.owner, agents.Section{Name: "s", Text: func(ctx context.Context, _ agents.PromptRequest) (string, error) {
				stop(ctx)
				return "", nil
			}})
			must(t, err)
		} else {
			on(t, w.owner, agents.PreStep, func(ctx context.Context, _ agents.Proposal, next func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
				stop(ctx)
				return next(ctx)
			})
		}
		if r := ask(t, a, "x"); r.Subtype != agents.Cancelled || r.Error.Code != seams.Aborted {
			t.Errorf("%s: %+v", place, r)
		}
		same(t, place, types(a.Session().Events(0)), []string{"turn/start", "turn/end"})
		if len(w.model.asked()) != 0 {
			t.Errorf("%s: the model was asked", place)
		}
	}
}

//
func TestSendsFromWithin(t *testing.T) {
	w := newWorld(t)
	observe(t, w.owner, agents.Created, func(ctx context.Context, n agents.Notice) {
		must(t, n.Agent.Followup(ctx, llm.UserText("published")))
	})
	w.model.script(func(ctx context.Context, r llm.Request) llm.Stream {
		a, _ := w.agents.Get(nil, "main")
		must(t, a.Followup(ctx, llm.UserText("from the adapter")))
		return say("one")(ctx, r)
	}, say("two"))
	a := w.agent()
	must(t, a.WhenIdle(t.Context()))
	same(t, "history", shapes(a.Session().Messages()), []string{"user: published", "assistant: one", "user: from the adapter", "assistant: two"})
	if n := a.Session().State().Turn; n != 2 {
		t.Errorf("%d turns", n)
	}
}

// observers see the event in the log, and their failure changes nothing.
func TestBoundaryObservers(t *testing.T) {
	w := newWorld(t)
	on(t, w.owner, events.Appended, func(_ context.Context, n events.Notice, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		if got := n.Session.Events(n.Event.Seq); len(got) == 0 || got[0].Type != n.Event.Type {
			t.Errorf("%s is not in the log", n.Event.Type)
		}
		return struct{}{}, errors.New("observer")
	})
	a := w.agent()
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

// what the log does not take ends the turn, and the agent is idle.
func TestLogFailures(t *testing.T) {
	for _, typ := range []string{"turn/start", "step/start", "user/message", "request/header", "assistant/chunk", "assistant/message", "tool/call", "tool/result", "step/end", "turn/end", "flush"} {
		t.Run(typ, func(t *testing.T) {
			w := newWorld(t)
			w.tool("look", echo("seen"))
			w.model.script(want(use("c1", "look", "{}")), say("ok"))
			f := &flaky{Store: w.store, refuse: typ}
			w.agents = agents.New(agents.Deps{Bus: w.bus, LLM: w.llm, Tools: w.tools, Sessions: f, Prompt: w.prompt})
			var told int
			observe(t, w.owner, agents.Failed, func(context.Context, agents.FailureNotice) { told++ })
			a := w.agent()
			r := ask(t, a, "x")
			if a.Status() != agents.Idle {
				t.Error("not idle")
			}
			// A lost result is replaced by one that says so; all else is told.
			if typ == "tool/result" {
				if r.Subtype != agents.Success || told != 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Subtype != agents.Errored || told == 0 {
				t.Errorf("told %d, result %+v", told, r)
			}
		})
	}
}
