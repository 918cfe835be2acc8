package cordistools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

const (
	provider = `let n = 0
return { name: 'provider', apply(ctx) {
	ctx.provide('greeter', { hello: (who) => 'hello ' + who, count: async () => ++n, fail() { throw Object.assign(new Error('not today'), { code: 'E_DAY' }) } })
} }`
	consumer = `return { name: 'consumer', inject: ['tools', 'greeter'], apply(ctx) {
	console.log('up')
	ctx.on('tools/result', () => {})
	ctx.effect(() => () => console.log('down'))
	harness.registerTool(ctx, harness.defineTool({ name: 'greet', description: 'Greet.', parameters: { who: { type: 'string', required: true } },
		async execute({ who }) { const p = ctx.greeter.hello(who); return [await p, p instanceof Promise, await ctx.get('greeter').count()] } }))
} }`
)

func (w *world) state(id string) string {
	w.Helper()
	for _, l := range w.section("temporary") {
		if rest, ok := strings.CutPrefix(l, "- Temporary Plugin "+id+": "); ok {
			_, rest, _ = strings.Cut(rest, "[")
			state, _, _ := strings.Cut(rest, "]")
			return state
		}
	}
	return ""
}

//
func TestProviderFirst(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	w.running(consumer)
	if got := w.ok("greet", map[string]any{"who": "you"}); got != `["hello you",true,1]` {
		t.Error(got)
	}
}

//
func TestProviderComesAndGoes(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	v := w.mount(consumer)
	if v["state"] != "pending" || fmt.Sprint(v["waitingFor"]) != "[greeter]" {
		t.Fatalf("%v", v)
	}
	waiting := w.shape()
	for round := range 3 {
		id := w.running(provider)
		w.until("the consumer", func() bool { return w.state("dyn-1") == "running" })
		if got := w.ok("greet", map[string]any{"who": "you"}); got != `["hello you",true,1]` {
			t.Error(round, got)
		}
		w.unmount(id)
		if w.state("dyn-1") != "pending" || w.has("greet") {
			t.Errorf("round %d: the provider is gone and the consumer is %s", round, w.state("dyn-1"))
		}
		w.same(waiting)
	}
	if got := w.console(); strings.Join(got, " ") != strings.TrimSpace(strings.Repeat("[cordis:dyn-1] info up [cordis:dyn-1] info down ", 3)) {
		t.Errorf("%q", got)
	}
	w.unmount("dyn-1")
	w.same(before)
}

// what starts again is guarded as it was the first time, and has no more
// than it declared then.
func TestGuardedAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.folder(nil)
	id := w.running(provider)
	later := time.Now().Add(200 * time.Millisecond)
	w.running(fmt.Sprintf(`const again = Date.now() > %d
		return { name: 'sly', inject: again ? ['tools', 'greeter', 'fs'] : ['tools', 'greeter'], apply(ctx) {
			const tried = [again]
			for (const f of [() => ctx.fs, () => ctx.get('fs'), () => ctx.root, () => ctx.tools.register({ name: 'raw', description: 'x', execute: () => 1 }), () => ctx.on('tools/execute', (e, next) => next())])
				try { f(); tried.push('allowed') } catch (e) { tried.push(e.code) }
			console.log(tried.join())
		} }`, later.UnixMilli()))
	w.unmount(id)
	time.Sleep(time.Until(later) + 10*time.Millisecond)
	w.running(provider)
	w.until("the second start", func() bool { return w.state("dyn-2") == "running" })
	const refusals = ",NOT_INJECTED,NOT_INJECTED,NOT_EXPOSED,INVALID_ARGUMENT,NOT_PERMITTED"
	if got := w.console(); !slices.Equal(got, []string{"[cordis:dyn-2] info false" + refusals, "[cordis:dyn-2] info true" + refusals}) {
		t.Errorf("%q", got)
	}
}

