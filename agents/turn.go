package agents

import (
	"context"

	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// turn is one turn while it runs; it belongs to the driver.
type turn struct {
	*Agent
	act    *activity
	n      int
	step   int // the open or the last step, 0 before the first
	repeat repeats
}

// turn runs one turn and reports whether it ended so that the next may follow.
func (a *Agent) turn(act *activity) (normal bool) {
	if act.ctx.Err() != nil {
		return false
	}
	t := &turn{Agent: a, act: act, n: a.session.State().Turn + 1}
	if err := t.log(events.TurnStart.New(events.Turn{Turn: t.n})); err != nil {
		t.lost(err)
		return false
	}
	end, normal := t.run(act.ctx)
	if end.Kind == events.Failed {
		t.failed(*end.Error)
	}
	err := t.log(events.TurnEnd.New(events.TurnResult{Turn: t.n, Reason: end}))
	if err == nil {
		err = a.session.Flush(context.WithoutCancel(act.ctx))
	}
	t.lost(err)
	return normal && err == nil
}

// run takes the turn from its start to why it ends. normal is false when what
// waits in the inbox must not follow by itself (dsh §5.2).
func (t *turn) run(ctx context.Context) (end events.EndReason, normal bool) {
	end = events.EndReason{Kind: events.Completed}
	for owed := false; ; {
		opts, edits := t.settings()
		if over := opts.Limits.reached(t.step, t.spent); over != nil {
			return limited(over)
		}
		claimed, err := t.claim(ctx, t.n, t.step == 0)
		if err != nil {
			return t.failure(err)
		}
		s := &step{turn: t, opts: opts, edits: edits, n: t.step + 1}
		admitted, err := s.propose(ctx, claimed)
		switch {
		case err != nil || ctx.Err() != nil:
			return t.failure(err)
		case admitted.Kind == Reject:
			return events.EndReason{Kind: events.Blocked}, false
		case !owed && !s.adds(admitted.Messages):
			return end, t.step > 0
		}
		t.step = s.n
		out, err := s.run(ctx, admitted.Messages)
		switch {
		case err != nil || ctx.Err() != nil:
			return t.failure(err)
		case out.over != nil:
			return limited(out.over)
		case out.truncated:
			end = events.EndReason{Kind: events.MaxTokens}
		}
		if owed = out.owed; owed || t.hasNextStep() {
			continue
		}
		if _, err := TurnStopping.Dispatch(ctx, t.deps.Bus, t.scope, TurnNotice{t.Agent, t.n}, nil); err != nil || ctx.Err() != nil {
			return t.failure(err)
		}
		if !t.hasNextStep() {
			return end, true
		}
	}
}

func limited(over *llm.Failure) (events.EndReason, bool) {
	return events.EndReason{Kind: events.Limited, Error: over}, false
}

// failure is the end of a turn that was cancelled, which counts more, or failed.
func (t *turn) failure(err error) (events.EndReason, bool) {
	if c := t.cause(t.act); c != nil {
		return events.EndReason{Kind: events.Aborted, Cause: c}, false
	}
	f := llm.FailureOf(err)
	return events.EndReason{Kind: events.Failed, Error: &f}, false
}

// log appends an event of the turn, after a cancel too.
func (t *turn) log(d events.Draft) error {
	_, err := t.append(d)
	return err
}

func (t *turn) append(d events.Draft) (events.Event, error) {
	return t.session.Append(context.WithoutCancel(t.act.ctx), d)
}

// lost notes that the turn's start or end could not be logged.
func (t *turn) lost(err error) {
	t.mu.Lock()
	t.unlogged = err
	t.mu.Unlock()
	if err != nil {
		t.failed(llm.FailureOf(err))
	}
}

func (t *turn) failed(f llm.Failure) {
	notify(context.WithoutCancel(t.act.ctx), t.Agent, Failed, FailureNotice{t.Agent, t.n, t.step, f})
}
