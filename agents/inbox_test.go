package agents_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

//
func TestIdleInject(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	note := llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: "p", Form: "notice", Summary: "s", Extra: map[string]jsonRaw{"x": jsonRaw(`[1]`)}}, llm.Text{Text: "note"})
	must(t, a.Inject(t.Context(), note))
	must(t, a.WhenIdle(t.Context()))
	if len(w.model.asked()) != 0 || a.Session().State().Turn != 0 {
		t.Fatal("it woke the agent")
	}
	ask(t, a, "hi")
	same(t, "request", w.model.asked()[0].Messages[0], note)
	same(t, "request", shapes(w.model.asked()[0].Messages), []string{"user: note", "user: hi"})
}

//
func TestSteer(t *testing.T) {
	w := newWorld(t)
	w.tool("look", echo("seen"))
	var a *agents.Agent
	w.model.script(func(ctx context.Context, r llm.Request) llm.Stream {
		must(t, a.Steer(ctx, llm.UserText("and this")))
		must(t, a.Followup(ctx, llm.UserText("a turn of its own")))
		return want(use("c1", "look", ""))(ctx, r)
	}, say("done"))
	a = w.agent()
	must(t, a.Steer(t.Context(), llm.UserText("opens a turn")))
	must(t, a.WhenIdle(t.Context()))
	same(t, "history", shapes(a.Session().Messages()), []string{
		"user: opens a turn", "assistant: (c1)", "result c1: seen", "user: and this", "assistant: done", "user: a turn of its own", "assistant: done",
	})
	if n := a.Session().State().Turn; n != 2 {
		t.Errorf("%d turns", n)
	}
}

// what is injected while a tool runs comes after its result.
func TestInjectDuringTool(t *testing.T) {
	w := newWorld(t)
	w.tool("look", func(ctx context.Context, _ map[string]any) (any, error) {
		a, _ := agents.From(ctx)
		return "seen", a.Inject(ctx, llm.UserText("note"))
	})
	w.model.script(want(use("c1", "look", "")), say("done"))
	a := w.agent()
	ask(t, a, "x")
	same(t, "request", shapes(w.model.asked()[1].Messages), []string{"user: x", "assistant: (c1)", "result c1: seen", "user: note"})
}

//
func TestReplaceAndRemove(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	one, two, three := llm.UserText("one"), llm.UserText("two"), llm.UserText("three")
	must(t, a.Inject(t.Context(), one, two))
	must(t, a.Replace(t.Context(), one.ID, three))
	for _, c := range []struct {
		err  error
		code seams.Code
	}{
		{a.Replace(t.Context(), one.ID, llm.UserText("x")), seams.NotFound},
		{a.Remove(t.Context(), one.ID), seams.NotFound},
		{a.Replace(t.Context(), two.ID, three), seams.Duplicate},
		{a.Inject(t.Context(), two), seams.Duplicate},
		{a.Followup(t.Context(), two), seams.Duplicate},
		{a.Inject(t.Context(), one, one), seams.Duplicate},
		{a.Replace(t.Context(), two.ID, llm.Message{}), seams.InvalidArgument},
		{a.Inject(t.Context(), llm.Message{Role: llm.User, Source: llm.Source{Kind: llm.FromUser}}), seams.InvalidArgument},
		{a.Inject(t.Context(), llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromUser})), seams.InvalidArgument},
		{a.Inject(t.Context(), llm.NewMessage(llm.User, llm.Source{Kind: llm.FromModel})), seams.InvalidArgument},
		{a.Inject(t.Context(), llm.NewMessage(llm.User, llm.Source{Kind: llm.FromUser}, use("c", "n", ""))), seams.InvalidArgument},
		{a.Inject(t.Context(), llm.NewToolResult("c", false)), seams.InvalidArgument},
	} {
		if !errors.Is(c.err, c.code) {
			t.Errorf("got %v, want %s", c.err, c.code)
		}
	}
	must(t, a.Replace(t.Context(), three.ID, three)) // itself
	must(t, a.Remove(t.Context(), two.ID))
	must(t, a.Inject(t.Context())) // nothing
	_, steps := a.Pending()
	same(t, "pending", shapes(steps), []string{"user: three"})
	if a.Session().State().Turn != 0 {
		t.Error("it woke the agent")
	}
}

