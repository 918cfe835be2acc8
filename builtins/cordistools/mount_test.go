package cordistools_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/tools"
)

// a declaration that is wrong is refused with its place and a reason,
// and nothing is registered.
func TestInvalidDeclarations(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	define := func(rest string) string {
		return "return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool(" + rest + ")) } }"
	}
	parameters := func(p string) string {
		return define("{ name: 't', description: 'x', parameters: " + p + ", execute() { return 1 } }")
	}
	for _, c := range []struct {
		code  string
		code_ seams.Code
		parts []string
	}{
		{define("5"), seams.InvalidArgument, []string{"harness.defineTool: expected {name"}},
		{define("undefined"), seams.InvalidArgument, []string{"harness.defineTool"}},
		{define("{ description: 'x', execute() {} }"), seams.InvalidArgument, []string{"harness.defineTool.name"}},
		{define("{ name: 't', execute() {} }"), seams.InvalidArgument, []string{"description", "tells a model"}},
		{define("{ name: 'a b', description: 'x', execute() {} }"), seams.InvalidArgument, []string{`"a b"`, "letters, digits"}},
		{define("{ name: 'run_code', description: 'x', execute() {} }"), seams.InvalidArgument, []string{"reserved"}},
		{define("{ name: 't', description: 'x' }"), seams.InvalidArgument, []string{"harness.defineTool.execute", "must be a function"}},
		{define("{ name: 't', description: 'x', execute: 'f' }"), seams.InvalidArgument, []string{"harness.defineTool.execute", "must be a function"}},
		{define("{ name: 't', description: 'x', output: 5, execute() {} }"), seams.InvalidArgument, []string{"harness.defineTool.output", "must be an object"}},
		{define("{ name: 't', description: 'x', output: { schema: {}, render: 5 }, execute() {} }"), seams.InvalidArgument, []string{"harness.defineTool.output.render", "must be a function"}},
		{define("{ name: 't', description: 'x', output: { presentationMeta: 5 }, execute() {} }"), seams.InvalidArgument, []string{"harness.defineTool.output.presentationMeta", "must be a function"}},
		{define("{ name: 't', description: 'x', output: { schema: { type: 'strin' } }, execute() {} }"), seams.UnsupportedSchema, []string{"output.schema.type", `"string"`}},
		{define("{ name: 't', description: 'x', timeoutMs: 0, execute() {} }"), seams.InvalidArgument, []string{"timeoutMs", "above 0"}},
		{define("{ name: 't', description: 'x', timeoutMs: 'long', execute() {} }"), seams.InvalidArgument, []string{"timeoutMs"}},
		{define("{ name: 't', description: 'x', isConcurrencySafe: 1, execute() {} }"), seams.InvalidArgument, []string{"isConcurrencySafe"}},

		{parameters("7"), seams.InvalidArgument, []string{"harness.defineTool.parameters", "parameter spec object"}},
		{parameters("'a'"), seams.InvalidArgument, []string{"harness.defineTool.parameters"}},
		{parameters("null"), seams.InvalidArgument, []string{"harness.defineTool.parameters", "null"}},
		{parameters("[]"), seams.InvalidArgument, []string{"harness.defineTool.parameters"}},
		{parameters("{ a: 5 }"), seams.UnsupportedSchema, []string{"parameters.a", "property object"}},
		{parameters("{ a: 'string' }"), seams.UnsupportedSchema, []string{"parameters.a", "property object"}},
		{parameters("{ a: null }"), seams.UnsupportedSchema, []string{"parameters.a"}},
		{parameters("{ a: [] }"), seams.UnsupportedSchema, []string{"parameters.a", "is array"}},
		{parameters("{ a: () => 1 }"), seams.UnsupportedSchema, []string{"parameters.a"}},
		{parameters("{ a: {} }"), seams.UnsupportedSchema, []string{"parameters.a.type", "missing", "string, number"}},
		{parameters("{ a: { type: 'strin' } }"), seams.UnsupportedSchema, []string{"parameters.a.type", `"strin"`, "string, number, integer, boolean, null, array, object, json"}},
		{parameters("{ a: { type: 7 } }"), seams.UnsupportedSchema, []string{"parameters.a.type"}},
		{parameters("{ a: { type: ['string', 'null'] } }"), seams.UnsupportedSchema, []string{"parameters.a.type", "oneOf"}},
		{parameters("{ a: { type: 'string', required: false } }"), seams.UnsupportedSchema, []string{"parameters.a.required", "must be true when present"}},
		{parameters("{ a: { type: 'string', required: 'yes' } }"), seams.UnsupportedSchema, []string{"parameters.a.required", "must be true"}},
		{parameters("{ a: { type: 'string', items: { type: 'string' } } }"), seams.UnsupportedSchema, []string{"parameters.a.items", "not supported"}},
		{parameters("{ a: { type: 'string', properties: {} } }"), seams.UnsupportedSchema, []string{"parameters.a.properties"}},
		{parameters("{ a: { type: 'string', pattern: 'x' } }"), seams.UnsupportedSchema, []string{"parameters.a.pattern", "not supported", "description"}},
		{parameters("{ a: { type: 'string', descripton: 'x' } }"), seams.UnsupportedSchema, []string{"parameters.a.descripton", `"description"`}},
		{parameters("{ a: { type: 'string', description: 5 } }"), seams.UnsupportedSchema, []string{"parameters.a.description"}},
		{parameters("{ a: { type: 'array', items: { type: 'x' } } }"), seams.UnsupportedSchema, []string{"parameters.a.items.type"}},
		{parameters("{ a: { type: 'array', items: 5 } }"), seams.UnsupportedSchema, []string{"parameters.a.items"}},
		{parameters("{ a: { type: 'object', properties: {} } }"), seams.UnsupportedSchema, []string{"parameters.a.additionalProperties", "explicit"}},
		{parameters("{ a: { type: 'object', additionalProperties: 1 } }"), seams.UnsupportedSchema, []string{"parameters.a.additionalProperties", "true or false"}},
		{parameters("{ a: { type: 'object', additionalProperties: true, properties: { b: { type: 'q' } } } }"), seams.UnsupportedSchema, []string{"parameters.a.properties.b.type"}},
		{parameters("{ a: { type: 'object', additionalProperties: true, properties: 5 } }"), seams.UnsupportedSchema, []string{"parameters.a.properties"}},
		{parameters("{ a: { oneOf: [{ type: 'string' }] } }"), seams.UnsupportedSchema, []string{"parameters.a.oneOf", "at least two"}},
		{parameters("{ a: { oneOf: 'x' } }"), seams.UnsupportedSchema, []string{"parameters.a.oneOf", "at least two"}},
		{parameters("{ a: { oneOf: [{ type: 'string' }, { type: 'z' }] } }"), seams.UnsupportedSchema, []string{"parameters.a.oneOf[1].type"}},
		{parameters("{ a: { type: 'string', enum: [] } }"), seams.UnsupportedSchema, []string{"parameters.a.enum", "not empty"}},
		{parameters("{ a: { type: 'string', enum: 'x' } }"), seams.UnsupportedSchema, []string{"parameters.a.enum"}},
		{parameters("{ a: { type: 'string', enum: ['x', 1] } }"), seams.UnsupportedSchema, []string{"parameters.a.enum[1]"}},
		{parameters("{ a: { type: 'string', const: 1 } }"), seams.UnsupportedSchema, []string{"parameters.a.const"}},
		{parameters("{ a: { type: 'string', default: () => 1 } }"), seams.UnsupportedSchema, []string{"parameters.a.default"}},
		{parameters("{ a: { type: 'string', examples: 'x' } }"), seams.UnsupportedSchema, []string{"parameters.a.examples"}},
		{parameters("{ a: { type: 'number', default: Infinity } }"), seams.NotJSON, []string{"parameters.a.default", "infinity"}},
		{parameters("{ a: { type: 'number', const: NaN } }"), seams.NotJSON, []string{"parameters.a.const", "NaN"}},
		{parameters("{ a: { type: 'number', enum: [1n] } }"), seams.NotJSON, []string{"parameters.a.enum[0]", "BigInt"}},
		{parameters("{ a: { type: 'number', default: -0 } }"), seams.UnsupportedSchema, []string{"parameters.a.default", "without loss"}},
		{parameters("{ a: { type: 'string', enum: ['x', , 'y'] } }"), seams.NotJSON, []string{"parameters.a.enum[1]", "list"}},
		{parameters("{ a: { type: 'json', default: new Map() } }"), seams.NotJSON, []string{"parameters.a.default", "Map"}},
		{parameters("{ a: { type: 'json', default: /x/ } }"), seams.NotJSON, []string{"parameters.a.default"}},
		{parameters("{ a: { type: 'json', default: Symbol('x') } }"), seams.NotJSON, []string{"parameters.a.default", "symbol"}},

		{parameters("{ type: 'object' }"), seams.UnsupportedSchema, []string{"parameters.properties", "object of schemas"}},
		{parameters("{ type: 'object', properties: 5 }"), seams.UnsupportedSchema, []string{"parameters.properties", "object of schemas"}},
		{parameters("{ type: 'object', properties: {}, additionalProperties: false }"), seams.UnsupportedSchema, []string{"parameters.additionalProperties", "root is open"}},
		{parameters("{ type: 'object', properties: { a: { type: 'object', additionalProperties: 'no' } } }"), seams.UnsupportedSchema, []string{"parameters.properties.a.additionalProperties", "true or false"}},
		{parameters("{ type: 'object', properties: { a: {} }, required: 'a' }"), seams.UnsupportedSchema, []string{"parameters.required", "list of declared names"}},
		{parameters("{ type: 'object', properties: { a: {} }, required: [1] }"), seams.UnsupportedSchema, []string{"parameters.required[0]"}},
		{parameters("{ type: 'object', properties: { a: {} }, required: ['a', 'b'] }"), seams.UnsupportedSchema, []string{"parameters.required[1]", `"b"`, "not declared"}},
		{parameters("{ type: 'object', properties: { a: { type: 'string', required: true } } }"), seams.UnsupportedSchema, []string{"parameters.properties.a.required", "containing object"}},
		{parameters("{ type: 'object', properties: { a: { type: 'json' } } }"), seams.UnsupportedSchema, []string{"parameters.properties.a.type", "json is not valid"}},
		{parameters("{ properties: { a: { type: 'string' } } }"), seams.UnsupportedSchema, []string{"parameters.type", "missing"}},
		//
		{parameters("(() => { const a = { type: 'object', additionalProperties: true, properties: {} }; a.properties.a = a; return { a } })()"), seams.NotJSON, []string{"parameters.a.properties.a", "contains itself"}},
		{parameters("(() => { let a = { type: 'string' }; for (let i = 0; i < 5000; i++) a = { type: 'array', items: a }; return { a } })()"), seams.TooLarge, []string{"levels deep"}},
	} {
		w.refused(c.code, c.code_, c.parts...)
	}
	w.same(before)
}

