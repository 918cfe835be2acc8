package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// Key is the service.
var Key = seams.Key[*Client]{Name: "http"}

// Config bounds a client. Zero fields mean the defaults.
type Config struct {
	Timeout time.Duration // until the headers are there; 60 s
	Idle    time.Duration // between two pieces of a body; 120 s
	MaxBody int64         // bytes of a body; 64 MiB
}

// Client sends requests.
type Client struct {
	cfg  Config
	http *http.Client
}

const maxRedirects = 10

// New makes a client.
func New(cfg Config) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	if cfg.Idle == 0 {
		cfg.Idle = 120 * time.Second
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 64 << 20
	}
	return &Client{cfg, &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: redirect,
	}}
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return seams.Errorf(seams.Transport, "", "more than %d redirects", maxRedirects)
	}
	if err := sendable(req.URL); err != nil {
		return err
	}
	if req.URL.Host != via[0].URL.Host {
		for name := range req.Header {
			switch name {
			case "Accept", "Accept-Language", "Content-Type", "User-Agent":
			default:
				req.Header.Del(name)
			}
		}
	}
	return nil
}

func sendable(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return seams.Errorf(seams.InvalidArgument, "", "the scheme %q is not available: only http and https", u.Scheme)
	case u.Host == "":
		return seams.Errorf(seams.InvalidArgument, "", "the URL names no host")
	case u.User != nil:
		return seams.Errorf(seams.InvalidArgument, "", "the URL holds credentials: send them in a header")
	}
	return nil
}

// Fetch carries out a request and answers when the headers are there. It is a
// sandbox.Fetch.
func (c *Client) Fetch(ctx context.Context, r *sandbox.Request) (*sandbox.Response, error) {
	u, err := url.Parse(r.URL)
	if err == nil {
		err = sendable(u)
	} else {
		err = seams.Errorf(seams.InvalidArgument, "", "the URL cannot be read")
	}
	if err == nil && (strings.EqualFold(r.Method, "CONNECT") || strings.EqualFold(r.Method, "TRACE")) {
		err = seams.Errorf(seams.InvalidArgument, "", "the method %s is not available", r.Method)
	}
	if err != nil {
		return nil, describe(r.Method, u, err)
	}
	run, cancel := context.WithCancelCause(ctx)
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(run, r.Method, r.URL, body)
	if err != nil {
		cancel(nil)
		return nil, seams.Errorf(seams.InvalidArgument, "fetch", "the method %q is not valid", r.Method)
	}
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	late := func(limit time.Duration, what string) *time.Timer {
		return time.AfterFunc(limit, func() {
			cancel(seams.Errorf(seams.Timeout, "", "%s within %v", what, limit))
		})
	}
	timer := late(c.cfg.Timeout, "no response came")
	resp, err := c.http.Do(req)
	timer.Stop()
	if err != nil {
		err = describe(r.Method, u, cause(run, err))
		cancel(nil)
		return nil, err
	}
	return &sandbox.Response{
		Status: resp.StatusCode, StatusText: strings.TrimSpace(strings.TrimPrefix(resp.Status, resp.Status[:min(3, len(resp.Status))])),
		URL: resp.Request.URL.String(), Header: resp.Header,
		Body: &transfer{from: resp.Body, ctx: run, cancel: cancel, left: c.cfg.MaxBody, max: c.cfg.MaxBody, idle: c.cfg.Idle,
			timer: late(c.cfg.Idle, "nothing of the body came"), name: func(err error) error { return describe(r.Method, u, err) }},
	}, nil
}

// cause is why a transfer ended: the cause of its context if that has one.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL, whose query may hold a secret
	}
	return err
}

// describe gives an error a code and says which request it was.
func describe(method string, u *url.URL, err error) error {
	code := seams.CodeOf(err)
	if code == seams.Unknown {
		code = seams.Transport
	}
	if errors.Is(err, context.Canceled) {
		code = seams.Aborted
	} else if errors.Is(err, context.DeadlineExceeded) {
		code = seams.Timeout
	}
	where := ""
	if u != nil {
		where = u.Host + u.Path
	}
	msg := err.Error()
	if e := (*seams.Error)(nil); errors.As(err, &e) {
		msg = e.Msg
	}
	return &seams.Error{Code: code, Op: "fetch", Msg: method + " " + where + ": " + msg, Err: err}
}
