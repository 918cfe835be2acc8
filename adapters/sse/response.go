package sse

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

const maxRetryAfter = 1<<31 - 1 // ms

// statusFailure reads a response that is no success (M-81).
func (c *Client) statusFailure(resp *http.Response, r io.Reader) error {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
	f := c.cfg.Explain(resp.StatusCode, body)
	e := llm.NewError(f.Code, "the service answered %d: %s", resp.StatusCode, c.Clean(f.Message, MaxMessage))
	e.Status = resp.StatusCode
	e.RequestID = c.requestID(resp.Header)
	e.ProviderRetryAfterMs = retryAfter(resp.Header, time.Now())
	return e
}

// InBand makes the error of a failure that is told within a stream.
func (c *Client) InBand(f llm.Failure) *llm.Error {
	e := llm.NewError(f.Code, "the service broke off: %s", c.Clean(f.Message, MaxMessage))
	if f.Status >= 100 && f.Status <= 599 {
		e.Status = f.Status
	}
	e.RequestID = c.Clean(f.RequestID, 100)
	return e
}

func (c *Client) requestID(h http.Header) string {
	for _, name := range c.cfg.RequestID {
		if id := h.Get(name); id != "" {
			return c.Clean(id, 100)
		}
	}
	return ""
}

// retryAfter reads the wait a service asks for: retry-after-ms, else
// retry-after in seconds or as a date; nil when there is none that makes sense.
func retryAfter(h http.Header, now time.Time) *int64 {
	number := func(s string, unit float64) *int64 {
		if strings.Trim(s, "0123456789.") != "" {
			return nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil
		}
		ms := int64(min(f*unit, maxRetryAfter))
		return &ms
	}
	if ms := number(strings.TrimSpace(h.Get("Retry-After-Ms")), 1); ms != nil {
		return ms
	}
	s := strings.TrimSpace(h.Get("Retry-After"))
	if ms := number(s, 1000); ms != nil {
		return ms
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return nil
	}
	ms := min(max(at.Sub(now).Milliseconds(), 0), maxRetryAfter)
	return &ms
}

// CodeOfStatus classifies an HTTP status that is no success, with what the body
// says.
func CodeOfStatus(status int, said string) seams.Code {
	switch {
	case status == 402, llm.IsQuotaExhausted(said) && status >= 400 && status < 500:
		return seams.Quota
	case status == 401, status == 403:
		return seams.Auth
	case status == 429:
		return seams.RateLimit
	case (status == 400 || status == 413) && llm.IsContextOverflow(said):
		return seams.ContextWindowExceeded
	case status == 400, status == 413:
		return seams.InvalidRequest
	case status >= 500 && status <= 599:
		return seams.Server
	}
	return seams.Code("HTTP_" + strconv.Itoa(status))
}

// eventStream looks at the head of the body and says whether it can be an
// event stream at all, by content type first. The returned reader still has
// the head before it.
func (c *Client) eventStream(resp *http.Response, body io.Reader) (*bufio.Reader, error) {
	r := bufio.NewReaderSize(body, 4096)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	head, err := r.Peek(2)
	if len(head) == 0 && err != nil {
		if err == io.EOF {
			return nil, llm.NewError(seams.EmptyResponse, "the service answered %d without a body", resp.StatusCode)
		}
		return nil, err
	}
	markup := kind == "text/html" || kind == "application/xhtml+xml" || head[0] == '<'
	switch {
	case markup:
		return nil, c.notAStream(resp, kind, "a web page", r)
	case bytes.Equal(head, []byte{0x1f, 0x8b}):
		return nil, c.notAStream(resp, kind, "compressed data without saying so", nil)
	case head[0] == '{':
		return nil, c.wholeJSON(resp, kind, r)
	}
	return r, nil
}

// wholeJSON makes a failure of a success that is one JSON object.
func (c *Client) wholeJSON(resp *http.Response, kind string, r io.Reader) error {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
	if f := c.cfg.Explain(resp.StatusCode, body); f.Code != "" {
		e := c.InBand(f)
		e.RequestID = c.requestID(resp.Header)
		return e
	}
	return c.notAStream(resp, kind, "one JSON value", bytes.NewReader(body))
}

func (c *Client) notAStream(resp *http.Response, kind, what string, r io.Reader) error {
	excerpt := ""
	if r != nil {
		head, _ := io.ReadAll(io.LimitReader(r, 4*MaxExcerpt))
		excerpt = ": " + c.Clean(string(head), MaxExcerpt)
	}
	if kind == "" {
		kind = "no content type"
	}
	e := llm.NewError(seams.MalformedResponse, "the service answered %d (%s) with %s, not with an event stream%s", resp.StatusCode, kind, what, excerpt)
	e.Status = resp.StatusCode
	e.RequestID = c.requestID(resp.Header)
	return e
}

// ReasonCode makes a code of an unknown finish reason (M-78).
func ReasonCode(reason string) seams.Code {
	s := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(reason))
	return seams.Code(s[:min(len(s), 40)])
}
