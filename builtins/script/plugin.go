package script

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// source is a compiled source with what its realms get.
type source struct {
	e       *Engine
	name    string // in messages and stacks
	log     func(level, text string)
	program *sandbox.Program
	facade  *sandbox.Facade
	ambient sandbox.Ambient
	budgets sandbox.Budgets
	rules   rules
	made    *cordis.Plugin // of it; its inject is all that an activation is given
}

// rules are what a host holds its plugin to.
type rules struct {
	permit func(Permission) error // nil permits everything
	dead   func(error)            // nil tells nobody
	marked bool                   // tools must come from defineTool
	agent  string                 // whose rights its calls of tools have,
	scope  *seams.Scope           // unless they are a part of another call
	tools  int                    // at a time, zero for any number
	// Limits of a call of one of its tools and of its apply, zero for none.
	call, apply time.Duration
}

// reading is a realm in which a source's declaration was read.
type reading struct {
	source *source
	realm  *sandbox.Realm
	plugin *sandbox.Plugin
	fiber  atomic.Pointer[cordis.Fiber] // set while the plugin is active
}

// load evaluates the source in a new realm.
func (s *source) load(ctx context.Context) (*reading, error) {
	r := &reading{source: s}
	var err error
	r.realm, err = s.e.spare.New(context.Background(), sandbox.Options{
		Name: s.name, Facade: s.facade, Ambient: s.ambient, Budgets: s.budgets, Attribution: s.e.attribution,
		Log:    s.log,
		Report: func(err error) { r.report("script", err) },
		Dead:   r.died,
	})
	if err != nil {
		return nil, err
	}
	if limit := s.rules.apply; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, seams.Errorf(seams.Timeout, s.name, "the code did not end within %v: do not await what does not come", limit))
		defer cancel()
	}
	if r.plugin, err = r.realm.Load(ctx, s.program); err != nil {
		_ = r.realm.Close(closeGrace)
		return nil, err
	}
	return r, nil
}

func (r *reading) report(phase string, err error) {
	r.source.e.opt.Report(cordis.Report{Fiber: r.fiber.Load(), Phase: phase, Label: r.source.name, Err: err})
}

// died takes the plugin down with its realm. One that is still loading fails
// with the error of its apply.
func (r *reading) died(err error) {
	if f := r.fiber.Load(); f != nil {
		if dead := r.source.rules.dead; dead != nil {
			dead(err)
		}
		r.report("script", err)
		f.Dispose()
	}
}

// plugin reads the declaration and makes a container plugin of it.
func (s *source) plugin(ctx context.Context) (*cordis.Plugin, error) {
	r, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	p, err := declare(s.name, r.plugin)
	if err != nil {
		_ = r.realm.Close(closeGrace)
		return nil, err
	}
	p.ApplyTimeout = s.rules.apply
	p.Apply = s.activate
	s.made = p
	s.e.keep(r)
	return p, nil
}

// declare translates a declaration; Apply is left out.
func declare(name string, from *sandbox.Plugin) (*cordis.Plugin, error) {
	p := &cordis.Plugin{Name: from.Name, Provide: from.Provide, Exclusive: from.Exclusive}
	for _, n := range from.Inject {
		need, err := needOf(name, n)
		if err != nil {
			return nil, err
		}
		p.Inject = append(p.Inject, need)
	}
	if from.Config != nil {
		c, err := schema.Load(from.Config)
		if err != nil {
			return nil, seams.Errorf(seams.CodeOf(err), name, "%w", err)
		}
		p.Config = c
	}
	return p, nil
}

func needOf(name string, n sandbox.Inject) (cordis.Need, error) {
	meta, ok := n.Config.(map[string]any)
	if !ok && n.Config != nil && n.Config != true {
		return cordis.Need{}, seams.Errorf(seams.InvalidPlugin, name, "inject.%s: expected an object that configures the service %s, or null, got %s; to inject services write inject: ['tools', …]", n.Name, n.Name, kind(n.Config))
	}
	return cordis.Need{Name: n.Name, Meta: meta}, nil
}

// activate is Apply of the container plugin. What it is given is what was
// declared when the plugin was made, whatever another evaluation declares, and
// is permitted anew: who provides it may have changed.
func (s *source) activate(ctx *cordis.Context, config any) error {
	var injected []string
	for _, n := range s.made.Inject {
		if err := s.rules.allows(Inject, n.Name); err != nil {
			return err
		}
		injected = append(injected, n.Name)
	}
	r := s.e.take(func(r *reading) bool { return r.source == s })
	if r == nil || r.realm.Err() != nil {
		if r != nil {
			_ = r.realm.Close(closeGrace)
		}
		var err error
		if r, err = s.load(ctx.Context()); err != nil {
			return err
		}
	}
	end := func(context.Context) error { return r.realm.Close(closeGrace) }
	if _, err := ctx.Effect(fmt.Sprintf("realm(%s)", s.name), func(context.Context) (seams.Undo, error) { return end, nil }); err != nil {
		_ = end(nil)
		return err
	}
	h := &host{reading: r, ctx: ctx, injected: injected}
	if err := h.apply(r.plugin, config); err != nil {
		return err
	}
	r.fiber.Store(ctx.Fiber())
	return r.realm.Err() // a realm that died before that has nobody told
}

func namesOf(needs []sandbox.Inject) []string {
	out := make([]string, len(needs))
	for i, n := range needs {
		out[i] = n.Name
	}
	return out
}

// apply runs a plugin of the host's realm with its configuration; none is {}.
func (h *host) apply(p *sandbox.Plugin, config any) error {
	if config == nil {
		config = map[string]any{}
	}
	return p.Apply(h.ctx.Context(), sandbox.Activation{Host: h, Inject: h.injected, Config: config})
}
