package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
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
	cfg      Config
	endpoint string
	header   http.Header
	client   *http.Client
	secrets  []string
}

// New checks the configuration; it does no I/O. INVALID_ARGUMENT names the
// field at fault, MISSING_CREDENTIAL and INVALID_CREDENTIAL speak of the key.
func New(cfg Config) (*Adapter, error) {
	bad := func(format string, args ...any) (*Adapter, error) {
		return nil, seams.Errorf(seams.InvalidArgument, "openai", format, args...)
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return bad("baseURL must be an http or https address with its version path, such as https://host/v1")
	}
	if base.User != nil {
		return bad("baseURL must not hold a user or password: use apiKey or headers")
	}
	if cfg.Timeout < 0 || cfg.IdleTimeout < 0 || cfg.MaxEventBytes < 0 {
		return bad("timeouts and bounds must not be negative")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.MaxEventBytes = cmp.Or(cfg.MaxEventBytes, sse.DefaultMaxEvent)
	cfg.Models = slices.Clone(cfg.Models)
	if cfg.RetryPolicy.Mode == "" {
		cfg.RetryPolicy = llm.DefaultRetryPolicy()
	}

	a := &Adapter{cfg: cfg, endpoint: base.JoinPath("chat/completions").String(), header: http.Header{}}
	a.header.Set("Content-Type", "application/json")
	a.header.Set("Accept", "text/event-stream")
	if cfg.APIKey != "" {
		key, err := llm.APIKey(cfg.APIKey)
		if err != nil {
			return nil, err
		}
		a.header.Set("Authorization", "Bearer "+key)
		a.secrets = append(a.secrets, key)
	}
	for name, value := range cfg.Headers {
		switch {
		case !validHeader(name, value):
			return bad("headers: %q is not a valid header, or its value is not", name)
		case strings.EqualFold(name, "Accept-Encoding"):
			return bad("headers: leave Accept-Encoding out, compression is negotiated without it")
		}
		a.header.Set(name, value)
		a.secrets = append(a.secrets, value)
	}
	for name, value := range cfg.Identity.Headers() {
		a.header.Set(name, value)
	}
	a.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	return a, nil
}

func validHeader(name, value string) bool {
	const separators = "\"(),/:;<=>?@[\\]{} \t"
	printable := func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
	}
	return name != "" && printable(name) && !strings.ContainsAny(name, separators) && printable(value)
}

// Close drops idle connections. Streams that run are not touched.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }

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

var errTimeout = errors.New("time limit")

// Stream sends the request and translates the reply.
func (a *Adapter) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		body, err := encode(req, a.cfg.Compat)
		if err != nil {
			yield(nil, err)
			return
		}
		run, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		resp, err := a.send(run, cancel, body)
		if err != nil {
			yield(nil, a.connectionFailure(ctx, run, err))
			return
		}
		defer resp.Body.Close()
		idle := sse.Idle(resp.Body, a.cfg.IdleTimeout, func() { cancel(errTimeout) })
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			yield(nil, a.statusFailure(resp, idle))
			return
		}
		t := &translator{emit: yield, a: a, toolsOffered: len(req.Tools) > 0}
		if err := a.read(resp, idle, t, func() { cancel(errTimeout) }); err != nil {
			t.fail(a.connectionFailure(ctx, run, err))
		}
	}
}

// send posts the body and waits for the response's head.
func (a *Adapter) send(ctx context.Context, cancel context.CancelCauseFunc, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = a.header.Clone()
	limit := time.AfterFunc(a.cfg.Timeout, func() { cancel(errTimeout) })
	defer limit.Stop()
	return a.client.Do(r)
}

// read translates the events of the body until the reply is complete.
func (a *Adapter) read(resp *http.Response, idle io.Reader, t *translator, expired func()) error {
	body, err := a.eventStream(resp, idle)
	if err != nil {
		return err
	}
	events := sse.NewReader(body, a.cfg.MaxEventBytes)
	var trailer *time.Timer
	for !t.done() {
		ev, err := events.Next()
		if err != nil {
			return t.end(err)
		}
		if err := t.event(ev); err != nil {
			return err
		}
		if t.reason != "" && trailer == nil {
			trailer = time.AfterFunc(min(a.cfg.IdleTimeout, trailerWait), expired)
			defer trailer.Stop()
		}
	}
	if t.left {
		return nil
	}
	return t.complete()
}
