package script_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// The tests of this file are the JavaScript twins of the container's own: a
// plugin in JavaScript behaves like one in Go.

// effects are bodies of apply with what they say, and what disposing the plugin
// says after that.
var effects = []struct {
	row, apply       string
	before, disposed []string
}{
	{"C-01", `ctx.effect(() => () => console.log('undone'))`, nil, []string{"undone"}},
	{"C-02", `const off = ctx.effect(() => () => console.log('undone')); await off(); await off()`, []string{"undone"}, nil},
	{"C-03", `ctx.effect(function* () { for (const n of [1, 2, 3]) yield () => console.log('undo', n) })`, nil, []string{"undo 3", "undo 2", "undo 1"}},
	{"C-05", `const off = await ctx.effect(async () => () => console.log('undone')); await off()`, []string{"undone"}, nil},
	{"C-07", `ctx.effect(async function* () { for (const n of [1, 2, 3]) yield () => console.log('undo', n) })`, nil, []string{"undo 3", "undo 2", "undo 1"}},
	{"C-10", `const off = await ctx.effect(async function* () { yield () => console.log('undo 1'); await ctx.sleep(5); yield () => console.log('undo 2') }); await off()`, []string{"undo 2", "undo 1"}, nil},
	{"C-11", `try { ctx.effect(() => { throw new Error('no') }) } catch (e) { console.log(e.message) }`, []string{"no"}, nil},
	{"C-12", `try { ctx.effect(function* () { yield () => console.log('undone'); throw new Error('no') }) } catch (e) { console.log(e.message) }`, []string{"undone", "no"}, nil},
	{"C-13", `try { await ctx.effect(async () => { throw new Error('no') }) } catch (e) { console.log(e.message) }`, []string{"no"}, nil},
	{"C-14", `try { await ctx.effect(async function* () { yield () => console.log('undone'); throw new Error('no') }) } catch (e) { console.log(e.message) }`, []string{"undone", "no"}, nil},
	{"order", `ctx.effect(() => () => console.log('first')); ctx.on('x', () => {}); ctx.effect(() => async () => { await Promise.resolve(); console.log('second') }); return () => console.log('returned')`,
		nil, []string{"returned", "second", "first"}},
}

func TestEffects(t *testing.T) {
	for _, c := range effects {
		t.Run(c.row, func(t *testing.T) {
			w := newWorld(t)
			f := w.js("effects.js", `module.exports = { inject: ['timer'], async apply(ctx) { `+c.apply+` } }`)
			w.expect(c.before...)
			w.dispose(f)
			w.expect(append(slices.Clone(c.before), c.disposed...)...)
			w.dispose(f) // C-01: a second time there is nothing to do
			w.expect(append(slices.Clone(c.before), c.disposed...)...)
		})
	}
}

// C-06, C-08, C-09: what is under way when the plugin goes is finished and then
// undone, and no further step begins.
func TestEffectInterrupted(t *testing.T) {
	w := newWorld(t)
	f := w.js("slow.js", `module.exports = (ctx) => {
  ctx.effect(async function* () {
    for (const n of [1, 2, 3]) {
      await new Promise((go) => setTimeout(go, n === 1 ? 0 : 30))
      yield () => console.log('undo', n)
      console.log('made', n)
    }
  })
}`)
	w.expect("made 1")
	w.dispose(f)
	w.expect("made 1", "undo 2", "undo 1")
}

