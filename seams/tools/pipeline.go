package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Execute runs one call through all phases and returns its result, which is
// never nil. A body that was started has ended when Execute returns.
func (r *Registry) Execute(ctx context.Context, c Call) *Result {
	x := &run{r: r, caller: ctx, barrier: c.Barrier, beforePost: c.BeforePost, exec: &Exec{
		CallID: c.ID, RootCallID: c.RootID, Name: c.Name, Agent: c.Agent, Scope: c.Scope, Parent: c.Parent,
	}}
	switch {
	case c.RootID != "":
	case c.Parent != nil:
		x.exec.RootCallID = c.Parent.RootCallID
	default:
		x.exec.RootCallID = c.ID
	}
	x.found, x.known = r.find(c.Scope, c.Name)
	var err error
	x.exec.Arguments, err = snapshotArguments(c.Arguments)
	res := x.finalize(x.judge(err))
	x.leave()
	if _, err := Results.Dispatch(context.WithoutCancel(ctx), r.opt.Bus, c.Scope, Outcome{x.exec, res.copy()}, nil); err != nil {
		r.opt.Contained(ctx, err)
	}
	return res
}

// run is one call on its way through the phases.
type run struct {
	r          *Registry
	caller     context.Context
	barrier    func(context.Context) error
	beforePost func(context.Context)
	exec       *Exec

	// found is the definition the call works with: the one seen when it began
	// until the dispatch looks it up anew and takes its owner's lease.
	found seams.Entry[*tool]
	known bool
	frame context.Context // of the lease; ends with its drain deadline only
	exit  func()          // nil while there is no lease

	started bool // the body was called
}

// judge runs the phases 2 to 6. snapshot is the failure of phase 1.
func (x *run) judge(snapshot error) *Result {
	if snapshot != nil {
		return x.failure(snapshot)
	}
	if x.caller.Err() != nil {
		return x.aborted()
	}
	denial, err := x.authorize()
	if err != nil {
		return x.failure(err)
	}
	switch {
	case denial != nil:
		return x.review(denial)
	case x.caller.Err() != nil:
		return x.review(x.aborted())
	}
	var core, shown *Result // of the dispatch, and the copy that listeners see
	inside := gate{}
	around, answered := context.WithCancel(x.caller)
	res, err := Around.Dispatch(around, x.r.opt.Bus, x.exec.Scope, x.exec, func(ctx context.Context) (*Result, error) {
		if !inside.enter() {
			return nil, seams.Errorf(seams.InactiveEffect, Around.Name, "next was called after the listener had answered")
		}
		defer inside.leave()
		core = x.dispatch(ctx, around)
		shown = core.copy()
		return shown, nil
	})
	// A listener may have answered without waiting for next.
	answered()
	inside.close()
	switch {
	case err != nil:
		return x.failure(err)
	case res == shown && res != nil:
		res = core
	default:
		res = x.adopt(res)
	}
	return x.review(x.settle(res))
}

// gate lets calls in until it is closed, and its close waits for them.
type gate struct {
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.calls.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.calls.Done() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.calls.Wait()
}

// authorize asks listeners, a person and guards, in this order. The result is a
// denial, or nil if the call may go on; an error is the failure of a listener.
func (x *run) authorize() (*Result, error) {
	d, err := PreExecute.Dispatch(x.caller, x.r.opt.Bus, x.exec.Scope, x.exec, func(context.Context) (Decision, error) {
		return Decision{Kind: Allow}, nil
	})
	if err != nil {
		return nil, err
	}
	switch d.Kind {
	case Allow:
	case Deny:
		return denied(d.Reason, "The call was denied."), nil
	case Ask:
		if denial, err := x.ask(d.Reason); denial != nil || err != nil {
			return denial, err
		}
	default:
		return nil, seams.Errorf(seams.InvalidArgument, PreExecute.Name, "a listener of %s answered decision %q; expected allow, deny or ask: return what next() returns to allow", PreExecute.Name, d.Kind)
	}
	return x.guard()
}

