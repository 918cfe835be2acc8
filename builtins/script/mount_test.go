package script_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/tools"
)

// mounted mounts an agent's code and waits until it is at rest.
func (w *world) mounted(id, code string) (*cordis.Fiber, error) {
	w.Helper()
	p, err := w.engine.Mount(w.Context(), script.Mount{ID: id, Code: code})
	if err != nil {
		return nil, err
	}
	f, err := w.root.Plugin(p, nil)
	if err != nil {
		return nil, err
	}
	return f, f.Settle(w.Context())
}

//
func TestMount(t *testing.T) {
	w := newWorld(t)
	f, err := w.mounted("dyn-1", `return { name: 'adder', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add', description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: async ({ a, b }) => a + b,
  }))
  ctx.on('tools/result', (exec, r) => console.log(exec.name, r.value, atob(btoa('한'))))
  return () => console.log('down')
} }`)
	if err != nil {
		t.Fatal(err)
	}
	if r := w.tools.Execute(w.Context(), callTool("add", map[string]any{"a": 1.0, "b": 2.0})); r.Value != 3.0 {
		t.Errorf("result = %+v", r)
	}
	w.expect("add 3 한")
	if got := w.log()[0]; got != "[[cordis:dyn-1]] info add 3 한" {
		t.Errorf("the line is tagged %q", got)
	}
	w.dispose(f)
	if r := w.tools.Execute(w.Context(), callTool("add", map[string]any{"a": 1.0, "b": 2.0})); r.Error == nil || r.Error.Code != seams.UnknownTool {
		t.Errorf("after unmount: %+v", r)
	}
	w.expect("add 3 한", "down")
}

// X-17 and the other forms of code; a mount may be a module, and TypeScript.
func TestMountForms(t *testing.T) {
	for _, c := range []struct{ code, name string }{
		{`return (ctx) => { console.log('up') }`, ""},
		{`return function greeter(ctx) { console.log('up') }`, "greeter"},
		{`return { apply() { console.log('up') } }`, ""},
		{`export const name = 'module'
export function apply(ctx) { console.log('up') }`, "module"},
		{`const x: string = 'up'; return { name: 'typed', apply(ctx: any): void { console.log(x as string) } }`, "typed"},
		{`module.exports = { name: 'common', apply() { console.log('up') } }`, "common"},
		{`import { defineTool } from 'ouro'
return { name: 'imports', apply() { console.log(defineTool ? 'up' : '') } }`, "imports"},
	} {
		w := newWorld(t)
		p, err := w.engine.Mount(w.Context(), script.Mount{ID: "dyn-1", Code: c.code})
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		if p.Name != c.name {
			t.Errorf("%s: name %q, want %q", c.code, p.Name, c.name)
		}
		w.mount(p, nil)
		w.expect("up")
	}
}

// … … …X-57: mistakes are answered with what
// to do.
func TestMountTeaches(t *testing.T) {
	for _, c := range []struct {
		row, code string
		says      string
	}{
		{"X-27", `({ name: 'x', apply() {} })`, "`return` is missing"},
		{"X-27", `return 7`, "is not a plugin"},
		{"X-35", "return { apply(ctx) {\n  const a = [1, 2\n} }", "dyn-1:3:"},
		{"X-26", `throw new Error('top')`, "top"},
		{"X-26", `throw null`, "null"},
		{"X-28", `return (ctx) => { throw new TypeError('apply fails') }`, "apply fails"},
		{"X-31", `require('fs'); return () => {}`, "inject"},
		{"X-31", `import fs from 'node:fs'; return () => fs.x`, "inject the fs service"},
		{"X-31", `return () => { setTimeout(() => {}, 1) }`, "timer"},
		{"X-31", `return async () => { await fetch('http://x') }`, "http"},
		{"X-24", `return { inject: ['tools'], apply(ctx) { ctx.tools.register({ name: 't', description: 'd', execute() {} }) } }`, "harness.defineTool"},
		{"X-24", `return { inject: ['tools'], apply(ctx) { ctx.get('tools').register({ name: 't', description: 'd', execute() {} }) } }`, "harness.defineTool"},
		{"X-51", `return (ctx) => { ctx.root }`, "withheld"},
		{"X-51", `return (ctx) => { ctx.plugin(() => {}) }`, "not exposed"},
		{"X-51", `return (ctx) => { ctx.registry }`, "withheld"},
		{"X-51", `return (ctx) => { ctx.emit('x') }`, "not exposed"},
		{"X-53", `return (ctx) => { ctx.foo = 1 }`, "ctx.provide"},
		{"X-56", `return (ctx) => { ctx.llm }`, "inject: ['llm']"},
		{"X-56", `return (ctx) => { ctx.get('llm') }`, "inject: ['llm']"},
		{"X-57", `return (ctx) => { ctx.get('nosuch') }`, "nosuch"},
		{"timer", `return (ctx) => { ctx.setTimeout(() => {}, 1) }`, "inject: ['timer']"},
		{"X-52", `return { inject: ['tools'], apply(ctx) { ctx.tools.restrict({}) } }`, "it has register, schemas, get, execute"},
	} {
		w := newWorld(t)
		_, err := w.mounted("dyn-1", c.code)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v\nwant %q", c.row, c.code, err, c.says)
		}
		if n := len(w.tools.Schemas(nil)); n != 0 {
			t.Errorf("%s: %d tools are left", c.code, n)
		}
	}
}

