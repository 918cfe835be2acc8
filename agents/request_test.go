package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// no model is the agent's fault, not an adapter's; a listener may name one.
func TestNoModel(t *testing.T) {
	w := newWorld(t)
	a := w.agent(func(s *agents.Spec) { s.Options = agents.Options{} })
	if r := ask(t, a, "x"); r.Error == nil || r.Error.Code != seams.NoModel || !strings.Contains(r.Error.Message, "main") {
		t.Errorf("%+v", r)
	}
	on(t, w.owner, agents.Request, func(context.Context, agents.StepNotice, func(context.Context) (llm.CallConfig, error)) (llm.CallConfig, error) {
		return llm.CallConfig{Provider: "test", Model: "m"}, nil
	})
	if r := ask(t, a, "y"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
}

//
func TestOptions(t *testing.T) {
	w := newWorld(t)
	for _, o := range []agents.Options{
		{CallConfig: llm.CallConfig{MaxTokens: -1}},
		{MaxParallelToolCalls: -1},
		{Limits: agents.Limits{Steps: -1}},
		{Limits: agents.Limits{Tokens: -1}},
		{Limits: agents.Limits{USD: -1}},
		{Limits: agents.Limits{USD: 1}}, // without a price
	} {
		if _, err := w.agents.Create(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "main"}, Options: o}); !errors.Is(err, seams.InvalidArgument) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	a := w.agent(func(s *agents.Spec) { s.Options.MaxTokens = 77 })
	if err := a.Configure(agents.Options{MaxParallelToolCalls: -1}); !errors.Is(err, seams.InvalidArgument) || a.Options().MaxTokens != 77 {
		t.Errorf("got %v", err)
	}
	ask(t, a, "x")
	if n := w.model.asked()[0].MaxTokens; n != 77 {
		t.Errorf("maxTokens %d", n)
	}
}

// A change of options is taken at the next step of a running turn.
func TestConfigureMidTurn(t *testing.T) {
	w := newWorld(t)
	w.tool("edit", func(ctx context.Context, _ map[string]any) (any, error) {
		a, _ := agents.From(ctx)
		o := a.Options()
		o.Model, o.Limits.Steps = "other", 2
		return "edited", a.Configure(o)
	})
	w.model.script(want(use("c1", "edit", "")), want(use("c2", "edit", "")), say("never"))
	a := w.agent()
	r := ask(t, a, "x")
	var models []string
	for _, q := range w.model.asked() {
		models = append(models, q.Model)
	}
	same(t, "models", models, []string{"m", "other"})
	if r.Subtype != agents.Limit || r.Error.Code != seams.StepLimit {
		t.Errorf("%+v", r)
	}
}

// a listener's choice is logged and stays until the options change.
func TestRequestListener(t *testing.T) {
	w := newWorld(t)
	w.model.script(say("ok"))
	switched := false
	on(t, w.owner, agents.Request, func(ctx context.Context, n agents.StepNotice, next func(context.Context) (llm.CallConfig, error)) (llm.CallConfig, error) {
		cfg, err := next(ctx)
		if !switched {
			switched = true
			cfg.Model = "listener's"
		}
		return cfg, err
	})
	a := w.agent()
	ask(t, a, "x")
	ask(t, a, "y")
	o := a.Options()
	o.Model = "operator's"
	must(t, a.Configure(o))
	ask(t, a, "z")
	var got []string
	for _, h := range pick(t, a, events.RequestHeader) {
		got = append(got, fmt.Sprint(h.Reason, " ", h.Header.Config.Model))
	}
	same(t, "headers", got, []string{"initial listener's", "change operator's"})
}

