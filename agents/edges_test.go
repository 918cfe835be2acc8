package agents_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// A turn whose start or end the log refuses gives its run the log's error, and
// the next run one of its own.
func TestRunTellsTheLogsError(t *testing.T) {
	for _, typ := range []string{events.TurnStart.Name, events.TurnEnd.Name} {
		t.Run(typ, func(t *testing.T) {
			w := newWorld(t)
			w.agents = agents.New(agents.Deps{Bus: w.bus, LLM: w.llm, Tools: w.tools, Sessions: &flaky{Store: w.store, refuse: typ}, Prompt: w.prompt})
			a := w.agent()
			if r := ask(t, a, "x"); r.Subtype != agents.Errored || r.Error.Code != seams.InvalidEvent || !strings.Contains(r.Error.Message, "refused") {
				t.Errorf("%+v", r.Error)
			}
			if r := ask(t, a, "y"); r.IsError && strings.Contains(r.Error.Message, "refused") {
				t.Errorf("next run: %+v", r.Error)
			}
		})
	}
}

// A run whose message is refused, or whose context was over before, leaves alone
// what the agent does for others.
func TestRefusedRunCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.model.script(hang(nil))
		a := w.agent()
		must(t, a.Followup(t.Context(), llm.UserText("another's")))
		synctest.Wait()
		must(t, a.Followup(t.Context(), llm.UserText("another's next")))
		refused := llm.UserText("x")
		refused.Role = llm.System
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, m := range []llm.Message{refused, llm.UserText("x")} {
			if r := a.Run(gone, m); !r.IsError || r.NumTurns != 0 {
				t.Errorf("%+v", r)
			}
		}
		synctest.Wait()
		if turns, _ := a.Pending(); len(turns) != 1 || a.Status() != agents.Running {
			t.Errorf("%s, pending %v", a.Status(), shapes(turns))
		}
	})
}

// Agents that run each other in a ring do not wait for each other: the call that
// closes the ring fails.
func TestRingOfRunsWouldDeadlock(t *testing.T) {
	for _, ids := range [][]string{{"a", "b"}, {"a", "b", "c"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ring := map[string]*agents.Agent{}
			var codes []seams.Code
			var replies []reply
			for i := range ids {
				next := ids[(i+1)%len(ids)]
				w.tool("ask-"+next, func(ctx context.Context, _ map[string]any) (any, error) {
					r := ring[next].Run(ctx, llm.UserText("from the one before"))
					if r.Error != nil {
						codes = append(codes, r.Error.Code)
					}
					return r.Text, nil
				})
				ring[ids[i]] = w.agent(func(s *agents.Spec) { s.Header.ID = ids[i] })
				replies = append(replies, want(use("call-"+next, "ask-"+next, "")))
			}
			w.model.script(append(replies, say("done"))...)
			if r := ask(t, ring["a"], "go"); r.Subtype != agents.Success {
				t.Errorf("%+v", r)
			}
			if !slices.Equal(codes, []seams.Code{seams.WouldDeadlock}) {
				t.Errorf("%d agents: %v", len(ids), codes)
			}
		})
	}
}

// The call of a tool that does not exist goes back under a name that every
// provider takes.
func TestUnknownNameGoesBackAcceptable(t *testing.T) {
	accepted := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for _, called := range []string{"functions.search", "search the web!", "도구", strings.Repeat("a.", 100)} {
		w := newWorld(t)
		w.model.script(want(use("1", called, "{}")), say("done"))
		ask(t, w.agent(), "x")
		if name := w.model.asked()[1].Messages[1].Content.ToolCalls()[0].Name; !accepted.MatchString(name) {
			t.Errorf("%.20s: %q", called, name)
		}
	}
}

// An agent that ends while its session is announced is not announced itself.
func TestEndWhilePublished(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, ctx context.Context, a *agents.Agent, o *owner){
		"disposed by a listener": func(t *testing.T, ctx context.Context, a *agents.Agent, _ *owner) { must(t, a.Dispose(ctx)) },
		"with its owner": func(t *testing.T, _ context.Context, _ *agents.Agent, o *owner) {
			go o.dispose(t)
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				l := lifecycle(t, w)
				o := &owner{name: "creator", bus: w.bus}
				observe(t, w.owner, events.Created, func(ctx context.Context, s events.Session) {
					a, ok := w.agents.Get(nil, s.Header().ID)
					if !ok {
						t.Error("it is not found")
						return
					}
					end(t, ctx, a, o)
				})
				if _, err := w.agents.Create(t.Context(), o, main); seams.CodeOf(err) != seams.InactiveEffect {
					t.Errorf("got %v", err)
				}
				same(t, "announced", l.all(), []string{"session/created main", "session/disposed main"})
			})
		})
	}
}

