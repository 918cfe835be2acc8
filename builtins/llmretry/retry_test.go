package llmretry_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins/agentloop"
	eventsplugin "github.com/ouro-run/ouro/builtins/events"
	llmplugin "github.com/ouro-run/ouro/builtins/llm"
	"github.com/ouro-run/ouro/builtins/llmretry"
	"github.com/ouro-run/ouro/builtins/tools"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service fails as it is told, then answers.
type service struct {
	mu     sync.Mutex
	fails  []llm.Failure
	policy llm.RetryPolicy
	asked  []llm.Request
}

func (s *service) RetryPolicy(string) llm.RetryPolicy { return s.policy }

func (s *service) Stream(_ context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		s.mu.Lock()
		s.asked = append(s.asked, req)
		var f *llm.Failure
		if n := len(s.asked); n <= len(s.fails) {
			f = &s.fails[n-1]
		}
		s.mu.Unlock()
		text := "fine"
		if f != nil {
			text = "half"
		}
		if !yield(llm.BlockStart{BlockType: llm.KindText}, nil) || !yield(llm.TextDelta{Text: text}, nil) {
			return
		}
		if f != nil {
			yield(nil, &llm.Error{Failure: *f})
			return
		}
		_ = yield(llm.BlockEnd{Block: llm.Text{Text: text}}, nil) && yield(llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}}, nil)
	}
}

type world struct {
	*testing.T
	service
	root    *cordis.Context
	retries *cordis.Fiber
	agent   *agents.Agent
	mu      sync.Mutex
	reports []string
}

// in runs f in a bubble of time, with an agent whose service fails so.
func in(t *testing.T, policy llm.RetryPolicy, fails []llm.Failure, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, service: service{fails: fails, policy: policy}}
		c := cordis.New(cordis.Options{Report: func(r cordis.Report) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, r.Err.Error())
		}})
		defer func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		w.root = c.Root()
		for _, p := range []*cordis.Plugin{llmplugin.Plugin(), tools.Plugin(), eventsplugin.Plugin(), {
			Name: "service", Inject: cordis.Inject("llm"), Apply: func(ctx *cordis.Context, _ any) error {
				reg, err := cordis.Get(ctx, llm.Key)
				if err == nil {
					_, err = reg.RegisterAdapter(ctx, llm.Registration{Entry: "service", Routes: []string{"service"}, Adapter: &w.service})
				}
				return err
			}}} {
			w.mount(p, nil)
		}
		w.retries = w.mount(llmretry.Plugin(), nil)
		loop := w.mount(agentloop.Plugin(t.TempDir()), map[string]any{"workspaceContext": false, "agents": []any{map[string]any{"id": "main", "provider": "service", "model": "m"}}})
		if err := errors.Join(c.Settle(t.Context()), loop.Err()); err != nil {
			t.Fatal(err)
		}
		l, _ := cordis.Lookup(w.root, agentloop.Key)
		var err error
		if w.agent, err = l.Agent(""); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