// C-18: a failing apply fails its own fiber, and what it had registered is gone.
func TestApplyFails(t *testing.T) {
	w := newWorld(t)
	p := w.file("fails.ts", `
export async function apply(ctx: any, config: { fail: boolean }) {
  ctx.on('ping', () => console.log('pong', config.fail))
  ctx.effect(() => () => console.log('undone'))
  await null
  if (config.fail) throw new TypeError('no luck')
}`)
	bad, err := w.root.Plugin(p, map[string]any{"fail": true})
	if err != nil {
		t.Fatal(err)
	}
	err = bad.Settle(w.Context())
	if bad.State() != cordis.Failed || err == nil || !strings.Contains(err.Error(), "TypeError: no luck") || !strings.Contains(err.Error(), "fails.ts:6:") {
		t.Errorf("state %s, %v", bad.State(), err)
	}
	good := w.mount(p, map[string]any{"fail": false})
	w.emit("ping")
	w.expect("undone", "pong false")
	if good.State() != cordis.Active {
		t.Errorf("the other instance is %s", good.State())
	}
}

// C-19: a disposer that fails is reported and keeps none from running.
func TestDisposerFails(t *testing.T) {
	w := newWorld(t)
	f := w.js("bad.js", `module.exports = (ctx) => {
  ctx.effect(() => () => console.log('first'))
  ctx.effect(() => () => { throw new Error('stuck in the mud') })
}`)
	_ = f.Dispose().Wait(w.Context())
	w.expect("first")
	w.expectReport("stuck in the mud")
}

// C-20, C-21, C-29
func TestListeners(t *testing.T) {
	w := newWorld(t)
	w.js("listens.js", `module.exports = (ctx) => {
  const off = ctx.on('ping', (n) => { console.log('on', n); if (n === 2) off() })
  ctx.once('ping', (n) => console.log('once', n))
  ctx.on('ping', (n) => console.log('prepended', n), { prepend: true })
}`)
	for i := range 3 {
		w.emit("ping", float64(i+1))
	}
	w.emit("nobody listens")
	w.expect("prepended 1", "on 1", "once 1", "prepended 2", "on 2", "prepended 3")
}

// C-20…C-29 between two realms, in every mode.
func TestDispatch(t *testing.T) {
	w := newWorld(t)
	w.js("listener.js", `module.exports = (ctx) => {
  ctx.on('sum', (a, b) => { console.log('sum', a + b); return Promise.reject(new Error('nobody awaits an emit')) })
  ctx.on('boom', () => { throw new RangeError('boom') })
  ctx.on('boom', () => console.log('after'))
  ctx.on('all', async (n) => { await null; console.log('all', n) })
  ctx.on('first', () => undefined)
  ctx.on('first', async () => false)
  ctx.on('first', async (n) => ({ n: n + 1 }))
  ctx.on('first', () => { console.log('never') })
  ctx.on('add', async (n, next) => n + await next())
  ctx.on('add', async (n, next) => n * await next())
  ctx.on('veto', (next) => 'no')
  ctx.on('veto', (next) => { console.log('never'); return next() })
  ctx.on('twice', async (next) => { await next(); try { await next() } catch (e) { return e.code } })
}`)
	w.js("sender.js", `module.exports = {
  async apply(ctx) {
    ctx.provide('sender', {
      emit: () => ctx.emit('sum', 1, 2),
      boom: () => ctx.emit('boom'),
      parallel: () => ctx.parallel('all', 7),
      serial: () => ctx.serial('first', 1),
      bail: () => ctx.bail('first', 2),
      waterfall: () => ctx.waterfall('add', 2, () => 5),
      veto: () => ctx.waterfall('veto', () => 'default'),
      twice: () => ctx.waterfall('twice', () => 1),
      empty: async () => [await ctx.emit('none'), await ctx.serial('none'), await ctx.bail('none'), await ctx.parallel('none'), await ctx.waterfall('none', () => 'd')].map((v) => v ?? null),
    })
  },
}`)
	w.call("sender", "emit")
	if _, err := w.try("sender", "boom"); err == nil || !strings.Contains(err.Error(), "RangeError: boom") { // C-22
		t.Errorf("boom: %v", err)
	}
	w.call("sender", "parallel")
	w.expect("sum 3", "after", "all 7")
	for _, c := range []struct {
		row, method string
		want        any
	}{
		{"C-25", "serial", map[string]any{"n": 2.0}},
		{"C-26", "bail", map[string]any{"n": 3.0}},
		{"C-27", "waterfall", 12.0}, // 2 + 2*5
		{"C-28", "veto", "no"},
		{"NEXT_TWICE", "twice", "NEXT_TWICE"},
		{"C-29", "empty", []any{nil, nil, nil, nil, "d"}},
	} {
		if got := w.call("sender", c.method); !equal(got, c.want) {
			t.Errorf("%s: %s = %v, want %v", c.row, c.method, got, c.want)
		}
	}
	w.expectReport("nobody awaits an emit")
}

