package cordistools_test

import (
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// nothing of the framework can be reached, so nothing can be
// registered behind the façade.
func TestFrameworkIsWithheld(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	for _, name := range []string{"root", "parent", "scope", "fiber", "reflect", "registry", "extend", "isolate", "intercept", "plugin", "set", "mixin", "inject", "emit", "parallel", "serial", "bail", "waterfall"} {
		withheld := "no such member"
		switch name {
		case "root", "parent", "scope", "fiber", "reflect", "registry", "extend", "isolate", "intercept", "plugin", "set", "mixin":
			withheld = "withheld on purpose"
		}
		w.refused("return { inject: ['tools'], apply(ctx) { ctx."+name+" } }", seams.NotExposed, "ctx."+name, withheld, "provide", "tools")
		w.refused("return { inject: ['tools'], apply(ctx) { ctx.get('"+name+"') } }", seams.NotExposed, "ctx."+name)
	}
	// events is a service here: the session log.
	w.refused("return { apply(ctx) { ctx.events } }", seams.NotInjected, "inject: ['events']")
	w.refused("return { inject: ['tools'], apply(ctx) { ctx.root.tools.register({ name: 'by-root', description: 'x', execute: () => 1 }) } }", seams.NotExposed)
	w.refused("return { inject: ['tools'], apply(ctx) { ctx.tools.registry.register({ name: 'by-registry', description: 'x', execute: () => 1 }) } }", seams.NotExposed, "ctx.tools.registry", "register, schemas, get, execute")
	w.refused("return { inject: ['tools'], apply(ctx) { ctx.tools.register.constructor('return this')() } }", seams.ScriptError, "disabled")
	w.same(before)
}

//
func TestFacadeIsReadOnly(t *testing.T) {
	w := newWorld(t, nil)
	for _, code := range []string{"ctx.tools = {}", "ctx.mine = 1", "delete ctx.tools", "Object.assign(ctx, { x: 1 })", "Object.defineProperty(ctx, 'on', { value: 1 })", "Object.setPrototypeOf(ctx, {})", "ctx.tools.register = 1"} {
		got := w.refused("return { inject: ['tools'], apply(ctx) { "+code+" } }", seams.ReadOnly, "read-only")
		if !strings.Contains(got, "ctx.") {
			t.Errorf("%s: no name in %s", code, got)
		}
	}
}

//
func TestContextDoesNotCross(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { name: 'leak', inject: ['tools'], apply(ctx) { ctx.provide('leak', { now: () => ctx, later: async () => ctx, inside: () => ({ list: [ctx] }), plain: () => ({ ok: true }) }) } }`)
	w.running(`return { inject: ['tools', 'leak'], apply(ctx) {
		for (const m of ['now', 'later', 'inside', 'plain'])
			harness.registerTool(ctx, harness.defineTool({ name: m, description: 'x', execute: async () => { const got = await ctx.leak[m](); if (m !== 'plain') got.tools.register({ name: 'stolen' }); return got } }))
	} }`)
	for _, m := range []string{"now", "later", "inside"} {
		w.fails(m, nil, seams.NotExposed, "a ctx is its plugin's own")
	}
	if got := w.ok("plain", nil); got != `{"ok":true}` || w.has("stolen") {
		t.Error(got)
	}
	w.refused(`return { apply(ctx) { ctx.provide('direct', ctx) } }`, seams.NotExposed, "a ctx is its plugin's own")
	// Nor does a Go value that is no data.
	w2 := newWorld(t, map[string]any{"policy": map[string]any{"allow": []any{"raw"}}})
	if _, err := cordis.Provide(w2.root, seams.Key[*cordis.Context]{Name: "raw"}, w2.root); err != nil {
		t.Fatal(err)
	}
	w2.refused(`return { inject: ['raw'], apply(ctx) { ctx.raw } }`, seams.NotExposed, `"raw"`)
}

//
func TestFacadeProbes(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { inject: ['tools', 'timer'], async apply(ctx) {
		console.log([ctx[Symbol.iterator], ctx[Symbol.toPrimitive], ctx[Symbol('x')], ctx.then, (await ctx) === ctx].join())
		console.log(['tools', 'get', 'on', 'once', 'provide', 'effect', 'timer', 'setTimeout', 'throttle', 'llm', 'root', 'plugin', 'emit', Symbol.iterator].map((k) => +(k in ctx)).join(''))
	} }`)
	w.running(`return { inject: ['tools'], apply(ctx) { console.log(['tools', 'timer', 'setTimeout', 'throttle'].map((k) => +(k in ctx)).join('')) } }`)
	if got := strings.Join(w.console(), " "); got != "[cordis:dyn-1] info ,,,,true [cordis:dyn-1] info 11111111100000 [cordis:dyn-2] info 1000" {
		t.Error(got)
	}
}

//
func TestUndeclaredServices(t *testing.T) {
	w := newWorld(t, nil)
	for _, read := range []string{"ctx.llm", "ctx.get('llm')"} {
		w.refused("return { inject: ['tools'], apply(ctx) { "+read+" } }", seams.NotInjected, "ctx.llm", "inject: ['llm']", "parked")
	}
	for _, read := range []string{"ctx.fs", "ctx.get('fs')"} { // known, and not there
		w.refused("return { apply(ctx) { "+read+" } }", seams.NotInjected, "inject: ['fs']", "nothing provides it")
	}
	for _, read := range []string{"ctx.nonsense", "ctx.get('nonsense')"} {
		w.refused("return { apply(ctx) { "+read+" } }", seams.NotExposed, "ctx.nonsense", "no such member", "timer")
	}
	// A bare function declares nothing and reaches nothing.
	w.refused("return (ctx) => ctx.tools.schemas()", seams.NotInjected, "inject: ['tools']")
}

//
func TestDeclaredServices(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	w.refused(`return { inject: ['tools'], apply(ctx) { ctx.greeter } }`, seams.NotInjected, `"greeter"`, "inject: ['greeter']")
	w.running(`return { inject: ['memory', 'logger', 'llm', 'events', 'greeter'], async apply(ctx) {
		await ctx.memory.put({ scope: { user: 'u' }, key: 'k', text: 'kept' })
		ctx.logger.info('logged')
		console.log((await ctx.memory.get({ user: 'u' }, 'k')).text, ctx.llm.listProviders().length, typeof ctx.events.append, await ctx.greeter.hello('you'))
	} }`)
	if got := strings.Join(w.console(), " "); got != "[cordis:dyn-3] info kept 0 function hello you" {
		t.Error(got)
	}
}

//
func TestToolsView(t *testing.T) {
	w := newWorld(t, nil)
	w.running(adder)
	w.running(`return { inject: ['tools'], apply(ctx) {
		const one = ctx.tools.get('add')
		console.log(Object.keys(one).sort().join(), one.parameters.required.join(), ctx.tools.get('nonsense'), ctx.tools.get(), ctx.tools.schemas().map((s) => s.name).join())
		one.name = 'changed'
		console.log(ctx.tools.get('add').name)
	} }`)
	want := "[cordis:dyn-2] info description,name,parameters a,b undefined undefined cordis_inspect,cordis_mount,cordis_unmount,add [cordis:dyn-2] info add"
	if got := strings.Join(w.console(), " "); got != want {
		t.Error(got)
	}
}