// a declaration crosses as a copy of its data, so what a copy does not show
// is not refused but absent.
func TestDeclarationsAreCopies(t *testing.T) {
	w := newWorld(t, nil)
	const text = `{"properties":{"a":{"type":"string"}},"type":"object"}`
	for parameters, want := range map[string]string{
		"{ a: { type: 'string', [Symbol('x')]: 1 } }":                                     text,
		"Object.defineProperty({ a: { type: 'string' } }, 'hidden', { value: 1 })":        text,
		"new (class { a = { type: 'string' } })()":                                        text,
		"Object.create({ b: 1 }, { a: { value: { type: 'string' }, enumerable: true } })": text,
		"{ a: { type: 'string', description: undefined }, b: undefined }":                 text,
		"{ a: { type: 'string', enum: new (class extends Array {})('x', 'y') } }":         `{"properties":{"a":{"enum":["x","y"],"type":"string"}},"type":"object"}`,
		"{ a: { type: 'string', enum: Object.assign(['x'], { extra: 1 }) } }":             `{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"}`,
		"{ a: { type: 'string', default: new Date(0) } }":                                 `{"properties":{"a":{"default":"1970-01-01T00:00:00.000Z","type":"string"}},"type":"object"}`,
	} {
		id := w.running(tool("parameters: " + parameters + ", execute: () => 1"))
		schemas := w.tools.Schemas(nil)
		if got := string(schemas[len(schemas)-1].Parameters); got != want {
			t.Errorf("%s: %s", parameters, got)
		}
		w.unmount(id)
	}
}