// Forms of plugins: C-30, C-31, C-34, C-38.
func TestForms(t *testing.T) {
	for _, c := range []struct{ row, name, source, fiber string }{
		{"C-30", "f.js", `module.exports = function named(ctx, config) { console.log(config.n) }`, "named"},
		{"C-30", "arrow.js", `module.exports = (ctx, config) => { console.log(config.n) }`, "arrow"},
		{"C-31", "o.cjs", `module.exports = { name: 'object', apply(ctx, config) { console.log(config.n) } }`, "object"},
		{"C-31", "m.mjs", `export const name = 'module'; export async function apply(ctx, config) { console.log(config.n) }`, "module"},
		{"C-34", "d.ts", `export default { name: 'default', apply(ctx: any, config: any) { console.log(config.n) } }`, "default"},
		{"C-38", "class.ts", `import { Service } from 'cordis'
export default class Greeter extends Service {
  constructor(ctx: any, private config: any) { super(ctx, 'greeter') }
  async [Service.init]() { console.log(this.config.n); return () => console.log('end') }
}`, "Greeter"},
		{"generator", "g.js", `module.exports = function* (ctx, config) { console.log(config.n); yield () => console.log('end') }`, "g"},
		{"cordis", "imports.ts", `import { Context, Schema } from 'cordis'
export const Config = Schema.object({ n: Schema.natural().default(3) })
export const config = undefined
export function apply(ctx: Context, config: { n: number }) { console.log(config.n) }`, "imports"},
	} {
		t.Run(c.row+" "+c.name, func(t *testing.T) {
			w := newWorld(t)
			f := w.mount(w.file(c.name, c.source), map[string]any{"n": 3.0})
			w.expect("3")
			if f.Name() != c.fiber {
				t.Errorf("the fiber is called %q, want %q", f.Name(), c.fiber)
			}
			w.dispose(f)
			if strings.Contains(c.source, "'end'") {
				w.expect("3", "end")
			}
		})
	}
}