// what an adapter fills in is logged as its own and asked for anew.
func TestAdapterDefaults(t *testing.T) {
	w := newWorld(t)
	w.model.info = llm.ModelInfo{MaxTokens: 100, ContextWindow: 1000, Reasoning: &llm.ReasoningInfo{Efforts: []llm.Effort{{ID: "low", Name: "Low"}}, Default: "low"}}
	other := &model{info: llm.ModelInfo{MaxTokens: 200}}
	if _, err := w.llm.RegisterAdapter(w.owner, llm.Registration{Routes: []string{"other"}, Adapter: other}); err != nil {
		t.Fatal(err)
	}
	a := w.agent()
	ask(t, a, "x")
	to := "other"
	on(t, w.owner, agents.Request, func(ctx context.Context, n agents.StepNotice, next func(context.Context) (llm.CallConfig, error)) (llm.CallConfig, error) {
		cfg, err := next(ctx)
		cfg.Provider = to
		return cfg, err
	})
	ask(t, a, "y")
	got := []events.Envelope{}
	for _, h := range pick(t, a, events.RequestHeader) {
		got = append(got, h.Header)
	}
	same(t, "headers", got, []events.Envelope{
		{Config: llm.CallConfig{Provider: "test", Model: "m", MaxTokens: 100, ReasoningEffort: "low"}, AdapterDefaults: []string{"reasoningEffort", "maxTokens"}},
		{Config: llm.CallConfig{Provider: "other", Model: "m", MaxTokens: 200}, AdapterDefaults: []string{"maxTokens"}},
	})
	// An explicit cap survives the switch.
	o := a.Options()
	o.MaxTokens = 7
	must(t, a.Configure(o))
	ask(t, a, "z")
	to = "test"
	ask(t, a, "z")
	if q := w.model.asked(); q[len(q)-1].MaxTokens != 7 || other.asked()[1].MaxTokens != 7 {
		t.Error("the cap was lost")
	}
	// the context once, on change, without a capacity when it is unknown.
	same(t, "contexts", pick(t, a, events.RequestContext), []events.ModelContext{
		{Provider: "test", Model: "m", ContextWindow: 1000}, {Provider: "other", Model: "m"}, {Provider: "test", Model: "m", ContextWindow: 1000},
	})
}

// A model alone leads to its provider, which is looked up anew each time.
func TestModelAlone(t *testing.T) {
	w := newWorld(t)
	a := w.agent(func(s *agents.Spec) { s.Options.CallConfig = llm.CallConfig{Model: "test"} })
	ask(t, a, "x")
	h := pick(t, a, events.RequestHeader)[0].Header
	if h.Config.Provider != "test" || len(h.AdapterDefaults) != 1 {
		t.Errorf("%+v", h)
	}
	// The same model from another entry, which the first turn has not heard of.
	serve := func(entry string) *llm.Handle {
		h, err := w.llm.RegisterAdapter(w.owner, llm.Registration{Entry: entry, Routes: []string{"shared"}, Adapter: w.model})
		must(t, err)
		return h
	}
	h1 := serve("one")
	c := w.agent(func(s *agents.Spec) { s.Header.ID = "c"; s.Options.CallConfig = llm.CallConfig{Model: "shared"} })
	ask(t, c, "x")
	must(t, h1.Undo(t.Context()))
	serve("two")
	if r := ask(t, c, "y"); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
	b := w.agent(func(s *agents.Spec) { s.Header.ID = "b"; s.Options.CallConfig = llm.CallConfig{Model: "nowhere"} })
	if r := ask(t, b, "x"); r.Error == nil || r.Error.Code != seams.NoAdapter {
		t.Errorf("%+v", r)
	}
}

// a listener may own a route nobody is registered for.
func TestUnregisteredRoute(t *testing.T) {
	w := newWorld(t)
	a := w.agent(func(s *agents.Spec) { s.Options.Provider = "ghost" })
	if r := ask(t, a, "x"); r.Error == nil || r.Error.Code != seams.NoAdapter {
		t.Errorf("%+v", r)
	}
	on(t, w.owner, llm.StreamEvent, func(ctx context.Context, q *llm.Request, _ func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		return say("boo")(ctx, *q), nil
	})
	if r := ask(t, a, "y"); r.Text != "boo" {
		t.Errorf("%+v", r)
	}
}

// a retry asks again in the same step, and cites its own chunks.
func TestRecovery(t *testing.T) {
	w := newWorld(t)
	broken := chunks(append(text(0, "half"), llm.Finish{Reason: llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Code: seams.Server, Message: "m", Status: 503}}})...)
	w.model.script(broken, say("whole"), broken)
	var got []agents.RequestFailure
	answer := func() (agents.Recovery, error) { return agents.Recovery{Kind: agents.Retry}, nil }
	on(t, w.owner, agents.RequestFailed, func(_ context.Context, f agents.RequestFailure, _ func(context.Context) (agents.Recovery, error)) (agents.Recovery, error) {
		got = append(got, f)
		return answer()
	})
	a := w.agent()
	if r := ask(t, a, "x"); r.Text != "whole" || r.NumSteps != 1 {
		t.Errorf("%+v", r)
	}
	if len(got) != 1 || got[0].Provider != "test" || got[0].Step != 1 || got[0].Failure.Status != 503 || got[0].RetryPolicy == nil || got[0].RetryPolicy.Mode != "normal" {
		t.Errorf("%+v", got)
	}
	same(t, "second request", shapes(w.model.asked()[1].Messages), []string{"user: x"})
	log := a.Session().Events(0)
	for _, e := range log {
		if events.AssistantMessage.Is(e) {
			c, err := events.AssistantChunk.Decode(log[e.SourceEventSeqs[0]])
			if err != nil || len(e.SourceEventSeqs) != 5 || e.SourceEventSeqs[0] != e.Seq-5 {
				t.Errorf("%v %+v %v", e.SourceEventSeqs, c, err)
			}
		}
	}
	// A recovery that fails, or answers nothing, does not retry.
	for _, f := range []func() (agents.Recovery, error){
		func() (agents.Recovery, error) { return agents.Recovery{Kind: agents.Retry}, errors.New("recovery") },
		func() (agents.Recovery, error) { return agents.Recovery{}, nil },
	} {
		before := len(w.model.asked())
		answer = f
		if r := ask(t, a, "y"); r.Error == nil || r.Error.Code != seams.Server || r.Error.Status != 503 || len(w.model.asked()) != before+1 {
			t.Errorf("%+v", r)
		}
	}
	// Nobody is asked about failures of the middleware.
	n := len(got)
	on(t, w.owner, llm.StreamEvent, func(context.Context, *llm.Request, func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		return nil, errors.New("middleware")
	})
	if r := ask(t, a, "z"); r.Subtype != agents.Errored || len(got) != n {
		t.Errorf("%+v", r)
	}
}