//
func TestWrongAnswers(t *testing.T) {
	w := newWorld(t, nil)
	call := func(rest string) string {
		t.Helper()
		id := w.running(tool(rest))
		defer w.unmount(id)
		return w.fails("t", map[string]any{}, seams.InvalidToolOutput)
	}
	number := "output: { schema: { type: 'number' } }, "
	for _, c := range []struct {
		rest  string
		parts []string
	}{
		{"execute() {}", []string{"returned nothing", "return null"}},
		{"async execute() { await null }", []string{"returned nothing", "return null"}},
		{"execute() { return () => 1 }", []string{"a function is not data"}},
		{"execute() { return { a: [1, Symbol('x')] } }", []string{"result.a[1]", "symbol"}},
		{"execute() { return { n: 10n } }", []string{"result.n", "BigInt"}},
		{"execute() { const a = {}; a.a = a; return a }", []string{"result.a", "contains itself"}},
		{"execute() { return { n: 0 / 0 } }", []string{"result.n", "NaN"}},
		{"execute() { return new Map([[1, 2]]) }", []string{"a Map is not data", "Object.fromEntries"}},
		{"execute() { return { p: Promise.resolve(1) } }", []string{"result.p", "await it first"}},
		{number + "execute() { return 'text' }", []string{"output schema", "value"}},
		{number + "execute() { return 'text'.repeat(1e5) }", []string{"output schema", "value"}},
		{"output: { render: () => 'text' }, execute() { return 1 }", []string{`"text"`, "[{ type: 'text', text: String(value) }]"}},
		{"output: { render: () => ({ type: 'text' }) }, execute() { return 1 }", []string{"[{ type: 'text'"}},
		{"output: { render: () => [{ text: 'x' }] }, execute() { return 1 }", []string{"[{ type: 'text'"}},
		{"output: { render: () => 'long'.repeat(1e5) }, execute() { return 1 }", []string{"longlong", "[{ type: 'text'"}},
	} {
		got := call(c.rest)
		for _, p := range c.parts {
			if !strings.Contains(got, p) {
				t.Errorf("%s: the error does not say %q: %s", c.rest, p, got)
			}
		}
		if len(got) > 600 {
			t.Errorf("%s: the error has %d bytes: %.100s…", c.rest, len(got), got)
		}
	}
	if got := call("output: { render: () => 'long'.repeat(1e5) }, execute() { return 1 }"); strings.Count(got, "long") > 30 {
		t.Errorf("the preview is not cut: %s", got)
	}
}

//
func TestListenerAndConsole(t *testing.T) {
	w := newWorld(t, nil)
	w.running(adder)
	id := w.running(`return { name: 'watch', apply(ctx) {
		ctx.on('tools/result', (exec, result) => console.log('saw', exec.name, result.value + '\nsecond line'))
		ctx.once('tools/result', () => console.warn('once'))
	} }`)
	w.ok("add", map[string]any{"a": 1.0, "b": 2.0})
	w.ok("add", map[string]any{"a": 3.0, "b": 4.0})
	want := []string{
		"[cordis:" + id + "] info saw cordis_mount [object Object]", "[cordis:" + id + "] info second line", "[cordis:" + id + "] warn once",
		"[cordis:" + id + "] info saw add 3", "[cordis:" + id + "] info second line",
		"[cordis:" + id + "] info saw add 7", "[cordis:" + id + "] info second line",
	}
	w.until("what the listeners write", func() bool { return len(w.console()) >= len(want) })
	if got := w.console(); !slices.Equal(got, want) {
		t.Errorf("console %q, want %q", got, want)
	}
}