// C-32: what is no plugin is refused and taught.
func TestNoPlugin(t *testing.T) {
	w := newWorld(t)
	for name, source := range map[string]string{
		"nothing.js": ``, "undefined.mjs": `export default undefined`, "noapply.js": `module.exports = { name: 'x' }`,
		"badapply.js": `module.exports = { apply: 3 }`, "text.mjs": `export default 'hello'`,
	} {
		_, err := w.engine.File(w.Context(), w.write(name, source))
		if !errors.Is(err, seams.InvalidPlugin) || !strings.Contains(err.Error(), "Export apply(ctx, config)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, member := range []string{`name: 3`, `inject: 'tools'`, `inject: [3]`, `inject: { tools: 7 }`, `provide: 3`, `Config: { type: 'strnig' }`} {
		_, err := w.engine.File(w.Context(), w.write("bad.js", `module.exports = { `+member+`, apply() {} }`))
		if member == `inject: 'tools'` && err == nil {
			continue // one name is as good as a list of it
		}
		if code := seams.CodeOf(err); code != seams.InvalidPlugin && code != seams.UnsupportedSchema {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// C-33: registering while the plugin is undone is refused.
func TestRegisterInDisposer(t *testing.T) {
	w := newWorld(t)
	f := w.js("late.js", `module.exports = { inject: ['tools', 'timer'], apply(ctx) {
  ctx.effect(() => () => {
    for (const late of [() => ctx.on('x', () => {}), () => ctx.effect(() => () => {}), () => ctx.plugin(() => {}), () => ctx.setTimeout(() => {}, 1), () => ctx.provide('x', 1)])
      try { late(); console.log('taken') } catch (e) { console.log(e.code) }
  })
} }`)
	w.dispose(f)
	w.expect("INACTIVE_EFFECT", "INACTIVE_EFFECT", "INACTIVE_EFFECT", "INACTIVE_EFFECT", "INACTIVE_EFFECT")
}

// C-35, C-36: children end with their parent, and a second mount is like the
// first.
func TestChildren(t *testing.T) {
	w := newWorld(t)
	p := w.file("outer.js", `module.exports = { name: 'outer', async apply(ctx) {
  ctx.on('who', () => console.log('outer'))
  const inner = ctx.plugin({ name: 'inner', apply(ctx, config) {
    ctx.on('who', () => console.log('inner', config.n))
    ctx.plugin((ctx) => { ctx.on('who', () => console.log('innermost')) })
  } }, { n: 1 })
  console.log(inner.name, typeof inner.state(), typeof inner.id)
} }`)
	before := len(w.c.Inspect().Events)
	var after []int
	for range 2 {
		f := w.mount(p, nil)
		if err := w.c.Settle(w.Context()); err != nil {
			t.Fatal(err)
		}
		w.emit("who")
		after = append(after, len(w.c.Inspect().Fibers), len(w.c.Inspect().Events))
		w.dispose(f)
		w.emit("who")
	}
	w.expect("inner string number", "outer", "inner 1", "innermost", "inner string number", "outer", "inner 1", "innermost")
	if after[0] != after[2] || after[1] != after[3] || len(w.c.Inspect().Events) != before {
		t.Errorf("fibers and events: %v, then %d events", after, len(w.c.Inspect().Events))
	}
}

// A child can be awaited and disposed; its failure is its own.
func TestChildFiber(t *testing.T) {
	w := newWorld(t)
	w.js("parent.js", `module.exports = (ctx) => {
  ctx.provide('parent', {
    async good() {
      const f = ctx.plugin({ name: 'good', apply: (ctx) => ctx.effect(() => () => console.log('gone')) })
      await f
      const was = f.state()
      await f.dispose()
      return [was, f.state()]
    },
    async bad() {
      const f = ctx.plugin({ name: 'bad', Config: { type: 'object', dict: { n: { type: 'number', meta: { required: true } } } }, apply() {} })
      try { await f } catch (e) { return [f.state(), e.code] }
    },
    async thrown() {
      try { await ctx.plugin(async () => { throw new Error('mine') }) } catch (e) { return e.message }
    },
    async later() {
      const f = ctx.inject(['memory', 'absent'], () => {})
      await f
      return f.state()
    },
  })
}`)
	for method, want := range map[string]any{
		"good": []any{"active", "disposed"}, "bad": []any{"failed", "INVALID_CONFIG"}, "thrown": "mine", "later": "pending",
	} {
		got := w.call("parent", method)
		if method == "thrown" {
			if !strings.Contains(got.(string), "mine") {
				t.Errorf("thrown = %v", got)
			}
		} else if !equal(got, want) {
			t.Errorf("%s = %v, want %v", method, got, want)
		}
	}
	w.expect("gone")
}

// C-37: disposing the root ends all, and it can be used again.
func TestRootDispose(t *testing.T) {
	w := newWorld(t)
	p := w.file("p.js", `module.exports = (ctx) => { console.log('up'); return () => console.log('down') }`)
	for range 2 {
		f := w.mount(p, nil)
		if err := w.root.Fiber().Dispose().Wait(w.Context()); err != nil {
			t.Fatal(err)
		}
		if f.State() != cordis.Disposed {
			t.Errorf("state = %s", f.State())
		}
	}
	w.expect("up", "down", "up", "down")
}

// C-40, C-44: dependents wait for an asynchronous provider; a chain of services
// starts each once, in whatever order it is mounted.
func TestChain(t *testing.T) {
	sources := map[string]string{
		"a": `module.exports = { name: 'a', async apply(ctx) { await new Promise((go) => setTimeout(go, 5)); ctx.provide('a', { n: () => 1 }); console.log('a') } }`,
		"b": `module.exports = { name: 'b', inject: ['a'], async apply(ctx) { const n = await ctx.a.n(); ctx.provide('b', { n: () => n + 1 }); console.log('b') } }`,
		"c": `module.exports = { name: 'c', inject: ['b'], async apply(ctx) { console.log('c', await ctx.b.n()) } }`,
	}
	for _, order := range []string{"abc", "cba", "bac", "cab"} {
		t.Run(order, func(t *testing.T) {
			w := newWorld(t)
			for _, n := range order {
				if _, err := w.root.Plugin(w.file(string(n)+".js", sources[string(n)]), nil); err != nil {
					t.Fatal(err)
				}
			}
			w.expect("a", "b", "c 2")
		})
	}
}

// C-17, C-41, X-43…: provider and consumer in both orders; a consumer
// is parked while its provider is gone and runs anew when it is back.
func TestProvideAndInject(t *testing.T) {
	w := newWorld(t)
	provider := w.file("provider.js", `module.exports = { name: 'provider', provide: 'greeter', apply(ctx, config) {
  ctx.provide('greeter', { greet: (who) => config.word + ' ' + who, later: async () => 'later', bad() { throw Object.assign(new Error('bad'), { code: 'MY_CODE' }) }, self() { return this.greet('me') } })
  return () => console.log('provider down')
} }`)
	consumer := w.mount(w.file("consumer.js", `module.exports = { name: 'consumer', inject: ['greeter'], async apply(ctx) {
  console.log(await ctx.greeter.greet('you'), await ctx.greeter.later(), await ctx.greeter.self())
  try { await ctx.greeter.bad() } catch (e) { console.log(e.code, e instanceof Error) }
  return () => console.log('consumer down')
} }`), nil)
	if consumer.State() != cordis.Pending || !slices.ContainsFunc(w.c.Explain(consumer), func(s string) bool { return strings.Contains(s, "greeter") }) {
		t.Errorf("consumer is %s: %v", consumer.State(), w.c.Explain(consumer))
	}
	first := w.mount(provider, map[string]any{"word": "hello"})
	w.expect("hello you later hello me", "MY_CODE true")
	w.dispose(first)
	w.expect("hello you later hello me", "MY_CODE true", "consumer down", "provider down")
	if consumer.State() != cordis.Pending {
		t.Errorf("consumer is %s", consumer.State())
	}
	second := w.mount(provider, map[string]any{"word": "hi"})
	w.expect("hello you later hello me", "MY_CODE true", "consumer down", "provider down", "hi you later hi me", "MY_CODE true")
	w.dispose(consumer)
	if second.State() != cordis.Active {
		t.Errorf("provider is %s", second.State())
	}
}

// X-47, C-48: a second provider is refused, and the first one named.
func TestProvideTwice(t *testing.T) {
	w := newWorld(t)
	w.js("one.js", `module.exports = { name: 'one', apply(ctx) { ctx.provide('x', 1) } }`)
	f, err := w.root.Plugin(w.file("two.js", `module.exports = { name: 'two', apply(ctx) { ctx.provide('x', 2) } }`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Settle(w.Context()); !errors.Is(err, seams.Clash) || !strings.Contains(err.Error(), "one") {
		t.Errorf("err = %v", err)
	}
}

// primitives, null and data are copies on both ways to read them; a
// provider may replace its value in place.
func TestPlainServices(t *testing.T) {
	w := newWorld(t)
	w.js("values.js", `module.exports = (ctx) => {
  ctx.provide('n', 7); ctx.provide('s', 'text'); ctx.provide('nil', null); ctx.provide('o', { list: [1] }); ctx.provide('f', (a) => a + 1)
  ctx.on('set', () => ctx.set('n', 8))
}`)
	w.js("reader.js", `module.exports = { inject: ['n', 's', 'nil', 'o', 'f'], apply(ctx) {
  ctx.o.list.push(2)
  console.log(ctx.n, ctx.s, ctx.nil ?? null, ctx.o.list.length, ctx.get('n'), ctx.get('absent') === undefined)
  ctx.on('read', async () => console.log(ctx.n, await ctx.f(1)))
} }`)
	w.expect("7 text null 1 7 true")
	w.emit("set")
	w.emit("read")
	w.expect("7 text null 1 7 true", "8 2")
}

// Replacing an entry leaves no gap: the service is there all the time, and the
// old version's disposers run once the new one serves.
func TestReplace(t *testing.T) {
	w := newWorld(t)
	source := func(v string) string {
		return `module.exports = { name: 'swap', inject: ['tools'], apply(ctx) {
  ctx.tools.register({ name: 'version', description: 'd', execute: () => '` + v + `' })
  return () => console.log('` + v + ` down')
} }`
	}
	e := w.root.Entry("swap")
	version := func() any {
		return w.tools.Execute(w.Context(), callTool("version", nil)).Value
	}
	for i, v := range []string{"one", "two"} {
		f, err := e.Set(w.file("swap.js", source(v)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Ready().Wait(w.Context()); err != nil {
			t.Fatal(err)
		}
		if got := version(); got != v {
			t.Errorf("%d: the tool answers %v", i, got)
		}
	}
	w.expect("one down")
	bad, err := e.Set(w.file("swap.js", strings.Replace(source("three"), "return", "throw 1; return", 1)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = bad.Settle(w.Context())
	if got := version(); got != "two" {
		t.Errorf("after a failed replacement the tool answers %v", got)
	}
	w.expect("one down")
}

// C-59: the name of a plugin's logger.
func TestLoggerName(t *testing.T) {
	w := newWorld(t)
	records := w.logger()
	p := w.file("log.js", `module.exports = { name: 'MyPlugin', apply(ctx) {
  ctx.logger.info('own', { n: 1 }, new TypeError('bad'))
  ctx.logger('explicit').warn('other')
} }`)
	w.mount(p, nil)
	f, err := w.root.Intercept("logger", map[string]any{"name": "intercepted"}).Plugin(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Settle(w.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{`info my-plugin own {"n":1} TypeError: bad`, "warn explicit other", `info intercepted own {"n":1} TypeError: bad`, "warn explicit other"}
	if got := records(); !slices.Equal(got, want) {
		t.Errorf("records = %q\nwant %q", got, want)
	}
}

// C-60: a service logs under its provider's name, whoever calls it.
func TestLoggerOfService(t *testing.T) {
	w := newWorld(t)
	records := w.logger()
	w.js("service.js", `module.exports = { name: 'service', inject: ['logger'], apply(ctx) { ctx.logger.info('init'); ctx.provide('svc', { work: () => { ctx.logger.info('work') } }) } }`)
	w.js("caller.js", `module.exports = { name: 'caller', inject: ['svc'], async apply(ctx) { await ctx.svc.work() } }`)
	if got := records(); !slices.Equal(got, []string{"info service init", "info service work"}) {
		t.Errorf("records = %q", got)
	}
}

// C-72…C-78: the timer verbs.
func TestTimers(t *testing.T) {
	for _, c := range []struct {
		row, apply string
		says       []string
	}{
		{"C-72", `ctx.timeout(() => console.log('fired'), 5); const off = ctx.setTimeout((a) => console.log(a), 5, 'never'); await off(); await ctx.sleep(30)`, []string{"fired"}},
		{"C-73", `await ctx.timeout(5); console.log('over')`, []string{"over"}},
		{"C-74", `let n = 0; await new Promise((done) => { const off = ctx.interval(() => { console.log(++n); if (n === 3) { off(); done() } }, 1) }); await ctx.sleep(20)`, []string{"1", "2", "3"}},
		{"C-75", `let n = 0; for await (const _ of ctx.interval(1)) if (++n === 3) break; console.log(n)
try { for await (const _ of ctx.interval(1)) throw new Error('out') } catch (e) { console.log(e.message) }`, []string{"3", "out"}},
		{"C-77", `const f = ctx.throttle((x) => console.log(x), 40); f(1); f(2); f(3); await ctx.sleep(120); f(4); await f.dispose(); f(5); await ctx.sleep(60)`, []string{"1", "3", "4"}},
		{"C-78", `const f = ctx.debounce((x) => console.log(x), 20); f(1); f(2); await ctx.sleep(60); f(3); await f.dispose(); await ctx.sleep(40)`, []string{"2"}},
		{"service", `await ctx.timer.sleep(1); ctx.timer.setTimeout(() => console.log('method'), 1); await ctx.sleep(20)`, []string{"method"}},
	} {
		t.Run(c.row, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.js("timers.js", `module.exports = { inject: ['timer'], async apply(ctx) { `+c.apply+` } }`)
				w.expect(c.says...)
			})
		})
	}
}

// C-76, and no timer of a plugin fires after it was disposed.
func TestTimersEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.js("timers.js", `module.exports = { inject: ['timer'], apply(ctx) {
	  ctx.setInterval(() => console.log('tick'), 1)
	  setInterval(() => console.log('global'), 1)
	  ctx.setTimeout(() => console.log('late'), 30)
	  ;(async () => { for await (const _ of ctx.interval(1000)) console.log('never') })().catch((e) => console.log(e.code))
	} }`)
		for !slices.Contains(w.said(), "tick") || !slices.Contains(w.said(), "global") {
			time.Sleep(time.Millisecond)
		}
		w.dispose(f)
		said := w.said()
		time.Sleep(50 * time.Millisecond)
		if got := w.said(); len(got) != len(said) || slices.Contains(got, "late") {
			t.Errorf("after dispose: %q", got[len(said):])
		}
	})
}

// A realm has at most so many timers, whichever way they are made. One that has
// fired, was taken back or ended with its child plugin is none.
func TestTimersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(o *script.Options) { o.Budgets = sandbox.Budgets{Timers: 4} })
		w.js("many.js", `module.exports = { inject: ['timer'], async apply(ctx) {
  const f = () => {}
  const kinds = [(c) => c.setTimeout(f, 1e6), (c) => c.interval(f, 1e6), (c) => c.throttle(f, 1).dispose, (c) => c.timer.debounce(f, 1).dispose]
  const all = kinds.map((make) => make(ctx))
  for (const make of [...kinds, () => setTimeout(f, 1e6)]) try { make(ctx); console.log('taken') } catch (e) { console.log(e.code) }
  for (const off of all) await off()
  for (let i = 0; i < 4; i++) ctx.setTimeout(f, 1)
  await ctx.sleep(5)
  const child = ctx.plugin((c) => { for (const make of kinds) make(c) })
  await child
  await child.dispose()
  await ctx.sleep(1)
  for (const make of kinds) make(ctx)
  console.log('made')
} }`)
		w.expect("OVER_BUDGET", "OVER_BUDGET", "OVER_BUDGET", "OVER_BUDGET", "OVER_BUDGET", "made")
	})
}

func TestTimerArguments(t *testing.T) {
	w := newWorld(t)
	w.js("bad.js", `module.exports = { inject: ['timer'], apply(ctx) {
  for (const f of [() => ctx.setTimeout('code', 1), () => ctx.setTimeout(() => {}, -1), () => ctx.sleep('soon'), () => ctx.interval(() => {}, 2 ** 31), () => ctx.throttle(1, 2)])
    try { f(); console.log('taken') } catch (e) { console.log(e.code) }
} }`)
	w.expect("INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT")
}
