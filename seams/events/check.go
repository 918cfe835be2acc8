package events

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// maxType bounds the name of a type, in bytes.
const maxType = 100

// check validates a new event, made of given data, and returns what its commit
// changes. The log is not changed before that.
func (l *Log) check(e Event, given any) (commit func(), err error) {
	if e.Type == "" || len(e.Type) > maxType {
		return nil, invalid(e, "type", "must have 1 to %d bytes", maxType)
	}
	if err := l.checkSources(e); err != nil {
		return nil, err
	}
	core, known := cores[e.Type]
	if core.surface != (e.SurfaceOp != nil) {
		if core.surface {
			return nil, invalid(e, "surfaceOp", "is missing: every %s is a node of the surface", e.Type)
		}
		return nil, invalid(e, "surfaceOp", "is only for user/message, assistant/message and tool/result")
	}
	if !known {
		return func() {}, nil
	}
	fact, err := core.read(e, given)
	if err != nil {
		return nil, err
	}
	if !core.surface {
		return func() { l.state.apply(e, fact) }, nil
	}
	surface, err := l.place(Node{e.Seq, e.Type, fact.(llm.Message)}, e)
	return func() { l.surface = surface }, err
}

// encode copies a draft's data as JSON. Values from outside, which have no Go
// type of their own, are checked to lose nothing by it (E-18).
func encode(d Draft) (json.RawMessage, error) {
	bad := func(code seams.Code, format string, args ...any) error {
		err := seams.Errorf(code, "", format, args...)
		return &seams.Error{Code: code, Op: "events", Msg: "an event of type " + seams.Clip(d.Type, 80) + ": data " + err.Msg, Err: err.Err}
	}
	given := d.Data
	var err error
	switch data := given.(type) {
	case json.RawMessage:
		_, err = schema.Parse(data)
	case map[string]any:
		given, err = schema.JSON(data)
	}
	if err != nil {
		return nil, bad(seams.CodeOf(err), "%w", err)
	}
	raw, err := json.Marshal(given)
	switch {
	case err != nil:
		return nil, bad(seams.NotJSON, "is not JSON: %w", err)
	case len(raw) > schema.MaxText:
		return nil, bad(seams.TooLarge, "has %d bytes, over the bound of %d", len(raw), schema.MaxText)
	case raw[0] != '{':
		return nil, bad(seams.InvalidEvent, "is not a JSON object")
	}
	return raw, nil
}

func (l *Log) checkSources(e Event) error {
	if e.SourceEventSeqs != nil && len(e.SourceEventSeqs) == 0 && e.Type != AssistantMessage.Name {
		return invalid(e, "sourceEventSeqs", "is empty, which only an assistant message may say")
	}
	for i, s := range e.SourceEventSeqs {
		switch {
		case s < 0 || s >= e.Seq:
			return invalid(e, fmt.Sprintf("sourceEventSeqs[%d]", i), "is %d, not the number of an earlier event", s)
		case i > 0 && s <= e.SourceEventSeqs[i-1]:
			return invalid(e, fmt.Sprintf("sourceEventSeqs[%d]", i), "is %d after %d; expected ascending numbers", s, e.SourceEventSeqs[i-1])
		}
	}
	return nil
}

// core is how the log reads a type it knows: the value that its state or its
// surface takes of an event and of the data it was made of.
type core struct {
	surface bool
	read    func(e Event, data any) (any, error)
}

var cores = map[string]core{
	TurnStart.Name:        reader(TurnStart, func(Turn) error { return nil }),
	TurnEnd.Name:          reader(TurnEnd, checkTurnEnd),
	StepStart.Name:        reader(StepStart, func(Step) error { return nil }),
	StepEnd.Name:          reader(StepEnd, func(Step) error { return nil }),
	AssistantChunk.Name:   reader(AssistantChunk, checkChunk),
	ToolCall.Name:         reader(ToolCall, func(c Call) error { return present("callId", c.CallID) }),
	RequestHeader.Name:    reader(RequestHeader, checkRequestHeader),
	RequestContext.Name:   reader(RequestContext, checkRequestContext),
	TodoWrite.Name:        reader(TodoWrite, func(TodoList) error { return nil }),
	EndSeed.Name:          reader(EndSeed, func(Nothing) error { return nil }),
	InboxSpliced.Name:     reader(InboxSpliced, checkSplice),
	UserMessage.Name:      node(UserMessage, func(m Message) (llm.Message, error) { return m.Message, checkUser(m.Message) }),
	AssistantMessage.Name: node(AssistantMessage, func(r Reply) (llm.Message, error) { return r.Message, checkAssistant(r.Message) }),
	ToolResult.Name:       node(ToolResult, func(r CallResult) (llm.Message, error) { return r.Message, checkToolResult(r.Message) }),
}

func reader[T any](t Type[T], check func(T) error) core {
	return core{read: func(e Event, data any) (any, error) {
		// What the state keeps is read from the log: data is the caller's. Of
		// chunks, which are many, it keeps nothing.
		d, ok := data.(T)
		if !ok || t.Name != AssistantChunk.Name {
			var err error
			if d, err = t.Decode(e); err != nil {
				return nil, err
			}
		}
		if err := check(d); err != nil {
			return nil, invalid(e, "data", "%w", err)
		}
		return d, nil
	}}
}

func node[T any](t Type[T], message func(T) (llm.Message, error)) core {
	// What the model sees is what the log says, so it is always read from there.
	return core{surface: true, read: func(e Event, _ any) (any, error) {
		data, err := t.Decode(e)
		if err != nil {
			return nil, err
		}
		m, err := message(data)
		if err != nil {
			return nil, invalid(e, "data.message", "%w", err)
		}
		return m, nil
	}}
}

