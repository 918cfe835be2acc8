package agents

import (
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Bus events of agents, dispatched in the agent's scope. Failures of listeners
// of the emitted ones are contained, except that an error of a listener of
// Created undoes the creation (dsh §5.4).
var (
	Created       = seams.Event[Notice, struct{}]{Name: "agent/created", Mode: seams.Emit}
	Disposed      = seams.Event[Notice, struct{}]{Name: "agent/disposed", Mode: seams.Emit}
	StatusChanged = seams.Event[StatusNotice, struct{}]{Name: "agent/status", Mode: seams.Emit}
	// SessionStart comes once, after Created and before the first turn.
	SessionStart = seams.Event[StartNotice, struct{}]{Name: "agent/session-start", Mode: seams.Emit}
	// Inserted, Claimed and Discarded tell of the inbox, in the order of its
	// changes.
	Inserted  = seams.Event[ItemNotice, struct{}]{Name: "agent/inbox/inserted", Mode: seams.Emit}
	Claimed   = seams.Event[ItemNotice, struct{}]{Name: "agent/inbox/claimed", Mode: seams.Emit}
	Discarded = seams.Event[ItemNotice, struct{}]{Name: "agent/inbox/discarded", Mode: seams.Emit}
	// PreStep decides whether a proposed step is entered, and with which
	// messages. The default enters with those proposed.
	PreStep = seams.Event[Proposal, Admission]{Name: "agent/pre-step", Mode: seams.Waterfall}
	// Request decides which model is asked, and how. The default is the agent's
	// options or, once a request was made with them, what that request used.
	Request = seams.Event[StepNotice, llm.CallConfig]{Name: "agent/request", Mode: seams.Waterfall}
	// RequestFailed may have a failed request made again within its step. The
	// default does not.
	RequestFailed = seams.Event[RequestFailure, Recovery]{Name: "agent/request-error", Mode: seams.Waterfall}
	// TurnStopping comes when a turn is about to end. Who objects steers the
	// agent; an error fails the turn.
	TurnStopping = seams.Event[TurnNotice, struct{}]{Name: "agent/turn-stopping", Mode: seams.Serial}
	// Failed tells why a turn, or the logging of its end, failed.
	Failed = seams.Event[FailureNotice, struct{}]{Name: "agent/error", Mode: seams.Emit}
)

// Notice names an agent.
type Notice struct {
	Agent *Agent `json:"agent"`
}

// StatusNotice is the payload of [StatusChanged].
type StatusNotice struct {
	Agent  *Agent `json:"agent"`
	Status Status `json:"status"`
}

// StartSource says whether an agent's session is new.
type StartSource string

// Sources of [SessionStart].
const (
	Startup StartSource = "startup"
	Resumed StartSource = "resume"
)

// StartNotice is the payload of [SessionStart].
type StartNotice struct {
	Agent  *Agent      `json:"agent"`
	Source StartSource `json:"source"`
}

// ItemNotice is a message of an inbox. Turn is the turn that claimed it, 0 in
// events other than [Claimed].
type ItemNotice struct {
	Agent   *Agent      `json:"agent"`
	Message llm.Message `json:"message"`
	Turn    int         `json:"turn,omitempty"`
}

// TurnNotice names a turn.
type TurnNotice struct {
	Agent *Agent `json:"agent"`
	Turn  int    `json:"turn"`
}

// StepNotice names a step.
type StepNotice struct {
	Agent *Agent `json:"agent"`
	Turn  int    `json:"turn"`
	Step  int    `json:"step"`
}

// Proposal is the payload of [PreStep]: the messages with which a step would
// begin. The list belongs to the dispatch.
type Proposal struct {
	Agent    *Agent        `json:"agent"`
	Turn     int           `json:"turn"`
	Step     int           `json:"step"`
	Messages []llm.Message `json:"messages"`
}

// Admission is the answer of [PreStep].
type Admission struct {
	Kind AdmissionKind `json:"kind"`
	// Messages are those the step begins with, of Enter.
	Messages []llm.Message `json:"messages,omitempty"`
}

// AdmissionKind is Enter or Reject.
type AdmissionKind string

// Kinds of [Admission].
const (
	Enter AdmissionKind = "enter"
	// Reject ends the turn as blocked; the messages claimed for the step are
	// lost.
	Reject AdmissionKind = "reject"
)

// RequestFailure is the payload of [RequestFailed]. RetryPolicy is the route's,
// nil if the request had no route.
type RequestFailure struct {
	Agent       *Agent           `json:"agent"`
	Turn        int              `json:"turn"`
	Step        int              `json:"step"`
	Provider    string           `json:"provider"`
	Failure     llm.Failure      `json:"failure"`
	RetryPolicy *llm.RetryPolicy `json:"retryPolicy,omitempty"`
}

// Recovery is the answer of [RequestFailed]: Retry, or nothing.
type Recovery struct {
	Kind RecoveryKind `json:"kind,omitempty"`
}

// RecoveryKind is Retry or "".
type RecoveryKind string

// Retry makes the request again within the same step.
const Retry RecoveryKind = "retry"

// FailureNotice is the payload of [Failed]. Step is 0 outside of steps.
type FailureNotice struct {
	Agent *Agent      `json:"agent"`
	Turn  int         `json:"turn"`
	Step  int         `json:"step"`
	Error llm.Failure `json:"error"`
}
