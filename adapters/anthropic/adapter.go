package anthropic

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

// DefaultMaxTokens is the limit of output tokens, thinking included, for a
// model of which none is known.
const DefaultMaxTokens = 32000

// version is the API's, as its header names it.
const version = "2023-06-01"

// Config says where the service is and how to speak to it. Zero values mean
// the default.
type Config struct {
	// BaseURL is the address with its version path; "/messages" is appended to
	// it. Required.
	BaseURL string
	// APIKey is sent as x-api-key; a service that needs none has "".
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
}

// Compat states what a model does differently.
type Compat struct {
	// AdaptiveThinking sends the reasoning effort by name, for models that
	// refuse a budget of thinking tokens.
	AdaptiveThinking bool
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
		Name: "anthropic", BaseURL: cfg.BaseURL, Path: "messages",
		Own: map[string]string{"anthropic-version": version}, Headers: cfg.Headers, Identity: cfg.Identity,
		Timeout:       cmp.Or(cfg.Timeout, DefaultTimeout),
		IdleTimeout:   cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout),
		MaxEventBytes: cmp.Or(cfg.MaxEventBytes, sse.DefaultMaxEvent),
		RequestID:     []string{"request-id", "x-request-id"},
		Explain:       explain,
	}
	if cfg.APIKey != "" {
		key, err := llm.APIKey(cfg.APIKey)
		if err != nil {
			return nil, err
		}
		c.Own["x-api-key"] = key
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
// than the name and the default limit of output is known.
func (a *Adapter) ResolveModel(_ context.Context, route, model string) (llm.ModelInfo, error) {
	return described(a.model(model), route), nil
}

func (a *Adapter) model(id string) llm.ModelInfo {
	for _, m := range a.cfg.Models {
		if m.ID == id {
			return m
		}
	}
	return llm.ModelInfo{ID: id}
}

// RetryPolicy implements [llm.RetryPolicied].
func (a *Adapter) RetryPolicy(string) llm.RetryPolicy { return a.cfg.RetryPolicy }

func described(m llm.ModelInfo, route string) llm.ModelInfo {
	m.Provider = route
	m.Name = cmp.Or(m.Name, m.ID)
	m.MaxTokens = cmp.Or(m.MaxTokens, DefaultMaxTokens)
	if m.InputModalities == nil {
		m.InputModalities = []string{"text"} // what encode can write
	}
	return m
}

// Stream sends the request and translates the reply.
func (a *Adapter) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		if req.MaxTokens == 0 {
			req.MaxTokens = described(a.model(req.Model), "").MaxTokens
		}
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
		t := &translator{emit: yield, client: a.client, requestID: reply.RequestID()}
		for !t.done() {
			ev, err := reply.Next()
			if err == nil {
				err = t.event(ev)
			} else {
				err = ended(err)
			}
			if err != nil {
				t.fail(err)
				return
			}
		}
		if err := t.complete(); err != nil {
			t.fail(err)
		}
	}
}
