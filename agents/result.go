package agents

import (
	"context"
	"errors"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// Subtype says how a run ended.
type Subtype string

// Subtypes of a [Result].
const (
	Success   Subtype = "success"
	Errored   Subtype = "error"
	Cancelled Subtype = "cancelled"
	Limit     Subtype = "limit"
)

// Result is what came of a run; its JSON is the result line of `ouro run`.
type Result struct {
	Type    string  `json:"type"` // "result"
	Subtype Subtype `json:"subtype"`
	IsError bool    `json:"is_error"` // of every subtype but Success
	// Text is the text of the last reply.
	Text       string         `json:"result"`
	Error      *ResultError   `json:"error,omitempty"` // if IsError
	SessionID  string         `json:"session_id"`
	NumTurns   int            `json:"num_turns"`
	NumSteps   int            `json:"num_steps"`
	Usage      llm.TokenUsage `json:"usage"`
	CostUSD    *float64       `json:"cost_usd,omitempty"` // if there is a price
	DurationMS int64          `json:"duration_ms"`
}

// ResultError says why a run did not succeed.
type ResultError struct {
	Code    seams.Code `json:"code"`
	Message string     `json:"message"`
	Status  int        `json:"status,omitempty"` // HTTP, 0 if none
}

// Run sends a message that gets a turn of its own and returns when the agent is
// idle again, with what the log says of the time between. When ctx ends before
// that, the agent is cancelled and waited for: run by what another agent runs,
// its parent has cancelled it. A message that was not sent cancels nothing.
func (a *Agent) Run(ctx context.Context, m llm.Message) Result {
	began, from := time.Now(), a.session.Len()
	err := a.Followup(ctx, m)
	sent := err == nil
	if sent {
		err = a.WhenIdle(ctx)
	}
	if sent && ctx.Err() != nil {
		cause := events.Cause{Kind: events.ByUser}
		if _, child := From(ctx); child {
			cause.Kind = events.ByParent
		}
		whole := context.WithoutCancel(ctx)
		_ = a.Cancel(whole, cause, false)
		err = a.WhenIdle(whole)
	}
	if err == nil {
		err = a.session.Flush(context.WithoutCancel(ctx))
		if errors.Is(err, seams.SessionNotLive) {
			err = nil // the agent was disposed when it had become idle; closing flushed
		}
	}
	if err == nil {
		a.mu.Lock()
		err = a.unlogged
		a.mu.Unlock()
	}
	var log []events.Event
	if sent {
		log = a.session.Events(from)
	}
	r := Summarize(a.ID(), log)
	switch {
	case err != nil && r.Subtype != Cancelled && (sent || ctx.Err() == nil):
		r.fail(Errored, llm.FailureOf(err))
	case ctx.Err() != nil && r.NumTurns == 0:
		r.fail(Cancelled, aborted(events.ByUser))
	}
	if p := a.Options().Price; p != nil {
		cost := p.Of(r.Usage)
		r.CostUSD = &cost
	}
	r.DurationMS = time.Since(began).Milliseconds()
	return r
}

// Summarize makes the result of a session's run of the events it logged. Cost
// and duration are the caller's to fill in.
func Summarize(session string, log []events.Event) Result {
	r := Result{Type: "result", Subtype: Success, SessionID: session}
	r.fail(Errored, llm.Failure{Code: seams.Unknown, Message: "no turn was run"})
	for _, e := range log {
		switch e.Type {
		case events.StepStart.Name:
			r.NumSteps++
		case events.AssistantChunk.Name:
			if c, err := events.AssistantChunk.Decode(e); err == nil {
				if u, ok := c.Chunk.(llm.Usage); ok {
					r.Usage = r.Usage.Add(u.Usage)
				}
			}
		case events.AssistantMessage.Name:
			if reply, err := events.AssistantMessage.Decode(e); err == nil {
				r.Text = reply.Message.Content.Text()
			}
		case events.InboxSpliced.Name:
			if s, err := events.InboxSpliced.Decode(e); err == nil && s.Outcome != "" && r.NumTurns == 0 {
				r.fail(Cancelled, aborted(events.ByUser))
			}
		case events.TurnEnd.Name:
			r.NumTurns++
			if end, err := events.TurnEnd.Decode(e); err == nil {
				r.end(end.Reason)
			}
		}
	}
	return r
}

func (r *Result) end(reason events.EndReason) {
	switch reason.Kind {
	case events.Completed:
		r.Subtype, r.IsError, r.Error = Success, false, nil
	case events.MaxTokens:
		r.fail(Limit, llm.Failure{Code: seams.MaxTokensReached, Message: "the reply was cut off at the model's output limit"})
	case events.Limited:
		r.fail(Limit, *reason.Error)
	case events.Aborted:
		r.fail(Cancelled, aborted(reason.Cause.Kind))
	case events.Blocked:
		r.fail(Errored, llm.Failure{Code: seams.Rejected, Message: "a plugin did not let the turn go on"})
	case events.Interrupted:
		r.fail(Errored, llm.Failure{Code: seams.Unknown, Message: "the process ended during the turn"})
	default:
		r.fail(Errored, *reason.Error)
	}
}

func (r *Result) fail(s Subtype, f llm.Failure) {
	r.Subtype, r.IsError, r.Error = s, true, &ResultError{f.Code, f.Message, f.Status}
}

func aborted(by events.CauseKind) llm.Failure {
	return llm.Failure{Code: seams.Aborted, Message: "the run was cancelled: " + string(by)}
}
