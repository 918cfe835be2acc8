package llm

import (
	"encoding/json"
	"iter"

	"github.com/ouro-run/ouro/seams"
)

// Stream is the reply of a model: chunks, or as its last element an error. It
// can be ranged over once, by one goroutine.
type Stream = iter.Seq2[Chunk, error]

// Chunk is one of BlockStart, TextDelta, ReasoningDelta, ToolCallDelta,
// BlockEnd, Usage and Finish; the union is closed. As JSON it is an object
// with the tag "type".
type Chunk interface {
	// Type is the tag: "block-start", "text-delta", "reasoning-delta",
	// "tool-call-delta", "block-end", "usage" or "finish".
	Type() string
	json.Marshaler
	chunk()
}

// BlockStart opens block Index of kind BlockType ("text", "reasoning",
// "tool-call", or a kind this package does not know).
type BlockStart struct {
	Index     int    `json:"index"`
	BlockType string `json:"blockType"`
}

// TextDelta adds Text to the open text block Index.
type TextDelta struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
}

// ReasoningDelta adds Text to the open reasoning block Index.
type ReasoningDelta struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
}

// ToolCallDelta adds a fragment of raw JSON text to the arguments of the open
// tool-call block Index. Name is empty where it is not given again.
type ToolCallDelta struct {
	Index          int    `json:"index"`
	ID             string `json:"id"`
	Name           string `json:"name,omitempty"`
	ArgumentsDelta string `json:"argumentsDelta"`
}

// BlockEnd closes block Index. Block is the whole block and counts more than
// its deltas.
type BlockEnd struct {
	Index int   `json:"index"`
	Block Block `json:"block"`
}

// Usage tells what the reply cost, at most once and before the finish.
type Usage struct {
	Usage TokenUsage `json:"usage"`
}

// Finish ends the stream. ReplayState is data of the adapter that lets it
// send this reply back to its provider verbatim in a later request.
type Finish struct {
	Reason      FinishReason `json:"reason"`
	ReplayState *ReplayState `json:"replayState,omitempty"`
}

// ReplayState is opaque to all but the adapter that made it. Blocks, when
// present, holds one entry for each content block of the message.
type ReplayState struct {
	Response json.RawMessage   `json:"response"`
	Blocks   []json.RawMessage `json:"blocks,omitempty"`
}

const (
	typeBlockStart     = "block-start"
	typeTextDelta      = "text-delta"
	typeReasoningDelta = "reasoning-delta"
	typeToolCallDelta  = "tool-call-delta"
	typeBlockEnd       = "block-end"
	typeUsage          = "usage"
	typeFinish         = "finish"
)

// Type returns "block-start".
func (BlockStart) Type() string { return typeBlockStart }

// Type returns "text-delta".
func (TextDelta) Type() string { return typeTextDelta }

// Type returns "reasoning-delta".
func (ReasoningDelta) Type() string { return typeReasoningDelta }

// Type returns "tool-call-delta".
func (ToolCallDelta) Type() string { return typeToolCallDelta }

// Type returns "block-end".
func (BlockEnd) Type() string { return typeBlockEnd }

// Type returns "usage".
func (Usage) Type() string { return typeUsage }

// Type returns "finish".
func (Finish) Type() string { return typeFinish }

func (BlockStart) chunk()     {}
func (TextDelta) chunk()      {}
func (ReasoningDelta) chunk() {}
func (ToolCallDelta) chunk()  {}
func (BlockEnd) chunk()       {}
func (Usage) chunk()          {}
func (Finish) chunk()         {}

// MarshalJSON writes the chunk with its tag.
func (c BlockStart) MarshalJSON() ([]byte, error) {
	type bare BlockStart
	return tagged(typeBlockStart, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c TextDelta) MarshalJSON() ([]byte, error) {
	type bare TextDelta
	return tagged(typeTextDelta, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c ReasoningDelta) MarshalJSON() ([]byte, error) {
	type bare ReasoningDelta
	return tagged(typeReasoningDelta, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c ToolCallDelta) MarshalJSON() ([]byte, error) {
	type bare ToolCallDelta
	return tagged(typeToolCallDelta, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c BlockEnd) MarshalJSON() ([]byte, error) {
	type bare BlockEnd
	return tagged(typeBlockEnd, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c Usage) MarshalJSON() ([]byte, error) {
	type bare Usage
	return tagged(typeUsage, bare(c))
}

// MarshalJSON writes the chunk with its tag.
func (c Finish) MarshalJSON() ([]byte, error) {
	type bare Finish
	return tagged(typeFinish, bare(c))
}

// tagged writes v, a struct, with "type" as its first member.
func tagged(tag string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(b)+len(tag)+12), `{"type":"`...)
	out = append(append(out, tag...), '"')
	if len(b) > 2 {
		out = append(out, ',')
	}
	return append(out, b[1:]...), nil
}

// DecodeChunk reads one chunk from JSON. The union is closed: an unknown tag,
// a missing member or one of another kind is MALFORMED_RESPONSE that names it.
func DecodeChunk(data []byte) (Chunk, error) {
	var w struct {
		Type           *string         `json:"type"`
		Index          *int            `json:"index"`
		BlockType      *string         `json:"blockType"`
		Text           *string         `json:"text"`
		ID             *string         `json:"id"`
		Name           string          `json:"name"`
		ArgumentsDelta *string         `json:"argumentsDelta"`
		Block          json.RawMessage `json:"block"`
		Usage          *TokenUsage     `json:"usage"`
		Reason         *FinishReason   `json:"reason"`
		ReplayState    *ReplayState    `json:"replayState"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, malformedChunk("not a chunk object: %w", err)
	}
	if w.Type == nil {
		return nil, malformedChunk("a chunk has no \"type\"")
	}
	missing := func(member string) (Chunk, error) {
		return nil, malformedChunk("%s chunk without %q", *w.Type, member)
	}
	switch *w.Type {
	case typeBlockStart, typeTextDelta, typeReasoningDelta, typeToolCallDelta, typeBlockEnd:
		if w.Index == nil {
			return missing("index")
		}
	}
	switch *w.Type {
	case typeBlockStart:
		if w.BlockType == nil {
			return missing("blockType")
		}
		return BlockStart{*w.Index, *w.BlockType}, nil
	case typeTextDelta:
		if w.Text == nil {
			return missing("text")
		}
		return TextDelta{*w.Index, *w.Text}, nil
	case typeReasoningDelta:
		if w.Text == nil {
			return missing("text")
		}
		return ReasoningDelta{*w.Index, *w.Text}, nil
	case typeToolCallDelta:
		if w.ID == nil {
			return missing("id")
		}
		if w.ArgumentsDelta == nil {
			return missing("argumentsDelta")
		}
		return ToolCallDelta{*w.Index, *w.ID, w.Name, *w.ArgumentsDelta}, nil
	case typeBlockEnd:
		if w.Block == nil {
			return missing("block")
		}
		b, err := DecodeBlock(w.Block)
		if err != nil {
			return nil, err
		}
		return BlockEnd{*w.Index, b}, nil
	case typeUsage:
		if w.Usage == nil {
			return missing("usage")
		}
		return Usage{*w.Usage}, nil
	case typeFinish:
		if w.Reason == nil {
			return missing("reason")
		}
		return Finish{*w.Reason, w.ReplayState}, nil
	}
	return nil, malformedChunk("unknown chunk type %q", seams.Clip(*w.Type, 60))
}

func malformedChunk(format string, args ...any) error {
	return seams.Errorf(seams.MalformedResponse, "llm.chunk", format, args...)
}
