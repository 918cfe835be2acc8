package cordistools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
)

// hostile code, and the code of the error that answers it. Where a tool name is
// given, the code is mounted and the tool called; "" is a mount that fails.
var hostile = []struct {
	name string
	code string
	call string
	want seams.Code // "" is no error: what it did hurt nobody but itself
}{
	// Loops.
	{"loop", `while (true) {}`, "", seams.OverBudget},
	{"loop in apply", `return { apply() { for (;;); } }`, "", seams.OverBudget},
	{"loop that catches", `for (;;) try { for (;;); } catch {} finally { continue }`, "", seams.OverBudget},
	{"loop in a getter", `return { get apply() { for (;;); } }`, "", seams.OverBudget},
	{"microtask loop", `const f = () => Promise.resolve().then(f); f(); return () => {}`, "", seams.OverBudget},
	{"await loop", `for (;;) await null`, "", seams.OverBudget},
	{"loop in execute", tool(`execute() { for (;;); }`), "t", seams.OverBudget},
	{"loop in render", tool(`output: { render() { for (;;); } }, execute: () => 1`), "t", seams.InvalidToolOutput},
	{"loop in toJSON", tool(`execute: () => ({ toJSON() { for (;;); } })`), "t", seams.OverBudget},
	{"loop in finalizeContent", tool(`finalizeContent() { for (;;); }, execute: () => 1`), "t", seams.OverBudget},
	{"loop in a generator", `return { *apply() { for (;;) yield () => {} } }`, "", seams.OverBudget},
	{"timer loop", `return { inject: ['timer', 'tools'], apply(ctx) { ctx.setTimeout(() => { for (;;); }, 0); ` + define("t", "() => 1") + ` } }`, "", ""},
	// Depth.
	{"recursion", `const f = () => f(); f()`, "", seams.OverBudget},
	{"generator recursion", `function* g() { yield* g() } [...g()]`, "", seams.OverBudget},
	{"toString recursion", `const o = { toString() { return '' + this } }; '' + o`, "", seams.OverBudget},
	{"deep source", `return ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "", seams.TooLarge},
	{"deep value", tool(`execute() { let a = 1; for (let i = 0; i < 1e4; i++) a = [a]; return a }`), "t", seams.InvalidToolOutput},
	{"deep JSON", `return () => JSON.parse('['.repeat(1e5))`, "", seams.ScriptError},
	// Memory.
	{"list", `const a = []; for (;;) a.push(new Array(1e5).fill(1))`, "", seams.OverBudget},
	{"string", `let s = 'x'; for (;;) s += s`, "", seams.OverBudget},
	{"one huge string", `'x'.repeat(2 ** 30)`, "", seams.ScriptError},
	{"one huge buffer", `new ArrayBuffer(2 ** 33)`, "", seams.ScriptError},
	{"one huge list", `Array.from({ length: 1e9 })`, "", seams.ScriptError},
	{"promises", `const a = []; for (;;) a.push(new Promise(() => {}))`, "", seams.OverBudget},
	{"closures", `let f = () => 1; for (;;) { const g = f; f = () => g }`, "", seams.OverBudget},
	{"huge answer", tool(`execute: () => 'x'.repeat(2e7)`), "t", seams.InvalidToolOutput},
	{"wide answer", tool(`execute: () => Array.from({ length: 2e5 }, () => 0)`), "t", seams.InvalidToolOutput},
	{"huge source", `return '` + strings.Repeat("x", 1<<20) + `'`, "", seams.TooLarge},
	{"backtracking", `/^(a+)+$/.test('a'.repeat(40) + '!'); return () => {}`, "", ""},
	// Getters and proxies.
	{"throwing name", `return { get name() { throw new Error('gotcha') }, apply() {} }`, "", seams.ScriptError},
	{"throwing apply", `return { get apply() { throw new Error('gotcha') } }`, "", seams.ScriptError},
	{"throwing definition", `return { inject: ['tools'], apply(ctx) { ctx.tools.register({ get name() { throw new Error('gotcha') } }) } }`, "", seams.ScriptError},
	{"throwing answer", tool(`execute: () => ({ get a() { throw new Error('gotcha') } })`), "t", seams.ScriptError},
	{"throwing error", tool(`execute() { throw { get message() { throw 1 }, get name() { throw 2 }, toString() { throw 3 } } }`), "t", seams.ScriptError},
	{"error of errors", tool(`execute() { const e = new Error('x'); e.cause = e; throw e }`), "t", seams.ScriptError},
	{"proxy plugin", `return new Proxy({}, { get() { throw new Error('trap') } })`, "", seams.ScriptError},
	{"proxy of everything", `return new Proxy(function () {}, { get: () => new Proxy(() => {}, {}) })`, "", seams.Timeout},
	{"proxy answer", tool(`execute: () => new Proxy({ a: 1 }, { ownKeys() { throw new Error('trap') } })`), "t", seams.ScriptError},
	{"lying proxy", tool(`execute: () => new Proxy([], { get: (t, k) => k === 'length' ? 1e9 : 0 })`), "t", seams.InvalidToolOutput},
	{"endless proxy", tool(`execute: () => { const h = { get: () => p, ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: p, enumerable: true, configurable: true }) }; const p = new Proxy({}, h); return p }`), "t", seams.InvalidToolOutput},
	{"revoked proxy", tool(`execute: () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy }`), "t", seams.ScriptError},
	{"thenable", tool(`execute: () => ({ then(ok) { ok({ then(ok) { ok('through') } }) } })`), "t", ""},
	{"thenable that throws", tool(`execute: () => ({ get then() { throw new Error('then') } })`), "t", seams.ScriptError},
	// Prototypes.
	{"polluted objects", `Object.prototype.get = () => 'got'; Object.prototype.value = 1; Object.prototype.toJSON = () => 'json'; ` + tool(`execute: () => ({ a: 1 })`), "", seams.ScriptError},
	{"polluted then", `Object.prototype.then = function (ok) { ok(666) }; return { apply() {} }`, "", seams.InvalidPlugin},
	{"polluted lists", `Array.prototype[Symbol.iterator] = function* () { yield 'mine' }; Array.prototype.push = () => { throw 1 }; Array.prototype.map = () => 'map'; ` + tool(`execute: () => [1, 2]`), "t", ""},
	{"polluted promises", `Promise.prototype.then = () => { throw new Error('then') }; Promise.resolve = () => 5; globalThis.Promise = class {}; ` + tool(`execute: async () => 1`), "t", ""},
	{"polluted functions", `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw new Error('called') }; ` + tool(`execute: () => 1`), "", seams.ScriptError},
	{"polluted JSON", `JSON.stringify = JSON.parse = () => { throw 1 }; Object.keys = () => ['x']; Reflect.ownKeys = () => []; ` + tool(`execute: () => ({ a: 1 })`), "t", ""},
	{"frozen globals", `for (const k of Object.getOwnPropertyNames(globalThis)) try { Object.freeze(globalThis[k]); Object.freeze(globalThis[k].prototype) } catch {} ` + tool(`execute: async () => 1`), "t", ""},
	{"deleted globals", `for (const k of Object.getOwnPropertyNames(globalThis)) if (k !== 'harness') try { delete globalThis[k] } catch {} ` + tool(`execute: async () => 1`), "", seams.ScriptError},
	// Floods.
	{"tools", `return { inject: ['tools'], apply(ctx) { for (let i = 0; i < 10000; i++) ` + define("t' + i + '", "() => 1") + ` } }`, "", seams.TooMany},
	{"listeners", `return { apply(ctx) { for (;;) ctx.on('tools/result', () => {}) } }`, "", seams.OverBudget},
	{"services", `return { apply(ctx) { for (let i = 0; ; i++) ctx.provide('s' + i, 1) } }`, "", seams.OverBudget},
	{"effects", `return { apply(ctx) { for (;;) ctx.effect(() => () => {}) } }`, "", seams.OverBudget},
	{"timers", `return { inject: ['timer'], apply(ctx) { for (;;) ctx.setTimeout(() => {}, 1e6) } }`, "", seams.OverBudget},
	{"calls in flight", `return { inject: ['timer'], async apply(ctx) { await Promise.all(Array.from({ length: 1000 }, () => ctx.sleep(1e6))) } }`, "", seams.OverBudget},
	{"rejections", `for (let i = 0; i < 1000; i++) Promise.reject(new Error('nobody ' + i)); return () => {}`, "", ""},
	{"console", `return { inject: ['tools'], apply(ctx) { ` + define("t", "() => { for (let i = 0; i < 2000; i++) console.log('x'.repeat(1000)); return 1 }") + ` } }`, "t", ""},
	{"errors", tool(`execute() { throw new Error('x'.repeat(1e6)) }`), "t", seams.ScriptError},
	// Others' things.
	{"another's tool", `return { inject: ['tools'], apply(ctx) { ` + define("add", "() => 1") + ` } }`, "", seams.Duplicate},
	{"another's service", `return { apply(ctx) { ctx.provide('memory', {}) } }`, "", seams.Clash},
	{"its own context", `return { provide: ['c'], apply(ctx) { ctx.provide('c', { get: () => ctx }); } }`, "", ""},
	{"kills timers", `for (let i = 0; i < 1000; i++) clearTimeout(i)`, "", seams.NotAvailable},
	{"unmounts others", `return { inject: ['tools'], async apply(ctx) { const r = await ctx.tools.execute({ name: 'cordis_unmount', arguments: { id: 'cordis-tools' } }); if (r.isError) throw Object.assign(new Error(r.error.message), { code: r.error.code }) } }`, "", seams.NotFound},
	{"calls itself", `return { inject: ['tools'], apply(ctx) { ` + define("t", "async () => { const r = await ctx.tools.execute({ name: 't' }); if (r.isError) throw Object.assign(new Error(r.error.message), { code: r.error.code }); return r.value }") + ` } }`, "t", seams.OverBudget},
	{"disposes twice", `return { apply(ctx) { const off = ctx.provide('x', 1); off(); off(); off(); ctx.effect(() => () => {})(); return () => off() } }`, "", ""},
	{"throwing disposer", `return { apply(ctx) { ctx.effect(() => () => { throw new Error('no') }); return () => Promise.reject(new Error('never')) } }`, "", ""},
	{"looping disposer", `return { apply(ctx) { ctx.provide('x', 1); ctx.effect(() => () => { for (;;); }) } }`, "", ""},
	{"registers while it goes", `return { inject: ['tools'], apply(ctx) { ctx.effect(() => async () => { await null; try { ` + define("ghost", "() => 1") + ` } catch {} try { ctx.on('tools/result', () => {}) } catch {} try { ctx.provide('ghost', 1) } catch {} }) } }`, "", ""},
}

// define is a statement that registers a tool.
func define(name, execute string) string {
	return `harness.registerTool(ctx, harness.defineTool({ name: '` + name + `', description: 'x', execute: ` + execute + ` }))`
}

// The host survives all of it: the error has the code that says what it was, it
// is the mount's, and afterwards the container is what it was.
func TestHostileSet(t *testing.T) {
	w := newWorld(t, map[string]any{"applyTimeoutMs": 2000, "vmTimeoutMs": 20000})
	w.running(adder)
	before := w.shape()
	// What loops is given less time, so that the test ends; what only works hard
	// is given what it needs.
	short := newWorld(t, map[string]any{"vmTimeoutMs": 300})
	short.running(adder)
	beforeShort := short.shape()
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			w, before := &inner{world: w, T: t}, before
			if c.want == seams.OverBudget || strings.Contains(c.name, "loop") {
				w.world, before = short, beforeShort
			}
			w.play(c.code, c.call, c.want)
			if after := w.shape(); !slices.Equal(before, after) {
				t.Errorf("the container is not what it was:\n%q\n%q", before, after)
			}
			if r := w.call("add", map[string]any{"a": 1.0, "b": 2.0}); r.Content.Text() != "1 + 2 = 3" {
				t.Errorf("another mount suffered: %+v", r)
			}
		})
	}
	// None of it reached another realm.
	w.running(`return { apply() { console.log([typeof ({}).then, typeof ({}).get, [1].map((x) => x + 1)[0], JSON.stringify({ a: 1 })].join()) } }`)
	if got := w.console(); got[len(got)-1] != `undefined,undefined,2,{"a":1}` && !strings.HasSuffix(got[len(got)-1], ` info undefined,undefined,2,{"a":1}`) {
		t.Errorf("%q", got[len(got)-1])
	}
	// The flood of the console was cut, and said so.
	size := 0
	for _, l := range w.console() {
		size += len(l)
	}
	if size > 1<<20 || !slices.ContainsFunc(w.console(), func(l string) bool { return strings.Contains(l, "the rest of this minute is dropped") }) {
		t.Errorf("the console took %d bytes", size)
	}
}

// inner is a world in a subtest.
type inner struct {
	*world
	*testing.T
}

func (w *inner) play(code, call string, want seams.Code) {
	t := w.T
	r := w.call("cordis_mount", map[string]any{"code": code})
	id := ""
	if !r.IsError {
		id = r.Value.(map[string]any)["id"].(string)
		if call != "" {
			r = w.call(call, map[string]any{})
		}
	} else if call != "" {
		t.Fatalf("it was not mounted: %s", r.Error.Message)
	}
	switch {
	case want == "" && r.IsError:
		t.Errorf("%s: %s", r.Error.Code, r.Error.Message)
	case want != "" && !r.IsError:
		t.Errorf("no error: %.200s", r.Content.Text())
	case want != "" && r.Error.Code != want:
		t.Errorf("code %s, want %s: %.300s", r.Error.Code, want, r.Error.Message)
	case want != "" && len(r.Error.Message) > 6000:
		t.Errorf("the message has %d bytes", len(r.Error.Message))
	}
	if id != "" {
		if r := w.call("cordis_unmount", map[string]any{"id": id}); r.IsError {
			t.Errorf("unmount: %s", r.Error.Message)
		}
	}
}

// What never ends is ended: an apply, a call, a disposer.
func TestNeverResolves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, map[string]any{"applyTimeoutMs": 500, "callTimeoutMs": 100}, func(o *cordis.Options) { o.UndoTimeout = 300 * time.Millisecond })
		before := w.shape()
		start := time.Now()
		w.refused(`return { apply: () => new Promise(() => {}) }`, seams.Timeout, "500ms")
		w.refused(`await new Promise(() => {})`, seams.Timeout, "500ms")
		id := w.running(tool(`execute: () => new Promise(() => {})`))
		w.fails("t", nil, seams.ToolTimeout, "100ms")
		w.unmount(id)
		id = w.running(`return { apply(ctx) { ctx.provide('x', 1); for (let i = 0; i < 100; i++) ctx.effect(() => () => new Promise(() => {})) } }`)
		w.unmount(id)
		w.reported("undoing took longer than 300ms")
		w.same(before)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// A mount that hears everything and throws, or never answers, changes nothing of
// what it hears: sessions, tools and services go on.
func TestObserversAreHarmless(t *testing.T) {
	w := newWorld(t, map[string]any{"vmTimeoutMs": 1000})
	w.running(adder)
	before := w.shape()
	names := []string{"tools/result", "tools/change", "agent/created", "agent/disposed", "agent/status", "agent/session-start", "agent/inbox/inserted", "agent/inbox/claimed",
		"agent/inbox/discarded", "agent/turn-stopping", "agent/error", "session/created", "session/disposed", "session/event", "session/flush", "internal/status", "internal/service", "internal/plugin", "custom/event"}
	list := "['" + strings.Join(names, "','") + "']"
	ids := []string{
		w.running("return { apply(ctx) { for (const e of " + list + ") ctx.on(e, () => { throw new Error('heard ' + e) }) } }"),
		w.running("return { apply(ctx) { for (const e of " + list + ") ctx.on(e, () => new Promise(() => {})) } }"),
		w.running("return { apply(ctx) { for (const e of " + list + ") ctx.on(e, async () => { await null; throw new Error('later ' + e) }) } }"),
	}
	if got := w.ok("add", map[string]any{"a": 1.0, "b": 2.0}); got != "1 + 2 = 3" {
		t.Error(got)
	}
	store, _ := cordis.Lookup(w.root, events.Key)
	s, err := events.Create(t.Context(), store, events.Spec{Header: events.Header{ID: "s"}})
	if err == nil {
		_, err = s.Append(t.Context(), events.Draft{Type: "test/note", Data: map[string]any{}, Ignorable: true})
	}
	if err == nil {
		err = s.Flush(t.Context())
	}
	if err == nil {
		err = s.Close(t.Context())
	}
	if err == nil {
		_, err = w.root.Dispatch(t.Context(), seams.Dispatch{Event: "custom/event", Payload: seams.Args{}})
	}
	if err != nil {
		t.Errorf("a listener that throws, or never answers, was in the way: %v", err)
	}
	w.reported("heard session/flush")
	w.reported("later session/event")
	for _, id := range ids {
		w.unmount(id)
	}
	w.same(before)
}

// A mount that mounts itself again and again ends at the limit.
func TestMountBomb(t *testing.T) {
	w := newWorld(t, map[string]any{"maxMounts": 6})
	before := w.shape()
	bomb := `const me = (code) => 'const me = ' + me + '; const code = ' + JSON.stringify(code) + '; ' + code
