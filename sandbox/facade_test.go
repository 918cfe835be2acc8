package sandbox

import (
	"context"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// narrow is a façade like that of mounted code.
var narrow = &Facade{
	Verbs: []Method{{Name: "on"}, {Name: "once"}, {Name: "provide", Args: []Kind{Data, Instance}},
		{Name: "setTimeout", Needs: "timer"}, {Name: "emit", Async: true}},
	Services: []Service{
		{Name: "tools", Methods: []Method{{Name: "register"}, {Name: "schemas", Async: true}, {Name: "get"}}},
		{Name: "memory", Methods: []Method{{Name: "get", Async: true}, {Name: "working.set", Args: []Kind{Data}}, {Name: "working.get"}}},
		{Name: "timer"},
		{Name: "logger", Open: true, Methods: []Method{{Name: ""}, {Name: "info"}}},
		{Name: "bash", Methods: []Method{{Name: "run", Async: true}}},
	},
}

// tries runs an expression with ctx and expects an error.
func tries(t *testing.T, facade *Facade, h *record, inject, code string, want seams.Code, parts ...string) {
	t.Helper()
	l := open(t, Options{Facade: facade})
	err := l.apply("export const inject = "+inject+"\nexport async function apply(ctx) { return void (await "+code+") }", h, nil)
	wantError(t, err, want, parts...)
}

//
func TestFacadeWithheld(t *testing.T) {
	h := &record{live: []string{"tools", "llm"}}
	for _, name := range []string{"root", "parent", "scope", "fiber", "reflect", "registry", "events", "extend", "isolate", "intercept", "plugin", "set", "mixin"} {
		t.Run(name, func(t *testing.T) {
			tries(t, narrow, h, `['tools']`, "ctx."+name, seams.NotExposed, "ctx."+name, "withheld on purpose", "provide", "tools", "llm")
		})
	}
	if len(h.calls) != 0 {
		t.Error(h.calls)
	}
}

//
func TestFacadeReadOnly(t *testing.T) {
	for _, code := range []string{`(ctx.tools = {})`, `(ctx.x = 1)`, `delete ctx.tools`, `Object.defineProperty(ctx, 'x', { value: 1 })`, `Object.setPrototypeOf(ctx, null)`, `Object.assign(ctx, { a: 1 })`} {
		tries(t, narrow, &record{}, `['tools']`, code, seams.ReadOnly, "read-only")
	}
	tries(t, narrow, &record{}, `['tools']`, `(ctx.tools.register = 1)`, seams.ReadOnly, "ctx.tools.register")
}

// a value that is not data and no handle, such as a container's context,
// does not cross, at once or later.
func TestFacadeContextReturned(t *testing.T) {
	type Context struct{ Secret string }
	h := &record{answer: func(context.Context, string, string, []any) (any, error) { return &Context{"x"}, nil }}
	tries(t, narrow, h, `['tools']`, `ctx.tools.get('x')`, seams.NotJSON, "Context does not cross")
	tries(t, narrow, h, `['tools']`, `ctx.tools.schemas()`, seams.NotJSON, "Context does not cross")
}

//
func TestFacadeProbes(t *testing.T) {
	l := open(t, Options{Facade: narrow})
	h := &record{}
	err := l.apply(`export const inject = ['tools', 'custom']
	export async function apply(ctx) {
		const same = await ctx // reads then
		const out = [Symbol.iterator in ctx, ctx[Symbol.iterator], ctx[Symbol.toPrimitive], 'tools' in ctx, 'get' in ctx, 'effect' in ctx, 'on' in ctx, 'setTimeout' in ctx,
			'memory' in ctx, 'root' in ctx, 'custom' in ctx, 'logger' in ctx, ctx.then, ctx._x, ctx.toJSON, ctx === same, 'register' in ctx.tools, 'nope' in ctx.tools, ctx.tools === ctx.get('tools'), ctx.on === ctx.on]
		ctx.logger.info(out.map((v) => v === undefined ? '-' : v === true ? 1 : v === false ? 0 : v).join(''))
		ctx.logger('name')
	}`, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.values["logger.info"]; len(got) != 1 || got[0] != "0--1111000"+"11---110"+"11" {
		t.Error(got)
	}
	if got := h.values["logger."]; len(got) != 1 || got[0] != "name" {
		t.Error(got)
	}
}

//
func TestFacadeUndeclared(t *testing.T) {
	h := func() *record { return &record{live: []string{"memory", "custom"}} }
	tries(t, narrow, h(), `[]`, `ctx.memory`, seams.NotInjected, "ctx.memory", "inject: ['memory']", "parked")
	tries(t, narrow, h(), `[]`, `ctx.custom`, seams.NotInjected, "inject: ['custom']")
	tries(t, narrow, h(), `[]`, `ctx.bash`, seams.NotInjected, "nothing provides it now")
	tries(t, narrow, h(), `[]`, `ctx.get('memory')`, seams.NotInjected, "inject: ['memory']")
	tries(t, narrow, h(), `[]`, `ctx.get('nothing')`, seams.NotExposed, "ctx.nothing", "memory, custom")
	tries(t, narrow, h(), `[]`, `ctx.setTimeout(() => {}, 1)`, seams.NotInjected, "inject: ['timer']")
	tries(t, narrow, h(), `['memory']`, `ctx.memory.find('x')`, seams.NotExposed, "ctx.memory.find", "working.set")

	optional := *narrow
	optional.OptionalGet = true
	l := open(t, Options{Facade: &optional})
	live := h()
	live.answer = func(_ context.Context, target, method string, args []any) (any, error) {
		return target + method + args[0].(string), nil
	}
	err := l.apply(`export async function apply(ctx) {
		const got = [typeof ctx.get('nothing'), await ctx.get('memory').get('k'), ctx.get('custom')].join()
		if (got !== 'undefined,memorygetk,getcustom') throw new Error(got)
	}`, live, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// one plugin provides an object, another one calls it: through
// promises, in the realm of its owner.
func TestFacadeServiceOfAnotherRealm(t *testing.T) {
	var greeter any
	a := open(t, Options{Name: "provider", Facade: narrow})
	ha := &record{answer: func(_ context.Context, _, method string, args []any) (any, error) { greeter = args[1]; return nil, nil }}
	if err := a.apply(`import { Service } from 'cordis'
	export default class Greeter extends Service {
		static provide = 'greeter'
		own = () => 'own field'
		#n = 0
		hello(who: string, done?: (s: string) => Promise<string>) { this.#n++; return done ? done('hello ' + who) : { text: 'hello ' + who, n: this.#n } }
		async fail() { throw Object.assign(new Error('no'), { code: 'E_GREET' }) }
		[Service.init]() { return () => console.log('stopped') }
	}`, ha, nil); err != nil {
		t.Fatal(err)
	}
	if got := greeter.(*Object).Methods(); strings.Join(got, " ") != "own hello fail" {
		t.Error(got)
	}
	b := open(t, Options{Name: "consumer", Facade: narrow})
	hb := &record{answer: func(_ context.Context, target, method string, args []any) (any, error) {
		if method == "get" && args[0] == "greeter" {
			return greeter, nil
		}
		return nil, nil
	}}
	if err := b.apply(`export const inject = ['greeter']
	export async function apply(ctx) {
		const p = ctx.greeter.hello('you')
		if (!(p instanceof Promise)) throw new Error('no promise')
		const got = await p
		const back = await ctx.greeter.hello('me', (s) => s + '!')
		if (got.text !== 'hello you' || got.n !== 1 || back !== 'hello me!' || await ctx.greeter.own() !== 'own field') throw new Error(JSON.stringify([got, back]))
		try { await ctx.greeter.fail(); throw 0 } catch (e) { if (e.code !== 'E_GREET' || !/fail \(plugin.ts:7:/.test(e.stack)) throw e }
	}`, hb, nil); err != nil {
		t.Fatal(err)
	}
	ha.undo(t)
	if a.said() != "info stopped" {
		t.Error(a.said())
	}
	a.Realm.Close(1e9)
	err := b.apply(`export const inject = ['greeter']
	export async function apply(ctx) { await ctx.greeter.hello('you') }`, hb, nil)
	wantError(t, err, seams.Unloaded)
}

//
func TestFacadePlainServices(t *testing.T) {
	l := open(t, Options{Facade: narrow})
	h := &record{answer: func(_ context.Context, _, method string, args []any) (any, error) {
		if method == "provide" {
			return nil, nil
		}
		return map[string]any{"n": 7, "none": nil}[args[0].(string)], nil
	}}
	err := l.apply(`export const inject = ['n', 'none']
	export function apply(ctx) {
		if (ctx.n !== 7 || ctx.get('n') !== 7 || ctx.none !== null || ctx.get('none') !== null) throw new Error('wrong')
		ctx.provide('p', { a: 1 })
	}`, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.values["provide"][1].(map[string]any); got["a"] != 1.0 {
		t.Error(got)
	}
}

// The kinds of the table decide how arguments cross.
func TestFacadeKinds(t *testing.T) {
	f := &Facade{
		Verbs: []Method{{Name: "plugin", Args: []Kind{Child}}, {Name: "inject"}, {Name: "data", Args: []Kind{Data}}, {Name: "instance", Args: []Kind{Instance}}, {Name: "on"}},
	}
	l := open(t, Options{Facade: f})
	h := &record{}
	run := func(code string) error {
		return l.apply("export const apply = async (ctx) => { "+code+" }", h, nil)
	}
	wantError(t, run(`ctx.data({ a: [{ f() {} }] })`), seams.NotJSON, "ctx.data argument 1.a[0].f")
	wantError(t, run(`ctx.data(1, 2, 3, 4, 5, 6, 7, 8, 9, new Map())`), seams.NotJSON, "ctx.data argument 10")
	wantError(t, run(`ctx.plugin({ name: 'x' })`), seams.InvalidPlugin, "ctx.plugin", "apply")
	if err := run(`ctx.instance({ data: 1 }); ctx.on('x', { nested: { f() { return this.v }, v: 3 } })`); err != nil {
		t.Fatal(err)
	}
	if got := h.values["instance"][0].(map[string]any); got["data"] != 1.0 {
		t.Error(got)
	}
	nested := h.values["on"][1].(map[string]any)["nested"].(map[string]any)
	if v, err := nested["f"].(*Func).Call(t.Context()); v != 3.0 || err != nil {
		t.Error(v, err)
	}
	if err := run(`ctx.plugin(class Child { static inject = ['tools']; constructor(ctx, c) { ctx.data(['made', c]) } }, { n: 1 })`); err != nil {
		t.Fatal(err)
	}
	child := h.values["plugin"][0].(*Plugin)
	if child.Name != "Child" || child.Inject[0].Name != "tools" || h.values["plugin"][1].(map[string]any)["n"] != 1.0 {
		t.Errorf("%+v", child)
	}
	hc := &record{}
	if err := child.Apply(t.Context(), Activation{Host: hc, Config: map[string]any{"n": 2}}); err != nil || hc.values["data"] == nil || len(h.values["data"]) != 0 {
		t.Error(err, hc.values, h.values["data"])
	}
	if err := run(`ctx.inject(['memory'], (inner) => { inner.data('in'); return () => inner.data('out') })`); err != nil {
		t.Fatal(err)
	}
	child = h.values["plugin"][0].(*Plugin)
	hc = &record{}
	if err := child.Apply(t.Context(), Activation{Host: hc}); err != nil || hc.values["data"][0] != "in" {
		t.Error(err, hc.values)
	}
	hc.undo(t)
	if hc.values["data"][0] != "out" {
		t.Error(hc.values)
	}
}

//
func TestNarrowGlobals(t *testing.T) {
	l := open(t, Options{})
	l.want(`return [typeof process, typeof Buffer, typeof require, typeof setTimeout]`, []any{"undefined", "undefined", "function", "function"})
	for code, parts := range map[string][]string{
		`setTimeout(() => {}, 1)`:               {"setTimeout", "not available here", "inject: ['timer']"},
		`setInterval(() => {}, 1)`:              {"setInterval", "timer"},
		`setImmediate(() => {})`:                {"setImmediate", "timer"},
		`clearTimeout(1)`:                       {"clearTimeout", "timer"},
		`clearInterval(1)`:                      {"clearInterval", "timer"},
		`await fetch('http://x')`:               {"fetch", "not available here", "inject: ['http']"},
		`globalThis.require('fs')`:              {"require", "not available here"},
		`require('fs')`:                         {`"fs"`, "not available", "inject: ['fs']"},
		`await import('node:http')`:             {`"http"`, "inject: ['http']"},
		`require('child_process')`:              {"bash"},
		`require('buffer')`:                     {"not available"},
		`const n = 'left' + '-pad'; require(n)`: {"left-pad", "schemastery"},
	} {
		_, err := l.eval(code)
		if err == nil {
			t.Errorf("%s: no error", code)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q does not say %q", code, err, p)
			}
		}
	}
	l.want(`globalThis.mine = 1; Array.prototype.extra = 2; return [mine, [].extra]`, []any{1, 2})
	open(t, Options{}).want(`return [typeof globalThis.mine, [].extra === undefined]`, []any{"undefined", true})
	l.want(`return [btoa('가'), atob(btoa('가나')), new TextDecoder().decode(new TextEncoder().encode('é가😀'))]`, []any{"6rCA", "가나", "é가😀"})
	l.want(`console.log('a', 1, { b: [2] }); console.warn('%s is %d', 'x', 3, 'more'); console.error(new Map([['k', new Set([1])]])); console.debug(undefined, null, -0, 10n, Symbol('s'), () => {}, class A {}); console.info('')`, nil)
	want := "info a 1 { b: [ 2 ] }\nwarn x is 3 more\nerror Map(1) { \"k\" => Set(1) { 1 } }\ndebug undefined null -0 10n Symbol(s) [Function: (anonymous)] [class A]\ninfo "
	if got := l.said(); got != want {
		t.Errorf("%q", got)
	}
}

// what mounted code may look like, and what
// is said when it is wrong.
func TestBodyForms(t *testing.T) {
	l := open(t, Options{})
	for name, c := range map[string]struct{ code, want string }{
		"object":           {`return { name: 'x', inject: ['tools'], apply(ctx) {} }`, "x [tools]"},
		"bare function":    {`return (ctx) => {}`, " []"},
		"named function":   {`return function named(ctx) {}`, "named []"},
		"apply is no name": {`return { apply() {} }`, " []"},
		"class":            {`return class P { static inject = { llm: null, memory: { a: 1 } } }`, "P [llm memory]"},
		"typescript":       {`interface C { a: string }; return { name: 'ts' as string, apply(ctx: any, c: C) {} }`, "ts []"},
		"awaits":           {`await null; return { name: await Promise.resolve('late'), apply() {} }`, "late []"},
		"esm default":      {`export default { name: 'esm', apply() {} }`, "esm []"},
		"esm named":        {`import { defineTool } from '@deepseek-ai/dsh-tools'; export const name = 'named'; export const inject = ['tools']; export function apply(ctx) { defineTool }`, "named [tools]"},
		"import + return":  {"import Schema from 'schemastery'\nimport { LlmError } from 'ouro';\nreturn { name: 'mixed', Config: Schema.object({}), apply() { LlmError } }", "mixed []"},
		"cjs":              {`module.exports = { name: 'cjs', apply() {} }`, "cjs []"},
		"cjs exports":      {`exports.name = 'cx'; exports.apply = () => {}`, "cx []"},
		"hashbang":         {"#!/usr/bin/env node\nmodule.exports = { name: 'hash', apply() {} }", "hash []"},
		"double default":   {`return { __esModule: true, default: { __esModule: true, default: { name: 'dd', apply() {} } } }`, "dd []"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := l.load("dyn-1", c.code, compile.Body)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, i := range p.Inject {
				names = append(names, i.Name)
			}
			if got := p.Name + " [" + strings.Join(names, " ") + "]"; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		code  string
		want  seams.Code
		parts []string
	}{
		"nothing returned":   {`({ name: 'x', apply() {} })`, seams.InvalidPlugin, []string{"dyn-1", "`return` is missing", "apply(ctx, config)", "(ctx, config) =>"}},
		"no plugin":          {`return { name: 'x' }`, seams.InvalidPlugin, []string{`{ name: "x" }`, "not a plugin", "apply"}},
		"a number":           {`return 7`, seams.InvalidPlugin, []string{"returned 7"}},
		"long preview":       {`return { text: 'y'.repeat(1000) }`, seams.InvalidPlugin, []string{"…"}},
		"stray parenthesis":  {"const a = 1\nreturn { apply() {} })", seams.CompileFailed, []string{"dyn-1:2:22", "return { apply() {} })", "^", "body of an async function", "stray closing parenthesis"}},
		"as in a string":     {"const s = 'use as is' return", seams.CompileFailed, []string{"dyn-1:1:23"}},
		"runtime syntax":     {`new RegExp('('); return {}`, seams.ScriptError, []string{"SyntaxError"}},
		"throws":             {"\n\nthrow new TypeError('mine')", seams.ScriptError, []string{"TypeError: mine", "dyn-1:3:"}},
		"throws text":        {`throw 'plain'`, seams.ScriptError, []string{"plain"}},
		"throws null":        {`throw null`, seams.ScriptError, []string{"null"}},
		"unknown import":     {"import x from 'lodash'\nreturn () => x", seams.ModuleNotAvailable, []string{"lodash", "schemastery"}},
		"relative import":    {"import x from './x'\nexport default () => x", seams.ModuleNotAvailable, []string{"no folder"}},
		"inject is a string": {`return { inject: 5, apply() {} }`, seams.InvalidPlugin, []string{"inject", "['tools']"}},
		"bad inject item":    {`return { inject: ['a', 1], apply() {} }`, seams.InvalidPlugin, []string{"inject"}},
		"name":               {`return { name: {}, apply() {} }`, seams.InvalidPlugin, []string{"name"}},
		"provide":            {`return { provide: [1], apply() {} }`, seams.InvalidPlugin, []string{"provide"}},
		"config":             {`return { Config: () => 1, apply() {} }`, seams.InvalidPlugin, []string{"Config", "Schema.object"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.load("dyn-1", c.code, compile.Body)
			wantError(t, err, c.want, c.parts...)
			if len(err.Error()) > 1500 {
				t.Error(len(err.Error()))
			}
		})
	}
}

// The verbs and services that the host answers late or not at all.
func TestFacadeAsync(t *testing.T) {
	l := open(t, Options{Facade: narrow, Budgets: Budgets{Pending: 3}})
	gate := make(chan struct{})
	h := &record{}
	slow := hostFunc(func(ctx context.Context, target, method string, args []any) (any, error) {
		if method == "emit" {
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return args[0], nil
		}
		return h.Call(ctx, target, method, args)
	})
	err := l.apply(`export async function apply(ctx) {
		const all = [1, 2, 3].map((n) => ctx.emit(n))
		try { ctx.emit(4); throw new Error('no limit') } catch (e) { if (e.code !== 'OVER_BUDGET') throw e }
		ctx.on('open', async () => (await Promise.all(all)).join())
	}`, slow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Usage().Pending != 3 {
		t.Error(l.Usage())
	}
	close(gate)
	if v, err := h.values["on"][1].(*Func).Call(t.Context()); v != "1,2,3" || err != nil {
		t.Error(v, err)
	}
}

type hostFunc func(ctx context.Context, target, method string, args []any) (any, error)

func (f hostFunc) Call(ctx context.Context, target, method string, args []any) (any, error) {
	return f(ctx, target, method, args)
}