func present(field, value string) error {
	if value == "" {
		return fmt.Errorf("has no %s", field)
	}
	return nil
}

func checkMessage(m llm.Message, role llm.Role) error {
	switch {
	case m.ID == "":
		return present("id", "")
	case m.Role != role:
		return fmt.Errorf("has role %q; expected %q", seams.Clip(string(m.Role), 80), role)
	case m.Source.Kind == "":
		return present("source.kind", "")
	}
	return nil
}

func checkUser(m llm.Message) error {
	if err := checkMessage(m, llm.User); err != nil {
		return err
	}
	if k := m.Source.Kind; k == llm.FromModel || k == llm.FromTool {
		return fmt.Errorf("has source %q, which is not a user's", k)
	}
	return without(m, llm.KindToolCall, llm.KindToolResult)
}

func checkAssistant(m llm.Message) error {
	if err := checkMessage(m, llm.Assistant); err != nil {
		return err
	}
	switch {
	case m.Source.Kind != llm.FromModel:
		return fmt.Errorf("has source %q; expected %q", seams.Clip(m.Source.Kind, 80), llm.FromModel)
	case m.Source.Provider == "":
		return present("source.provider", "")
	case m.Source.Model == "":
		return present("source.model", "")
	}
	calls := map[string]bool{}
	for _, c := range m.Content.ToolCalls() {
		if c.ID == "" || calls[c.ID] {
			return fmt.Errorf("holds a tool call whose id %q is empty or another's", seams.Clip(c.ID, 80))
		}
		calls[c.ID] = true
	}
	return without(m, llm.KindToolResult)
}

func checkToolResult(m llm.Message) error {
	if err := checkMessage(m, llm.User); err != nil {
		return err
	}
	if len(m.Content) == 1 {
		if r, ok := m.Content[0].(llm.ToolResult); ok && r.ToolCallID != "" {
			if m.Source.Kind != llm.FromTool || m.Source.CallID != r.ToolCallID {
				return fmt.Errorf("answers call %q, but its source is another", seams.Clip(r.ToolCallID, 80))
			}
			return nil
		}
	}
	return fmt.Errorf("must hold one tool-result block with a toolCallId and nothing else")
}

func without(m llm.Message, kinds ...string) error {
	for i, b := range m.Content {
		if slices.Contains(kinds, b.Kind()) {
			return fmt.Errorf("content[%d] is a %s block, which does not belong there", i, b.Kind())
		}
	}
	return nil
}

func checkTurnEnd(t TurnResult) error {
	r := t.Reason
	switch r.Kind {
	case Completed, Blocked, MaxTokens, Interrupted:
		if r.Cause == nil && r.Error == nil {
			return nil
		}
	case Aborted:
		if r.Cause != nil && r.Error == nil {
			return nil
		}
	case Failed, Limited:
		if r.Cause == nil && r.Error != nil {
			return nil
		}
	default:
		return fmt.Errorf("reason.kind %q is none of completed, aborted, blocked, error, max-tokens, limit, interrupted", seams.Clip(string(r.Kind), 80))
	}
	return fmt.Errorf("a reason of kind %q has another form", r.Kind)
}

func checkChunk(c Chunk) error {
	if c.Chunk == nil {
		return present("chunk", "")
	}
	return nil
}

func checkRequestHeader(h HeaderChange) error {
	switch h.Reason {
	case HeaderInitial, HeaderResume, HeaderChanged:
	default:
		return fmt.Errorf("reason %q is none of initial, resume, change", seams.Clip(string(h.Reason), 80))
	}
	if err := present("header.config.provider", h.Header.Config.Provider); err != nil {
		return err
	}
	return present("header.config.model", h.Header.Config.Model)
}

func checkRequestContext(c ModelContext) error {
	if c.ContextWindow < 0 {
		return fmt.Errorf("contextWindow is negative")
	}
	if err := present("provider", c.Provider); err != nil {
		return err
	}
	return present("model", c.Model)
}

func checkSplice(s Splice) error {
	switch {
	case s.Target != NextTurn && s.Target != NextStep:
		return fmt.Errorf("target %q is none of next-turn, next-step", seams.Clip(string(s.Target), 80))
	case s.Start < 0 || s.RemovedCount < 0:
		return fmt.Errorf("start and removedCount cannot be negative")
	case s.Outcome != "" && s.Outcome != "canceled":
		return fmt.Errorf(`outcome %q is not "canceled"`, seams.Clip(s.Outcome, 80))
	}
	return nil
}

// apply adds a committed event of a core type to the state.
func (s *State) apply(e Event, fact any) {
	switch d := fact.(type) {
	case Turn:
		s.Turn, s.Step, s.InTurn, s.InStep, s.TurnSeq = d.Turn, 0, true, false, e.Seq
	case TurnResult:
		s.InTurn, s.InStep, s.Boundary = false, false, e.Seq+1
	case Step:
		s.Step, s.InStep = d.Step, e.Type == StepStart.Name
	case HeaderChange:
		s.Header = &d.Header
	case ModelContext:
		s.Context = &d
	case TodoList:
		s.Todos = d.Todos
	case Nothing:
		s.EndSeed, s.Boundary = e.Seq, e.Seq+1
	}
}

// sameButContent reports whether two tool/result data differ at most in the
// content of their result.
func sameButContent(a, b json.RawMessage) bool {
	va, vb := withoutContent(a), withoutContent(b)
	return va != nil && reflect.DeepEqual(va, vb)
}

func withoutContent(data json.RawMessage) map[string]any {
	var v map[string]any
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	message, _ := v["message"].(map[string]any)
	blocks, _ := message["content"].([]any)
	if len(blocks) != 1 {
		return nil
	}
	block, _ := blocks[0].(map[string]any)
	delete(block, "content")
	return v
}
