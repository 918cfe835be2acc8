package llmretry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// Events of a session's log.
var (
	// Scheduled is logged before the wait (M-60).
	Scheduled = events.Type[Retry]{Name: "llm/retry", Ignorable: true}
	// Started is logged when the wait is over and the request is about to be made.
	Started = events.Type[Start]{Name: "llm/retry-started", Ignorable: true}
)

// Retry is the data of [Scheduled]. Retry counts from 1 among those of the same
// turn, step, provider and policy.
type Retry struct {
	RetryID    string      `json:"retryId"`
	Turn       int         `json:"turn"`
	Step       int         `json:"step"`
	Provider   string      `json:"provider"`
	Mode       string      `json:"mode"`
	PolicyKey  string      `json:"policyKey"`
	Retry      int         `json:"retry"`
	MaxRetries int         `json:"maxRetries,omitempty"` // of mode normal
	DelayMs    int64       `json:"delayMs"`
	Failure    llm.Failure `json:"failure"`
}

// Start is the data of [Started].
type Start struct {
	RetryID string `json:"retryId"`
	Turn    int    `json:"turn"`
	Step    int    `json:"step"`
	Retry   int    `json:"retry"`
}

// Plugin returns the plugin.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "llm-retry", Config: noConfig{},
		Apply: func(ctx *cordis.Context, _ any) error {
			r := &retrier{ctx}
			_, err := agents.RequestFailed.On(ctx, r.recover)
			return err
		},
	}
}

// noConfig refuses a policy with where it belongs (M-71).
type noConfig struct{}

var empty = schema.Object(nil)

func (noConfig) Resolve(raw any) (any, error) {
	if m, ok := raw.(map[string]any); ok && m["retryPolicy"] != nil {
		return nil, seams.Errorf(seams.InvalidConfig, "llm-retry", "retryPolicy belongs to the entry of the provider, whose requests it is about: move it there")
	}
	return empty.Resolve(raw)
}

// JSONSchema describes the configuration to editors.
func (noConfig) JSONSchema() map[string]any { return empty.JSONSchema() }

type retrier struct{ ctx *cordis.Context }

type next = func(context.Context) (agents.Recovery, error)

func (r *retrier) recover(ctx context.Context, f agents.RequestFailure, next next) (agents.Recovery, error) {
	p := f.RetryPolicy
	if p == nil {
		return next(ctx)
	}
	if p.Mode == llm.RetryAlways {
		found, err := next(ctx)
		if err != nil {
			r.ctx.Report("listener", agents.RequestFailed.Name, err)
		}
		if err == nil && found.Kind == agents.Retry {
			return found, nil
		}
		next = func(context.Context) (agents.Recovery, error) { return agents.Recovery{}, nil }
	} else if !slices.Contains(p.RetryableCodes, f.Failure.Code) {
		return next(ctx)
	}
	key, err := json.Marshal(p)
	if err != nil {
		return agents.Recovery{}, err
	}
	n := 1 + r.count(f, string(key))
	if p.Mode == llm.RetryNormal && n > p.MaxRetries {
		return next(ctx)
	}
	delay, ok := p.Delay(n, f.Failure.ProviderRetryAfterMs, mathrand.Float64())
	if !ok {
		return next(ctx)
	}
	return r.retry(ctx, f, Retry{
		RetryID: rand.Text(), Turn: f.Turn, Step: f.Step, Provider: f.Provider, Mode: p.Mode, PolicyKey: string(key),
		Retry: n, MaxRetries: most(p), DelayMs: delay.Milliseconds(), Failure: f.Failure,
	}, delay)
}

func most(p *llm.RetryPolicy) int {
	if p.Mode == llm.RetryAlways {
		return 0
	}
	return p.MaxRetries
}

// count is how many retries of this step the log has under this policy (M-66).
func (r *retrier) count(f agents.RequestFailure, key string) int {
	n := 0
	log := f.Agent.Session().Events(0)
	for _, e := range slices.Backward(log) {
		if events.StepStart.Is(e) {
			break // a retry stands in the step it is of
		}
		if !Scheduled.Is(e) {
			continue
		}
		if d, err := Scheduled.Decode(e); err == nil && d.Turn == f.Turn && d.Step == f.Step && d.Provider == f.Provider && d.PolicyKey == key {
			n++
		}
	}
	return n
}

// retry waits. A turn that is cancelled and a plugin that leaves end the wait
// without a retry (M-69, M-70).
func (r *retrier) retry(ctx context.Context, f agents.RequestFailure, d Retry, delay time.Duration) (agents.Recovery, error) {
	s := f.Agent.Session()
	if _, err := s.Append(context.WithoutCancel(ctx), Scheduled.New(d)); err != nil {
		return agents.Recovery{}, err
	}
	wait := time.NewTimer(delay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	case <-r.ctx.Leaving():
	}
	select {
	case <-r.ctx.Leaving():
		return agents.Recovery{}, nil
	default:
	}
	if ctx.Err() != nil {
		return agents.Recovery{}, nil
	}
	if _, err := s.Append(ctx, Started.New(Start{d.RetryID, d.Turn, d.Step, d.Retry})); err != nil {
		return agents.Recovery{}, err
	}
	return agents.Recovery{Kind: agents.Retry}, nil
}