//
func TestRefusedSplice(t *testing.T) {
	w := newWorld(t)
	f := &flaky{Store: w.store, refuse: events.InboxSpliced.Name}
	w.agents = agents.New(agents.Deps{Bus: w.bus, LLM: w.llm, Tools: w.tools, Sessions: f, Prompt: w.prompt})
	a := w.agent()
	m := llm.UserText("x")
	if err := a.Followup(t.Context(), m); !errors.Is(err, seams.InvalidEvent) {
		t.Fatalf("got %v", err)
	}
	must(t, a.WhenIdle(t.Context()))
	if turns, steps := a.Pending(); len(turns)+len(steps) > 0 || a.Session().Len() > 0 || a.Status() != agents.Idle {
		t.Error("something changed")
	}
	must(t, a.Followup(t.Context(), m)) // the id is free
	must(t, a.WhenIdle(t.Context()))
}

// an inbox that the log contradicts is not guessed at.
func TestInvalidDurableSplice(t *testing.T) {
	m := llm.UserText("x")
	for name, splices := range map[string][]events.Splice{
		"beyond the end": {{Target: events.NextTurn, Start: 1}},
		"removes none":   {{Target: events.NextStep, RemovedCount: 1}},
		"twice":          {{Target: events.NextStep, Inserted: []llm.Message{m}}, {Target: events.NextTurn, Inserted: []llm.Message{m}}},
	} {
		w := newWorld(t)
		s, err := events.Create(t.Context(), w.store, events.Spec{Header: events.Header{ID: "main"}})
		must(t, err)
		for _, sp := range splices {
			if sp.Inserted == nil {
				sp.Inserted = []llm.Message{}
			}
			_, err := s.Append(t.Context(), events.InboxSpliced.New(sp))
			must(t, err)
		}
		must(t, s.Close(t.Context()))
		_, err = w.agents.Resume(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions})
		if !errors.Is(err, seams.InvalidEvent) || !strings.Contains(err.Error(), fmt.Sprintf("event %d", len(splices)-1)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Events of the inbox come in the order of its changes.
func TestInboxEvents(t *testing.T) {
	w := newWorld(t)
	var seen []string
	note := func(what string) func(context.Context, agents.ItemNotice) {
		return func(_ context.Context, n agents.ItemNotice) {
			seen = append(seen, fmt.Sprint(what, " ", n.Message.Content.Text(), " ", n.Turn))
		}
	}
	observe(t, w.owner, agents.Inserted, note("in"))
	observe(t, w.owner, agents.Claimed, note("claimed"))
	observe(t, w.owner, agents.Discarded, note("out"))
	a := w.agent()
	m := llm.UserText("a")
	must(t, a.Inject(t.Context(), m))
	must(t, a.Replace(t.Context(), m.ID, llm.UserText("b")))
	ask(t, a, "c")
	same(t, "events", seen, []string{"in a 0", "out a 0", "in b 0", "in c 0", "claimed b 1", "claimed c 1"})
}

// whatever is sent at once by whomever gets exactly one turn each, turns
// count up, and the inbox is what its log adds up to at any time.
func TestBurstOfSends(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(quiet{t})
		defer w.owner.dispose(t)
		a := w.agent()
		n := rapid.IntRange(1, 12).Draw(r, "messages")
		senders := rapid.IntRange(1, 4).Draw(r, "senders")
		var wg sync.WaitGroup
		sent := make([]llm.Message, n)
		for i := range sent {
			sent[i] = llm.UserText(fmt.Sprint(i))
		}
		for s := range senders {
			wg.Go(func() {
				for i := s; i < n; i += senders {
					must(t, a.Followup(context.Background(), sent[i]))
				}
			})
		}
		wg.Wait()
		must(t, a.WhenIdle(context.Background()))
		var claimed []string
		starts, ends := pick(t, a, events.TurnStart), pick(t, a, events.TurnEnd)
		for _, m := range pick(t, a, events.UserMessage) {
			claimed = append(claimed, m.Message.ID)
		}
		if len(starts) != n || len(ends) != n || len(claimed) != n {
			r.Fatalf("%d messages, %d turns, %d ends, %d claimed", n, len(starts), len(ends), len(claimed))
		}
		for i := range starts {
			if starts[i].Turn != i+1 || ends[i].Turn != i+1 {
				r.Fatalf("turn %d is %d … %d", i+1, starts[i].Turn, ends[i].Turn)
			}
		}
		for _, m := range sent {
			if !slices.Contains(claimed, m.ID) {
				r.Fatalf("%s was lost", m.Content.Text())
			}
		}
	})
}

// quiet is a test that leaves cleaning up to whoever runs many worlds in it.
type quiet struct{ testing.TB }

func (quiet) Cleanup(func()) {}
