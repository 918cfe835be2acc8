package llm

import (
	"encoding/json"
	"slices"
)

// CallConfig is what chooses a model and tunes it. Zero values mean
// "not given".
type CallConfig struct {
	Provider        string   `json:"provider"`
	Model           string   `json:"model"`
	ReasoningEffort string   `json:"reasoningEffort,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	MaxTokens       int      `json:"maxTokens,omitempty"` // output tokens
	Stop            []string `json:"stop,omitempty"`
}

// Equal compares every field, stop lists element by element (M-54).
func (c CallConfig) Equal(o CallConfig) bool {
	t := c.Temperature == o.Temperature ||
		c.Temperature != nil && o.Temperature != nil && *c.Temperature == *o.Temperature
	return t && c.Provider == o.Provider && c.Model == o.Model && c.ReasoningEffort == o.ReasoningEffort &&
		c.MaxTokens == o.MaxTokens && slices.Equal(c.Stop, o.Stop)
}

// Purposes a request may state; an ordinary one states none.
const (
	PurposeCompaction   = "compaction"
	PurposeSessionTitle = "session-title"
)

// Request asks for one reply. Its cancellation is the context's.
type Request struct {
	CallConfig
	Messages  []Message    `json:"messages"`
	System    string       `json:"system,omitempty"`
	Tools     []ToolSchema `json:"tools,omitempty"`
	SessionID string       `json:"sessionId,omitempty"`
	Purpose   string       `json:"purpose,omitempty"`
}

// ToolSchema offers a tool to the model. Parameters is a JSON Schema object.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