func (x *run) ask(reason string) (*Result, error) {
	if x.exec.Agent == "" {
		return denied(reason, "The call needs approval, and no agent makes it that could be asked for."), nil
	}
	approver, give := x.r.opt.Approver()
	if approver == nil {
		return denied(reason, "The call needs approval, and no approval service is provided."), nil
	}
	defer give()
	var answer Approval
	err := contain("approval", func() (err error) {
		answer, err = approver.Request(x.caller, ApprovalRequest{x.exec.Agent, x.exec.Name, x.exec.CallID, x.exec.Arguments, reason})
		return
	})
	switch {
	case x.caller.Err() != nil && (err != nil || answer == Cancelled):
		return x.aborted(), nil
	case err != nil:
		return nil, err
	}
	switch answer {
	case AllowedOnce:
		return nil, nil
	case Rejected:
		return denied("", "The user rejected this call."), nil
	case Cancelled:
		return denied("", "The request for approval was cancelled."), nil
	case Unavailable:
		return denied("", "The call needs approval, and nobody can answer."), nil
	}
	return nil, seams.Errorf(seams.InvalidArgument, "tools.ask", "the approval service answered %q; expected allowed-once, rejected, cancelled or unavailable", answer)
}

// guard calls the guards in order of registration, those that come meanwhile
// too, until one denies.
func (x *run) guard() (*Result, error) {
	for last := ""; ; {
		guards := x.r.guards.All(x.exec.Scope)
		i := slices.IndexFunc(guards, func(e seams.Entry[Guard]) bool { return e.Name > last })
		if i < 0 {
			return nil, nil
		}
		last = guards[i].Name
		ctx, exit, err := guards[i].Claim.Enter(x.caller)
		if err != nil {
			continue // its owner has left
		}
		var reason string
		err = contain("guard", func() (err error) { reason, err = guards[i].Value(ctx, x.exec); return })
		exit()
		switch {
		case err != nil:
			return denied("A guard failed: "+message(err), ""), nil
		case reason != "":
			return denied(reason, ""), nil
		}
	}
}

// dispatch is the innermost of phase 5. ctx is what the listeners around it
// made of the context given to them, which is joined to it again.
func (x *run) dispatch(ctx, around context.Context) *Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(around, func() { cancel(context.Cause(around)) })()
	if x.caller.Err() != nil || ctx.Err() != nil {
		return x.aborted()
	}
	if err := x.enter(ctx); err != nil {
		return x.failure(err)
	}
	def := x.found.Value
	if err := def.checkArguments(x.exec.Arguments); err != nil {
		return x.failure(err)
	}
	if x.barrier != nil {
		if err := contain("barrier", func() error { return x.barrier(ctx) }); err != nil {
			if x.caller.Err() != nil {
				return x.aborted()
			}
			return x.failure(err)
		}
	}
	if ctx.Err() != nil {
		return x.aborted()
	}
	value, err := x.body(ctx, def)
	if err != nil {
		return x.failure(err)
	}
	res := &Result{}
	res.AdditionalContexts, res.ConcludesTurn = x.exec.noted()
	return x.with(res, value)
}

// enter looks the tool up and takes its owner's lease, once for a call. A
// version that leaves meanwhile is passed over for the one that takes its place.
func (x *run) enter(ctx context.Context) error {
	if x.exit != nil {
		return nil
	}
	for {
		e, ok := x.r.find(x.exec.Scope, x.exec.Name)
		if !ok {
			return x.unknown()
		}
		frame, exit, err := e.Claim.Enter(context.WithoutCancel(ctx))
		if err == nil {
			x.found, x.known, x.frame, x.exit = e, true, frame, exit
			return nil
		}
		if again, ok := x.r.find(x.exec.Scope, x.exec.Name); ok && again.Claim == e.Claim {
			return x.unknown()
		}
	}
}

// leave ends the lease.
func (x *run) leave() {
	if x.exit != nil {
		x.exit()
	}
}

