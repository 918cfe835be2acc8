package llm

import (
	"fmt"
	"slices"
	"time"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Modes of a [RetryPolicy].
const (
	RetryNormal = "normal" // a bounded number of retries, of some codes
	RetryAlways = "always" // without a bound, of whatever failed
)

// RetryPolicy is data: it belongs to a route, is captured at registration and
// read by whoever retries. MaxRetries and RetryableCodes count in mode
// RetryNormal only (M-58).
type RetryPolicy struct {
	Mode           string       `json:"mode"`
	MaxRetries     int          `json:"maxRetries,omitempty"`
	RetryableCodes []seams.Code `json:"retryableCodes,omitempty"`
	Backoff        Backoff      `json:"backoff"`
}

// Backoff is exponential between the two delays, in milliseconds, each varied
// by ±JitterRatio.
type Backoff struct {
	InitialDelayMs int     `json:"initialDelayMs"`
	MaxDelayMs     int     `json:"maxDelayMs"`
	JitterRatio    float64 `json:"jitterRatio"`
}

// DefaultRetryPolicy returns the policy of a route that states none.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		Mode:           RetryNormal,
		MaxRetries:     5,
		RetryableCodes: []seams.Code{seams.EmptyResponse, seams.RateLimit, seams.Server, seams.Timeout, seams.Transport},
		Backoff:        Backoff{InitialDelayMs: 500, MaxDelayMs: 10000, JitterRatio: 0.1},
	}
}

const maxDelayMs = 1<<31 - 1

// RetryPolicySchema describes a policy in a configuration; what it leaves out is
// that of [DefaultRetryPolicy].
func RetryPolicySchema() *schema.Schema {
	d := DefaultRetryPolicy()
	codes := make([]any, len(d.RetryableCodes))
	for i, c := range d.RetryableCodes {
		codes[i] = string(c)
	}
	delay := func(ms int) *schema.Schema {
		return schema.Natural().Min(1).Max(maxDelayMs).Default(float64(ms))
	}
	return schema.Object(schema.Fields{
		"mode":           schema.Enum(RetryNormal, RetryAlways).Default(d.Mode),
		"maxRetries":     schema.Natural().Max(1<<53 - 1).Default(float64(d.MaxRetries)).Description("of one request, in mode normal"),
		"retryableCodes": schema.Array(schema.String().Min(1)).Default(codes).Description("the error codes that are worth another try, in mode normal"),
		"backoff": schema.Object(schema.Fields{
			"initialDelayMs": delay(d.Backoff.InitialDelayMs),
			"maxDelayMs":     delay(d.Backoff.MaxDelayMs),
			"jitterRatio":    schema.Number().Min(0).Max(1).Default(d.Backoff.JitterRatio),
		}),
	})
}

// Validate names the first field that cannot be (M-59). INVALID_CONFIG.
func (p RetryPolicy) Validate() error {
	bad := func(field, format string, args ...any) error {
		return seams.Errorf(seams.InvalidConfig, "llm.retryPolicy", "%s %s", field, fmt.Sprintf(format, args...))
	}
	switch b := p.Backoff; {
	case p.Mode != RetryNormal && p.Mode != RetryAlways:
		return bad("mode", "is %q; expected normal or always", p.Mode)
	case b.InitialDelayMs < 1 || b.InitialDelayMs > maxDelayMs:
		return bad("backoff.initialDelayMs", "is %d; expected 1 to %d", b.InitialDelayMs, maxDelayMs)
	case b.MaxDelayMs < 1 || b.MaxDelayMs > maxDelayMs:
		return bad("backoff.maxDelayMs", "is %d; expected 1 to %d", b.MaxDelayMs, maxDelayMs)
	case b.InitialDelayMs > b.MaxDelayMs:
		return bad("backoff.initialDelayMs", "is %d, above maxDelayMs, %d", b.InitialDelayMs, b.MaxDelayMs)
	case !(b.JitterRatio >= 0 && b.JitterRatio <= 1):
		return bad("backoff.jitterRatio", "is %v; expected 0 to 1", b.JitterRatio)
	case p.Mode == RetryAlways:
		return nil
	case p.MaxRetries < 0:
		return bad("maxRetries", "is %d; expected 0 or more", p.MaxRetries)
	}
	for i, c := range p.RetryableCodes {
		if c == "" || slices.Contains(p.RetryableCodes[:i], c) {
			return bad(fmt.Sprintf("retryableCodes[%d]", i), "is %q; expected a code that did not stand before", c)
		}
	}
	return nil
}

// Delay is how long to wait before retry n, counted from 1: what the provider
// asked for if the policy's bound allows it, else exponential; random is in
// [0, 1). ok is false when the provider asks for more than a normal policy waits
// (M-63, M-64).
func (p RetryPolicy) Delay(n int, asked *int64, random float64) (d time.Duration, ok bool) {
	most := int64(p.Backoff.MaxDelayMs)
	if asked != nil && *asked > 0 {
		switch {
		case *asked <= most:
			return time.Duration(*asked) * time.Millisecond, true
		case p.Mode == RetryNormal:
			return 0, false
		}
	}
	ms := float64(most)
	if n < 32 {
		ms = min(ms, float64(p.Backoff.InitialDelayMs)*float64(int64(1)<<(n-1)))
	}
	ms = min(ms*(1+p.Backoff.JitterRatio*(2*random-1)), float64(most))
	return time.Duration(ms * float64(time.Millisecond)), true
}
