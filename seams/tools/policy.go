package tools

import (
	"context"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Events of the pipeline. All are dispatched in the call's scope.
var (
	// PreExecute decides whether a call may go on. The default allows. A
	// listener that answers nothing fails the call.
	PreExecute = seams.Event[*Exec, Decision]{Name: "tools/pre-execute", Mode: seams.Waterfall}
	// Around wraps the dispatch. The context given to next reaches the body,
	// joined with the caller's: a listener may shorten it, not extend it. A
	// listener may answer without next.
	Around = seams.Event[*Exec, *Result]{Name: "tools/execute", Mode: seams.Waterfall}
	// PostExecute judges the outcome, of denied and failed calls too. The
	// default accepts.
	PostExecute = seams.Event[Outcome, Verdict]{Name: "tools/post-execute", Mode: seams.Waterfall}
	// Results tells what came of a call. Failures of listeners are contained.
	Results = seams.Event[Outcome, struct{}]{Name: "tools/result", Mode: seams.Emit}
	// Changed says that a definition, a restriction or a guard came or went. It
	// is dispatched globally, while the owner registers: what comes is visible
	// once its owner is. An error of a listener undoes the registration.
	Changed = seams.Event[Change, struct{}]{Name: "tools/change", Mode: seams.Emit}
)

// Decision is the answer of [PreExecute].
type Decision struct {
	Kind   DecisionKind `json:"kind"`
	Reason string       `json:"reason,omitempty"`
}

// DecisionKind is the kind of a [Decision].
type DecisionKind string

// Kinds of decisions. Ask asks the [Approver].
const (
	Allow DecisionKind = "allow"
	Deny  DecisionKind = "deny"
	Ask   DecisionKind = "ask"
)

// Outcome is an execution with its result.
type Outcome struct {
	Exec   *Exec   `json:"exec"`
	Result *Result `json:"result"`
}

// Verdict is the answer of [PostExecute]: the zero Verdict accepts the result.
// At most one of Content and Value may be set, and neither with Block.
type Verdict struct {
	// Block makes the result a failure with Feedback as its text, and drops the
	// contexts it had.
	Block    bool   `json:"block,omitempty"`
	Feedback string `json:"feedback,omitempty"`
	// Content replaces what the model sees and keeps the value.
	Content llm.Content `json:"content,omitempty"`
	// Value replaces the value of a success; it is checked and rendered anew.
	Value *any `json:"value,omitempty"`
	// AdditionalContexts are added to those of the result.
	AdditionalContexts []llm.Message `json:"additionalContexts,omitempty"`
}

// Change is what [Changed] carries.
type Change struct {
	// What is "tool", "restriction" or "guard".
	What string `json:"what"`
	// Name of the tool, "" for others.
	Name string `json:"name,omitempty"`
	// Gone tells removal from registration.
	Gone bool `json:"gone,omitempty"`
}

// ApprovalKey is the service that answers questions of [PreExecute].
var ApprovalKey = seams.Key[Approver]{Name: "approval"}

// Approver asks a person, or whoever stands in for one, whether a call may run.
type Approver interface {
	// Request waits for the answer, or for ctx. An error is a failure to ask
	// and denies.
	Request(ctx context.Context, r ApprovalRequest) (Approval, error)
}

// ApprovalRequest describes the call a person is asked about.
type ApprovalRequest struct {
	Agent     string `json:"agent"`
	ToolName  string `json:"toolName"`
	CallID    string `json:"callId"`
	Arguments any    `json:"arguments"`
	Reason    string `json:"reason,omitempty"`
}

// Approval is the answer to an [ApprovalRequest].
type Approval string

// Answers. Unavailable says that nobody is there to answer.
const (
	AllowedOnce Approval = "allowed-once"
	Rejected    Approval = "rejected"
	Cancelled   Approval = "cancelled"
	Unavailable Approval = "unavailable"
)