//
func TestPluginNames(t *testing.T) {
	w := newWorld(t, nil)
	for code, want := range map[string]string{
		"return (ctx) => {}":                                         "<anonymous>",
		"return function (ctx) {}":                                   "<anonymous>",
		"return async () => {}":                                      "<anonymous>",
		"return { apply() {} }":                                      "<anonymous>",
		"return { name: '', apply() {} }":                            "<anonymous>",
		"return function greeter(ctx) {}":                            "greeter",
		"const weather = (ctx) => {}; return weather":                "weather",
		"return class Clock { constructor(ctx) {} }":                 "Clock",
		"return { name: 'named', apply: function other() {} }":       "named",
		"function apply() {} apply.x = 1; return apply":              "<anonymous>",
		"return Object.assign(() => {}, { inject: [], apply() {} })": "<anonymous>",
	} {
		v := w.mount(code)
		if v["pluginName"] != want || v["state"] != "active" {
			t.Errorf("%s: %v", code, v)
		}
	}
	w.refused("return { name: 5, apply() {} }", seams.InvalidPlugin, "dyn-12 name: expected a string")
	// Several mounts may share a name.
	a, b := w.running("return { name: 'twin', apply() {} }"), w.running("return { name: 'twin', apply() {} }")
	if a == b {
		t.Error("one id for two mounts")
	}
}

//
func TestOwnTool(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	r := w.call("cordis_mount", map[string]any{"code": adder})
	want := map[string]any{"id": "dyn-1", "pluginName": "adder", "state": "active", "provides": []any{}, "waitingFor": []any{}}
	if fmt.Sprint(r.Value) != fmt.Sprint(want) {
		t.Errorf("%v", r.Value)
	}
	if text := r.Content.Text(); text != `Temporary Plugin dyn-1 is running (plugin "adder"; `+lifetime+`)` {
		t.Error(text)
	}
	got := w.call("add", map[string]any{"a": 1.5, "b": 2.0})
	if got.Value != 3.5 || got.Content.Text() != "1.5 + 2 = 3.5" {
		t.Errorf("%+v", got)
	}
	w.fails("add", map[string]any{"a": "1"}, seams.InvalidArgs, "arguments.a", "arguments.b")
	w.unmount("dyn-1")
	w.fails("add", map[string]any{"a": 1.0, "b": 2.0}, seams.UnknownTool)
	w.same(before)
}

// the result is plain JSON of the host, whatever it was in the realm.
func TestResultCrosses(t *testing.T) {
	w := newWorld(t, nil)
	w.running(tool(`execute: async (args, exec) => ({ when: new Date(0), list: [1, 'a', null, { deep: true }], undef: undefined, made: Object.create(null),
		own: new (class P { constructor() { this.x = 1 } })(), got: args, id: exec.callId, name: exec.name, aborted: exec.signal.aborted })`))
	got := w.call("t", map[string]any{"in": []any{1.0, map[string]any{"k": "v"}}})
	want := map[string]any{
		"when": "1970-01-01T00:00:00.000Z", "list": []any{1.0, "a", nil, map[string]any{"deep": true}}, "made": map[string]any{},
		"own": map[string]any{"x": 1.0}, "got": map[string]any{"in": []any{1.0, map[string]any{"k": "v"}}}, "id": "call-2", "name": "t", "aborted": false,
	}
	if fmt.Sprint(got.Value) != fmt.Sprint(want) {
		t.Errorf("%v", got.Value)
	}
	// What the definition says beside its body is used.
	w.unmount("dyn-1")
	w.running(tool(`isConcurrencySafe: (args) => args.n > 1, finalizeContent: (exec, result) => [...result.content, { type: 'text', text: ' by ' + exec.name }], execute: ({ n }) => n`))
	if got := w.call("t", map[string]any{"n": 2.0}); got.Content.Text() != "2 by t" {
		t.Errorf("%+v", got.Content)
	}
	for n, want := range map[float64]tools.ExecutionMode{1: tools.Exclusive, 2: tools.Parallel} {
		if got := w.tools.ExecutionMode(t.Context(), nil, "t", map[string]any{"n": n}); got != want {
			t.Errorf("n = %v: %v", n, got)
		}
	}
}

