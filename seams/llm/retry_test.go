package llm_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// M-58: a configuration states what differs from the default; what a normal policy
// alone reads is kept in the other mode too.
func TestRetryPolicyInConfig(t *testing.T) {
	for text, want := range map[string]func(p *llm.RetryPolicy){
		`{}`:                func(*llm.RetryPolicy) {},
		`{"maxRetries":0}`:  func(p *llm.RetryPolicy) { p.MaxRetries = 0 },
		`{"mode":"always"}`: func(p *llm.RetryPolicy) { p.Mode = llm.RetryAlways },
		`{"mode":"always","maxRetries":2,"retryableCodes":["X"],"backoff":{"jitterRatio":0}}`: func(p *llm.RetryPolicy) {
			p.Mode, p.MaxRetries, p.RetryableCodes, p.Backoff.JitterRatio = llm.RetryAlways, 2, []seams.Code{"X"}, 0
		},
	} {
		var raw any
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			t.Fatal(err)
		}
		v, err := llm.RetryPolicySchema().Resolve(raw)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		data, _ := json.Marshal(v)
		var got llm.RetryPolicy
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		p := llm.DefaultRetryPolicy()
		want(&p)
		if !reflect.DeepEqual(got, p) || got.Validate() != nil {
			t.Errorf("%s: %+v, want %+v", text, got, p)
		}
	}
}

// M-59: what cannot be is refused with the field, in configuration and from Go.
func TestInvalidRetryPolicies(t *testing.T) {
	for text, field := range map[string]string{
		`{"mode":"never"}`: "mode", `{"mode":1}`: "mode", `{"maxRetries":-1}`: "maxRetries", `{"maxRetries":1.5}`: "maxRetries", `{"maxRetries":9007199254740994}`: "maxRetries",
		`{"retryableCodes":[""]}`: "retryableCodes[0]", `{"retryableCodes":[7]}`: "retryableCodes[0]", `{"retryableCodes":"SERVER"}`: "retryableCodes",
		`{"backoff":{"initialDelayMs":0}}`: "initialDelayMs", `{"backoff":{"initialDelayMs":2147483648}}`: "initialDelayMs", `{"backoff":{"maxDelayMs":0}}`: "maxDelayMs",
		`{"backoff":{"maxDelayMs":0.5}}`: "maxDelayMs", `{"backoff":{"jitterRatio":1.1}}`: "jitterRatio", `{"backoff":{"jitterRatio":-0.1}}`: "jitterRatio", `{"tries":3}`: "tries", `{"backoff":{"factor":2}}`: "factor",
	} {
		var raw any
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			t.Fatal(err)
		}
		if _, err := llm.RetryPolicySchema().Resolve(raw); !errors.Is(err, seams.InvalidConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for field, change := range map[string]func(p *llm.RetryPolicy){
		"mode":                   func(p *llm.RetryPolicy) { p.Mode = "" },
		"maxRetries":             func(p *llm.RetryPolicy) { p.MaxRetries = -1 },
		"retryableCodes[1]":      func(p *llm.RetryPolicy) { p.RetryableCodes = []seams.Code{"A", "A"} },
		"retryableCodes[0]":      func(p *llm.RetryPolicy) { p.RetryableCodes = []seams.Code{""} },
		"backoff.initialDelayMs": func(p *llm.RetryPolicy) { p.Backoff.InitialDelayMs = p.Backoff.MaxDelayMs + 1 },
		"backoff.maxDelayMs":     func(p *llm.RetryPolicy) { p.Backoff.MaxDelayMs = math.MaxInt32 + 1 },
		"backoff.jitterRatio":    func(p *llm.RetryPolicy) { p.Backoff.JitterRatio = math.NaN() },
	} {
		p := llm.DefaultRetryPolicy()
		change(&p)
		if err := p.Validate(); !errors.Is(err, seams.InvalidConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// M-63: a delay grows up to its bound and strays from that by no more than the
// jitter, whatever the policy and the retry.
func TestRetryDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := llm.DefaultRetryPolicy()
		p.Backoff.MaxDelayMs = rapid.IntRange(1, math.MaxInt32).Draw(t, "max")
		p.Backoff.InitialDelayMs = rapid.IntRange(1, p.Backoff.MaxDelayMs).Draw(t, "initial")
		p.Backoff.JitterRatio = rapid.Float64Range(0, 1).Draw(t, "jitter")
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		r := rapid.Float64Range(0, 0.999999).Draw(t, "random")
		d, ok := p.Delay(n, nil, r)
		plain := math.Min(float64(p.Backoff.InitialDelayMs)*math.Pow(2, float64(n-1)), float64(p.Backoff.MaxDelayMs))
		low := time.Duration(plain*(1-p.Backoff.JitterRatio)*1e6) - time.Millisecond
		if most := time.Duration(p.Backoff.MaxDelayMs) * time.Millisecond; !ok || d < 0 || d < low || d > most {
			t.Fatalf("%v, expected %v to %v", d, low, most)
		}
	})
}
