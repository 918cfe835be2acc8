package llm

// FinishReason says why a reply ended. Failure is set for Aborted and Failed.
type FinishReason struct {
	Kind    FinishKind `json:"kind"`
	Failure *Failure   `json:"failure,omitempty"`
}

// FinishKind is the kind of a finish.
type FinishKind string

// Kinds of finish.
const (
	Stop      FinishKind = "stop"
	ToolCalls FinishKind = "tool-calls"
	MaxTokens FinishKind = "max-tokens"
	Aborted   FinishKind = "aborted"
	Failed    FinishKind = "error"
)

// TokenUsage counts tokens in disjoint buckets: InputTokens excludes what was
// read from or written to a cache; ReasoningTokens is a part of OutputTokens
// and is never added again.
type TokenUsage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
}

// Add returns the sum of both, bucket by bucket.
func (u TokenUsage) Add(o TokenUsage) TokenUsage {
	return TokenUsage{
		u.InputTokens + o.InputTokens,
		u.OutputTokens + o.OutputTokens,
		u.CacheReadTokens + o.CacheReadTokens,
		u.CacheWriteTokens + o.CacheWriteTokens,
		u.ReasoningTokens + o.ReasoningTokens,
	}
}

// Total returns all tokens of the request and its reply.
func (u TokenUsage) Total() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}
