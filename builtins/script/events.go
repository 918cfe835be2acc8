package script

import (
	"context"
	"sync/atomic"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// event is a row of the declared events with its binding.
type event struct {
	Event
	listen func(o seams.Owner, l *listener) (seams.Undo, error)
}

// crossing makes of an event's payload the arguments of a listener.
type crossing[P any] func(ctx context.Context, p P) ([]any, error)

// observed is an event whose listeners answer nothing.
func observed[P any](e seams.Event[P, struct{}], args crossing[P], signature, summary, doc string) event {
	return observing(e, (*listener).notify, args, signature, summary, doc)
}

// awaited is an event that waits for its listeners.
func awaited[P any](e seams.Event[P, struct{}], args crossing[P], signature, summary, doc string) event {
	return observing(e, (*listener).settle, args, signature, summary, doc)
}

// noted is an event that is dispatched while something registers, perhaps from
// within a synchronous call of JavaScript: its listeners hear of it afterwards,
// in order.
func noted[P any](e seams.Event[P, struct{}], args crossing[P], signature, summary, doc string) event {
	return observing(e, func(l *listener, _ context.Context, args []any) error { return l.later(args) }, args, signature, summary, doc)
}

func observing[P any](e seams.Event[P, struct{}], call func(*listener, context.Context, []any) error, args crossing[P], signature, summary, doc string) event {
	return event{Event{e.Name, e.Mode, summary, signature, doc}, func(o seams.Owner, l *listener) (seams.Undo, error) {
		return e.On(o, func(ctx context.Context, p P, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			a, err := args(ctx, p)
			if err != nil {
				return struct{}{}, err
			}
			return struct{}{}, call(l, ctx, a)
		})
	}}
}

// wrapped is a waterfall. An answer that is what next answered, unchanged, is
// passed on as the very value; another one is read.
func wrapped[P, R any](e seams.Event[P, R], args crossing[P], show func(R) (any, error), read func(op string, v any) (R, error), signature, summary, doc string) event {
	return event{Event{e.Name, e.Mode, summary, signature, doc}, func(o seams.Owner, l *listener) (seams.Undo, error) {
		return e.On(o, func(ctx context.Context, p P, next func(context.Context) (R, error)) (R, error) {
			var zero R
			a, err := args(ctx, p)
			if err != nil {
				return zero, err
			}
			type inner struct {
				r     R
				shown any
			}
			var in atomic.Pointer[inner]
			a = append(a, sandbox.AsyncFunc(func(ctx context.Context, _ []any) (any, error) {
				r, err := next(ctx)
				if err != nil {
					return nil, err
				}
				shown, err := show(r)
				if err == nil {
					in.Store(&inner{r, shown})
				}
				return shown, err
			}))
			v, err := l.fn.Call(ctx, a...)
			switch was := in.Load(); {
			case l.gone(err):
				return next(ctx)
			case err != nil:
				return zero, err
			case v == nil:
				return zero, seams.Errorf(seams.InvalidArgument, e.Name, "a listener of %s in %s answered nothing: return what `await next()` answers, or a value of its form", e.Name, l.h.source.name)
			case was != nil && schema.Equal(was.shown, v):
				return was.r, nil
			}
			return read(e.Name, v)
		})
	}}
}

func asData[R any](r R) (any, error) { return encode(r) }

// asJSON gives a payload as one object, with the signal of the dispatch.
func asJSON[P any](ctx context.Context, p P) ([]any, error) {
	m, err := encodeObject(p)
	if err != nil {
		return nil, err
	}
	m["signal"] = ctx
	return []any{m}, nil
}

// read reads an answer that is R in JSON.
func read[R any](op string, v any) (R, error) {
	return decode[R](seams.InvalidArgument, op, v, true)
}

// declaredEvents is the table of events, in the order in which they are shown.
func declaredEvents() []event {
	return []event{
		wrapped(tools.PreExecute, execution, asData, read[tools.Decision],
			"(exec: ToolExec, next: () => Promise<Decision>) => Promise<Decision>",
			"before a tool call runs: allow, deny or ask",
			"Returns {kind: 'allow'}, {kind: 'deny', reason} or {kind: 'ask', reason?}. Arguments cannot be changed."),
		wrapped(tools.Around, execution, asData, readResult,
			"(exec: ToolExec, next: () => Promise<ToolResult>) => Promise<ToolResult>",
			"around a tool call's dispatch",
			"Returns what next answers, or a result of its own, which is checked like one of the tool: {isError: false, value} or {isError: true, error: {message, code?}}."),
		wrapped(tools.PostExecute, outcome, showVerdict, readVerdict,
			"(exec: ToolExec, result: ToolResult, next: () => Promise<Verdict>) => Promise<Verdict>",
			"after a tool call, denied and failed ones too: accept or block its result",
			"Returns {kind: 'accept'}, with content (what the model sees) or value to replace them, or {kind: 'block', feedback}."),
		observed(tools.Results, outcomeAlone,
			"(exec: Omit<ToolExec, 'signal'>, result: ToolResult) => void",
			"what came of a tool call", ""),
		noted(tools.Changed, asJSONAlone[tools.Change],
			"(change: { what: 'tool' | 'restriction' | 'guard'; name?: string; gone?: boolean }) => void",
			"a tool came or went", ""),
		streamEvent,
		observed(agents.Created, asJSONAlone[agents.Notice], "(e: { agent: Agent }) => void", "an agent was created", "An error undoes the creation."),
		observed(agents.Disposed, asJSONAlone[agents.Notice], "(e: { agent: Agent }) => void", "an agent is gone", ""),
		observed(agents.StatusChanged, asJSONAlone[agents.StatusNotice], "(e: { agent: Agent; status: 'idle' | 'running' }) => void", "an agent began or ended to work", ""),
		observed(agents.SessionStart, asJSONAlone[agents.StartNotice], "(e: { agent: Agent; source: 'startup' | 'resume' }) => void", "an agent's session starts, before its first turn", ""),
		observed(agents.Inserted, asJSONAlone[agents.ItemNotice], "(e: { agent: Agent; message: Message }) => void", "a message came into an agent's inbox", ""),
		observed(agents.Claimed, asJSONAlone[agents.ItemNotice], "(e: { agent: Agent; message: Message; turn: number }) => void", "a turn took a message from the inbox", ""),
		observed(agents.Discarded, asJSONAlone[agents.ItemNotice], "(e: { agent: Agent; message: Message }) => void", "a message of the inbox was dropped", ""),
		wrapped(agents.PreStep, asJSON[agents.Proposal], asData, readAdmission,
			"(e: { agent: Agent; turn: number; step: number; messages: Message[]; signal: AbortSignal }, next: () => Promise<{ kind: 'enter'; messages: Message[] } | { kind: 'reject' }>) => Promise<{ kind: 'enter'; messages: Message[] } | { kind: 'reject' }>",
			"whether a step begins, and with which messages",
			"Returns {kind: 'enter', messages} or {kind: 'reject'}. A message without an id gets one."),
		wrapped(agents.Request, asJSON[agents.StepNotice], asData, read[llm.CallConfig],
			"(e: { agent: Agent; turn: number; step: number; signal: AbortSignal }, next: () => Promise<LlmCallConfig>) => Promise<LlmCallConfig>",
			"which model a step asks, and how",
			"Returns what next answers, changed or not."),
		wrapped(agents.RequestFailed, asJSON[agents.RequestFailure], asData, read[agents.Recovery],
			"(e: { agent: Agent; turn: number; step: number; provider: string; failure: Failure; retryPolicy?: RetryPolicy; signal: AbortSignal }, next: () => Promise<{ kind?: 'retry' }>) => Promise<{ kind?: 'retry' }>",
			"a model request failed: make it again or not",
			"Returns {kind: 'retry'} to make the request again within the step, or what next answers."),
		awaited(agents.TurnStopping, asJSON[agents.TurnNotice],
			"(e: { agent: Agent; turn: number; signal: AbortSignal }) => void | Promise<void>",
			"a turn is about to end", "An error fails the turn."),
		observed(agents.Failed, asJSONAlone[agents.FailureNotice], "(e: { agent: Agent; turn: number; step: number; error: Failure }) => void", "a turn failed", ""),
		observed(events.Created, session, "(session: SessionInfo) => void", "a session is live", "An error undoes that."),
		observed(events.Disposed, session, "(session: SessionInfo) => void", "a session is no longer live", ""),
		observed(events.Appended, appended, "(session: SessionInfo, event: SessionEvent) => void", "an event was committed to a session's log", ""),
		awaited(events.Flushing, session, "(session: SessionInfo) => void | Promise<void>", "make durable what is kept of a session", "The flush returns when all listeners have, and fails with their errors."),
		observed(loader.ReloadEvent, asJSONAlone[loader.Reload], "(e: { files: string[] }) => void", "changed files were applied; what they brought may still be loading", ""),
		noted(cordis.StatusEvent, func(_ context.Context, c cordis.StatusChange) ([]any, error) {
			return []any{fiberInfo(c.Fiber, c.New), c.Old.String()}, nil
		}, "(fiber: FiberInfo, oldState: string) => void", "a plugin's state changed", ""),
		noted(cordis.ServiceEvent, func(_ context.Context, c cordis.ServiceChange) ([]any, error) { return []any{c.Name}, nil },
			"(service: string) => void", "a service appeared, changed or vanished", ""),
		noted(cordis.PluginEvent, func(_ context.Context, f *cordis.Fiber) ([]any, error) { return []any{fiberInfo(f, f.State())}, nil },
			"(fiber: FiberInfo) => void", "a plugin was mounted, or is gone", ""),
	}
}

// asJSONAlone is asJSON without the signal, of events that do not wait for what
// their listeners go on to do.
func asJSONAlone[P any](_ context.Context, p P) ([]any, error) {
	m, err := encodeObject(p)
	return []any{m}, err
}

func fiberInfo(f *cordis.Fiber, s cordis.State) map[string]any {
	m := map[string]any{"id": float64(f.ID()), "name": f.Name(), "state": s.String()}
	if f.Entry() != "" {
		m["entry"] = f.Entry()
	}
	return m
}

func session(_ context.Context, s events.Session) ([]any, error) {
	return []any{sessionInfo(s.Header())}, nil
}

func appended(_ context.Context, n events.Notice) ([]any, error) {
	e, err := encode(n.Event)
	return []any{sessionInfo(n.Session.Header()), e}, err
}

func sessionInfo(h events.Header) map[string]any {
	m := map[string]any{"id": h.ID, "createdAt": float64(h.CreatedAt)}
	if h.CWD != "" {
		m["cwd"] = h.CWD
	}
	if h.ParentSession != "" {
		m["parentSession"] = h.ParentSession
	}
	return m
}

// readAdmission is the answer of agent/pre-step.
func readAdmission(op string, v any) (agents.Admission, error) {
	a, err := read[agents.Admission](op, v)
	if err == nil && a.Kind != agents.Enter && a.Kind != agents.Reject {
		err = seams.Errorf(seams.InvalidArgument, op, "kind is %q; expected 'enter' or 'reject'", a.Kind)
	}
	for i := range a.Messages {
		identify(&a.Messages[i])
	}
	return a, err
}

// identify mints the identity of a message that JavaScript made.
func identify(m *llm.Message) {
	if m.ID == "" {
		m.ID = llm.NewMessage(m.Role, m.Source).ID
	}
}