// a replaced part of the surface is what the next request holds; headers
// are logged on change, and once by a resumed session.
func TestSurfaceReplacement(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	ask(t, a, "one")
	must(t, a.RunMaintenance(t.Context(), func(ctx context.Context) error {
		nodes := a.Session().Surface()
		_, err := a.Session().Append(ctx, events.UserMessage.New(events.Message{Message: llm.UserText("summary")}).
			Replacing(nodes[0].Seq, nodes[1].Seq).Citing(nodes[0].Seq, nodes[1].Seq))
		return err
	}))
	ask(t, a, "two")
	same(t, "request", shapes(w.model.asked()[1].Messages), []string{"user: summary", "user: two"})
	must(t, a.Dispose(t.Context()))
	b, err := w.agents.Resume(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "main"}})
	must(t, err)
	ask(t, b, "three") // the model is the session's
	var reasons []events.HeaderReason
	for _, h := range pick(t, b, events.RequestHeader) {
		reasons = append(reasons, h.Reason)
	}
	same(t, "headers", reasons, []events.HeaderReason{events.HeaderInitial, events.HeaderResume})
}

// each request extends the one before it, and who scribbles on his
// request scribbles on nobody else's.
func TestRequestsAreTheirOwn(t *testing.T) {
	w := newWorld(t)
	on(t, w.owner, llm.StreamEvent, func(ctx context.Context, q *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		s, err := next(ctx)
		for i := range q.Messages {
			q.Messages[i] = llm.UserText("scribble")
		}
		q.Messages = append(q.Messages, llm.UserText("scribble"))
		q.System = "scribble"
		return s, err
	})
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream { return say("ok")(ctx, q) })
	a := w.agent()
	for i := range 3 {
		ask(t, a, fmt.Sprint(i))
	}
	same(t, "history", shapes(a.Session().Messages()), []string{"user: 0", "assistant: ok", "user: 1", "assistant: ok", "user: 2", "assistant: ok"})
}

// rebuild makes the requests of a log from the log alone.
func rebuild(t *testing.T, id string, log []events.Event) [][]byte {
	var out [][]byte
	var header *events.Envelope
	asked := false
	for i, e := range log {
		switch e.Type {
		case events.RequestHeader.Name:
			h, err := events.RequestHeader.Decode(e)
			must(t, err)
			header = &h.Header
		case events.AssistantChunk.Name:
			c, err := events.AssistantChunk.Decode(e)
			must(t, err)
			if !asked {
				ms, err := events.Derive(log[:i])
				must(t, err)
				b, err := json.Marshal(llm.Request{CallConfig: header.Config, Messages: ms, System: header.System, Tools: header.Tools, SessionID: id})
				must(t, err)
				out = append(out, b)
			}
			_, last := c.Chunk.(llm.Finish)
			asked = !last
		}
	}
	return out
}