//
func TestSchemaForms(t *testing.T) {
	w := newWorld(t, nil)
	check := func(parameters string, good, bad []any) {
		t.Helper()
		id := w.running(tool("parameters: " + parameters + ", execute: () => 'ok'"))
		defer w.unmount(id)
		for _, args := range good {
			if r := w.call("t", args); r.IsError {
				t.Errorf("%s refuses %v: %s", parameters, args, r.Error.Message)
			}
		}
		for _, args := range bad {
			if r := w.call("t", args); !r.IsError || r.Error.Code != seams.InvalidArgs {
				t.Errorf("%s takes %v", parameters, args)
			}
		}
	}
	type m = map[string]any
	// Nested objects of the raw form are open and their required holds.
	check(`{ type: 'object', properties: { at: { type: 'object', properties: { x: { type: 'number' }, any: {} }, required: ['x'] } }, required: ['at'] }`,
		[]any{m{"at": m{"x": 1.0, "more": "y", "any": []any{nil}}, "extra": true}}, []any{m{}, m{"at": m{}}, m{"at": m{"x": "1"}}})
	check(`{ type: 'object', additionalProperties: true, properties: { at: { type: 'object', additionalProperties: false, properties: { x: { type: 'integer' } } } } }`,
		[]any{m{"at": m{"x": 1.0}}, m{}}, []any{m{"at": m{"y": 1.0}}, m{"at": m{"x": 1.5}}})
	// All nodes of the parameter map.
	check(`{ s: { type: 'string', enum: ['a', 'b'], description: 'd', title: 't', default: 'a', examples: ['b'] }, n: { type: 'number' }, i: { type: 'integer' }, b: { type: 'boolean' }, z: { type: 'null' },
		l: { type: 'array', items: { type: 'array', items: { type: 'integer' } } }, o: { type: 'object', additionalProperties: false, properties: { k: { type: 'string', required: true } } },
		j: { type: 'json' }, u: { oneOf: [{ type: 'string' }, { type: 'number' }] }, c: { type: 'number', const: 4 } }`,
		[]any{m{}, m{"s": "a", "n": 1.5, "i": 2.0, "b": true, "z": nil, "l": []any{[]any{1.0}}, "o": m{"k": "v"}, "j": []any{m{}}, "u": 1.0, "c": 4.0, "open": 1.0}},
		[]any{m{"s": "c"}, m{"n": "1"}, m{"i": 1.5}, m{"b": 1.0}, m{"z": 0.0}, m{"l": []any{[]any{"x"}}}, m{"o": m{}}, m{"o": m{"k": "v", "x": 1.0}}, m{"u": true}, m{"c": 5.0}})
	// Deep ones.
	deep := strings.Repeat("{ type: 'array', items: ", 25) + "{ type: 'string' }" + strings.Repeat(" }", 25)
	check("{ d: "+deep+" }", []any{m{"d": []any{}}}, []any{m{"d": []any{"x"}}})
	// names of the object's own prototype are names like others.
	check(`{ ['__proto__']: { type: 'string', required: true }, constructor: { type: 'number' } }`,
		[]any{m{"__proto__": "x", "constructor": 1.0}}, []any{m{}, m{"__proto__": 1.0}})
	w.running(tool(`parameters: { ['__proto__']: { type: 'string', required: true } }, execute: (args) => [Object.keys(args), Object.getPrototypeOf(args) === Object.prototype]`))
	if got := w.ok("t", m{"__proto__": "x"}); got != `[["__proto__"],true]` {
		t.Error(got)
	}
}

//
func TestRawDefinitions(t *testing.T) {
	w := newWorld(t, nil)
	raw := "{ name: 't', description: 'x', execute() { return 1 } }"
	for _, code := range []string{
		"return { inject: ['tools'], apply(ctx) { ctx.tools.register(" + raw + ") } }",
		"return { inject: ['tools'], apply(ctx) { ctx.get('tools').register(" + raw + ") } }",
		"return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, " + raw + ") } }",
		"return { inject: ['tools'], apply(ctx) { const { register } = ctx.tools; register(" + raw + ") } }",
	} {
		w.refused(code, seams.InvalidArgument, "harness.defineTool(")
	}
	if w.has("t") {
		t.Error("a raw definition was registered")
	}
	w.running(`return { inject: ['tools'], apply(ctx) {
		const { schemas, get, execute } = ctx.get('tools')
		console.log(schemas().length, get('cordis_mount').name, typeof execute, ctx.tools === ctx.get('tools'))
	} }`)
	if got := w.console(); !slices.Contains(got, "[cordis:dyn-5] info 3 cordis_mount function true") {
		t.Errorf("%q", got)
	}
}

//
func TestPendingMount(t *testing.T) {
	w := newWorld(t, nil)
	r := w.call("cordis_mount", map[string]any{"code": `return { name: 'late', inject: ['tools', 'second', 'first'], apply(ctx) { console.log('up') } }`})
	v, _ := r.Value.(map[string]any)
	if r.IsError || v["state"] != "pending" || fmt.Sprint(v["waitingFor"]) != "[second first]" {
		t.Fatalf("%+v", r)
	}
	if got := r.Content.Text(); got != `Temporary Plugin dyn-1 is pending (plugin "late"; missing services: second, first; `+lifetime+`)` {
		t.Error(got)
	}
	if got := w.console(); len(got) != 0 {
		t.Errorf("it ran: %q", got)
	}
	w.unmount("dyn-1")
}

