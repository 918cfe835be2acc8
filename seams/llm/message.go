package llm

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
)

// Role is who speaks.
type Role string

// Roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation (M-57). It is immutable:
// its identity is minted once and its content never changes.
type Message struct {
	ID      string  `json:"id"`
	Role    Role    `json:"role"`
	Content Content `json:"content"`
	Source  Source  `json:"source"`
}

// Kinds of message sources this package knows; others pass through.
const (
	FromUser   = "user"
	FromPlugin = "plugin"
	FromModel  = "model"
	FromTool   = "tool"
)

// Source says where a message came from. Kind "plugin" has Plugin, Form and
// Summary, "model" has Provider, Model and ReplayState, "tool" has CallID.
type Source struct {
	Kind        string       `json:"kind"`
	Plugin      string       `json:"plugin,omitempty"`
	Form        string       `json:"form,omitempty"` // instructions, catalog, snapshot, notice, relay or recall
	Summary     string       `json:"summary,omitempty"`
	Provider    string       `json:"provider,omitempty"`
	Model       string       `json:"model,omitempty"`
	ReplayState *ReplayState `json:"replayState,omitempty"`
	CallID      string       `json:"callId,omitempty"`
	// Extra holds the members of extension kinds.
	Extra map[string]json.RawMessage `json:"-"`
}

type bareSource Source

// MarshalJSON writes the known members and Extra beside them.
func (s Source) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(bareSource(s))
	if err != nil || len(s.Extra) == 0 {
		return b, err
	}
	all := maps.Clone(s.Extra)
	var known map[string]json.RawMessage
	if err := json.Unmarshal(b, &known); err != nil {
		return nil, err
	}
	maps.Copy(all, known)
	return json.Marshal(all)
}

// UnmarshalJSON reads the known members and keeps the others in Extra.
func (s *Source) UnmarshalJSON(data []byte) error {
	var known bareSource
	if err := json.Unmarshal(data, &known); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, k := range [...]string{"kind", "plugin", "form", "summary", "provider", "model", "replayState", "callId"} {
		delete(all, k)
	}
	if len(all) > 0 {
		known.Extra = all
	}
	*s = Source(known)
	return nil
}

// NewMessage makes a message with a new identity and its own copy of the list
// of blocks.
func NewMessage(role Role, source Source, content ...Block) Message {
	return Message{ID: "msg-" + rand.Text(), Role: role, Content: slices.Clone(content), Source: source}
}

// UserText makes the message of a user who typed text.
func UserText(text string) Message {
	return NewMessage(User, Source{Kind: FromUser}, Text{text})
}

// NewToolResult makes the message that answers call with content; the call's
// id stands in the block and in the source alike (M-57).
func NewToolResult(callID string, isError bool, content ...Block) Message {
	return NewMessage(User, Source{Kind: FromTool, CallID: callID},
		ToolResult{ToolCallID: callID, Content: slices.Clone(content), IsError: isError})
}
