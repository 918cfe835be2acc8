package tools

import (
	"context"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Call is the input of [Registry.Execute]. Cancelling the context cancels it.
type Call struct {
	ID     string
	RootID string // "" is ID
	Name   string
	// Arguments is a Go value of JSON shape; [ParseArguments] makes it of the
	// text a model wrote. Nil is an empty object.
	Arguments any
	Agent     string
	Scope     *seams.Scope
	Parent    *Exec
	// Barrier is called once before the body, after all policy; what the body
	// may rely on (the log's Flush) is done when it returned. Its error keeps
	// the body from running. Nil is no barrier.
	Barrier func(context.Context) error
	// BeforePost is called once when the outcome is there and phase 6 is next; a
	// caller that runs calls side by side orders their phase 6 by waiting in it.
	// Nil waits for nothing. ctx ends when the drain deadline of the tool's owner
	// passes: to wait on is to keep it from leaving.
	BeforePost func(ctx context.Context)
}

// Result is the outcome of a call. It is made by the pipeline, or by a listener
// of [Around] with [Success] or [Failed]; the zero Result is none.
type Result struct {
	IsError bool `json:"isError"`
	// Value is what the body returned, nil of a failure.
	Value   any         `json:"value,omitempty"`
	Content llm.Content `json:"content"`
	// Error is set exactly if IsError.
	Error *Failure `json:"error,omitempty"`
	// AdditionalContexts are for the agent's next step: those of the body, of
	// listeners of Around, of listeners of PostExecute, in this order.
	AdditionalContexts []llm.Message `json:"additionalContexts,omitempty"`
	ConcludesTurn      bool          `json:"concludesTurn,omitempty"`
}

// Failure says why a call failed. Code is "" for a denial.
type Failure struct {
	Message string     `json:"message"`
	Code    seams.Code `json:"code,omitempty"`
}

// Success is a result for a listener of [Around] that answers itself. The value
// is checked and rendered by the tool's definition; contexts are kept.
func Success(value any, contexts ...llm.Message) *Result {
	return &Result{Value: value, AdditionalContexts: contexts}
}

// Failed is a failed result for a listener of [Around] that answers itself.
func Failed(code seams.Code, message string, contexts ...llm.Message) *Result {
	return &Result{IsError: true, Error: &Failure{message, code}, AdditionalContexts: contexts}
}