//
func TestThrowingCode(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	for code, want := range map[string]string{
		"throw new Error('boom')":                  "boom",
		"throw new TypeError('bad kind')":          "TypeError: bad kind",
		"throw null":                               "null",
		"throw undefined":                          "undefined",
		"throw 'plain text'":                       "plain text",
		"throw 42":                                 "42",
		"throw { reason: 'odd' }":                  "{ reason: 'odd' }",
		"await Promise.reject(new Error('later'))": "later",
		"throw new Proxy({}, { get() { throw new Error('no') } })": "",
		"throw Object.assign(new Error('x'), { code: 'E_OWN' })":   "x",
	} {
		got := w.call("cordis_mount", map[string]any{"code": code})
		if !got.IsError || !strings.Contains(strings.ReplaceAll(got.Error.Message, `"`, "'"), want) {
			t.Errorf("%s: %+v", code, got.Error)
		}
		if strings.Contains(got.Error.Message, "return") || strings.Contains(got.Error.Message, "bracket") {
			t.Errorf("%s was taken for another mistake: %s", code, got.Error.Message)
		}
	}
	w.same(before)
	if got := w.section("temporary"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	// The counter has gone on.
	if id := w.running("return () => {}"); id != "dyn-11" {
		t.Error(id)
	}
}

//
func TestNotAPlugin(t *testing.T) {
	w := newWorld(t, nil)
	forms := []string{"(ctx, config) => {", "{ name, inject: ['tools'], apply(ctx, config) {"}
	for _, code := range []string{"", "const a = 1", "({ apply() {} })", "return", "return undefined"} {
		w.refused(code, seams.InvalidPlugin, append(forms, "returned nothing", "`return` is missing")...)
	}
	for code, shown := range map[string]string{
		"return 5": "5", "return 'x'": `x`, "return null": "null", "return {}": "{}", "return [1]": "[ 1 ]", "return { apply: 1 }": "apply: 1", "return { name: 'x', inject: ['tools'] }": "name",
	} {
		got := w.refused(code, seams.InvalidPlugin, append(forms, "not a plugin", shown)...)
		if strings.Contains(got, "is missing") {
			t.Errorf("%s: %s", code, got)
		}
	}
	w.refused("return { inject: 5, apply() {} }", seams.InvalidPlugin, "inject", "list of service names")
	w.refused("return { inject: [5], apply() {} }", seams.InvalidPlugin, "inject")
	w.refused("return { inject: ['tools', 'tools'], apply() {} }", seams.InvalidPlugin, "tools", "twice")
	w.refused("return { Config: { type: 'nonsense' }, apply() {} }", seams.UnsupportedSchema, "nonsense")
	w.refused("const { Schema } = require('ouro'); return { Config: Schema.object({ key: Schema.string().required() }), apply() {} }", seams.InvalidConfig, "key", "is required", "no configuration")
}

//
func TestApplyThrows(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	w.refused(`return { name: 'half', inject: ['tools'], apply(ctx) {
		ctx.provide('thing', 1); ctx.on('tools/change', () => {}); ctx.effect(() => () => console.log('undone'))
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', execute() { return 1 } }))
		throw new Error('after all that')
	} }`, seams.ScriptError, "after all that", "dyn-1:4:")
	w.same(before)
	if got := w.console(); !slices.Equal(got, []string{"[cordis:dyn-1] info undone"}) {
		t.Errorf("%q", got)
	}
	w.refused(`return { async apply(ctx) { await null; throw new Error('later') } }`, seams.ScriptError, "later")
	w.refused(`return class { constructor() { throw new Error('made') } }`, seams.ScriptError, "made")
	w.refused(`return { *apply(ctx) { yield () => console.log('generator undone'); throw new Error('half way') } }`, seams.ScriptError, "half way")
	if got := w.console(); got[len(got)-1] != "[cordis:dyn-4] info generator undone" {
		t.Errorf("%q", got)
	}
	w.same(before)
	if got := w.section("temporary"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

//
func TestToolNameCollision(t *testing.T) {
	w := newWorld(t, nil)
	first := w.running(adder)
	before := w.shape()
	w.refused(strings.Replace(adder, "a + b,\n", "a - b,\n", 1), seams.Duplicate, `"add"`, "already registered by adder", "cordis_inspect", "unmount", "then mount the new version")
	w.refused(`return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'cordis_mount', description: 'x', execute() { return 1 } })) } }`,
		seams.Duplicate, `"cordis_mount"`, "already registered by cordis-tools")
	w.same(before)
	if got := w.ok("add", map[string]any{"a": 1.0, "b": 2.0}); got != "1 + 2 = 3" {
		t.Error(got)
	}
	w.unmount(first)
	w.running(strings.Replace(adder, "a + b,\n", "a - b,\n", 1))
	if got := w.ok("add", map[string]any{"a": 1.0, "b": 2.0}); got != "1 + 2 = -1" {
		t.Error(got)
	}
}

//
func TestGlobalsAreApart(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`globalThis.mine = 1; Array.prototype.extra = 2; Object.prototype.poison = 3
		return () => console.log(typeof process, typeof Buffer, mine, [].extra)`)
	w.running(`return () => console.log(typeof mine, typeof [].extra, typeof ({}).poison, typeof eval, typeof WebAssembly, globalThis === this)`)
	want := []string{"[cordis:dyn-1] info undefined undefined 1 2", "[cordis:dyn-2] info undefined undefined undefined undefined undefined false"}
	if got := w.console(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	w.refused("return new Function('return 1')", seams.ScriptError, "disabled")
}

//
func TestTraps(t *testing.T) {
	w := newWorld(t, nil)
	for code, parts := range map[string][]string{
		"require('./x')":           {`"./x"`, "cannot be imported"},
		"require('fs')":            {`"fs"`, "inject: ['fs']"},
		"require('node:http')":     {`"http"`, "inject: ['http']"},
		"require('child_process')": {"tools"},
		"setTimeout(() => {}, 1)":  {"setTimeout", "not available here", "inject: ['timer']"},
		"setInterval(() => {}, 1)": {"setInterval", "not available here", "inject: ['timer']"},
		"setImmediate(() => {})":   {"setImmediate", "not available here", "inject: ['timer']"},
		"clearTimeout(1)":          {"clearTimeout", "not available here", "inject: ['timer']"},
		"clearInterval(1)":         {"clearInterval", "not available here", "inject: ['timer']"},
		"await fetch('http://x')":  {"fetch", "not available here", "inject: ['http']", "ctx.http.fetch"},
	} {
		got := w.call("cordis_mount", map[string]any{"code": code})
		if !got.IsError || got.Error.Code != seams.NotAvailable && got.Error.Code != seams.ModuleNotAvailable {
			t.Errorf("%s: %s", code, got.Content.Text())
			continue
		}
		for _, p := range parts {
			if !strings.Contains(got.Error.Message, p) {
				t.Errorf("%s: the error does not say %q: %s", code, p, got.Error.Message)
			}
		}
	}
}

//
func TestInjectedTimer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := w.running(`return { inject: ['timer'], async apply(ctx) {
			await ctx.sleep(1)
			ctx.setTimeout((x) => console.log('late', x), 1, 'arg')
			let n = 0
			ctx.interval(() => console.log('tick', ++n), 1)
			ctx.timer.setTimeout(() => console.log('by the service'), 1)
		} }`)
		w.until("timers", func() bool {
			got := strings.Join(w.console(), "\n")
			return strings.Contains(got, "late arg") && strings.Contains(got, "tick 3") && strings.Contains(got, "by the service")
		})
		w.unmount(id)
		n := len(w.console())
		time.Sleep(20 * time.Millisecond)
		if got := w.console(); len(got) != n {
			t.Errorf("a timer fired after the end: %q", got[n:])
		}
		w.refused(`return { apply(ctx) { ctx.setTimeout(() => {}, 1) } }`, seams.NotInjected, "ctx.setTimeout", "inject: ['timer']")
		w.refused(`return { apply(ctx) { ctx.throttle(() => {}, 1) } }`, seams.NotInjected, "ctx.throttle", "inject: ['timer']")
	})
}

