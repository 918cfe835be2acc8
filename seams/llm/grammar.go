package llm

import (
	"fmt"

	"github.com/ouro-run/ouro/seams"
)

// Rules of the chunk protocol, as a Violation names them.
const (
	RuleUnion    = "P1" // a chunk is one of the union, whole
	RuleIndex    = "P2" // an index is a non-negative safe integer
	RuleStart    = "P3" // a block is started once
	RuleOpen     = "P4" // deltas and ends belong to an open block
	RuleKind     = "P5" // deltas and ends are of their block's kind
	RuleUsage    = "P6" // usage comes at most once
	RuleClosed   = "P7" // no block is open at a finish, but error and aborted
	RuleLast     = "P8" // nothing comes after the finish
	RuleFinish   = "P9" // a stream without an error ends in a finish
	maxSafeIndex = 1<<53 - 1
)

// Violation says which rule a stream breaks, and how. Its code is
// STREAM_PROTOCOL.
type Violation struct {
	Rule string
	Text string
}

// Error renders "rule: text [STREAM_PROTOCOL]".
func (v *Violation) Error() string {
	return v.Rule + ": " + v.Text + " [" + string(seams.StreamProtocol) + "]"
}

// Is reports whether target is STREAM_PROTOCOL.
func (v *Violation) Is(target error) bool { return target == seams.StreamProtocol }

// Unwrap returns the code, so that seams.CodeOf finds it.
func (v *Violation) Unwrap() error { return seams.StreamProtocol }

func violation(rule, format string, args ...any) error {
	return &Violation{rule, fmt.Sprintf(format, args...)}
}

// Grammar checks the chunk protocol strictly (rows M-13…M-15). The zero value
// is at the start of a stream. For one goroutine.
type Grammar struct {
	kinds    map[int]string // kind of each block begun
	open     map[int]bool
	usage    bool
	finished bool
}

// Accept takes the next chunk. It answers a *Violation, after which the
// checker has no more to say of the stream.
func (g *Grammar) Accept(c Chunk) error {
	if g.finished {
		return violation(RuleLast, "a chunk after the finish")
	}
	switch c := c.(type) {
	case BlockStart:
		switch {
		case c.Index < 0 || int64(c.Index) > maxSafeIndex:
			return violation(RuleIndex, "index %d is not a non-negative safe integer", c.Index)
		case c.BlockType == "":
			return violation(RuleUnion, "block-start %d without a block type", c.Index)
		}
		if _, again := g.kinds[c.Index]; again {
			return violation(RuleStart, "block %d is started twice", c.Index)
		}
		if g.kinds == nil {
			g.kinds, g.open = map[int]string{}, map[int]bool{}
		}
		g.kinds[c.Index], g.open[c.Index] = c.BlockType, true
	case TextDelta:
		return g.inBlock(c.Type(), c.Index, KindText)
	case ReasoningDelta:
		return g.inBlock(c.Type(), c.Index, KindReasoning)
	case ToolCallDelta:
		return g.inBlock(c.Type(), c.Index, KindToolCall)
	case BlockEnd:
		if c.Block == nil {
			return violation(RuleUnion, "block-end %d without a block", c.Index)
		}
		if err := g.inBlock(c.Type(), c.Index, c.Block.Kind()); err != nil {
			return err
		}
		delete(g.open, c.Index)
	case Usage:
		if g.usage {
			return violation(RuleUsage, "a second usage")
		}
		g.usage = true
	case Finish:
		if k := c.Reason.Kind; k != Failed && k != Aborted && len(g.open) > 0 {
			return violation(RuleClosed, "finish %q while %d blocks are open", k, len(g.open))
		}
		g.finished = true
	default:
		return violation(RuleUnion, "unknown chunk %T", c)
	}
	return nil
}

// inBlock checks that a chunk belongs to the open block of its kind.
func (g *Grammar) inBlock(chunk string, index int, kind string) error {
	switch {
	case !g.open[index]:
		return violation(RuleOpen, "%s for block %d, which is not open", chunk, index)
	case g.kinds[index] != kind:
		return violation(RuleKind, "%s of kind %q for block %d, which is %q", chunk, kind, index, g.kinds[index])
	}
	return nil
}

// End says whether the stream may end here: a *Violation without a finish.
func (g *Grammar) End() error {
	if !g.finished {
		return violation(RuleFinish, "the stream ended without a finish")
	}
	return nil
}

// Checked passes s on up to the first chunk that breaks the protocol, which
// becomes an error. An error of s passes unchanged.
func Checked(s Stream) Stream {
	return func(yield func(Chunk, error) bool) {
		var g Grammar
		for c, err := range s {
			if err == nil {
				err = g.Accept(c)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := g.End(); err != nil {
			yield(nil, err)
		}
	}
}
