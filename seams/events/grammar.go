package events

import "github.com/ouro-run/ouro/seams"

// Grammar checks that the execution events of a log are in order (E-20): turns
// count up from 1 and do not overlap, steps count up from 1 within their turn,
// replies, chunks, calls and results name the open step, every result answers a
// call of its step and every call is answered before its step ends. A Grammar
// is not safe for concurrent use.
type Grammar struct {
	turn, step     int
	inTurn, inStep bool
	asked, called  map[string]bool // calls of the step that wait for tool/call, for tool/result
}

// NewGrammar returns the grammar of an empty log.
func NewGrammar() *Grammar {
	return &Grammar{asked: map[string]bool{}, called: map[string]bool{}}
}

// Commit checks the next event and, if it is in order, takes it. An error is
// INVALID_EVENT, also of ill-formed data, and leaves the grammar as it was. Events
// of other types are not its concern.
func (g *Grammar) Commit(e Event) error {
	replaces := e.SurfaceOp != nil && e.SurfaceOp.Replace
	in := func(turn, step int) error {
		if !g.inStep || turn != g.turn || step != g.step {
			return invalid(e, "data", "names step %d.%d, which is not open", turn, step)
		}
		return nil
	}
	switch e.Type {
	case TurnStart.Name:
		d, err := TurnStart.Decode(e)
		switch {
		case err != nil:
			return err
		case g.inTurn:
			return invalid(e, "data.turn", "starts while turn %d is open", g.turn)
		case d.Turn != g.turn+1:
			return invalid(e, "data.turn", "is %d; expected %d", d.Turn, g.turn+1)
		}
		g.turn, g.step, g.inTurn = d.Turn, 0, true
	case TurnEnd.Name:
		d, err := TurnEnd.Decode(e)
		switch {
		case err != nil:
			return err
		case !g.inTurn || d.Turn != g.turn:
			return invalid(e, "data.turn", "%d is not open", d.Turn)
		case g.inStep:
			return invalid(e, "data.turn", "ends while step %d is open", g.step)
		}
		g.inTurn = false
	case StepStart.Name:
		d, err := StepStart.Decode(e)
		switch {
		case err != nil:
			return err
		case !g.inTurn || d.Turn != g.turn:
			return invalid(e, "data.turn", "%d is not open", d.Turn)
		case g.inStep:
			return invalid(e, "data.step", "starts while step %d is open", g.step)
		case d.Step != g.step+1:
			return invalid(e, "data.step", "is %d; expected %d", d.Step, g.step+1)
		}
		g.step, g.inStep = d.Step, true
	case StepEnd.Name:
		d, err := StepEnd.Decode(e)
		if err == nil {
			err = in(d.Turn, d.Step)
		}
		if err != nil {
			return err
		}
		for _, waiting := range []map[string]bool{g.asked, g.called} {
			for id := range waiting {
				return invalid(e, "data.step", "ends before call %q has its result", seams.Clip(id, 80))
			}
		}
		g.inStep = false
	case AssistantChunk.Name:
		d, err := Type[Step]{Name: AssistantChunk.Name}.Decode(e) // the log has read the chunk
		if err != nil {
			return err
		}
		return in(d.Turn, d.Step)
	case AssistantMessage.Name:
		d, err := AssistantMessage.Decode(e)
		if err == nil && !replaces {
			err = in(d.Turn, d.Step)
		}
		if err != nil || replaces {
			return err
		}
		for _, c := range d.Message.Content.ToolCalls() {
			g.asked[c.ID] = true
		}
	case ToolCall.Name:
		d, err := ToolCall.Decode(e)
		if err == nil {
			err = in(d.Turn, d.Step)
		}
		switch {
		case err != nil:
			return err
		case !g.asked[d.CallID]:
			return invalid(e, "data.callId", "%q was not asked for in this step, or started before", seams.Clip(d.CallID, 80))
		}
		delete(g.asked, d.CallID)
		g.called[d.CallID] = true
	case ToolResult.Name:
		d, err := ToolResult.Decode(e)
		if err == nil && !replaces {
			err = in(d.Turn, d.Step)
		}
		if err != nil || replaces {
			return err
		}
		id := d.Message.Source.CallID
		unstarted := g.asked[id] && d.Error != nil && d.Error.Code == string(seams.ToolNotStarted)
		if !g.called[id] && !unstarted {
			return invalid(e, "data.message", "answers call %q, which has not started or is answered", seams.Clip(id, 80))
		}
		delete(g.called, id)
		delete(g.asked, id)
	}
	return nil
}

// Verify checks a whole log: the rules of [ReadLog] and those of [Grammar].
func Verify(h Header, events []Event) error {
	l, err := ReadLog(h, nil)
	if err != nil {
		return err
	}
	l.grammar = NewGrammar()
	return l.replay(events)
}