//
func TestCodecsAndConsole(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`const text = 'Grüße, 世界'
		return () => {
			console.log(atob(btoa(text)) === text, btoa('ä'))
			console.info(new TextDecoder().decode(new TextEncoder().encode(text)))
			console.warn('warned'); console.debug('%s has %d', 'x', 2); console.error(new Error('shown').message)
		}`)
	want := []string{"info true w6Q=", "info Grüße, 世界", "warn warned", "debug x has 2", "error shown"}
	for i, l := range w.console() {
		if i >= len(want) || l != "[cordis:dyn-1] "+want[i] {
			t.Errorf("line %d is %q", i, l)
		}
	}
}

// TypeScript is lowered like any other source.
func TestTypeScript(t *testing.T) {
	w := newWorld(t, nil)
	id := w.running(`interface Args { readonly words: string[] }
		enum Mode { Loud = 'loud' }
		const join = <T extends string>(list: T[], mode?: Mode): string => (list as string[]).join(' ') + (mode === Mode.Loud ? '!' : '')
		return { name: 'typed', inject: ['tools'] as const, apply(ctx: any): void {
			harness.registerTool(ctx, harness.defineTool({ name: 'join', description: 'Join.', parameters: { words: { type: 'array', items: { type: 'string' }, required: true } },
				execute: async ({ words }: Args): Promise<string> => join(words!, Mode.Loud) satisfies string }))
		} }`)
	if got := w.ok("join", map[string]any{"words": []any{"a", "b"}}); got != "a b!" {
		t.Error(got)
	}
	w.unmount(id)
	// Its errors stand at the author's own line and column.
	w.refused("interface A { x: number }\n\nconst a: A = { x: 1 }\nthrow new Error('line ' + (a as any).x)", seams.ScriptError, "line 1", "dyn-2:4:")
}

//
func TestSyntaxErrors(t *testing.T) {
	w := newWorld(t, nil)
	got := w.refused("const x = 1\nreturn { apply() { } })", seams.CompileFailed, "dyn-1:2:23", "return { apply() { } })", "stray closing parenthesis", "body of an async function")
	lines := strings.Split(got, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "return { apply() { } })" })
	if at < 0 || strings.TrimSpace(lines[at+1]) != "^" || strings.Index(lines[at+1], "^")-strings.Index(lines[at], "return") != 22 {
		t.Errorf("no caret under the parenthesis:\n%s", got)
	}
	if got := w.refused("const s = 'treat it as text'\nreturn { apply( { } }", seams.CompileFailed); strings.Contains(got, "TypeScript") || strings.Contains(got, "annotation") {
		t.Errorf("a word in a string was taken for a type: %s", got)
	}
	w.refused("return {\n  apply() {\n    const = 1\n  }\n}", seams.CompileFailed, "dyn-3:3:11")
	w.refused(strings.Repeat("(", 10000), seams.TooLarge)
	w.refused("return '"+strings.Repeat("x", 300<<10)+"'", seams.TooLarge)
}

// a syntax error that is thrown has its place and no advice about brackets.
func TestThrownSyntaxError(t *testing.T) {
	w := newWorld(t, nil)
	got := w.refused("const x = 1\nJSON.parse('{')", seams.ScriptError, "SyntaxError", "dyn-1:2:")
	if strings.Contains(got, "parenthesis") {
		t.Error(got)
	}
	w.refused("throw new SyntaxError('mine')", seams.ScriptError, "SyntaxError: mine")
}

