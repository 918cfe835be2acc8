package llm

import (
	"strings"

	"github.com/ouro-run/ouro/seams"
)

const (
	maxChainDepth = 16
	maxChainBytes = 2000
)

// ErrorChain renders err with its causes and the members of joined errors; a
// message that an earlier one already holds is not repeated. It ends after 16
// links or 2000 bytes, and survives errors whose methods panic (M-47, M-51).
func ErrorChain(err error) string {
	var b strings.Builder
	walk(err, 0, func(e error) bool {
		if text := errorText(e); !strings.Contains(b.String(), text) {
			if b.Len() > 0 {
				b.WriteString(": ")
			}
			b.WriteString(text)
		}
		return b.Len() > maxChainBytes
	})
	return seams.Clip(b.String(), maxChainBytes)
}

// walk visits err and its causes, outermost first, until visit says stop.
func walk(err error, depth int, visit func(error) bool) (stop bool) {
	if err == nil || depth == maxChainDepth {
		return false
	}
	if visit(err) {
		return true
	}
	for _, cause := range causes(err) {
		if walk(cause, depth+1, visit) {
			return true
		}
	}
	return false
}

func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error whose text cannot be read"
		}
	}()
	return err.Error()
}

func causes(err error) (list []error) {
	defer func() {
		if recover() != nil {
			list = nil
		}
	}()
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// IsContextOverflow reports whether a provider's message says that the request
// is larger than the model's context window (M-46).
func IsContextOverflow(text string) bool {
	return containsAny(text,
		"context_length_exceeded",
		"maximum context length",
		"model_max_prompt_tokens_exceeded",
		"maximum prompt length is",
		"prompt is too long",
		"exceed context limit",
		"exceeds the available context size",
		"exceeds the context window",
		"exceeds the model's context",
		"exceed the context window",
		"exceeds the maximum number of tokens allowed",
		"reduce the length of the messages",
		"input is too long for requested model",
		"context window exceeded",
		"context window exceeds limit",
	)
}

// IsQuotaExhausted reports whether a provider's message says that balance or
// quota is used up, as against a limit that passes with time (M-46).
func IsQuotaExhausted(text string) bool {
	return containsAny(text,
		"insufficient_quota",
		"exceeded your current quota",
		"insufficient balance",
		"insufficient credit",
		"insufficient funds",
		"credit balance is too low",
		"not enough credits",
		"requires more credits",
		"out of credits",
		"billing hard limit",
		"billing_hard_limit",
		"billing_not_active",
	)
}

func containsAny(text string, marks ...string) bool {
	text = strings.ToLower(text)
	for _, m := range marks {
		if strings.Contains(text, m) {
			return true
		}
	}
	return false
}
