package llm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// Assembler makes blocks of chunks and takes what it gets: deltas without
// start or end, starts twice, stragglers after an end (rows M-01…M-12). The
// zero value is ready. For one goroutine.
type Assembler struct {
	order  []*slot // by first sight of the index
	byID   map[int]*slot
	usage  *TokenUsage
	finish *Finish
}

// slot is one block in the making.
type slot struct {
	index int
	kind  string
	text  strings.Builder // of text and reasoning; arguments of a tool call
	id    string
	name  string
	end   Block // nil while open
}

// Add takes the next chunk. MALFORMED_RESPONSE for one that is none of the
// union's, or for an end without a block.
func (a *Assembler) Add(c Chunk) error {
	switch c := c.(type) {
	case BlockStart:
		a.slot(c.Index, c.BlockType)
	case TextDelta:
		if s := a.open(c.Index, KindText); s != nil {
			s.text.WriteString(c.Text)
		}
	case ReasoningDelta:
		if s := a.open(c.Index, KindReasoning); s != nil {
			s.text.WriteString(c.Text)
		}
	case ToolCallDelta:
		if s := a.open(c.Index, KindToolCall); s != nil {
			if s.id == "" {
				s.id = c.ID
			}
			if s.name == "" {
				s.name = c.Name
			}
			s.text.WriteString(c.ArgumentsDelta)
		}
	case BlockEnd:
		if c.Block == nil {
			return malformedChunk("block-end %d without a block", c.Index)
		}
		if s := a.slot(c.Index, c.Block.Kind()); s.end == nil {
			s.end = c.Block
		}
	case Usage:
		a.usage = &c.Usage
	case Finish:
		a.finish = &c
	default:
		return malformedChunk("unknown chunk %T", c)
	}
	return nil
}

// slot returns the slot of an index; the first sight decides its kind.
func (a *Assembler) slot(index int, kind string) *slot {
	s, ok := a.byID[index]
	if !ok {
		if a.byID == nil {
			a.byID = map[int]*slot{}
		}
		s = &slot{index: index, kind: kind}
		a.byID[index] = s
		a.order = append(a.order, s)
	}
	return s
}

// open returns the slot if it takes deltas of the kind.
func (a *Assembler) open(index int, kind string) *slot {
	if s := a.slot(index, kind); s.end == nil && s.kind == kind {
		return s
	}
	return nil
}

// block returns what the slot holds; ok is false for an open block of a kind
// that only its end could tell.
func (s *slot) block() (b Block, ok bool) {
	if t, isCall := s.end.(ToolCall); isCall {
		if t.ID == "" {
			t.ID = s.callID()
		}
		return t, true
	}
	if s.end != nil {
		return s.end, true
	}
	switch s.kind {
	case KindText:
		return Text{s.text.String()}, true
	case KindReasoning:
		return Reasoning{s.text.String()}, true
	case KindToolCall:
		return ToolCall{s.callID(), s.name, s.text.String()}, true
	}
	return nil, false
}

func (s *slot) callID() string {
	if s.id != "" {
		return s.id
	}
	return "call-" + strconv.Itoa(s.index)
}

// Blocks returns the assembled blocks in the order in which their indices were
// first seen. A finish of kind MaxTokens drops tool calls. An open block of an
// unknown kind is MALFORMED_RESPONSE that names the kind. It may be called at
// any time and again.
func (a *Assembler) Blocks() (Content, error) {
	out := make(Content, 0, len(a.order))
	for _, s := range a.order {
		b, ok := s.block()
		if !ok {
			return nil, seams.Errorf(seams.MalformedResponse, "llm.assemble", "block %d of unknown kind %q was never closed", s.index, seams.Clip(s.kind, 60))
		}
		if !a.dropped(b) {
			out = append(out, b)
		}
	}
	return out, nil
}

// dropped reports whether the finish takes a block away: a tool call that the
// output limit may have cut off.
func (a *Assembler) dropped(b Block) bool {
	return a.Finish().Kind == MaxTokens && b.Kind() == KindToolCall
}

// Interrupted returns what is worth keeping of a reply that was cut off: text
// and reasoning that is not blank, no tool calls.
func (a *Assembler) Interrupted() Content {
	var out Content
	for _, s := range a.order {
		b, _ := s.block()
		var text string
		switch b := b.(type) {
		case Text:
			text = b.Text
		case Reasoning:
			text = b.Text
		}
		if strings.TrimSpace(text) != "" {
			out = append(out, b)
		}
	}
	return out
}

// Finish returns the last finish reason, Stop if none came.
func (a *Assembler) Finish() FinishReason {
	if a.finish == nil {
		return FinishReason{Kind: Stop}
	}
	return a.finish.Reason
}

// Usage returns the usage, if one came.
func (a *Assembler) Usage() (TokenUsage, bool) {
	if a.usage == nil {
		return TokenUsage{}, false
	}
	return *a.usage, true
}

// ReplayState returns the finish's replay state, its entries cut to the blocks
// that Blocks returns; nil when there is none or it does not fit the blocks.
func (a *Assembler) ReplayState() *ReplayState {
	if a.finish == nil || a.finish.ReplayState == nil || a.finish.ReplayState.Blocks == nil {
		if a.finish == nil {
			return nil
		}
		return a.finish.ReplayState
	}
	r := *a.finish.ReplayState
	if len(r.Blocks) != len(a.order) {
		return nil
	}
	r.Blocks = slices.Clone(r.Blocks)
	kept := r.Blocks[:0]
	for i, s := range a.order {
		if b, ok := s.block(); ok && !a.dropped(b) {
			kept = append(kept, r.Blocks[i])
		}
	}
	r.Blocks = kept
	return &r
}