// a name that is taken is refused, and the tool that has it stays.
func TestMountDuplicateTool(t *testing.T) {
	w := newWorld(t)
	const code = `return { inject: ['tools'], apply(ctx) { ctx.tools.register(harness.defineTool({ name: 't', description: 'd', execute: () => 'first' })) } }`
	if _, err := w.mounted("dyn-1", code); err != nil {
		t.Fatal(err)
	}
	if _, err := w.mounted("dyn-2", code); !errors.Is(err, seams.Duplicate) {
		t.Errorf("err = %v", err)
	}
	if r := w.tools.Execute(w.Context(), callTool("t", nil)); r.Value != "first" {
		t.Errorf("the first tool answers %+v", r)
	}
}

//
func TestMountRealm(t *testing.T) {
	w := newWorld(t)
	_, err := w.mounted("dyn-1", `globalThis.leak = 1
return { inject: ['tools', 'timer'], async apply(ctx) {
  await ctx.sleep(1)
  ctx.setTimeout(() => console.log('timer'), 1)
  console.log(typeof process, typeof Buffer, ctx[Symbol('x')] === undefined, 'tools' in ctx, 'root' in ctx, 'setTimeout' in ctx, ctx.tools.get('nosuch') === undefined, [] instanceof Array)
} }`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.mounted("dyn-2", `return () => console.log(typeof leak)`); err != nil {
		t.Fatal(err)
	}
	for len(w.said()) < 3 {
		time.Sleep(time.Millisecond)
	}
	said := strings.Join(w.said(), "|")
	for _, want := range []string{"undefined undefined true true false true true true", "timer", "|undefined"} {
		if !strings.Contains("|"+said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}

// What a mount may not do is refused by who was asked, before it runs.
func TestMountPermit(t *testing.T) {
	w := newWorld(t)
	var asked []script.Permission
	permit := func(p script.Permission) error {
		asked = append(asked, p)
		if p.Name == "fs" || p.Kind == script.Wrap {
			return seams.Errorf(seams.AccessDenied, "policy", "add %s", p.Name)
		}
		return nil
	}
	_, err := w.engine.Mount(w.Context(), script.Mount{ID: "dyn-1", Code: `return { inject: ['tools', 'fs'], apply() { console.log('runs') } }`, Permit: permit})
	if !errors.Is(err, seams.AccessDenied) || !strings.Contains(err.Error(), "add fs") {
		t.Errorf("inject: %v", err)
	}
	p, err := w.engine.Mount(w.Context(), script.Mount{ID: "dyn-2", Code: `return (ctx) => { ctx.on('tools/result', () => {}); ctx.on('mine', () => {}); ctx.on('tools/execute', (e, next) => next()) }`, Permit: permit})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.root.Plugin(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Settle(w.Context()); !errors.Is(err, seams.AccessDenied) || !strings.Contains(err.Error(), "add tools/execute") {
		t.Errorf("wrap: %v", err)
	}
	for _, want := range []script.Permission{{Kind: script.Inject, Name: "tools"}, {Kind: script.Inject, Name: "fs"}, {Kind: script.Wrap, Name: "tools/execute"}} {
		if !slices.Contains(asked, want) {
			t.Errorf("asked %v, not %v", asked, want)
		}
	}
	w.expect()
}

// A mount calls other tools with the rights of who calls its own, else with
// those of who mounted it.
func TestMountCallsTools(t *testing.T) {
	w := newWorld(t)
	w.tool(`{ name: 'inner', description: 'd', execute: (args, exec) => exec.agent }`)
	scope := seams.NewScope("mounter", nil)
	if _, err := w.tools.Restrict(w.root.WithScope(scope), tools.Filter{Deny: []string{"inner"}}); err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]struct {
		scope *seams.Scope
		want  string
	}{"free": {nil, "false mounter"}, "bound": {scope, "true UNKNOWN_TOOL"}} {
		p, err := w.engine.Mount(w.Context(), script.Mount{ID: id, Agent: "mounter", Scope: c.scope, Code: `return { inject: ['tools'], async apply(ctx) {
  ctx.tools.register(harness.defineTool({ name: 'outer_` + id + `', description: 'd', execute: async () => (await ctx.tools.execute({ name: 'inner' })).value }))
  const r = await ctx.tools.execute({ name: 'inner' })
  console.log(r.isError, r.value ?? r.error.code)
} }`})
		if err != nil {
			t.Fatal(err)
		}
		w.mount(p, nil)
		if said := w.said(); said[len(said)-1] != c.want {
			t.Errorf("%s: said %q, want %q", id, said, c.want)
		}
		call := callTool("outer_"+id, nil)
		call.Agent = "agent-1"
		if r := w.tools.Execute(w.Context(), call); r.Value != "agent-1" {
			t.Errorf("result = %+v", r)
		}
	}
}

// Plugins that mean harm, or are merely wrong, are contained and charged.
func TestHostile(t *testing.T) {
	for _, c := range []struct {
		name, code string
		code2      seams.Code
	}{
		{"endless", `while (true) {}`, seams.OverBudget},
		{"endless apply", `return () => { while (true) {} }`, seams.OverBudget},
		{"endless microtasks", `return async () => { for (;;) await null }`, seams.OverBudget},
		{"recursion", `return () => { const f = () => f() + 1; f() }`, seams.OverBudget},
		{"generators", `return () => { function* g() { yield* g() } ; [...g()] }`, ""},
		{"getter", `return { get apply() { throw new Error('trap') } }`, seams.ScriptError},
		{"getter of name", `return { get name() { throw new Error('trap') }, apply() {} }`, seams.ScriptError},
		{"proxy", `return new Proxy({ apply() {} }, { get() { throw new Error('trap') } })`, seams.ScriptError},
		{"inject", `return { inject: Array(1e6).fill('x'), apply() {} }`, ""},
		{"then", `return { then(ok) { ok({ then() { throw new Error('trap') } }) } }`, seams.ScriptError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *script.Options) { o.Budgets = sandbox.Budgets{Turn: 400 * time.Millisecond} })
			_, err := w.mounted("dyn-1", c.code)
			if err == nil || c.code2 != "" && seams.CodeOf(err) != c.code2 && !errors.Is(err, c.code2) {
				t.Errorf("err = %v, want %s", err, c.code2)
			}
			if _, err := w.mounted("dyn-2", `return () => console.log('alive')`); err != nil {
				t.Error(err)
			}
			w.expect("alive")
		})
	}
}

