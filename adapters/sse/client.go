package sse

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Bounds of the texts that failures hold, in characters.
const (
	MaxExcerpt = 160
	MaxMessage = 400
)

const maxErrorBody = 64 << 10 // read of a body that explains a failure, bytes

// ClientConfig says where a model service is and how its failures read.
type ClientConfig struct {
	// Name of the adapter, for the texts of INVALID_ARGUMENT.
	Name string
	// BaseURL is the address with its version path, to which Path is appended.
	BaseURL, Path string
	// Own are the adapter's headers. Headers win over them, and Identity over
	// both.
	Own, Headers map[string]string
	Identity     llm.Identity
	// Secrets, the values of Headers among them, stand in no text.
	Secrets []string
	// Timeout bounds the wait for the head of a response, IdleTimeout the
	// silence between two reads of its body. Both are positive.
	Timeout, IdleTimeout time.Duration
	// MaxEventBytes bounds one event of the stream.
	MaxEventBytes int
	// RequestID names the headers that may hold the id of a request, the most
	// telling first.
	RequestID []string
	// Explain reads the body of a failed response, or the JSON object that came
	// in place of a stream: its code and message, and a status if the body
	// states one. Without a code, the object tells no failure. Its text is
	// cleaned by the Client.
	Explain func(status int, body []byte) llm.Failure
}

// Client posts requests to a model service that answers with event streams. It
// follows no redirect and never retries. Its failures are *llm.Error values in
// which no secret stands. It is safe for concurrent use.
type Client struct {
	// HTTP sends the requests; a test may replace its Transport.
	HTTP *http.Client

	cfg      ClientConfig
	endpoint string
	header   http.Header
}

// NewClient checks the configuration; it does no I/O. INVALID_ARGUMENT names
// the field at fault.
func NewClient(cfg ClientConfig) (*Client, error) {
	bad := func(format string, args ...any) (*Client, error) {
		return nil, seams.Errorf(seams.InvalidArgument, cfg.Name, format, args...)
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
	c := &Client{cfg: cfg, endpoint: base.JoinPath(cfg.Path).String(), header: http.Header{}}
	c.header.Set("Content-Type", "application/json")
	c.header.Set("Accept", "text/event-stream")
	for name, value := range cfg.Own {
		c.header.Set(name, value)
	}
	c.cfg.Secrets = slices.Clone(cfg.Secrets)
	for name, value := range cfg.Headers {
		switch {
		case !validHeader(name, value):
			return bad("headers: %q is not a valid header, or its value is not", name)
		case strings.EqualFold(name, "Accept-Encoding"):
			return bad("headers: leave Accept-Encoding out, compression is negotiated without it")
		}
		c.header.Set(name, value)
		c.cfg.Secrets = append(c.cfg.Secrets, value)
	}
	for name, value := range cfg.Identity.Headers() {
		c.header.Set(name, value)
	}
	c.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	return c, nil
}

func validHeader(name, value string) bool {
	const separators = "\"(),/:;<=>?@[\\]{} \t"
	printable := func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
	}
	return name != "" && printable(name) && !strings.ContainsAny(name, separators) && printable(value)
}

// Close drops idle connections. Replies that run are not touched.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Clean bounds a text that came from outside to max characters, and takes
// secrets out of it, should the service have sent them back.
func (c *Client) Clean(s string, max int) string {
	for _, secret := range c.cfg.Secrets {
		if len(secret) >= 6 {
			s = strings.ReplaceAll(s, secret, "[secret]")
		}
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	if r := []rune(s); len(r) > max {
		s = string(r[:max]) + "…"
	}
	return s
}

// Reply is the event stream of one response. It is for one goroutine and must
// be closed.
type Reply struct {
	c      *Client
	ctx    context.Context // the caller's
	run    context.Context
	cancel context.CancelCauseFunc
	body   io.Closer
	events *Reader
	rest   *time.Timer
	id     string
}

var errTimeout = errors.New("time limit")

// Post sends body and waits for a response that can be an event stream. Any
// other is a failure: that of the connection, of the status, or
// MALFORMED_RESPONSE and EMPTY_RESPONSE for a body of another kind.
func (c *Client) Post(ctx context.Context, body []byte) (*Reply, error) {
	r := &Reply{c: c, ctx: ctx}
	r.run, r.cancel = context.WithCancelCause(ctx)
	if err := r.open(body); err != nil {
		err = r.failure(err)
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reply) open(body []byte) error {
	req, err := http.NewRequestWithContext(r.run, http.MethodPost, r.c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = r.c.header.Clone()
	limit := time.AfterFunc(r.c.cfg.Timeout, r.expired)
	resp, err := r.c.HTTP.Do(req)
	limit.Stop()
	if err != nil {
		return err
	}
	r.body, r.id = resp.Body, r.c.requestID(resp.Header)
	idle := Idle(resp.Body, r.c.cfg.IdleTimeout, r.expired)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return r.c.statusFailure(resp, idle)
	}
	stream, err := r.c.eventStream(resp, idle)
	if err != nil {
		return err
	}
	r.events = NewReader(stream, r.c.cfg.MaxEventBytes)
	return nil
}

func (r *Reply) expired() { r.cancel(errTimeout) }

// Next returns the next event; io.EOF is the clean end of the body, any other
// error is an *llm.Error.
func (r *Reply) Next() (Event, error) {
	ev, err := r.events.Next()
	if err != nil && err != io.EOF {
		err = r.failure(err)
	}
	return ev, err
}

// RequestID is the id the service gave the request, "" if none.
func (r *Reply) RequestID() string { return r.id }

// Expire ends the reply with TIMEOUT after d, or after the idle limit if that
// is shorter, unless it is closed before. Calls after the first do nothing.
func (r *Reply) Expire(d time.Duration) {
	if r.rest == nil {
		r.rest = time.AfterFunc(min(d, r.c.cfg.IdleTimeout), r.expired)
	}
}

// Close releases the connection, whether or not the reply has been read.
func (r *Reply) Close() {
	if r.rest != nil {
		r.rest.Stop()
	}
	r.cancel(nil)
	if r.body != nil {
		_ = r.body.Close()
	}
}

// failure gives an error of sending or reading its code. One that has a code
// already passes.
func (r *Reply) failure(err error) error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case r.ctx.Err() != nil:
		return llm.NewError(seams.Aborted, "the request was cancelled: %w", context.Cause(r.ctx))
	case context.Cause(r.run) == errTimeout:
		return llm.NewError(seams.Timeout, "the service sent nothing within the time limit")
	case errors.Is(err, ErrTooLarge):
		return llm.NewError(seams.MalformedResponse, "%w of %d bytes", err, r.c.cfg.MaxEventBytes)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return llm.NewError(seams.MalformedResponse, "the reply's compression is broken: %w", err)
	}
	// The address may be told from the cause; the library's wrapper repeats it
	// whole.
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return llm.NewError(seams.Transport, "the connection to the service failed: %s", r.c.Clean(err.Error(), MaxMessage))
}