const code = "return { name: 'bomb', inject: ['tools'], apply(ctx) { ctx.tools.execute({ name: 'cordis_mount', arguments: { code: me(code) } }).then((r) => console.log(r.isError ? r.error.code : r.value.id)) } }"
return { name: 'bomb', inject: ['tools'], apply(ctx) { ctx.tools.execute({ name: 'cordis_mount', arguments: { code: me(code) } }).then((r) => console.log(r.isError ? r.error.code : r.value.id)) } }`
	w.running(bomb)
	w.until("the limit", func() bool {
		return slices.ContainsFunc(w.console(), func(l string) bool { return strings.HasSuffix(l, "TOO_MANY") })
	})
	if n := len(w.section("temporary")); n != 6 {
		t.Errorf("%d mounts: %q", n, w.section("temporary"))
	}
	for i := range 6 {
		w.unmount(fmt.Sprint("dyn-", i+1))
	}
	w.same(before)
}

// Two mounts that call each other without end run into their own limits.
func TestPingPong(t *testing.T) {
	w := newWorld(t, map[string]any{"callTimeoutMs": 3000})
	w.running(`return { name: 'ping', inject: ['tools'], apply(ctx) { ctx.provide('ping', { hit: (f) => f() }) } }`)
	w.running(`return { name: 'pong', inject: ['tools', 'ping'], apply(ctx) { const again = () => ctx.ping.hit(again); ` + define("t", "again") + ` } }`)
	w.fails("t", nil, seams.OverBudget, "in flight")
	w.unmount("dyn-2")
	w.unmount("dyn-1")
}

// A realm that dies in the background takes its plugin with it, and the reason
// is kept for whoever looks.
func TestDiesAlone(t *testing.T) {
	w := newWorld(t, map[string]any{"vmTimeoutMs": 200, "maxMounts": 2})
	before := w.shape()
	die := `return { name: 'mortal', inject: ['timer', 'tools'], apply(ctx) { ctx.provide('m', 1); ctx.on('tools/result', () => {}); ctx.setTimeout(() => { for (;;); }, 1) } }`
	for i := range 6 { // more than the limit: the dead do not count
		id := w.running(die)
		w.until("its end", func() bool { return w.state(id) == "disposed" })
		if i > 2 && w.state(fmt.Sprint("dyn-", i-2)) != "" {
			t.Errorf("dyn-%d is still remembered", i-2)
		}
	}
	w.same(before)
	w.reported("dyn-1: one turn ran for more than 200ms")
	w.unmount("dyn-6")
	if w.state("dyn-6") != "" {
		t.Error("it is still there")
	}
	// A consumer of a dead provider waits again.
	w.running(`return { name: 'mortal', inject: ['timer'], apply(ctx) { ctx.provide('m', { f: () => 1, die() { for (;;); } }) } }`)
	w.running(`return { name: 'user', inject: ['tools', 'm'], apply(ctx) { ` + define("t", "() => ctx.m.die()") + ` } }`)
	w.fails("t", nil, seams.OverBudget)
	w.until("the consumer to wait", func() bool { return w.state("dyn-8") == "pending" })
}

// Many at once: mounts, calls, unmounts and looks from several agents.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	done := make(chan error)
	const agents = 4
	for a := range agents {
		go func() {
			var err error
			for i := range 10 {
				name := fmt.Sprint("t", a)
				r := w.call("cordis_mount", map[string]any{"code": `return { inject: ['tools'], apply(ctx) { ctx.provide('s` + name + `', { f: async () => 1 }); ` + define(name, fmt.Sprint("async () => ", i)) + ` } }`})
				if r.IsError {
					err = fmt.Errorf("mount: %s", r.Error.Message)
					break
				}
				if got := w.call(name, nil); got.Value != float64(i) {
					err = fmt.Errorf("call %d answered %+v", i, got)
				}
				if r := w.call("cordis_inspect", nil); r.IsError {
					err = fmt.Errorf("inspect: %s", r.Error.Message)
				}
				if r := w.call("cordis_unmount", map[string]any{"id": r.Value.(map[string]any)["id"]}); r.IsError {
					err = fmt.Errorf("unmount: %s", r.Error.Message)
				}
			}
			done <- err
		}()
	}
	for range agents {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.same(before)
}