// An apply that never settles is cut off, and undone.
func TestApplyNeverSettles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.file("never.js", `module.exports = async (ctx) => { ctx.effect(() => () => console.log('undone')); await new Promise(() => {}) }`)
		p.ApplyTimeout = 30 * time.Millisecond
		f, err := w.root.Plugin(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Settle(w.Context()); err == nil {
			t.Error("no error")
		}
		w.expect("undone")
	})
}

// A plugin whose realm dies later is disposed, and the cause reported, coded and
// charged to it; others go on.
func TestRealmDies(t *testing.T) {
	w := newWorld(t, func(o *script.Options) { o.Budgets = sandbox.Budgets{Turn: 400 * time.Millisecond} })
	f := w.js("dies.js", `module.exports = { name: 'dies', inject: ['tools'], apply(ctx) {
  ctx.tools.register({ name: 't', description: 'd', execute() { while (true) {} } })
  ctx.on('spin', () => { while (true) {} })
} }`)
	w.js("lives.js", `module.exports = (ctx) => { ctx.on('ping', () => console.log('pong')) }`)
	r := w.tools.Execute(w.Context(), callTool("t", nil))
	if !r.IsError || r.Error.Code != seams.OverBudget {
		t.Errorf("result = %+v", r.Error)
	}
	if err := f.Gone().Wait(w.Context()); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	reports := w.reports
	w.mu.Unlock()
	if len(reports) == 0 || !errors.Is(reports[0].Err, seams.OverBudget) || reports[0].Fiber != f {
		t.Errorf("reports = %v", reports)
	}
	w.emit("ping")
	w.expect("pong")
	if n := len(w.tools.Schemas(nil)); n != 0 {
		t.Errorf("%d tools are left", n)
	}
}