// Tokens of attempts that failed are spent: they count against the limit, in the
// result and in a session that is resumed.
func TestFailedAttemptsAreSpent(t *testing.T) {
	w := newWorld(t)
	on(t, w.owner, agents.RequestFailed, func(context.Context, agents.RequestFailure, func(context.Context) (agents.Recovery, error)) (agents.Recovery, error) {
		if len(w.model.asked()) < 20 {
			return agents.Recovery{Kind: agents.Retry}, nil
		}
		return agents.Recovery{}, nil
	})
	w.model.script(chunks(llm.Usage{Usage: llm.TokenUsage{InputTokens: 100, OutputTokens: 1}},
		llm.Finish{Reason: llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Code: seams.EmptyResponse, Message: "empty"}}}))
	s := main
	s.Options.Limits.Tokens = 300
	a, err := w.agents.Create(t.Context(), w.owner, s)
	must(t, err)
	r := ask(t, a, "x")
	if n := len(w.model.asked()); n != 3 || r.Error == nil || r.Error.Code != seams.SpendLimit {
		t.Errorf("%d requests, %+v", n, r.Error)
	}
	same(t, "usage", r.Usage, llm.TokenUsage{InputTokens: 300, OutputTokens: 3})
	must(t, a.Dispose(t.Context()))
	a, err = w.agents.Resume(t.Context(), w.owner, s)
	must(t, err)
	if r := ask(t, a, "y"); len(w.model.asked()) != 3 || r.Error == nil || r.Error.Code != seams.SpendLimit {
		t.Errorf("resumed: %d requests, %+v", len(w.model.asked()), r.Error)
	}
}

// A reply of which nothing is kept, cut off within its only call, leaves word of
// that to the model.
func TestCutOffCallIsTold(t *testing.T) {
	w := newWorld(t)
	w.model.script(chunks(llm.BlockStart{Index: 0, BlockType: llm.KindToolCall}, llm.ToolCallDelta{Index: 0, ID: "c", Name: "write", ArgumentsDelta: `{"a`},
		llm.BlockEnd{Index: 0, Block: use("c", "write", `{"a`)}, finish(llm.MaxTokens)), say("ok"))
	a := w.agent()
	ask(t, a, "write it")
	ask(t, a, "did you?")
	same(t, "request", shapes(w.model.asked()[1].Messages), []string{"user: write it",
		"user: Your reply was cut off at its output limit; tool calls in it were not run.", "user: did you?"})
}

// An agent made of a log that ends within a call answers the call before it
// goes on.
func TestSeedWithOpenCall(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{})
	w.tool("slow", func(ctx context.Context, _ map[string]any) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.model.script(want(use("1", "slow", "{}")), say("ok"))
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	<-began
	seed := a.Session().Events(0)
	must(t, a.Dispose(t.Context()))
	b := w.agent(func(s *agents.Spec) { s.Header.ID, s.Seed = "b", seed })
	if r := ask(t, b, "y"); r.Subtype != agents.Success {
		t.Errorf("%+v", r.Error)
	}
	asked := w.model.asked()
	got := asked[len(asked)-1].Messages
	checkSendable(t, got)
	if s := shapes(got); len(s) != 4 || !strings.HasPrefix(s[2], "result 1!: ") || !strings.Contains(s[2], "[TOOL_OUTCOME_UNKNOWN]") || s[3] != "user: y" {
		t.Errorf("%q", s)
	}
}

// A stream of a listener that panics fails the turn, not the process.
func TestListenersStreamPanics(t *testing.T) {
	w := newWorld(t)
	_, err := llm.OnStream(w.owner, func(context.Context, *llm.Request, func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		return func(func(llm.Chunk, error) bool) { panic("on purpose") }, nil
	})
	must(t, err)
	if r := ask(t, w.agent(), "x"); r.Subtype != agents.Errored || r.Error.Code != seams.Panicked || !strings.Contains(r.Error.Message, "on purpose") {
		t.Errorf("%+v", r.Error)
	}
}

// A call that is done and waits for its turn to be reviewed does not keep its
// tool's owner from leaving, once the drain deadline has passed.
func TestUnloadBesideAWaitingReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		plugin := harness.NewBus().Owner("plugin", nil)
		done := make(chan struct{})
		_, err := w.tools.Register(plugin, tools.Definition{Name: "second", IsConcurrencySafe: func(any) bool { return true },
			Execute: func(context.Context, *tools.Exec, any) (any, error) { close(done); return "ok", nil }})
		must(t, err)
		w.tool("first", func(context.Context, map[string]any) (any, error) {
			<-done
			synctest.Wait() // second waits for this call
			closed := make(chan error, 1)
			go func() { closed <- plugin.Close(context.Background()) }()
			plugin.Cut()
			select {
			case err := <-closed:
				return "unloaded", err
			case <-time.After(time.Minute):
				return "the unload hangs", nil
			}
		}, parallel)
		w.model.script(want(use("c1", "first", ""), use("c2", "second", "")), say("done"))
		ask(t, w.agent(), "x")
		same(t, "results", shapes(w.model.asked()[1].Messages)[2:], []string{"result c1: unloaded", "result c2: ok"})
	})
}
