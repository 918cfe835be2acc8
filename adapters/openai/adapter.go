package openai

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams/llm"
)

// Defaults of Config.
const (
	DefaultTimeout     = 5 * time.Minute
	DefaultIdleTimeout = 5 * time.Minute
)

// trailerWait bounds the wait for usage and the end mark once the finish
// reason has been seen.
const trailerWait = 10 * time.Second

// Config says where the service is and how to speak to it. Zero values mean
// the default.
type Config struct {
	// BaseURL is the address with its version path; "/chat/completions" is
	// appended to it. Required.
	BaseURL string
	// APIKey is sent as a bearer token; a service that needs none has "".
	APIKey string
	// Models is the catalogue. Models that are not in it can be asked for too.
	Models []llm.ModelInfo
	// Headers are sent with each request and win over the adapter's own, but
	// not over those of Identity.
	Headers map[string]string
	// Timeout bounds the wait for the head of the response.
	Timeout time.Duration
	// IdleTimeout bounds the silence between two reads of the body.
	IdleTimeout time.Duration
	// MaxEventBytes bounds one event of the stream.
	MaxEventBytes int
	Compat        Compat
	// RetryPolicy is for whoever retries; the adapter never does.
	RetryPolicy llm.RetryPolicy
	// Identity is what the service is told about this program.
	Identity llm.Identity
	// Warn is told of replies that are right in form but odd; it may be nil.
	Warn func(text string)
}

// Compat states what a service does differently.
type Compat struct {
	// SendReasoning sends the reasoning of earlier assistant messages back, as
	// reasoning_content; one with tool calls and no known reasoning gets an
	// empty one. Some services demand it, others refuse it.
	SendReasoning bool
	// KeepThinkTags leaves <think> tags in the text.
	KeepThinkTags bool
}

// Adapter is the adapter. It implements llm.Adapter, llm.Catalogue,
// llm.ModelResolver and llm.RetryPolicied.
type Adapter struct {
	cfg    Config
	client *sse.Client
}

// New checks the configuration; it does no I/O. INVALID_ARGUMENT names the
// field at fault, MISSING_CREDENTIAL and INVALID_CREDENTIAL speak of the key.
func New(cfg Config) (*Adapter, error) {
	cfg.Models = slices.Clone(cfg.Models)
	if cfg.RetryPolicy.Mode == "" {
		cfg.RetryPolicy = llm.DefaultRetryPolicy()
	}
	c := sse.ClientConfig{
		Name: "openai", BaseURL: cfg.BaseURL, Path: "chat/completions",
		Own: map[string]string{}, Headers: cfg.Headers, Identity: cfg.Identity,
		Timeout:       cmp.Or(cfg.Timeout, DefaultTimeout),
		IdleTimeout:   cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout),
		MaxEventBytes: cmp.Or(cfg.MaxEventBytes, sse.DefaultMaxEvent),
		RequestID:     []string{"X-Request-Id", "X-Deepseek-Request-Id"},
		Explain:       explain,
	}
	if cfg.APIKey != "" {
		key, err := llm.APIKey(cfg.APIKey)
		if err != nil {
			return nil, err
		}
		c.Own["Authorization"] = "Bearer " + key
		c.Secrets = []string{key}
	}
	client, err := sse.NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Adapter{cfg: cfg, client: client}, nil
}

// Close drops idle connections. Streams that run are not touched.
func (a *Adapter) Close() { a.client.Close() }

// ListModels returns the configured catalogue.
func (a *Adapter) ListModels(_ context.Context, route string) ([]llm.ModelInfo, error) {
	out := slices.Clone(a.cfg.Models)
	for i := range out {
		out[i] = described(out[i], route)
	}
	return out, nil
}

// ResolveModel returns the model of the catalogue, or one of which no more
// than the name is known.
func (a *Adapter) ResolveModel(_ context.Context, route, model string) (llm.ModelInfo, error) {
	for _, m := range a.cfg.Models {
		if m.ID == model {
			return described(m, route), nil
		}
	}
	return described(llm.ModelInfo{ID: model}, route), nil
}

// RetryPolicy implements [llm.RetryPolicied].
func (a *Adapter) RetryPolicy(string) llm.RetryPolicy { return a.cfg.RetryPolicy }

func described(m llm.ModelInfo, route string) llm.ModelInfo {
	m.Provider = route
	if m.InputModalities == nil {
		m.InputModalities = []string{"text"} // what encode can write
	}
	if m.Name == "" {
		m.Name = m.ID
	}
	return m
}

// Stream sends the request and translates the reply.
func (a *Adapter) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		body, err := encode(req, a.cfg.Compat)
		if err != nil {
			yield(nil, err)
			return
		}
		reply, err := a.client.Post(ctx, body)
		if err != nil {
			yield(nil, err)
			return
		}
		defer reply.Close()
		t := &translator{emit: yield, a: a, toolsOffered: len(req.Tools) > 0}
		if err := read(reply, t); err != nil {
			t.fail(err)
		}
	}
}

// read translates the events of the reply until it is complete.
func read(reply *sse.Reply, t *translator) error {
	for !t.done() {
		ev, err := reply.Next()
		if err != nil {
			return t.end(err)
		}
		if err := t.event(ev); err != nil {
			return err
		}
		if t.reason != "" {
			reply.Expire(trailerWait)
		}
	}
	if t.left {
		return nil
	}
	return t.complete()
}
