package script

import (
	"context"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
)

// Mount is code that an agent wrote.
type Mount struct {
	// ID names the mount in messages, stacks and the log.
	ID string
	// Code is the body of an async function that returns a plugin, or a module.
	Code string
	// Budgets bound its realm; the zero value is the engine's.
	Budgets sandbox.Budgets
	// Permit is asked before the mount injects a service or wraps a waterfall.
	// Its error refuses that and is what the code's author reads. It is called
	// on the realm's goroutine and must not wait. Nil permits everything.
	Permit func(Permission) error
}

// Permission is something a mount wants to do.
type Permission struct {
	Kind PermissionKind
	Name string // of the service or event
}

// PermissionKind is a kind of [Permission].
type PermissionKind string

// Kinds of permissions.
const (
	// Inject is to use a service.
	Inject PermissionKind = "inject"
	// Wrap is to listen to a waterfall, which can change or veto what it wraps.
	Wrap PermissionKind = "wrap"
)

// Deadlines of mounts (DECISIONS 4).
const (
	mountApply = 10 * time.Second
	mountCall  = 30 * time.Second
)

// Mount makes a plugin of an agent's code, with the narrow façade and without
// ambient authority. Each service it injects has been permitted when Mount
// returns. Errors are those of [Engine.File], and what Permit answers; they
// teach the forms a mount may have (X-26…X-37).
func (e *Engine) Mount(ctx context.Context, m Mount) (*cordis.Plugin, error) {
	program, err := e.compiler.Compile(compile.Source{Name: m.ID, Text: m.Code, Form: compile.Body})
	if err != nil {
		return nil, err
	}
	if m.Budgets == (sandbox.Budgets{}) {
		m.Budgets = e.opt.Budgets
	}
	s := &source{
		e: e, name: m.ID, program: program, facade: e.mount, budgets: m.Budgets,
		rules: rules{permit: m.Permit, marked: true, call: mountCall, apply: mountApply},
	}
	p, err := s.plugin(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range p.Inject {
		if err := s.rules.allows(Inject, n.Name); err != nil {
			if r := e.take(s); r != nil {
				_ = r.realm.Close(closeGrace)
			}
			return nil, err
		}
	}
	return p, nil
}

func (r rules) allows(kind PermissionKind, name string) error {
	if r.permit == nil {
		return nil
	}
	return r.permit(Permission{kind, name})
}
