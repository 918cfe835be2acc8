package llm

import (
	"encoding/json"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// Block is one piece of a message's content: Text, Reasoning, Image, ToolCall,
// ToolResult, or OtherBlock for a kind this package does not know.
type Block interface {
	// Kind is the tag "type" of the block's JSON.
	Kind() string
	json.Marshaler
	block()
}

// Kinds of blocks this package knows.
const (
	KindText       = "text"
	KindReasoning  = "reasoning"
	KindImage      = "image"
	KindToolCall   = "tool-call"
	KindToolResult = "tool-result"
)

// Text is text of a user, a tool or the model.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is what the model thought before it answered.
type Reasoning struct {
	Text string `json:"text"`
}

// Image refers to a stored image; its bytes never stand in a message.
type Image struct {
	Attachment Attachment `json:"attachment"`
}

// Attachment is a durable reference into the session's attachment store.
type Attachment struct {
	Hash      string `json:"hash"` // SHA-256 of the content, lower-case hex
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size,omitempty"` // bytes
	Name      string `json:"name,omitempty"`
}

// ToolCall is a call the model asks for. Arguments is the raw JSON text as
// the model wrote it; it may be empty or broken.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolResult answers the tool call of one id.
type ToolResult struct {
	ToolCallID string  `json:"toolCallId"`
	Content    Content `json:"content"`
	IsError    bool    `json:"isError,omitempty"`
}

// OtherBlock carries a block of an unknown kind through unchanged. Raw is the
// whole JSON object, its tag included.
type OtherBlock struct {
	Tag string
	Raw json.RawMessage
}

// Kind returns "text".
func (Text) Kind() string { return KindText }

// Kind returns "reasoning".
func (Reasoning) Kind() string { return KindReasoning }

// Kind returns "image".
func (Image) Kind() string { return KindImage }

// Kind returns "tool-call".
func (ToolCall) Kind() string { return KindToolCall }

// Kind returns "tool-result".
func (ToolResult) Kind() string { return KindToolResult }

// Kind returns the block's own tag.
func (b OtherBlock) Kind() string { return b.Tag }

func (Text) block()       {}
func (Reasoning) block()  {}
func (Image) block()      {}
func (ToolCall) block()   {}
func (ToolResult) block() {}
func (OtherBlock) block() {}

// MarshalJSON writes the block with its tag.
func (b Text) MarshalJSON() ([]byte, error) {
	type bare Text
	return tagged(KindText, bare(b))
}

// MarshalJSON writes the block with its tag.
func (b Reasoning) MarshalJSON() ([]byte, error) {
	type bare Reasoning
	return tagged(KindReasoning, bare(b))
}

// MarshalJSON writes the block with its tag.
func (b Image) MarshalJSON() ([]byte, error) {
	type bare Image
	return tagged(KindImage, bare(b))
}

// MarshalJSON writes the block with its tag.
func (b ToolCall) MarshalJSON() ([]byte, error) {
	type bare ToolCall
	return tagged(KindToolCall, bare(b))
}

// MarshalJSON writes the block with its tag; no content is [].
func (b ToolResult) MarshalJSON() ([]byte, error) {
	type bare ToolResult
	if b.Content == nil {
		b.Content = Content{}
	}
	return tagged(KindToolResult, bare(b))
}

// MarshalJSON writes the block as it was read.
func (b OtherBlock) MarshalJSON() ([]byte, error) { return b.Raw, nil }

// DecodeBlock reads one block from JSON. A block without a tag, or a known one
// whose members are missing or of another kind, is MALFORMED_RESPONSE.
func DecodeBlock(data []byte) (Block, error) {
	var head struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, malformedBlock("not a content block: %w", err)
	}
	if head.Type == nil {
		return nil, malformedBlock("a content block has no \"type\"")
	}
	var w struct {
		Text       *string          `json:"text"`
		Attachment *Attachment      `json:"attachment"`
		ID         *string          `json:"id"`
		Name       *string          `json:"name"`
		Arguments  *string          `json:"arguments"`
		ToolCallID *string          `json:"toolCallId"`
		Content    *json.RawMessage `json:"content"`
		IsError    bool             `json:"isError"`
	}
	known := func() error {
		if err := json.Unmarshal(data, &w); err != nil {
			return malformedBlock("%s block: %w", *head.Type, err)
		}
		return nil
	}
	missing := func(member string) (Block, error) {
		return nil, malformedBlock("%s block without %q", *head.Type, member)
	}
	switch *head.Type {
	case KindText, KindReasoning, KindImage, KindToolCall, KindToolResult:
		if err := known(); err != nil {
			return nil, err
		}
	default:
		return OtherBlock{*head.Type, append(json.RawMessage(nil), data...)}, nil
	}
	switch *head.Type {
	case KindText:
		if w.Text == nil {
			return missing("text")
		}
		return Text{*w.Text}, nil
	case KindReasoning:
		if w.Text == nil {
			return missing("text")
		}
		return Reasoning{*w.Text}, nil
	case KindImage:
		if w.Attachment == nil {
			return missing("attachment")
		}
		return Image{*w.Attachment}, nil
	case KindToolCall:
		switch {
		case w.ID == nil:
			return missing("id")
		case w.Name == nil:
			return missing("name")
		case w.Arguments == nil:
			return missing("arguments")
		}
		return ToolCall{*w.ID, *w.Name, *w.Arguments}, nil
	}
	switch {
	case w.ToolCallID == nil:
		return missing("toolCallId")
	case w.Content == nil:
		return missing("content")
	}
	r := ToolResult{ToolCallID: *w.ToolCallID, IsError: w.IsError}
	if err := json.Unmarshal(*w.Content, &r.Content); err != nil {
		return nil, err
	}
	return r, nil
}

func malformedBlock(format string, args ...any) error {
	return seams.Errorf(seams.MalformedResponse, "llm.block", format, args...)
}

// Content is the content of a message or of a tool result.
type Content []Block

// UnmarshalJSON reads a list of blocks.
func (c *Content) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return malformedBlock("content is not a list of blocks: %w", err)
	}
	out := make(Content, len(raw))
	for i, r := range raw {
		b, err := DecodeBlock(r)
		if err != nil {
			return malformedBlock("content[%d]: %w", i, err)
		}
		out[i] = b
	}
	*c = out
	return nil
}

// Text returns the joined text blocks.
func (c Content) Text() string { return c.join(KindText) }

// Reasoning returns the joined reasoning blocks.
func (c Content) Reasoning() string { return c.join(KindReasoning) }

func (c Content) join(kind string) string {
	var s strings.Builder
	for _, b := range c {
		switch b := b.(type) {
		case Text:
			if kind == KindText {
				s.WriteString(b.Text)
			}
		case Reasoning:
			if kind == KindReasoning {
				s.WriteString(b.Text)
			}
		}
	}
	return s.String()
}

// ToolCalls returns the tool calls in order.
func (c Content) ToolCalls() []ToolCall {
	var out []ToolCall
	for _, b := range c {
		if t, ok := b.(ToolCall); ok {
			out = append(out, t)
		}
	}
	return out
}
