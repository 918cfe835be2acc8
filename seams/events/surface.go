package events

import (
	"slices"

	"github.com/ouro-run/ouro/seams/llm"
)

// Node is one message of the surface: what the model sees of the event Seq.
type Node struct {
	Seq     int         `json:"seq"`
	Type    string      `json:"type"`
	Message llm.Message `json:"message"`
}

// place returns the surface with n where e's operation puts it (E-11, E-12).
func (l *Log) place(n Node, e Event) ([]Node, error) {
	op := *e.SurfaceOp
	if !op.Replace {
		return append(l.surface, n), nil
	}
	start, end := l.find(op.Start), l.find(op.End)
	switch {
	case start < 0:
		return nil, invalid(e, "surfaceOp.start", "%d is not on the surface", op.Start)
	case end < 0:
		return nil, invalid(e, "surfaceOp.end", "%d is not on the surface", op.End)
	case start > end:
		return nil, invalid(e, "surfaceOp", "start %d comes after end %d", op.Start, op.End)
	}
	hidden := l.surface[start : end+1]
	for _, h := range hidden {
		if !slices.Contains(e.SourceEventSeqs, h.Seq) {
			return nil, invalid(e, "sourceEventSeqs", "does not cite %d, which it replaces", h.Seq)
		}
	}
	if e.Type == ToolResult.Name {
		if len(hidden) != 1 || hidden[0].Type != ToolResult.Name {
			return nil, invalid(e, "surfaceOp", "a tool/result replaces exactly one tool/result")
		}
		if !sameButContent(l.events[hidden[0].Seq].Data, e.Data) {
			return nil, invalid(e, "data", "differs from that of %d in more than the result's content", hidden[0].Seq)
		}
	}
	return slices.Concat(l.surface[:start], []Node{n}, l.surface[end+1:]), nil
}

// find returns the position of the node of an event, -1 if it is not on the
// surface.
func (l *Log) find(seq int) int {
	return slices.IndexFunc(l.surface, func(n Node) bool { return n.Seq == seq })
}

// messages is the surface as a provider takes it: in order, without empty
// replies, each reply followed by the results of its calls. A result that
// answers no call before it is left out; what stands between a call and its
// result comes after it.
func messages(surface []Node) []llm.Message {
	out := make([]llm.Message, 0, len(surface))
	var held []llm.Message // what waits for results of the last reply
	open := map[string]bool{}
	release := func() {
		out = append(out, held...)
		held = nil
		clear(open)
	}
	for _, n := range surface {
		switch {
		case n.Type == ToolResult.Name:
			if id := n.Message.Source.CallID; open[id] {
				delete(open, id)
				out = append(out, n.Message)
				if len(open) == 0 {
					release()
				}
			}
		case n.Type == AssistantMessage.Name && len(n.Message.Content) == 0:
		case n.Type == AssistantMessage.Name:
			release()
			out = append(out, n.Message)
			for _, c := range n.Message.Content.ToolCalls() {
				open[c.ID] = true
			}
		case len(open) > 0:
			held = append(held, n.Message)
		default:
			out = append(out, n.Message)
		}
	}
	release()
	return out
}
