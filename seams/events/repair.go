package events

import (
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Repair returns what closes the open turn of a log whose process died: a
// result for each call the model asked for that has none, then step/end if the
// step is open, then turn/end with reason interrupted. A log without an open turn
// needs nothing. Closed turns are not touched (E-16).
//
// A call without a tool/call was never started: TOOL_NOT_STARTED. One with it
// may have had its effects: TOOL_OUTCOME_UNKNOWN, and the text tells the model to
// verify them.
func Repair(l *Log) ([]Draft, error) {
	st := l.state
	if !st.InTurn {
		return nil, nil
	}
	type asked struct {
		llm.ToolCall
		turn, step int
		source     int // the tool/call if started, else the assistant/message
		started    bool
	}
	var open []asked
	at := func(id string) int {
		for i, a := range open {
			if a.ID == id {
				return i
			}
		}
		return -1
	}
	for _, e := range l.events[st.TurnSeq:] {
		switch e.Type {
		case AssistantMessage.Name:
			r, err := AssistantMessage.Decode(e)
			if err != nil {
				return nil, err
			}
			for _, c := range r.Message.Content.ToolCalls() {
				open = append(open, asked{c, r.Turn, r.Step, e.Seq, false})
			}
		case ToolCall.Name:
			c, err := ToolCall.Decode(e)
			if err != nil {
				return nil, err
			}
			if i := at(c.CallID); i >= 0 {
				open[i].source, open[i].started = e.Seq, true
			}
		case ToolResult.Name:
			r, err := ToolResult.Decode(e)
			if err != nil {
				return nil, err
			}
			if i := at(r.Message.Source.CallID); i >= 0 {
				open = append(open[:i], open[i+1:]...)
			}
		}
	}
	var out []Draft
	for _, a := range open {
		code, text := seams.ToolOutcomeUnknown, "The process ended while this call ran; it may have had its effects. Verify them, or ask, before you call it again."
		if !a.started {
			code, text = seams.ToolNotStarted, "The process ended before this call was started; it had no effect."
		}
		out = append(out, ToolResult.New(CallResult{a.turn, a.step,
			llm.NewToolResult(a.ID, true, llm.Text{Text: "Error: " + text + " [" + string(code) + "]"}),
			&CallError{Code: string(code), Message: text}}).Citing(a.source))
	}
	if st.InStep {
		out = append(out, StepEnd.New(Step{st.Turn, st.Step}))
	}
	return append(out, TurnEnd.New(TurnResult{st.Turn, EndReason{Kind: Interrupted}})), nil
}