// body runs Execute within its time limit. ctx is the dispatch's, without the
// limits of the lease.
func (x *run) body(ctx context.Context, def *tool) (value any, err error) {
	frame, end := context.WithCancelCause(x.frame)
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	errTimeout := errors.New("tool timeout") // of this call, not of one it is part of
	if def.Timeout > 0 {
		var cancel context.CancelFunc
		frame, cancel = context.WithTimeoutCause(frame, def.Timeout, errTimeout)
		defer cancel()
	}
	x.started = true
	err = contain("tool "+def.Name, func() (err error) {
		value, err = def.Execute(frame, x.exec, x.exec.Arguments)
		return
	})
	if context.Cause(frame) == errTimeout {
		return nil, seams.Errorf(seams.ToolTimeout, "", "the tool did not end within %v; what it did until then stays done", def.Timeout)
	}
	if code := seams.CodeOf(err); code == seams.Unknown || code == seams.Aborted {
		switch {
		case x.caller.Err() != nil && errors.Is(err, context.Canceled):
			err = seams.Errorf(seams.Aborted, "", "%s", message(err))
		case ctx.Err() == nil && x.frame.Err() != nil:
			err = seams.Errorf(seams.Unloaded, "", "the plugin of this tool was unloaded while it ran: %s", message(err))
		}
	}
	return value, err
}

