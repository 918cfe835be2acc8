package script

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Mount is code that an agent wrote.
type Mount struct {
	// ID names the mount in messages, stacks and the log.
	ID string
	// Code is the body of an async function that returns a plugin, or a module.
	Code string
	// Budgets bound its realm; the zero value is the engine's.
	Budgets sandbox.Budgets
	// Apply and Call bound its apply and each call of its tools; zero is 10 s and
	// 30 s.
	Apply, Call time.Duration
	// Agent and Scope are those of who mounts: with their rights the mount calls
	// tools, where it does not as a part of somebody's call. A nil Scope is that
	// of the context it is mounted in.
	Agent string
	Scope *seams.Scope
	// Permit is asked before the mount injects a service, when it is made and
	// each time it starts, and before it listens to an event whether it may wrap
	// it. Its error refuses the service, or the waterfall, and is what the code's
	// author reads; to other events the mount then listens as an observer, whose
	// errors, answers and delays change nothing. It may be called on the realm's
	// goroutine and must not wait. Nil permits everything.
	Permit func(Permission) error
	// Dead is told, once, why the realm of the running plugin died. The plugin is
	// disposed then. It must return at once. Nil tells nobody.
	Dead func(error)
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

// Limits of mounts.
const (
	mountApply = 10 * time.Second
	mountCall  = 30 * time.Second
	mountTools = 64 // at a time
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
		log: func(level, text string) {
			for line := range strings.Lines(text + "\n") {
				e.opt.Log("[cordis:"+m.ID+"]", level, strings.TrimSuffix(line, "\n"))
			}
		},
		rules: rules{permit: m.Permit, dead: m.Dead, marked: true, agent: m.Agent, scope: m.Scope, tools: mountTools, call: cmp.Or(m.Call, mountCall), apply: cmp.Or(m.Apply, mountApply)},
	}
	p, err := s.plugin(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range p.Inject {
		if err := s.rules.allows(Inject, n.Name); err != nil {
			e.Release(p)
			return nil, err
		}
	}
	return p, nil
}

// Release ends the realm that is kept for the first activation of a plugin. One
// that has started, or that starts later, is not affected.
func (e *Engine) Release(p *cordis.Plugin) {
	if r := e.take(func(r *reading) bool { return r.source.made == p }); r != nil {
		_ = r.realm.Close(closeGrace)
	}
}

func (r rules) allows(kind PermissionKind, name string) error {
	if r.permit == nil {
		return nil
	}
	return r.permit(Permission{kind, name})
}
