package events

import (
	"encoding/json"

	"github.com/ouro-run/ouro/seams/llm"
)

// The core types of events. Turns count from 1 in a session, steps from 1 in a
// turn (dsh §5.6).
var (
	TurnStart        = Type[Turn]{Name: "turn/start"}
	TurnEnd          = Type[TurnResult]{Name: "turn/end"}
	StepStart        = Type[Step]{Name: "step/start"}
	StepEnd          = Type[Step]{Name: "step/end"}
	UserMessage      = Type[Message]{Name: "user/message", surface: true}
	AssistantChunk   = Type[Chunk]{Name: "assistant/chunk"}
	AssistantMessage = Type[Reply]{Name: "assistant/message", surface: true}
	ToolCall         = Type[Call]{Name: "tool/call"}
	ToolResult       = Type[CallResult]{Name: "tool/result", surface: true}
	RequestHeader    = Type[HeaderChange]{Name: "request/header"}
	RequestContext   = Type[ModelContext]{Name: "request/context"}
	TodoWrite        = Type[TodoList]{Name: "todo/write"}
	EndSeed          = Type[Nothing]{Name: "session/end-seed"}
	InboxSpliced     = Type[Splice]{Name: "agent/inbox/spliced"}
)

// Turn is the data of turn/start.
type Turn struct {
	Turn int `json:"turn"`
}

// Step is the data of step/start and step/end.
type Step struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// TurnResult is the data of turn/end.
type TurnResult struct {
	Turn   int       `json:"turn"`
	Reason EndReason `json:"reason"`
}

// EndReason says why a turn ended.
type EndReason struct {
	Kind  EndKind      `json:"kind"`
	Cause *Cause       `json:"reason,omitempty"` // of Aborted
	Error *llm.Failure `json:"error,omitempty"`  // of Failed and Limited
}

// EndKind is the kind of a turn's end.
type EndKind string

// Kinds of a turn's end.
const (
	Completed   EndKind = "completed"
	Aborted     EndKind = "aborted"
	Blocked     EndKind = "blocked"
	Failed      EndKind = "error"
	MaxTokens   EndKind = "max-tokens"
	Limited     EndKind = "limit"       // of steps, of repeats or of spend
	Interrupted EndKind = "interrupted" // the process died; written by repair
)

// Cause says who cancelled a turn.
type Cause struct {
	Kind   CauseKind `json:"kind"`
	Reason string    `json:"reason,omitempty"` // of ByHook
}

// CauseKind is the kind of a [Cause].
type CauseKind string

// Kinds of causes.
const (
	ByUser     CauseKind = "user"
	ByParent   CauseKind = "parent"
	ByHook     CauseKind = "hook"
	ByDisposal CauseKind = "disposed"
)

// Message is the data of user/message: a message of the user, or one a plugin
// puts before the model.
type Message struct {
	Message llm.Message `json:"message"`
}

// Chunk is the data of assistant/chunk, as the model's adapter gave it.
type Chunk struct {
	Turn  int       `json:"turn"`
	Step  int       `json:"step"`
	Chunk llm.Chunk `json:"chunk"`
}

// UnmarshalJSON reads the data with its chunk.
func (c *Chunk) UnmarshalJSON(data []byte) error {
	var w struct {
		Turn, Step int
		Chunk      json.RawMessage
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	chunk, err := llm.DecodeChunk(w.Chunk)
	*c = Chunk{w.Turn, w.Step, chunk}
	return err
}

// Reply is the data of assistant/message. It cites its chunks.
type Reply struct {
	Turn    int             `json:"turn"`
	Step    int             `json:"step"`
	Message llm.Message     `json:"message"`
	Usage   *llm.TokenUsage `json:"usage,omitempty"`
	// Interrupted marks the part of a reply that had come before a cancel.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Call is the data of tool/call, logged before the call starts. Arguments is
// the raw text the model wrote.
type Call struct {
	Turn      int    `json:"turn"`
	Step      int    `json:"step"`
	CallID    string `json:"callId"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// CallResult is the data of tool/result. It cites its tool/call.
type CallResult struct {
	Turn    int         `json:"turn"`
	Step    int         `json:"step"`
	Message llm.Message `json:"message"`
	Error   *CallError  `json:"error,omitempty"`
}

// CallError is the structured part of a failed call.
type CallError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// HeaderChange is the data of request/header, logged when a request's header
// differs from the one before.
type HeaderChange struct {
	Header Envelope     `json:"header"`
	Reason HeaderReason `json:"reason"`
}

// Envelope is what of a request is not messages.
type Envelope struct {
	Config llm.CallConfig `json:"config"`
	// AdapterDefaults names the fields of Config that the adapter filled in.
	AdapterDefaults []string         `json:"adapterDefaults,omitempty"`
	System          string           `json:"system,omitempty"`
	Tools           []llm.ToolSchema `json:"tools,omitempty"`
}

// HeaderReason says why a header was logged.
type HeaderReason string

// Reasons of request/header.
const (
	HeaderInitial HeaderReason = "initial"
	HeaderResume  HeaderReason = "resume"
	HeaderChanged HeaderReason = "change"
)

// ModelContext is the data of request/context.
type ModelContext struct {
	Provider      string `json:"provider"`
	Model         string `json:"model"`
	ContextWindow int    `json:"contextWindow,omitempty"` // tokens
}

// TodoList is the data of todo/write: the whole list; the last one counts.
type TodoList struct {
	Todos []Todo `json:"todos"`
}

// Todo is one item of a [TodoList].
type Todo struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// Nothing is the data of events that have none: {}.
type Nothing struct{}

// Splice is the data of agent/inbox/spliced: at Start, RemovedCount messages
// leave the list Target and Inserted come.
type Splice struct {
	Target       InboxList     `json:"target"`
	Start        int           `json:"start"`
	RemovedCount int           `json:"removedCount,omitempty"`
	Inserted     []llm.Message `json:"inserted"`
	Outcome      string        `json:"outcome,omitempty"` // "canceled" or ""
}

// InboxList is one of an inbox's two lists.
type InboxList string

// Lists of an inbox.
const (
	NextTurn InboxList = "next-turn"
	NextStep InboxList = "next-step"
)