// of any conversation, the log alone gives every request to the
// byte, and the history.
func TestRebuildFromTheLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(quiet{t})
		defer w.owner.dispose(t)
		var sent [][]byte
		n := 0
		w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
			b, err := json.Marshal(q)
			must(t, err)
			sent = append(sent, b)
			n++
			switch rapid.IntRange(0, 6).Draw(r, "reply") {
			case 0:
				return want(use(fmt.Sprint("c", n), "look", `{"a": 1}`), use("same", "nowhere", "{"))(ctx, q)
			case 1:
				return want(use("", "mount", ""))(ctx, q)
			case 2:
				return failing(seams.Server, 500)(ctx, q)
			case 3:
				return chunks(append(text(0, "cut"), finish(llm.MaxTokens))...)(ctx, q)
			case 4:
				return chunks(finish(llm.Stop))(ctx, q)
			}
			return say(rapid.String().Draw(r, "text"))(ctx, q)
		})
		w.tool("look", echo("<seen & \u2028>"), parallel)
		mounted := 0
		w.tool("mount", func(ctx context.Context, _ map[string]any) (any, error) {
			mounted++
			w.tool(fmt.Sprint("tool", mounted), echo("x"))
			a, _ := agents.From(ctx)
			return nil, a.Inject(ctx, llm.UserText("mounted"))
		})
		_, err := w.prompt.Section(w.owner, agents.Section{Name: "s", Text: func(context.Context, agents.PromptRequest) (string, error) {
			return fmt.Sprint("version ", mounted), nil
		}})
		must(t, err)
		_, err = w.prompt.Context(w.owner, agents.Section{Name: "c", Text: func(context.Context, agents.PromptRequest) (string, error) {
			return strings.Repeat("!", mounted%3), nil
		}})
		must(t, err)
		on(t, w.owner, agents.RequestFailed, func(context.Context, agents.RequestFailure, func(context.Context) (agents.Recovery, error)) (agents.Recovery, error) {
			if rapid.Bool().Draw(r, "retry") {
				return agents.Recovery{Kind: agents.Retry}, nil
			}
			return agents.Recovery{}, nil
		})
		a := w.agent(func(s *agents.Spec) { s.Options.Limits.Steps = 4 })
		for range rapid.IntRange(1, 4).Draw(r, "turns") {
			ask(t, a, "x")
		}
		log := a.Session().Events(0)
		got := rebuild(t, a.ID(), log)
		if len(got) != len(sent) {
			r.Fatalf("%d requests, %d rebuilt", len(sent), len(got))
		}
		for i := range sent {
			if !bytes.Equal(got[i], sent[i]) {
				r.Fatalf("request %d:\n got %s\nsent %s", i, got[i], sent[i])
			}
		}
		// A new session that begins with the log has the same history.
		history, err := json.Marshal(a.Session().Messages())
		must(t, err)
		b := w.agent(func(s *agents.Spec) { s.Header.ID = "again"; s.Seed = log })
		again, err := json.Marshal(b.Session().Messages())
		must(t, err)
		if !bytes.Equal(history, again) {
			r.Fatalf("histories differ:\n%s\n%s", history, again)
		}
		// and its turns count on.
		was := a.Session().State().Turn
		ask(t, b, "more")
		if now := b.Session().State().Turn; now != was+1 {
			r.Fatalf("turn %d follows %d", now, was)
		}
	})
}

// Each step takes the tools anew; the model sees them by name (A-99, P-13).
func TestToolsAreTakenAnew(t *testing.T) {
	w := newWorld(t)
	var undo seams.Undo
	w.tool("zeta", func(context.Context, map[string]any) (any, error) {
		undo = w.tool("alpha", echo("new"))
		return nil, nil
	})
	w.tool("drop", func(ctx context.Context, _ map[string]any) (any, error) { return nil, undo(ctx) })
	w.model.script(want(use("c1", "zeta", "")), want(use("c2", "alpha", ""), use("c3", "drop", "")), say("done"))
	a := w.agent()
	ask(t, a, "x")
	var offered [][]string
	for _, q := range w.model.asked() {
		var names []string
		for _, s := range q.Tools {
			names = append(names, s.Name)
		}
		offered = append(offered, names)
	}
	same(t, "offered", offered, [][]string{{"drop", "zeta"}, {"alpha", "drop", "zeta"}, {"drop", "zeta"}})
	same(t, "result", shapes(w.model.asked()[2].Messages)[4], "result c2: new")
}

// what is registered in an agent's scope is that agent's alone.
func TestScope(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	b := w.agent(func(s *agents.Spec) { s.Header.ID = "b" })
	mine := w.owner.in(a.Scope())
	defer mine.dispose(t)
	w.toolOf(mine, "own", echo("x"))
	steps := 0
	on(t, mine, agents.PreStep, func(ctx context.Context, p agents.Proposal, next func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
		steps++
		return next(ctx)
	})
	_, err := w.prompt.Section(mine, agents.Section{Name: "s", Text: func(context.Context, agents.PromptRequest) (string, error) { return "mine", nil }})
	must(t, err)
	ask(t, a, "x")
	ask(t, b, "x")
	q := w.model.asked()
	if len(q[0].Tools) != 1 || q[0].System != "mine" || len(q[1].Tools) != 0 || q[1].System != "" || steps != 1 { // A-21 too
		t.Errorf("%+v %+v, %d steps", q[0], q[1], steps)
	}
}