// unknown names the tools there are, the likely one first.
func (x *run) unknown() error {
	var names []string
	for _, e := range x.r.visible(x.exec.Scope) {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	hint := ""
	if near := schema.Suggest(x.exec.Name, names); near != "" {
		hint = fmt.Sprintf(" Did you mean %q?", near)
	}
	return seams.Errorf(seams.UnknownTool, "", "there is no tool %q.%s Available tools: %s", seams.Clip(x.exec.Name, 80), hint, list(names))
}

// adopt makes a result of its own of one that a listener of Around answered:
// a success is checked and rendered as if the body had returned it.
func (x *run) adopt(from *Result) *Result {
	switch {
	case from == nil:
		return x.failure(seams.Errorf(seams.InvalidArgument, Around.Name, "a listener of %s answered nothing: return what next() returns, or a result", Around.Name))
	case from.IsError:
		res := from.copy()
		if res.Error == nil {
			res.Error = &Failure{Message: "The call failed."}
		}
		failure := *res.Error
		res.Value, res.Error, res.Content = nil, &failure, failure.content()
		return res
	}
	if err := x.enter(x.caller); err != nil {
		return from.spoiled(err)
	}
	return x.with(from, from.Value)
}

// with returns a success like res with another value, checked and rendered, or
// the failure to do so.
func (x *run) with(res *Result, value any) *Result {
	def := x.found.Value
	value, err := def.checkOutput(value)
	if err != nil {
		return res.spoiled(err)
	}
	content, err := def.render(x.exec.Arguments, value)
	if err != nil {
		return res.spoiled(err)
	}
	out := res.copy()
	out.Value, out.Content = value, content
	return out
}

// settle lets a cancel of the caller overtake a success, not a failure.
func (x *run) settle(res *Result) *Result {
	if res.IsError || x.caller.Err() == nil {
		return res
	}
	if !x.started {
		return x.aborted()
	}
	out := failed(seams.Aborted, "The call was cancelled while it ran; what it did until then stays done.")
	out.AdditionalContexts = res.AdditionalContexts
	return out
}

// review is phase 6.
func (x *run) review(res *Result) *Result {
	if x.beforePost != nil {
		ctx := x.frame
		if ctx == nil {
			ctx = context.WithoutCancel(x.caller)
		}
		x.beforePost(ctx)
	}
	v, err := PostExecute.Dispatch(x.caller, x.r.opt.Bus, x.exec.Scope, Outcome{x.exec, res.copy()}, func(context.Context) (Verdict, error) {
		return Verdict{}, nil
	})
	if err != nil {
		return res.spoiled(err)
	}
	bad := func(what string) *Result {
		return res.spoiled(seams.Errorf(seams.InvalidArgument, PostExecute.Name, "a listener of %s answered %s", PostExecute.Name, what))
	}
	out := res.copy()
	switch {
	case v.Block && (v.Content != nil || v.Value != nil):
		return bad("block with a replacement; give one or the other")
	case v.Block:
		out = denied(v.Feedback, "The result was withheld.")
		out.AdditionalContexts = v.AdditionalContexts
		return out
	case v.Content != nil && v.Value != nil:
		return bad("a content and a value; give one of them")
	case v.Content != nil:
		if err := checkContent(v.Content); err != nil {
			return bad("content that cannot be shown: " + message(err))
		}
		out.Content = slices.Clone(v.Content)
	case v.Value != nil && res.IsError:
		return bad("a value for a failed call")
	case v.Value != nil:
		if out = x.with(out, *v.Value); out.IsError {
			return out
		}
	}
	out.AdditionalContexts = slices.Concat(out.AdditionalContexts, v.AdditionalContexts)
	return x.settle(out)
}

// finalize is phase 7.
func (x *run) finalize(res *Result) *Result {
	if !x.known || x.found.Value.FinalizeContent == nil {
		return res
	}
	ctx := context.WithoutCancel(x.caller)
	if x.exit == nil { // denied or cancelled before the dispatch
		frame, exit, err := x.found.Claim.Enter(ctx)
		if err != nil {
			return res // its owner has left, and nothing of it runs any more
		}
		ctx, x.exit = frame, exit
	}
	var content llm.Content
	err := contain("tool "+x.found.Name, func() (err error) {
		content, err = x.found.Value.FinalizeContent(ctx, x.exec, res.copy())
		return
	})
	if err == nil && content != nil {
		err = checkContent(content)
	}
	if err != nil {
		return res.spoiled(err)
	}
	if content != nil {
		res = res.copy()
		res.Content = slices.Clone(content)
	}
	return res
}

// aborted is the result of a call whose body never ran.
func (x *run) aborted() *Result {
	return failed(seams.AbortedBeforeDispatch, "The call was cancelled before the tool ran; it had no effect.")
}

// failure is the result of an error, with what the body had noted until then.
func (x *run) failure(err error) *Result {
	res := &Result{}
	res.AdditionalContexts, res.ConcludesTurn = x.exec.noted()
	return res.spoiled(err)
}

// spoiled is the failure that takes r's place; r's contexts stay.
func (r *Result) spoiled(err error) *Result {
	code := seams.CodeOf(err)
	if code == seams.Unknown {
		code = ""
	}
	out := failed(code, message(err))
	out.AdditionalContexts, out.ConcludesTurn = r.AdditionalContexts, r.ConcludesTurn
	return out
}

func failed(code seams.Code, text string) *Result {
	f := &Failure{text, code}
	return &Result{IsError: true, Error: f, Content: f.content()}
}

// denied is the result of a refusal, with the first text that is not empty.
func denied(reason, otherwise string) *Result {
	if reason == "" {
		reason = otherwise
	}
	return failed("", reason)
}

// content shows a failure to the model: always one text block.
func (f *Failure) content() llm.Content {
	text := f.Message
	if !strings.HasPrefix(text, "Error: ") {
		text = "Error: " + text
	}
	if f.Code != "" {
		text += " [" + string(f.Code) + "]"
	}
	return llm.Content{llm.Text{Text: text}}
}

// copy returns a result whose fields can be changed without changing r's.
func (r *Result) copy() *Result {
	c := *r
	return &c
}

// contain calls f and makes an error of its panic.
func contain(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = seams.Errorf(seams.Panicked, "", "%s panicked: %v", what, p)
		}
	}()
	return f()
}

// message is an error's text without the code that stands beside it.
func message(err error) string {
	var e *seams.Error
	if errors.As(err, &e) && e == err && e.Msg != "" {
		return e.Msg
	}
	return err.Error()
}