func (w *world) mount(p *cordis.Plugin, cfg any) *cordis.Fiber {
	w.Helper()
	f, err := w.root.Plugin(p, cfg)
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// run answers the result and how long it took.
func (w *world) run() (agents.Result, time.Duration) {
	began := time.Now()
	r := w.agent.Run(w.Context(), llm.UserText("hi"))
	return r, time.Since(began)
}

func logged[T any](w *world, typ events.Type[T]) (out []T) {
	w.Helper()
	for _, e := range w.agent.Session().Events(0) {
		if typ.Is(e) {
			d, err := typ.Decode(e)
			if err != nil {
				w.Fatal(err)
			}
			out = append(out, d)
		}
	}
	return
}

func (w *world) delays() (out []int64) {
	for _, r := range logged(w, llmretry.Scheduled) {
		out = append(out, r.DelayMs)
	}
	return
}

func failures(n int, code seams.Code) []llm.Failure {
	out := make([]llm.Failure, n)
	for i := range out {
		out[i] = llm.Failure{Code: code, Message: "no"}
	}
	return out
}

// steady is the default policy without chance.
func steady(change func(*llm.RetryPolicy)) llm.RetryPolicy {
	p := llm.DefaultRetryPolicy()
	p.Backoff.JitterRatio = 0
	if change != nil {
		change(&p)
	}
	return p
}

// M-60, M-61, M-62, M-63, M-68: a failed request is made again in its step,
// after exponential waits, each told in the log before it begins; what had come of
// it is in no later request.
func TestRetries(t *testing.T) {
	in(t, steady(nil), failures(5, seams.EmptyResponse), func(w *world) {
		r, took := w.run()
		if r.IsError || r.Text != "fine" || r.NumSteps != 1 || took != (500+1000+2000+4000+8000)*time.Millisecond {
			w.Errorf("%+v after %v", r, took)
		}
		if got := w.delays(); !reflect.DeepEqual(got, []int64{500, 1000, 2000, 4000, 8000}) {
			w.Errorf("delays %v", got)
		}
		for _, req := range w.asked {
			if len(req.Messages) != 1 || req.Messages[0].Content.Text() != "hi" {
				w.Errorf("asked with %+v", req.Messages)
			}
		}
		scheduled, started := logged(w, llmretry.Scheduled), logged(w, llmretry.Started)
		ids := map[string]bool{}
		for i, s := range scheduled {
			ids[s.RetryID] = true
			if s.Retry != i+1 || s.MaxRetries != 5 || s.Turn != 1 || s.Step != 1 || s.Provider != "service" || s.Mode != "normal" || s.Failure.Code != seams.EmptyResponse ||
				started[i] != (llmretry.Start{RetryID: s.RetryID, Turn: 1, Step: 1, Retry: i + 1}) {
				w.Errorf("%+v, %+v", s, started[i])
			}
		}
		if len(scheduled) != 5 || len(started) != 5 || len(ids) != 5 {
			w.Errorf("%d scheduled, %d started, %d ids", len(scheduled), len(started), len(ids))
		}
	})
}

// M-63: the budget of a step is MaxRetries; the failure is then the turn's.
func TestBudget(t *testing.T) {
	for most, asked := range map[int]int{0: 1, 2: 3} {
		in(t, steady(func(p *llm.RetryPolicy) { p.MaxRetries = most }), failures(9, seams.Server), func(w *world) {
			if r, _ := w.run(); !r.IsError || r.Error.Code != seams.Server || len(w.asked) != asked {
				w.Errorf("%d requests, %+v", len(w.asked), r.Error)
			}
			w.fails = append(w.fails, failures(1, seams.Server)...)
			if w.run(); len(w.asked) != 2*asked {
				w.Errorf("the next turn has made %d requests", len(w.asked)-asked)
			}
		})
	}
}

// M-65: what another try would not help is not tried.
func TestNotRetryable(t *testing.T) {
	in(t, steady(nil), failures(1, seams.Auth), func(w *world) {
		if r, took := w.run(); r.Error == nil || r.Error.Code != seams.Auth || took != 0 || len(w.delays()) != 0 {
			w.Errorf("%+v after %v", r, took)
		}
	})
}

// M-64: the wait a provider asks for is kept up to the policy's bound; beyond it a
// normal policy gives up, one that always retries waits as it would anyway.
func TestProviderWait(t *testing.T) {
	asks := func(ms int64) []llm.Failure {
		return []llm.Failure{{Code: seams.RateLimit, Message: "slow down", ProviderRetryAfterMs: &ms}}
	}
	in(t, steady(nil), asks(10_000), func(w *world) {
		if r, took := w.run(); r.IsError || took != 10*time.Second {
			w.Errorf("%+v after %v", r, took)
		}
	})
	in(t, steady(nil), asks(10_001), func(w *world) {
		if r, took := w.run(); r.Error == nil || r.Error.Code != seams.RateLimit || took != 0 {
			w.Errorf("%+v after %v", r, took)
		}
	})
	in(t, steady(func(p *llm.RetryPolicy) { p.Mode = llm.RetryAlways }), asks(10_001), func(w *world) {
		if r, took := w.run(); r.IsError || took != 500*time.Millisecond {
			w.Errorf("%+v after %v", r, took)
		}
	})
}

// M-67: always is without a bound, after whoever else may recover.
func TestAlways(t *testing.T) {
	always := steady(func(p *llm.RetryPolicy) { p.Mode, p.Backoff.MaxDelayMs = llm.RetryAlways, 500 })
	in(t, always, failures(40, seams.Auth), func(w *world) {
		if r, took := w.run(); r.IsError || took != 20*time.Second || logged(w, llmretry.Scheduled)[0].MaxRetries != 0 {
			w.Errorf("%+v after %v", r, took)
		}
	})
	in(t, always, failures(3, seams.Auth), func(w *world) {
		calls := 0
		_, err := agents.RequestFailed.On(w.root, func(context.Context, agents.RequestFailure, func(context.Context) (agents.Recovery, error)) (agents.Recovery, error) {
			if calls++; calls == 2 {
				return agents.Recovery{}, errors.New("recovery is broken")
			}
			return agents.Recovery{Kind: agents.Retry}, nil
		})
		if err != nil {
			w.Fatal(err)
		}
		if r, took := w.run(); r.IsError || took != 500*time.Millisecond || len(w.delays()) != 1 {
			w.Errorf("%+v after %v", r, took)
		}
		if len(w.reports) != 1 || !strings.Contains(w.reports[0], "recovery is broken") {
			w.Errorf("reported %q", w.reports)
		}
	})
}

// M-70: a cancel ends the wait, and the turn.
func TestCancelWhileWaiting(t *testing.T) {
	in(t, steady(nil), failures(1, seams.Server), func(w *world) {
		began := time.Now()
		time.AfterFunc(200*time.Millisecond, func() {
			_ = w.agent.Cancel(context.Background(), events.Cause{Kind: events.ByUser}, false)
		})
		r := w.agent.Run(w.Context(), llm.UserText("hi"))
		if r.Subtype != agents.Cancelled || time.Since(began) != 200*time.Millisecond || len(w.asked) != 1 || len(logged(w, llmretry.Started)) != 0 {
			w.Errorf("%+v after %v", r, time.Since(began))
		}
	})
}

// M-69: a plugin that leaves waits no longer, and retries nothing.
func TestLeavesWhileWaiting(t *testing.T) {
	in(t, steady(nil), failures(2, seams.Server), func(w *world) {
		began := time.Now()
		gone := make(chan error, 1)
		time.AfterFunc(200*time.Millisecond, func() { gone <- w.retries.Dispose().Wait(context.Background()) })
		r := w.agent.Run(w.Context(), llm.UserText("hi"))
		if r.Error == nil || r.Error.Code != seams.Server || time.Since(began) != 200*time.Millisecond || len(w.asked) != 1 {
			w.Errorf("%+v after %v", r, time.Since(began))
		}
		if err := <-gone; err != nil {
			w.Error(err)
		}
		if r, took := w.run(); r.Error == nil || took != 0 {
			w.Errorf("%+v after %v", r, took)
		}
	})
}

// M-71: the policy is the provider's.
func TestConfigIsEmpty(t *testing.T) {
	for raw, want := range map[string]string{"retryPolicy": "entry of the provider", "retries": "retries"} {
		_, err := llmretry.Plugin().Config.Resolve(map[string]any{raw: map[string]any{"mode": "always"}})
		if !errors.Is(err, seams.InvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []any{nil, map[string]any{}} {
		if _, err := llmretry.Plugin().Config.Resolve(raw); err != nil {
			t.Error(err)
		}
	}
}