// An observer holds up nothing that it observes, however long it takes, and sees
// what was sent even when the sender has changed it since.
func TestObserverIsNotWaitedFor(t *testing.T) {
	end := make(chan struct{})
	w := newWorld(t, func(o *script.Options) {
		log := o.Log
		o.Log = func(plugin, level, text string) { <-end; log(plugin, level, text) }
	})
	release := sync.OnceFunc(func() { close(end) })
	context.AfterFunc(w.Context(), release) // so that a failure is no hang
	refuse := func(script.Permission) error { return seams.Errorf(seams.NotPermitted, "test", "no") }
	p, err := w.engine.Mount(w.Context(), script.Mount{ID: "dyn-1", Permit: refuse, Code: `return (ctx) => {
  for (const e of ['own', 'session/flush', 'tools/result']) ctx.on(e, (x) => console.log(e, x.n))
}`})
	if err != nil {
		t.Fatal(err)
	}
	w.mount(p, nil)
	for _, mode := range []seams.Mode{seams.Emit, seams.Parallel, seams.Serial, seams.Bail, seams.Waterfall} {
		sent := map[string]any{"n": 1.0}
		d := seams.Dispatch{Event: "own", Mode: mode, Payload: seams.Args{sent}, Default: func(context.Context) (any, error) { return nil, nil }}
		if _, err := w.root.Dispatch(w.Context(), d); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		sent["n"] = 2.0
	}
	s, err := events.Create(w.Context(), w.events, events.Spec{Header: events.Header{ID: "s1"}})
	if err == nil {
		err = s.Flush(w.Context())
	}
	if err != nil {
		t.Error(err)
	}
	if r := w.tools.Execute(w.Context(), callTool("none", nil)); r.Error == nil || r.Error.Code != seams.UnknownTool {
		t.Errorf("result = %+v", r)
	}
	release()
	w.expect("own 1", "own 1", "own 1", "own 1", "own 1", "session/flush undefined", "tools/result undefined")
}

// A Go panic in a service is contained and told to the caller.
func TestHostPanics(t *testing.T) {
	w := newWorld(t)
	provide[panicking](w, seams.Key[panicking]{Name: "clock"}, panicking{})
	w.js("calls.js", `module.exports = { async apply(ctx) {
  try { ctx.get('clock') } catch (e) { console.log(e.code) }
  try { await ctx.emit('boom') } catch (e) { console.log(e.code) }
} }`)
	w.expect("NOT_EXPOSED")
	if _, err := w.root.On("boom", func(context.Context, any, seams.Next) (any, error) { panic("no") }); err != nil {
		t.Fatal(err)
	}
	w.js("calls2.js", `module.exports = { async apply(ctx) { try { await ctx.emit('boom') } catch (e) { console.log(e.code) } } }`)
	w.expect("NOT_EXPOSED", "PANICKED")
}

type panicking struct{}
