package openai

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

const (
	maxErrorBody  = 64 << 10 // read of a body that explains a failure
	maxExcerpt    = 160
	maxMessage    = 400
	maxRetryAfter = 1<<31 - 1 // ms
)

// clean bounds a text that came from outside and takes secrets out of it,
// should the service have sent them back.
func (a *Adapter) clean(s string, max int) string {
	for _, secret := range a.secrets {
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

// connectionFailure gives an error of sending or reading its code. One that
// has a code already passes.
func (a *Adapter) connectionFailure(ctx, run context.Context, err error) error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case ctx.Err() != nil:
		return llm.NewError(seams.Aborted, "the request was cancelled: %w", context.Cause(ctx))
	case context.Cause(run) == errTimeout:
		return llm.NewError(seams.Timeout, "the service sent nothing within the time limit")
	case errors.Is(err, sse.ErrTooLarge):
		return llm.NewError(seams.MalformedResponse, "%w of %d bytes", err, a.cfg.MaxEventBytes)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return llm.NewError(seams.MalformedResponse, "the reply's compression is broken: %w", err)
	}
	// The address may be told from the cause; the library's wrapper repeats it
	// whole.
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return llm.NewError(seams.Transport, "the connection to the service failed: %s", a.clean(err.Error(), maxMessage))
}

// statusFailure reads a response that is no success (M-81).
func (a *Adapter) statusFailure(resp *http.Response, r io.Reader) error {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
	p := parseProblem(body)
	e := llm.NewError(codeOfStatus(resp.StatusCode, p), "the service answered %d: %s", resp.StatusCode, a.clean(p.message, maxMessage))
	e.Status = resp.StatusCode
	e.RequestID = a.requestID(resp.Header)
	e.ProviderRetryAfterMs = retryAfter(resp.Header, time.Now())
	return e
}

func (a *Adapter) requestID(h http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "X-Deepseek-Request-Id"} {
		if id := h.Get(name); id != "" {
			return a.clean(id, 100)
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

// problem is what a service says of a failure, in whatever form.
type problem struct {
	message string
	code    string // of "code" or, without one, "type"
	status  int    // a numeric code
}

// parseProblem reads the body of a failed response.
func parseProblem(body []byte) problem {
	var w struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &w) != nil {
		return problem{message: string(body)}
	}
	if given(w.Error) {
		return parseError(w.Error)
	}
	if w.Message == "" && given(w.Detail) {
		return problem{message: string(w.Detail)}
	}
	if w.Message == "" {
		return problem{message: string(body)}
	}
	return problem{message: w.Message}
}

// parseError reads the value of an "error" member.
func parseError(raw json.RawMessage) problem {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return problem{message: text}
	}
	var w struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Status  json.RawMessage `json:"status"`
	}
	if json.Unmarshal(raw, &w) != nil {
		return problem{message: string(raw)}
	}
	p := problem{message: w.Message}
	if p.message == "" {
		p.message = string(raw)
	}
	for _, code := range [...]json.RawMessage{w.Code, w.Status} {
		s := strings.Trim(string(code), `"`)
		if n, err := strconv.Atoi(s); err == nil && p.status == 0 {
			p.status = n
		} else if p.code == "" && given(code) {
			p.code = s
		}
	}
	if p.code == "" {
		p.code = w.Type
	}
	return p
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// codeOfStatus classifies an HTTP status with what the body says.
func codeOfStatus(status int, p problem) seams.Code {
	text := p.code + " " + p.message
	quota := llm.IsQuotaExhausted(text)
	switch {
	case status == 402, quota && status >= 400 && status < 500:
		return seams.Quota
	case status == 401, status == 403:
		return seams.Auth
	case status == 429:
		return seams.RateLimit
	case (status == 400 || status == 413) && llm.IsContextOverflow(text):
		return seams.ContextWindowExceeded
	case status == 400 && strings.Contains(p.code, "content_filter"):
		return seams.ContentFilter
	case status == 400, status == 413:
		return seams.InvalidRequest
	case status >= 500 && status <= 599:
		return seams.Server
	}
	return seams.Code("HTTP_" + strconv.Itoa(status))
}

// inBand classifies an error that arrives within a stream.
func (a *Adapter) inBand(p problem) *llm.Error {
	e := llm.NewError(inBandCode(p), "the service broke off: %s", a.clean(p.message, maxMessage))
	if p.status >= 100 && p.status <= 599 {
		e.Status = p.status
	}
	return e
}

func inBandCode(p problem) seams.Code {
	if p.status >= 400 && p.status <= 599 {
		return codeOfStatus(p.status, p)
	}
	text := p.code + " " + p.message
	says := func(marks ...string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(p.code, m) })
	}
	switch {
	case llm.IsQuotaExhausted(text):
		return seams.Quota
	case llm.IsContextOverflow(text):
		return seams.ContextWindowExceeded
	case says("rate_limit"):
		return seams.RateLimit
	case says("content_filter"):
		return seams.ContentFilter
	case says("invalid_api_key", "authentication", "permission"):
		return seams.Auth
	case says("invalid_request"):
		return seams.InvalidRequest
	}
	return seams.Server
}

// eventStream looks at the head of the body and says whether it can be an
// event stream at all, by content type first. The returned reader still has
// the head before it.
func (a *Adapter) eventStream(resp *http.Response, body io.Reader) (*bufio.Reader, error) {
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
		return nil, a.notAStream(resp, kind, "a web page", r)
	case bytes.Equal(head, []byte{0x1f, 0x8b}):
		return nil, a.notAStream(resp, kind, "compressed data without saying so", nil)
	case head[0] == '{':
		return nil, a.wholeJSON(resp, kind, r)
	}
	return r, nil
}

// wholeJSON makes a failure of a success that is one JSON object.
func (a *Adapter) wholeJSON(resp *http.Response, kind string, r *bufio.Reader) error {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
	var w struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &w) == nil && given(w.Error) {
		e := a.inBand(parseError(w.Error))
		e.RequestID = a.requestID(resp.Header)
		return e
	}
	return a.notAStream(resp, kind, "one JSON value", bufio.NewReader(bytes.NewReader(body)))
}

func (a *Adapter) notAStream(resp *http.Response, kind, what string, r *bufio.Reader) error {
	excerpt := ""
	if r != nil {
		head, _ := io.ReadAll(io.LimitReader(r, 4*maxExcerpt))
		excerpt = ": " + a.clean(string(head), maxExcerpt)
	}
	if kind == "" {
		kind = "no content type"
	}
	e := llm.NewError(seams.MalformedResponse, "the service answered %d (%s) with %s, not with an event stream%s", resp.StatusCode, kind, what, excerpt)
	e.Status = resp.StatusCode
	e.RequestID = a.requestID(resp.Header)
	return e
}