//
func TestSynchronousTimeout(t *testing.T) {
	w := newWorld(t, map[string]any{"vmTimeoutMs": 200})
	before := w.shape()
	w.refused("while (true) {}", seams.OverBudget, "200ms")
	w.refused("return { apply() { while (true) {} } }", seams.OverBudget, "200ms")
	w.refused("await null; while (true) {}", seams.OverBudget, "200ms")
	w.refused("try { while (true) {} } catch {} finally { while (true) {} }", seams.OverBudget)
	w.same(before)
	// Waiting is no turn.
	w.running("return { inject: ['timer'], async apply(ctx) { await ctx.sleep(400) } }")
	// Each later turn is bounded too: a call that loops ends, and its plugin with it.
	id := w.running(tool("execute() { while (true) {} }"))
	w.fails("t", map[string]any{}, seams.OverBudget, "200ms")
	w.until("the end of the mount", func() bool { return strings.Contains(w.section("temporary")[1], "[disposed]") })
	if got := w.section("temporary"); !strings.Contains(got[1], id+": one-tool [disposed]") || !strings.Contains(got[1], "it was stopped: "+id+": one turn ran for more than 200ms") {
		t.Errorf("%q", got)
	}
	w.unmount(id)
	w.fails("cordis_unmount", map[string]any{"id": id}, seams.NotFound)
}

//
func TestInstanceof(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { inject: ['tools', 'memory', 'timer'], async apply(ctx) {
		const list = ctx.tools.schemas(), later = ctx.timer.sleep(0)
		let wrong
		try { await ctx.memory.get({ user: '' }, '') } catch (e) { wrong = e }
		let sync
		try { ctx.tools.register(5) } catch (e) { sync = e }
		console.log([list instanceof Array, list[0] instanceof Object, Array.isArray(list), ctx.tools.register instanceof Function, later instanceof Promise,
			wrong instanceof Error, sync instanceof Error, new RangeError('x') instanceof Error, /x/ instanceof RegExp, new Date() instanceof Date, new Map() instanceof Map, new Set() instanceof Set].join())
		await later
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', execute: (args) => [args instanceof Object, args.list instanceof Array] }))
	} }`)
	if got := w.console(); len(got) != 1 || got[0] != "[cordis:dyn-1] info "+strings.TrimSuffix(strings.Repeat("true,", 12), ",") {
		t.Errorf("%q", got)
	}
	if got := w.ok("t", map[string]any{"list": []any{}}); got != "[true,true]" {
		t.Error(got)
	}
}

// A service of mounted code runs under the limits of the toolset, and a call
// that is cancelled ends.
func TestCancelledCall(t *testing.T) {
	w := newWorld(t, nil)
	id := w.running(tool("execute: (args, exec) => new Promise((done) => exec.signal.addEventListener('abort', () => done('stopped')))"))
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("enough")) })
	if r := w.tools.Execute(ctx, tools.Call{ID: "1", Name: "t"}); !r.IsError || r.Error.Code != seams.Aborted {
		t.Errorf("%+v", r)
	}
	w.unmount(id)
}

// A cancelled mount leaves nothing.
func TestCancelledMount(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	r := w.tools.Execute(ctx, tools.Call{ID: "1", Name: "cordis_mount", Arguments: map[string]any{"code": `return { inject: ['timer'], async apply(ctx) { ctx.provide('x', 1); await ctx.sleep(60000) } }`}})
	if !r.IsError {
		t.Errorf("%+v", r)
	}
	w.same(before)
	if got := w.section("temporary"); len(got) != 1 || !strings.HasPrefix(got[0], "No temporary") {
		t.Errorf("%q", got)
	}
}

// A listener's registration and its events are the container's own: JavaScript
// hears what Go sends.
func TestListenersHearGo(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { apply(ctx) {
		ctx.on('session/event', (s, e) => console.log('event', e.type))
		ctx.on('internal/service', (name) => console.log('service', name))
		ctx.on('custom/hello', (x) => console.log('custom', x.who))
	} }`)
	store, _ := cordis.Lookup(w.root, events.Key)
	s, err := events.Create(t.Context(), store, events.Spec{Header: events.Header{ID: "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if _, err := s.Append(t.Context(), events.Draft{Type: "test/note", Data: map[string]any{}, Ignorable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := cordis.Provide(w.root, seams.Key[any]{Name: "news"}, any(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.root.Dispatch(t.Context(), seams.Dispatch{Event: "custom/hello", Payload: map[string]any{"who": "go"}}); err != nil {
		t.Fatal(err)
	}
	w.until("all three", func() bool {
		got := strings.Join(w.console(), "\n")
		return strings.Contains(got, "event test/note") && strings.Contains(got, "service news") && strings.Contains(got, "custom go")
	})
}

// maxMounts bounds what is mounted at a time.
func TestMaxMounts(t *testing.T) {
	w := newWorld(t, map[string]any{"maxMounts": 2})
	a := w.running("return () => {}")
	w.mount("return { inject: ['never'], apply() {} }") // a pending one counts
	w.refused("return () => {}", seams.TooMany, "2 temporary plugins", "cordis_inspect", "unmount")
	w.unmount(a)
	w.running("return () => {}")
	// Several at a time do not pass it together.
	w.unmount("dyn-2")
	var ok atomic.Int32
	done := make(chan bool)
	for range 8 {
		go func() {
			if !w.call("cordis_mount", map[string]any{"code": "return () => {}"}).IsError {
				ok.Add(1)
			}
			done <- true
		}()
	}
	for range 8 {
		<-done
	}
	if ok.Load() != 1 {
		t.Errorf("%d of 8 were mounted into one place", ok.Load())
	}
}
