package tools

import (
	"context"
	"sync"
	"time"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Definition is one tool. Only Name, Description and Parameters reach the
// model. It is copied when it is registered.
type Definition struct {
	// Name is what the model calls: 1 to 64 letters, digits, '_' or '-', as
	// every provider takes it.
	Name        string
	Description string
	// Parameters describes the arguments, an object. Nil is an object without
	// properties.
	Parameters *schema.Schema
	// Output describes the value and how the model sees it. Nil accepts any
	// JSON value and shows a string as it is and everything else as JSON.
	Output *Output
	// Execute is the body. args is the checked JSON value (map[string]any). The
	// result must be a JSON value. ctx ends when the caller cancels, when
	// Timeout has passed or when the owner's drain deadline has; a started body
	// is always waited for.
	Execute func(ctx context.Context, exec *Exec, args any) (any, error)
	// FinalizeContent is the last change of what the model sees. It is called
	// once for each call, failed ones too. A nil answer keeps the content; an
	// error makes the call a failure and is not shown to FinalizeContent again.
	FinalizeContent func(ctx context.Context, exec *Exec, r *Result) (llm.Content, error)
	// Timeout bounds the body, zero is no bound. When it has passed the body's
	// ctx ends and the call is TOOL_TIMEOUT once the body has returned.
	Timeout time.Duration
	// IsConcurrencySafe reports whether a call with these arguments may run
	// beside others. Nil, a panic and arguments that do not check are false.
	IsConcurrencySafe func(args any) bool
}

// Output is the contract of a tool's value.
type Output struct {
	// Schema is checked against the value; nil accepts any JSON value.
	Schema *schema.Schema
	// Render makes of the value what the model sees; nil shows a string as it
	// is and everything else as JSON.
	Render func(args, value any) (llm.Content, error)
}

// Exec is one execution, as listeners, guards and the body see it. Its fields
// are set before the first of them runs and are not modified.
type Exec struct {
	CallID     string
	RootCallID string // of the outermost call this one is part of; CallID if none
	Name       string
	Arguments  any          // JSON-shaped
	Agent      string       // id of the calling agent, which is its session's id; "" if none
	Scope      *seams.Scope // where the tool is looked up and events are dispatched
	Parent     *Exec        // the execution whose body made this call; nil if none

	mu        sync.Mutex
	deferred  []llm.Message
	concludes bool
}

// DeferContext hands the agent a message for its next step, after the result.
// Calls made after the body has returned have no effect.
func (e *Exec) DeferContext(m llm.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deferred = append(e.deferred, m)
}

// ConcludeTurn asks that the turn end after this step. A body that makes calls
// of its own passes their marks on by calling it.
func (e *Exec) ConcludeTurn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.concludes = true
}

func (e *Exec) noted() ([]llm.Message, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.deferred, e.concludes
}