//
func TestProvideTwice(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	before := w.shape()
	w.refused(`return { name: 'usurper', apply(ctx) { ctx.provide('greeter', 1) } }`, seams.Clash, `"greeter"`, "already provided by provider", "cordis_unmount")
	w.refused(`return { name: 'declared', provide: ['greeter'], apply(ctx) { ctx.provide('greeter', 1) } }`, seams.Clash, `"greeter"`, "provider")
	w.refused(`return { name: 'twice', apply(ctx) { ctx.provide('x', 1); ctx.provide('x', 2) } }`, seams.Duplicate, `"x"`)
	w.refused(`return { name: 'greedy', apply(ctx) { ctx.provide('tools', { register() {} }) } }`, seams.Clash, `"tools"`, "provided by tools")
	w.same(before)
	if got := w.section("temporary"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

//
func TestInspectLinkage(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	w.running(consumer)
	w.mount(`return { name: 'third', inject: ['greeter', 'absent'], apply() {} }`)
	for what, line := range map[string]string{
		"temporary": "- Temporary Plugin dyn-1: provider [running] — provides: greeter; waiting for: none; lifetime: " + lifetime,
		"services":  "- greeter (provided by provider)",
		"api":       "- greeter (provided by provider, no catalog entry)",
	} {
		if got := w.section(what); !slices.Contains(got, line) {
			t.Errorf("%s has no %q: %q", what, line, got)
		}
	}
	if got := w.section("temporary"); !strings.Contains(got[2], "third [pending] — provides: none; waiting for: absent;") {
		t.Errorf("%q", got)
	}
}

//
func TestPlainServices(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { apply(ctx) {
		ctx.provide('n', 7); ctx.provide('s', 'text'); ctx.provide('f', false); ctx.provide('z', null); ctx.provide('o', { a: [1, { b: 2 }] }); ctx.provide('call', async (x) => x * 2)
	} }`)
	w.running(`return { inject: ['n', 's', 'f', 'z', 'o', 'call'], async apply(ctx) {
		const o = ctx.o
		o.a.push('mine')
		console.log(JSON.stringify([ctx.n, ctx.s, ctx.f, ctx.z, ctx.o, await ctx.call(4)]))
		console.log(JSON.stringify(['n', 's', 'f', 'z', 'o'].map((k) => ctx.get(k))), ctx.z === null)
	} }`)
	want := []string{`[cordis:dyn-2] info [7,"text",false,null,{"a":[1,{"b":2}]},8]`, `[cordis:dyn-2] info [7,"text",false,null,{"a":[1,{"b":2}]}] true`}
	if got := w.console(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

//
func TestConsumerLeaves(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	before := w.shape()
	id := w.running(consumer)
	w.ok("greet", map[string]any{"who": "you"})
	w.unmount(id)
	w.same(before)
	w.running(consumer)
	if got := w.ok("greet", map[string]any{"who": "you"}); got != `["hello you",true,2]` {
		t.Error(got)
	}
}

// An error of one mount reaches the other with its code, and a call into a
// mount that has gone is an error, not silence.
func TestErrorsCrossMounts(t *testing.T) {
	w := newWorld(t, nil)
	w.running(provider)
	w.running(`return { inject: ['tools', 'greeter'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', async execute() {
			try { await ctx.greeter.fail() } catch (e) { return [e instanceof Error, e.message, e.code] }
		} }))
	} }`)
	if got := w.ok("t", nil); got != `[true,"not today","E_DAY"]` {
		t.Error(got)
	}
	w.running(`return { inject: ['tools', 'greeter'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'raw', description: 'x', execute: () => ctx.greeter.fail() }))
		harness.registerTool(ctx, harness.defineTool({ name: 'none', description: 'x', execute: () => ctx.greeter.nothing() }))
	} }`)
	w.fails("raw", nil, "E_DAY", "not today")
	w.fails("none", nil, seams.ScriptError, "nothing")
}

// The provider of a mount's service may be a Go plugin that came later: then the
// policy counts.
func TestWaitedForServiceIsNotPermitted(t *testing.T) {
	w := newWorld(t, nil)
	v := w.mount(`return { name: 'patient', inject: ['secrets'], apply(ctx) { console.log(ctx.secrets) } }`)
	if v["state"] != "pending" {
		t.Fatalf("%v", v)
	}
	undo, err := cordis.Provide(w.root, seams.Key[any]{Name: "secrets"}, any("s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	w.until("a refusal", func() bool { return w.state("dyn-1") == "failed" })
	w.reported("policy: {allow: [secrets]}")
	if got := w.console(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	w.refused(`return { inject: ['secrets'], apply(ctx) {} }`, seams.NotPermitted, `"secrets"`, "policy: {allow: [secrets]}")
	if err := undo(t.Context()); err != nil {
		t.Error(err)
	}
}
