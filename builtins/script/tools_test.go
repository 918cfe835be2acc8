package script_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/memory"
	"github.com/ouro-run/ouro/seams/tools"
)

// tool mounts a file that registers one tool, given as its JavaScript object.
func (w *world) tool(def string) *cordis.Fiber {
	w.Helper()
	return w.js("tool.js", `const { defineTool } = require('ouro')
module.exports = { name: 'mine', inject: ['tools', 'events', 'memory'], apply(ctx) { ctx.tools.register(`+def+`) } }`)
}

func TestToolValues(t *testing.T) {
	for _, c := range []struct {
		name, def string
		args      any
		value     any
		shown     string
	}{
		{"text", `{ name: 't', description: 'd', parameters: { who: { type: 'string', required: true } }, execute: ({ who }) => 'hi ' + who }`, map[string]any{"who": "you"}, "hi you", "hi you"},
		{"json", `defineTool({ name: 't', description: 'd', async execute() { return { b: [1, null], a: new Date(0) } } })`, nil, map[string]any{"a": "1970-01-01T00:00:00.000Z", "b": []any{1.0, nil}}, `{"a":"1970-01-01T00:00:00.000Z","b":[1,null]}`},
		{"nothing", `{ name: 't', description: 'd', execute() {} }`, nil, nil, "null"},
		{"rendered", `{ name: 't', description: 'd', output: { schema: { type: 'number' }, render: (args, v) => [{ type: 'text', text: args.u + v }] }, execute: () => 7 }`, map[string]any{"u": "m"}, 7.0, "m7"},
		{"render alone", `{ name: 't', description: 'd', execute: () => 7, render: async (args, v) => [{ type: 'text', text: 'v' + v }] }`, nil, 7.0, "v7"},
		{"json schema", `{ name: 't', description: 'd', parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }, execute: ({ n }) => n }`, map[string]any{"n": 3.0}, 3.0, "3"},
		{"handler", `{ name: 't', description: 'd', parameters: { q: { name: 'q', type: 'string', description: 'what', required: true } }, handler: async ({ q }) => q }`, map[string]any{"q": "x"}, "x", "x"},
		{"instance", `defineTool(new (class { name = 't'; description = 'd'; #n = 5; execute() { return this.#n } })())`, nil, 5.0, "5"},
		{"finalized", `{ name: 't', description: 'd', execute: () => 1, finalizeContent: (exec, r) => [{ type: 'text', text: exec.name + r.isError + r.value }] }`, nil, 1.0, "tfalse1"},
		{"exec copied", `{ name: 't', description: 'd', execute(args, exec) { exec.mine = 1; delete exec.rootCallId; const { signal, deferContext, concludeTurn, ...rest } = exec; return [rest, 'mine' in exec, 'rootCallId' in exec, typeof exec.toString, JSON.stringify(exec).length > 10, signal === exec.signal] } }`, nil,
			[]any{map[string]any{"agent": "", "arguments": map[string]any{}, "callId": "call-1", "mine": 1.0, "name": "t"}, true, false, "function", true, true}, `[{"agent":"","arguments":{},"callId":"call-1","mine":1,"name":"t"},true,false,"function",true,true]`},
		{"exec", `{ name: 't', description: 'd', execute: (args, exec) => [exec.callId, exec.rootCallId, exec.name, exec.agent, exec.arguments, exec.signal.aborted] }`, map[string]any{"a": 1.0}, []any{"call-1", "call-1", "t", "", map[string]any{"a": 1.0}, false}, `["call-1","call-1","t","",{"a":1},false]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			f := w.tool(c.def)
			r := w.tools.Execute(w.Context(), callTool("t", c.args))
			if r.IsError || !equal(r.Value, c.value) || r.Content.Text() != c.shown {
				t.Errorf("got %+v %q, error %+v; want %v %q", r.Value, r.Content.Text(), r.Error, c.value, c.shown)
			}
			w.dispose(f)
			if r := w.tools.Execute(w.Context(), callTool("t", c.args)); r.Error == nil || r.Error.Code != seams.UnknownTool {
				t.Errorf("after dispose: %+v", r)
			}
		})
	}
}

// what a tool answers or throws that is of no use is told with its reason.
func TestToolFailures(t *testing.T) {
	for _, c := range []struct {
		name, def string
		code      seams.Code
		says      string
	}{
		{"throws", `{ name: 't', description: 'd', execute() { null.x } }`, seams.ScriptError, "tool.js:2:"},
		{"coded", `{ name: 't', description: 'd', execute() { throw Object.assign(new Error('no'), { code: 'MY_CODE' }) } }`, "MY_CODE", "no"},
		{"text", `{ name: 't', description: 'd', async execute() { throw 'just text' } }`, seams.ScriptError, "just text"},
		{"function", `{ name: 't', description: 'd', execute: () => ({ f() {} }) }`, seams.InvalidToolOutput, "return a plain object, or return null"},
		{"cycle", `{ name: 't', description: 'd', execute: () => { const o = {}; o.o = o; return o } }`, seams.InvalidToolOutput, "contains itself"},
		{"bigint", `{ name: 't', description: 'd', execute: () => 1n }`, seams.InvalidToolOutput, "BigInt"},
		{"map", `{ name: 't', description: 'd', execute: () => new Map() }`, seams.InvalidToolOutput, "Object.fromEntries"},
		{"infinite", `{ name: 't', description: 'd', execute: () => [1 / 0] }`, seams.InvalidToolOutput, "[0]"},
		{"getter", `{ name: 't', description: 'd', execute: () => ({ get x() { throw new Error('trap') } }) }`, seams.ScriptError, "trap"},
		{"schema", `{ name: 't', description: 'd', output: { schema: { type: 'number' } }, execute: () => 'x'.repeat(1e5) }`, seams.InvalidToolOutput, "value"},
		{"render", `{ name: 't', description: 'd', execute: () => 1, render: () => 'x'.repeat(500) }`, seams.InvalidToolOutput, "[{ type: 'text', text: String(value) }]"},
		{"late", `{ name: 't', description: 'd', timeoutMs: 20, execute: () => new Promise(() => {}) }`, seams.ToolTimeout, "20ms"},
		{"arguments", `{ name: 't', description: 'd', parameters: { n: { type: 'number', required: true } }, execute: () => 1 }`, seams.InvalidArgs, "n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool(c.def)
			r := w.tools.Execute(w.Context(), callTool("t", nil))
			if !r.IsError || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.says) {
				t.Errorf("got %+v, want %s with %q", r.Error, c.code, c.says)
			}
			if len(r.Content.Text()) > 700 {
				t.Errorf("the model is shown %d bytes", len(r.Content.Text()))
			}
		})
	}
}

// what is no tool is refused where it is registered, by path.
func TestToolRefused(t *testing.T) {
	for _, c := range []struct{ def, says string }{
		{`7`, "expected a tool"},
		{`{}`, "name: expected a string"},
		{`{ name: 't' }`, "description"},
		{`{ name: 't', description: 'd' }`, "execute: expected a function"},
		{`{ name: 't', description: 'd', run() {} }`, "is run meant"},
		{`{ name: 't', description: 'd', inputSchema: {}, execute() {} }`, "write parameters"},
		{`{ name: 'no spaces', description: 'd', execute() {} }`, "1 to 64"},
		{`{ name: 't', description: 'd', parameters: 7, execute() {} }`, "parameters"},
		{`{ name: 't', description: 'd', parameters: { a: 'string' }, execute() {} }`, "parameters.a"},
		{`{ name: 't', description: 'd', parameters: { a: { type: 'str' } }, execute() {} }`, `did you mean "string"`},
		{`{ name: 't', description: 'd', parameters: { a: { type: 'string', default: NaN } }, execute() {} }`, "parameters.a.default"},
		{`{ name: 't', description: 'd', output: 'number', execute() {} }`, "output"},
		{`{ name: 't', description: 'd', output: { schema: { type: 'nummer' } }, execute() {} }`, "schema"},
		{`{ name: 't', description: 'd', output: { render: 1 }, execute() {} }`, "output.render"},
		{`{ name: 't', description: 'd', timeoutMs: 0, execute() {} }`, "timeoutMs"},
		{`{ name: 't', description: 'd', isConcurrencySafe: 'yes', execute() {} }`, "isConcurrencySafe"},
		{`{ name: 't', description: 'd', get execute() { throw new Error('trap') } }`, "trap"},
	} {
		w := newWorld(t)
		f, err := w.root.Plugin(w.file("bad.js", `module.exports = { inject: ['tools'], apply(ctx) { ctx.tools.register(`+c.def+`) } }`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Settle(w.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.def, err, c.says)
		}
		if n := len(w.tools.Schemas(nil)); n != 0 {
			t.Errorf("%s: %d tools are left", c.def, n)
		}
	}
}

// T-42: exactly a true answer makes a call run beside others.
func TestToolConcurrency(t *testing.T) {
	for def, want := range map[string]tools.ExecutionMode{
		`isConcurrencySafe: true`: tools.Parallel, `isConcurrencySafe: false`: tools.Exclusive, `isConcurrencySafe: undefined`: tools.Exclusive,
		`isConcurrencySafe: (args) => args.read === true`: tools.Parallel, `isConcurrencySafe: () => 1`: tools.Exclusive,
		`isConcurrencySafe: () => { throw 1 }`: tools.Exclusive,
	} {
		w := newWorld(t)
		w.tool(`{ name: 't', description: 'd', execute() {}, ` + def + ` }`)
		if got := w.tools.ExecutionMode(w.Context(), nil, "t", map[string]any{"read": true}); got != want {
			t.Errorf("%s: %s, want %s", def, got, want)
		}
	}
}

// A tool calls another one as a part of its own call, writes to the log of the
// session it works in, and tells the agent something for its next step.
func TestToolBody(t *testing.T) {
	w := newWorld(t)
	s, err := events.Create(w.Context(), w.events, events.Spec{Header: events.Header{ID: "agent-1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	w.js("inner.js", `module.exports = { inject: ['tools'], apply(ctx) { ctx.tools.register({ name: 'inner', description: 'd', execute: (args, exec) => [exec.agent, exec.rootCallId, args.n] }) } }`)
	w.js("outer.js", `module.exports = { name: 'mine', inject: ['tools', 'events', 'memory'], apply(ctx) { ctx.tools.register({ name: 'outer', description: 'd', async execute(args, exec) {
  const e = await ctx.events.append('noted', { n: 1 })
  const all = await ctx.events.read()
  exec.deferContext({ role: 'user', content: [{ type: 'text', text: 'by the way' }], source: { kind: 'plugin', plugin: 'mine' } })
  exec.concludeTurn()
  const r = await ctx.tools.execute({ name: 'inner', arguments: { n: 2 } })
  const bad = await ctx.tools.execute({ name: 'nosuch' })
  await ctx.memory.put({ scope: { user: 'u' }, key: 'k', text: 'hello world', kind: 'fact' })
  const found = await ctx.memory.search({ scope: { user: 'u' }, text: 'world' })
  let gone = ''
  try { await ctx.memory.get({ scope: { user: 'u' } , key: 'x' }, 'x') } catch (err) { gone = err.code }
  return { e: e.type, all: all.length, r: r.value, bad: bad.error.code, found: found.hits[0].item.text, ranking: found.ranking, gone, deleted: await ctx.memory.delete({ user: 'u' }, 'k'), tools: ctx.tools.schemas().length, none: ctx.tools.get('nosuch') === undefined, one: ctx.tools.get('inner').name }
} }) } }`)
	r := w.tools.Execute(w.Context(), tools.Call{ID: "c-9", Name: "outer", Agent: "agent-1"})
	want := map[string]any{"e": "mine/noted", "all": 1.0, "r": []any{"agent-1", "c-9", 2.0}, "bad": "UNKNOWN_TOOL", "found": "hello world", "ranking": "text",
		"gone": "INVALID_ARGUMENT", "deleted": true, "tools": 2.0, "none": true, "one": "inner"}
	if !equal(r.Value, want) {
		t.Errorf("value = %v\nwant %v (%+v)", r.Value, want, r.Error)
	}
	if !r.ConcludesTurn || len(r.AdditionalContexts) != 1 || r.AdditionalContexts[0].ID == "" || r.AdditionalContexts[0].Content.Text() != "by the way" {
		t.Errorf("contexts = %+v, concludes %t", r.AdditionalContexts, r.ConcludesTurn)
	}
	if e := s.Events(0)[0]; e.Type != "mine/noted" || !e.Ignorable || string(e.Data) != `{"n":1}` {
		t.Errorf("event = %+v", e)
	}
}

// What a tool did not await goes on after its call, until the plugin ends.
func TestToolLeavesWorkBehind(t *testing.T) {
	w := newWorld(t)
	w.tool(`{ name: 't', description: 'd', execute() { (async () => { await new Promise((go) => setTimeout(go, 10)); await ctx.memory.put({ scope: { user: 'u' }, key: 'later', text: 'x', kind: 'fact' }); console.log('put') })(); return 1 } }`)
	w.tools.Execute(w.Context(), callTool("t", nil))
	w.expect("put")
	st, _ := cordis.Lookup(w.root, memory.Key)
	if _, err := st.Get(w.Context(), memory.Scope{User: "u"}, "later"); err != nil {
		t.Error(err)
	}
}

// js-08: parallel calls of one plugin's listener run one at a time, with the
// right results; a listener that is reached again from within itself is no
// deadlock.
func TestParallelCalls(t *testing.T) {
	w := newWorld(t)
	w.js("js-08.js", "module.exports = (ctx) => { const on = ctx.on;\n"+read(t, "js-08.js")+`
ctx.on('again', async (n) => n > 0 ? 1 + await ctx.serial('again', n - 1) : { bottom: true } && 1)
}`)
	const goroutines, each = 8, 200
	type answer struct {
		n   float64
		err error
	}
	answers := make(chan answer, goroutines*each)
	for g := range goroutines {
		go func() {
			for range each {
				v, err := w.root.Dispatch(w.Context(), seams.Dispatch{Event: "tool", Mode: seams.Serial, Payload: seams.Args{float64(g)}})
				m, _ := v.(map[string]any)
				n, _ := m["n"].(float64)
				if err == nil && m["i"] != float64(g) {
					err = fmt.Errorf("i = %v, want %d", m["i"], g)
				}
				answers <- answer{n, err}
			}
		}()
	}
	seen, most := map[float64]bool{}, 0.0
	for range goroutines * each {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		seen[a.n] = true
		most = max(most, a.n)
	}
	if len(seen) != 1600 || most != 1600 {
		t.Errorf("%d distinct values up to %v, want 1600", len(seen), most)
	}
	v, err := w.root.Dispatch(w.Context(), seams.Dispatch{Event: "again", Mode: seams.Serial, Payload: seams.Args{3.0}})
	if err != nil || v != 4.0 {
		t.Errorf("again = %v, %v", v, err)
	}
}

// The pipeline's waterfalls: listeners allow, deny, replace and block.
func TestToolWaterfalls(t *testing.T) {
	const tool = `{ name: 't', description: 'd', execute: () => 1 }`
	for _, c := range []struct {
		name, listen string
		want         string
		code         seams.Code
	}{
		{"pass", `ctx.on('tools/pre-execute', (exec, next) => next()); ctx.on('tools/execute', (exec, next) => next()); ctx.on('tools/post-execute', (exec, r, next) => next())`, "1", ""},
		{"deny", `ctx.on('tools/pre-execute', async (exec, next) => exec.name === 't' ? { kind: 'deny', reason: 'not today' } : next())`, "Error: not today", ""},
		{"answers nothing", `ctx.on('tools/pre-execute', (exec, next) => { next() })`, "answered nothing: return what `await next()` answers", seams.InvalidArgument},
		{"unknown kind", `ctx.on('tools/pre-execute', () => ({ kind: 'maybe' }))`, "expected allow, deny or ask", seams.InvalidArgument},
		{"unknown member", `ctx.on('tools/pre-execute', () => ({ kind: 'allow', because: 1 }))`, "because", seams.InvalidArgument},
		{"own result", `ctx.on('tools/execute', () => ({ isError: false, value: 2 }))`, "2", ""},
		{"own failure", `ctx.on('tools/execute', () => ({ isError: true, error: { message: 'down', code: 'MY_CODE' } }))`, "Error: down [MY_CODE]", "MY_CODE"},
		{"changed result", `ctx.on('tools/execute', async (exec, next) => ({ ...await next(), value: 3 }))`, "3", ""},
		{"block", `ctx.on('tools/post-execute', (exec, r) => ({ kind: 'block', feedback: 'saw ' + r.value }))`, "Error: saw 1", ""},
		{"value", `ctx.on('tools/post-execute', async (exec, r, next) => ({ ...await next(), value: r.value + 10 }))`, "11", ""},
		{"null value", `ctx.on('tools/post-execute', () => ({ kind: 'accept', value: null }))`, "null", ""},
		{"content", `ctx.on('tools/post-execute', () => ({ kind: 'accept', content: [{ type: 'text', text: 'shown' }] }))`, "shown", ""},
		{"bad verdict", `ctx.on('tools/post-execute', () => ({ kind: 'fine' }))`, "expected 'accept' or 'block'", seams.InvalidArgument},
		{"throws", `ctx.on('tools/pre-execute', () => { throw new Error('guard is down') })`, "guard is down", seams.ScriptError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool(tool)
			w.js("listen.js", `module.exports = (ctx) => { `+c.listen+` ; ctx.on('tools/result', (exec, r) => console.log(exec.name, r.isError)) }`)
			r := w.tools.Execute(w.Context(), callTool("t", nil))
			if got := r.Content.Text(); !strings.Contains(got, c.want) {
				t.Errorf("shown %q, want %q", got, c.want)
			}
			if r.IsError && r.Error.Code != c.code {
				t.Errorf("code %q, want %q", r.Error.Code, c.code)
			}
			w.expect(fmt.Sprint("t ", r.IsError))
		})
	}
}

// tools/change reaches JavaScript after the registration that caused it, also
// when that was made by the listener's own realm.
func TestToolChange(t *testing.T) {
	w := newWorld(t)
	f := w.js("self.js", `module.exports = { inject: ['tools'], apply(ctx) {
  ctx.on('tools/change', (c) => console.log(c.name, c.gone === true))
} }`)
	w.js("other.js", `module.exports = { inject: ['tools'], apply(ctx) {
  ctx.on('tools/change', (c) => {})
  const off = ctx.tools.register({ name: 'x', description: 'd', execute() {} })
  ctx.on('drop', () => off())
} }`)
	w.expect("x false")
	w.emit("drop")
	w.expect("x false", "x true")
	w.dispose(f)
}

// A call in flight ends on the code it began with; a call after a swap runs the
// new code.
func TestToolInFlight(t *testing.T) {
	w := newWorld(t)
	e := w.root.Entry("tool")
	set := func(v string) {
		f, err := e.Set(w.file("t.js", `module.exports = { inject: ['tools'], apply(ctx) { ctx.tools.register({ name: 't', description: 'd', async execute(args) { if (args.wait) { console.log('in'); await new Promise((go) => setTimeout(go, 200)) } return '`+v+`' } }) } }`), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Ready().Wait(w.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set("old")
	done := make(chan *tools.Result)
	go func() { done <- w.tools.Execute(context.Background(), callTool("t", map[string]any{"wait": true})) }()
	w.expect("in")
	next := make(chan struct{})
	go func() { set("new"); close(next) }()
	<-next
	if got := w.tools.Execute(w.Context(), callTool("t", nil)).Value; got != "new" {
		t.Errorf("a new call answers %v", got)
	}
	select {
	case r := <-done:
		if r.Value != "old" {
			t.Errorf("the call in flight answers %+v", r)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the call in flight does not end")
	}
}

func TestToolCancelled(t *testing.T) {
	w := newWorld(t)
	w.tool(`{ name: 't', description: 'd', async execute(args, { signal }) { console.log('in'); await new Promise((_, no) => signal.addEventListener('abort', () => { console.log('aborted'); no(signal.reason) })) } }`)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan *tools.Result)
	go func() { done <- w.tools.Execute(ctx, callTool("t", nil)) }()
	w.expect("in")
	cancel()
	if r := <-done; !r.IsError || r.Error.Code != seams.Aborted {
		t.Errorf("result = %+v", r.Error)
	}
	w.expect("in", "aborted")
}
