package script

import (
	"context"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// verbs are ctx's own methods. Those of a mount are marked.
func verbs() []method {
	out := []method{
		{Method: Method{"on", "on(event: string, listener: (...args: any[]) => any, options?: { prepend?: boolean; global?: boolean }): Disposer",
			"Listens to an event until the plugin ends or the disposer is called. A listener of a waterfall gets `next` as its last argument and must return what `await next()` answers: one that does not call it cuts off all listeners after it and the default."},
			mount: true, call: func(_ context.Context, h *host, args []any) (any, error) { return h.on(args, false) }},
		{Method: Method{"once", "once(event: string, listener: (...args: any[]) => any, options?: { prepend?: boolean; global?: boolean }): Disposer",
			"Listens for one dispatch of an event."},
			mount: true, call: func(_ context.Context, h *host, args []any) (any, error) { return h.on(args, true) }},
		{Method: Method{"emit", "emit(event: string, ...args: any[]): Promise<void>",
			"Calls all listeners in order, whatever others do. The promise rejects with their errors."},
			async: true, call: dispatch(seams.Emit)},
		{Method: Method{"parallel", "parallel(event: string, ...args: any[]): Promise<void>",
			"Calls all listeners at once and awaits them all."},
			async: true, call: dispatch(seams.Parallel)},
		{Method: Method{"serial", "serial(event: string, ...args: any[]): Promise<any>",
			"Calls and awaits listeners in order until one answers something other than null, undefined and false, and answers that."},
			async: true, call: dispatch(seams.Serial)},
		{Method: Method{"bail", "bail(event: string, ...args: any[]): Promise<any>",
			"Like serial, for listeners that answer at once."},
			async: true, call: dispatch(seams.Bail)},
		{Method: Method{"waterfall", "waterfall(event: string, ...args: [...any[], () => any]): Promise<any>",
			"Nests the listeners around the last argument, the earliest outermost, and answers what the outermost answers."},
			async: true, call: dispatch(seams.Waterfall)},
		{Method: Method{"effect", "effect(setup: () => (() => any) | Iterable<() => any> | AsyncIterable<() => any> | void, label?: string): Disposer",
			"Runs setup and owns the disposers it answers: they run, last first, when the plugin ends."},
			mount: true},
		{Method: Method{"plugin", "plugin(plugin: Plugin, config?: any): Fiber",
			"Mounts a child plugin in this realm. It ends with this one."},
			args: []sandbox.Kind{sandbox.Child, sandbox.Data}, call: plugin},
		{Method: Method{"inject", "inject(services: string[], callback: (ctx: Context) => any): Fiber",
			"Runs callback as a child plugin while the services are all there."}},
		{Method: Method{"provide", "provide(service: string, value: any): Disposer",
			"Publishes a service: to others an object whose methods answer promises, a function that answers one, or a copy of data. It is seen when this plugin is active."},
			args: []sandbox.Kind{sandbox.Data, sandbox.Instance}, mount: true, call: provide},
		{Method: Method{"set", "set(service: string, value: any): void",
			"Replaces the value of a service that this plugin provides. Its users go on."},
			args: []sandbox.Kind{sandbox.Data, sandbox.Instance}, call: set},
		{Method: Method{"get", "get(service: string): any",
			"Reads a service that is declared in `inject`; in a plugin file also one that is not, undefined when it is absent."},
			mount: true},
	}
	for _, m := range timers {
		m.needs, m.mount = "timer", true
		out = append(out, m)
	}
	return out
}

// facade makes the façade of a file or of a mount.
func facade(all []service, vs []method, mount bool) *sandbox.Facade {
	f := &sandbox.Facade{OptionalGet: !mount}
	for _, v := range vs {
		if v.mount || !mount {
			f.Verbs = append(f.Verbs, v.sandbox())
		}
	}
	for _, s := range all {
		row := sandbox.Service{Name: s.Name, Open: s.open && !mount}
		for _, m := range s.methods {
			row.Methods = append(row.Methods, m.sandbox())
		}
		f.Services = append(f.Services, row)
	}
	return f
}

func (m *method) sandbox() sandbox.Method {
	return sandbox.Method{Name: m.Name, Async: m.async, Fetch: m.fetch, Args: m.args, Needs: m.needs}
}

// dispatch sends an event of the plugin's own.
func dispatch(mode seams.Mode) func(context.Context, *host, []any) (any, error) {
	return func(ctx context.Context, h *host, args []any) (any, error) {
		op := "ctx." + mode.String()
		name, err := textArg(op, args, 0, "the event's name")
		if err != nil {
			return nil, err
		}
		if _, declared := h.source.e.events[name]; declared || strings.HasPrefix(name, "internal/") {
			return nil, seams.Errorf(seams.NotExposed, op, "the event %q is the runtime's: plugins listen to it with ctx.on and do not send it", name)
		}
		d := seams.Dispatch{Event: name, Mode: mode}
		args = args[1:]
		if mode == seams.Waterfall {
			inner, err := funcArg(op, args, len(args)-1, "the innermost continuation")
			if err != nil {
				return nil, err
			}
			args = args[:len(args)-1]
			d.Default = func(ctx context.Context) (any, error) { return inner.Invoke(ctx) }
		}
		d.Payload = seams.Args(args)
		return h.ctx.Dispatch(context.WithValue(ctx, sentKey{}, sent{name, mode}), d)
	}
}

func provide(_ context.Context, h *host, args []any) (any, error) {
	name, err := textArg("ctx.provide", args, 0, "the service's name")
	if err != nil {
		return nil, err
	}
	undo, err := cordis.Provide(h.ctx, seams.Key[any]{Name: name}, arg(args, 1))
	return disposer(nil, undo, err)
}

func set(_ context.Context, h *host, args []any) (any, error) {
	name, err := textArg("ctx.set", args, 0, "the service's name")
	if err != nil {
		return nil, err
	}
	return nil, cordis.Set(h.ctx, seams.Key[any]{Name: name}, arg(args, 1))
}

// plugin mounts a child. It can use what its parent injects, and needs it as
// the parent does.
func plugin(_ context.Context, h *host, args []any) (any, error) {
	from, _ := arg(args, 0).(*sandbox.Plugin)
	if from == nil {
		return nil, seams.Errorf(seams.InvalidPlugin, "ctx.plugin", "argument 1: expected a plugin, got %s", kind(arg(args, 0)))
	}
	p, err := declare("ctx.plugin", from)
	if err != nil {
		return nil, err
	}
	injected := namesOf(from.Inject)
	for _, n := range h.injected {
		if !slices.Contains(injected, n) {
			injected = append(injected, n)
			p.Inject = append(p.Inject, cordis.Need{Name: n})
		}
	}
	p.Apply = func(ctx *cordis.Context, config any) error {
		child := &host{reading: h.reading, ctx: ctx, injected: injected}
		return child.apply(from, config)
	}
	f, err := h.ctx.Plugin(p, arg(args, 1))
	if err != nil {
		return nil, err
	}
	return fiber(f), nil
}

// fiber is a fiber as JavaScript sees it. Awaiting it waits for its start; the
// answer of that is not the fiber, which could be awaited again.
func fiber(f *cordis.Fiber) map[string]any {
	return map[string]any{
		"id": float64(f.ID()), "name": f.Name(),
		"state": sandbox.HostFunc(func(context.Context, []any) (any, error) { return f.State().String(), nil }),
		"dispose": sandbox.AsyncFunc(func(ctx context.Context, _ []any) (any, error) {
			return nil, f.Dispose().Wait(ctx)
		}),
		"then": sandbox.AsyncFunc(func(ctx context.Context, args []any) (any, error) {
			done, failed := arg(args, 0), arg(args, 1)
			if err := f.Settle(ctx); err != nil {
				if failed, ok := failed.(*sandbox.Func); ok {
					return failed.Invoke(ctx, err)
				}
				return nil, err
			}
			if done, ok := done.(*sandbox.Func); ok {
				return done.Invoke(ctx)
			}
			return nil, nil
		}),
	}
}
