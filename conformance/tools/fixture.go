package toolstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// Registry is what the suite asks of an implementation.
type Registry interface {
	Register(o seams.Owner, d tools.Definition) (seams.Undo, error)
	Guard(o seams.Owner, g tools.Guard) (seams.Undo, error)
	Restrict(o seams.Owner, f tools.Filter) (seams.Undo, error)
	Schemas(scope *seams.Scope) []llm.ToolSchema
	ExecutionMode(ctx context.Context, scope *seams.Scope, name string, args any) tools.ExecutionMode
	Execute(ctx context.Context, c tools.Call) *tools.Result
}

// stage is a registry in a container, with an owner and a record of what ran.
type stage struct {
	bus      *harness.Bus
	owner    *harness.Owner
	reg      Registry
	approver tools.Approver

	mu    sync.Mutex
	trace []string
}

func newStage(make func(tools.Options) Registry) *stage {
	s := &stage{bus: harness.NewBus()}
	s.owner = s.bus.Owner("plugin", nil)
	s.reg = make(tools.Options{Bus: s.bus, Approver: func() (tools.Approver, func()) { return s.approver, func() {} }})
	return s
}

func (s *stage) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, what)
}

func (s *stage) ran() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.trace, " ")
}

// tool registers a tool named "t" whose body notes "body" and answers f.
func (s *stage) tool(f func(ctx context.Context, exec *tools.Exec, args any) (any, error), with ...func(*tools.Definition)) {
	d := tools.Definition{Name: "t", Description: "a tool", Execute: func(ctx context.Context, exec *tools.Exec, args any) (any, error) {
		s.note("body")
		if f == nil {
			return "done", nil
		}
		return f(ctx, exec, args)
	}}
	for _, w := range with {
		w(&d)
	}
	must(s.reg.Register(s.owner, d))
}

// watch notes the phases of the pipeline as they pass.
func (s *stage) watch() {
	s.pre(func(ctx context.Context, x *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
		s.note("pre")
		return next(ctx)
	})
	must(s.reg.Guard(s.owner, func(context.Context, *tools.Exec) (string, error) { s.note("guard"); return "", nil }))
	s.around(func(ctx context.Context, x *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
		s.note("around")
		return next(ctx)
	})
	s.post(func(ctx context.Context, o tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
		s.note("post")
		return next(ctx)
	})
	must(tools.Results.On(s.owner, func(context.Context, tools.Outcome, func(context.Context) (struct{}, error)) (struct{}, error) {
		s.note("result")
		return struct{}{}, nil
	}))
}

func (s *stage) pre(f func(context.Context, *tools.Exec, func(context.Context) (tools.Decision, error)) (tools.Decision, error)) {
	must(tools.PreExecute.On(s.owner, f))
}

func (s *stage) around(f func(context.Context, *tools.Exec, func(context.Context) (*tools.Result, error)) (*tools.Result, error)) {
	must(tools.Around.On(s.owner, f))
}

func (s *stage) post(f func(context.Context, tools.Outcome, func(context.Context) (tools.Verdict, error)) (tools.Verdict, error)) {
	must(tools.PostExecute.On(s.owner, f))
}

// decide answers every call in phase 3.
func (s *stage) decide(d tools.Decision) {
	s.pre(func(context.Context, *tools.Exec, func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
		return d, nil
	})
}

// verdict answers every call in phase 6.
func (s *stage) verdict(v tools.Verdict) {
	s.post(func(context.Context, tools.Outcome, func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
		return v, nil
	})
}

func (s *stage) call(ctx context.Context, args any) *tools.Result {
	return s.reg.Execute(ctx, tools.Call{ID: "c1", Name: "t", Arguments: args, Agent: "main"})
}

// answers is an approver that gives one answer.
type answers struct {
	tools.Approval
	err error
	got *tools.ApprovalRequest
}

func (a answers) Request(_ context.Context, r tools.ApprovalRequest) (tools.Approval, error) {
	if a.got != nil {
		*a.got = r
	}
	return a.Approval, a.err
}

func note(text string) llm.Message {
	return llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: "p"}, llm.Text{Text: text})
}

func texts(ms []llm.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content.Text())
	}
	return strings.Join(out, " ")
}

func must(_ seams.Undo, err error) {
	if err != nil {
		panic(err)
	}
}

// all joins what is wrong.
func all(errs ...error) error { return errors.Join(errs...) }

func equal(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %#v, want %#v", what, got, want)
	}
	return nil
}

// fails checks that a result is a failure of a code whose text says something.
func fails(r *tools.Result, code seams.Code, says string) error {
	switch {
	case r == nil:
		return errors.New("no result")
	case !r.IsError || r.Error == nil:
		return fmt.Errorf("expected a failure, got value %#v", r.Value)
	case r.Value != nil:
		return fmt.Errorf("a failure with the value %#v", r.Value)
	case r.Error.Code != code:
		return fmt.Errorf("code %q (%s), want %q", r.Error.Code, r.Error.Message, code)
	case len(r.Content) != 1 || r.Content[0].Kind() != llm.KindText:
		return fmt.Errorf("the content of a failure is one text block, got %d", len(r.Content))
	case !strings.Contains(r.Content.Text(), says) || !strings.Contains(r.Content.Text(), string(code)):
		return fmt.Errorf("text %q does not say %q and %q", r.Content.Text(), says, code)
	}
	return nil
}

// succeeds checks a success.
func succeeds(r *tools.Result, value any, text string) error {
	if r.IsError {
		return fmt.Errorf("failed: %s", r.Error.Message)
	}
	return all(equal("value", r.Value, value), equal("content", r.Content.Text(), text))
}
