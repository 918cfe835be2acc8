package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// hostile is an error whose methods panic.
type hostile struct{}

func (hostile) Error() string { panic("no text") }
func (hostile) Unwrap() error { panic("no cause") }

// loop is an error that is its own cause.
type loop struct{}

func (l *loop) Error() string { return "loop" }
func (l *loop) Unwrap() error { return l }

// M-43
func TestError(t *testing.T) {
	cause := errors.New("refused")
	err := llm.NewError(seams.Transport, "cannot connect: %w", cause)
	if !errors.Is(err, seams.Transport) || errors.Is(err, seams.Server) || !errors.Is(err, cause) || seams.CodeOf(err) != seams.Transport {
		t.Error(err)
	}
	if seams.CodeOf(fmt.Errorf("outer: %w", err)) != seams.Transport {
		t.Error("the code is lost in a wrapper")
	}
	var e *seams.Error
	if !errors.As(err, &e) || e.Msg != "cannot connect: refused" || e.Err != cause {
		t.Errorf("%+v", e)
	}
}

// M-20, M-43, M-51
func TestFailureOf(t *testing.T) {
	wait := int64(5)
	bad := int64(-5)
	facts := llm.Failure{Message: "m", Code: seams.RateLimit, Status: 429, ProviderRetryAfterMs: &wait, RequestID: "r"}
	for _, c := range []struct {
		name string
		err  error
		want llm.Failure
	}{
		{"facts", &llm.Error{Failure: facts}, facts},
		{"facts in a wrapper", fmt.Errorf("x: %w", &llm.Error{Failure: facts}), facts},
		{"facts under another code", seams.Errorf(seams.ApplyFailed, "op", "y: %w", &llm.Error{Failure: facts}), llm.Failure{Message: "op: y: m [RATE_LIMIT] [APPLY_FAILED]", Code: seams.ApplyFailed}},
		{"facts that are not valid", &llm.Error{Failure: llm.Failure{Message: "m", Status: 7, ProviderRetryAfterMs: &bad}}, llm.Failure{Message: "m", Code: seams.Unknown}},
		{"a code", seams.Errorf(seams.Auth, "", "no"), llm.Failure{Message: "no [AUTH]", Code: seams.Auth}},
		{"a bare code", seams.Server, llm.Failure{Message: "SERVER", Code: seams.Server}},
		{"no code", fmt.Errorf("a: %w", errors.New("b")), llm.Failure{Message: "a: b", Code: seams.Unknown}},
		{"cancelled", fmt.Errorf("read: %w", context.Canceled), llm.Failure{Message: "read: context canceled", Code: seams.Aborted}},
		{"joined", errors.Join(errors.New("a"), seams.Errorf(seams.Quota, "", "b")), llm.Failure{Message: "a\nb [QUOTA]", Code: seams.Quota}},
		{"hostile", hostile{}, llm.Failure{Message: "an error whose text cannot be read", Code: seams.Unknown}},
		{"a cycle", &loop{}, llm.Failure{Message: "loop", Code: seams.Unknown}},
	} {
		got := llm.FailureOf(c.err)
		if got.Message != c.want.Message || got.Code != c.want.Code || got.Status != c.want.Status || got.RequestID != c.want.RequestID ||
			(got.ProviderRetryAfterMs == nil) != (c.want.ProviderRetryAfterMs == nil) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// opaque is a wrapper that does not show its cause in its text.
type opaque struct {
	text   string
	causes []error
}

func (o opaque) Error() string   { return o.text }
func (o opaque) Unwrap() []error { return o.causes }

// M-47
func TestErrorChain(t *testing.T) {
	for want, err := range map[string]error{
		"":                                      nil,
		"a":                                     opaque{"a", []error{errors.New("a")}},
		"a: b: c":                               opaque{"a", []error{opaque{"b", nil}, opaque{"c", nil}}},
		"x: y":                                  fmt.Errorf("x: %w", errors.New("y")),
		"a: an error whose text cannot be read": opaque{"a", []error{hostile{}, nil}},
	} {
		if got := llm.ErrorChain(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := llm.ErrorChain(errors.New(strings.Repeat("é", 5000))); len(got) > 2100 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-6:])
	}
	deep := error(opaque{"0", nil})
	for i := range 100 {
		deep = opaque{fmt.Sprintf("<%d>", i), []error{deep}}
	}
	if got := llm.ErrorChain(deep); strings.Contains(got, "<80>") || !strings.Contains(got, "<90>") {
		t.Error(got)
	}
}

// M-46
func TestClassifiers(t *testing.T) {
	for _, s := range []string{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
		`{"code":"context_length_exceeded"}`,
		"prompt is too long: 201934 tokens > 200000 maximum",
		"the request exceeds the available context size, try increasing it",
		"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
		"Please reduce the length of the messages or completion.",
	} {
		if !llm.IsContextOverflow(s) || llm.IsQuotaExhausted(s) {
			t.Errorf("overflow: %s", s)
		}
	}
	for _, s := range []string{
		"You exceeded your current quota, please check your plan", "insufficient_quota", "Insufficient Balance", "Your credit balance is too low", "Insufficient credits",
	} {
		if !llm.IsQuotaExhausted(s) || llm.IsContextOverflow(s) {
			t.Errorf("quota: %s", s)
		}
	}
	for _, s := range []string{
		"max_tokens must be at most 4096", "'context' must be a string", "stop: maximum length is 4", "Rate limit reached: 10000 tokens per minute",
		"Request too large", "quota metric requests per minute", "invalid value for temperature", "the context parameter is required", "balance must be positive",
	} {
		if llm.IsContextOverflow(s) || llm.IsQuotaExhausted(s) {
			t.Errorf("neither: %s", s)
		}
	}
}

// M-52
func TestAPIKey(t *testing.T) {
	if key, err := llm.APIKey(" sk-abc~1\n"); err != nil || key != "sk-abc~1" {
		t.Errorf("%q %v", key, err)
	}
	for raw, code := range map[string]seams.Code{
		"": seams.MissingCredential, " \n\t": seams.MissingCredential,
		"sk-sécret": seams.InvalidCredential, "sk secret": seams.InvalidCredential, "sk-\x00secret": seams.InvalidCredential, "sk-secret\x7f": seams.InvalidCredential,
	} {
		if _, err := llm.APIKey(raw); !errors.Is(err, code) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sk") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// M-53
func TestAttribution(t *testing.T) {
	h := llm.Ouro("1.2.3").Headers()
	if len(h) != 1 || h["user-agent"] != "ouro/1.2.3 (+https://github.com/ouro-run/ouro)" {
		t.Error(h)
	}
	if h := (llm.Identity{Product: "p", Version: "1", URL: "u"}).Headers(); h["user-agent"] != "p/1 (+u)" {
		t.Error(h)
	}
}
