package script_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
)

// field makes a plugin of a field case, which is written for a ctx with
// registerTool, report and sleep.
func (w *world) field(name string) *cordis.Plugin {
	w.Helper()
	w.write("case.js", read(w, name+".js"))
	return w.file(name+"-adapted.js", `
const inner = require('./case.js')
module.exports = { name: inner.name, inject: [...(inner.inject ?? []), 'tools'], apply(ctx) {
  return inner.apply({
    get memory() { return ctx.memory }, get clock() { return ctx.clock },
    effect: (f) => ctx.effect(f), on: (e, f) => ctx.on(e, f), sleep: (ms) => new Promise((go) => setTimeout(go, ms)), registerTool: (t) => ctx.tools.register(t), report: (s) => console.log(s),
  })
} }`)
}

// cor-01: what a plugin registers while it is unloaded is refused; nothing of it
// is left, and the next mount begins when the last one is gone.
func TestCaseLateChild(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.field("cor-01")
		f := w.mount(p, nil)
		_ = f.Dispose().Wait(w.Context())
		time.Sleep(100 * time.Millisecond)
		if n := len(w.tools.Schemas(nil)); n != 0 {
			t.Errorf("%d tools are left", n)
		}
		w.emit("turn")
		w.expect()
		w.expectReport("INACTIVE_EFFECT")

		e := w.root.Entry("late")
		first, err := e.Set(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Settle(w.Context()); err != nil {
			t.Fatal(err)
		}
		e.Unmount()
		second, err := e.Set(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Ready().Wait(w.Context()); err != nil {
			t.Fatal(err)
		}
		_ = first.Gone().Wait(w.Context())
		if n := len(w.tools.Schemas(nil)); n != 0 {
			t.Errorf("%d tools are left", n)
		}
	})
}

// cor-03: a plugin waits for what it injects, says for what, and follows its
// coming and going.
func TestCaseNeedsTwo(t *testing.T) {
	w := newWorld(t)
	memory := func() *cordis.Fiber {
		return w.js("memory.js", `module.exports = { name: 'm', apply(ctx) { ctx.provide('store', { get() {} }) } }`)
	}
	clock := func() *cordis.Fiber {
		return w.js("clock.js", `module.exports = { name: 'c', apply(ctx) { ctx.provide('clock', { now: () => 1 }) } }`)
	}
	// The world has a memory; the case's stands under another name.
	w.write("case.js", strings.ReplaceAll(strings.ReplaceAll(read(t, "cor-03.js"), "'memory'", "'store'"), "ctx.memory", "ctx.store"))
	f := w.mount(w.file("needs.js", `
const inner = require('./case.js')
module.exports = { ...inner, apply: (ctx) => inner.apply({ get store() { return ctx.store }, get clock() { return ctx.clock }, effect: (f) => ctx.effect(f), report: (s) => console.log(s) }) }`), nil)
	waits := func(names ...string) {
		t.Helper()
		why := strings.Join(w.c.Explain(f), "\n")
		if f.State() != cordis.Pending {
			t.Errorf("state = %s", f.State())
		}
		for _, n := range []string{"store", "clock"} {
			if strings.Contains(why, n) != slices.Contains(names, n) {
				t.Errorf("it waits for %q, want %v", why, names)
			}
		}
	}
	waits("store", "clock")
	memoryFiber := memory()
	waits("clock")
	clockFiber := clock()
	w.expect("up object object")
	w.dispose(memoryFiber)
	w.expect("up object object", "down")
	waits("store")
	memory()
	w.expect("up object object", "down", "up object object")
	w.dispose(clockFiber)
	clock()
	w.expect("up object object", "down", "up object object", "down", "up object object")

	// Two that wait for each other stay pending, and are explained.
	a := w.js("a.js", `module.exports = { name: 'a', inject: ['y'], provide: 'x', apply(ctx) { ctx.provide('x', 1) } }`)
	b := w.js("b.js", `module.exports = { name: 'b', inject: ['x'], provide: 'y', apply(ctx) { ctx.provide('y', 1) } }`)
	if a.State() != cordis.Pending || b.State() != cordis.Pending || !strings.Contains(strings.Join(w.c.Explain(a), "\n"), "cycle") {
		t.Errorf("a %s, b %s: %v", a.State(), b.State(), w.c.Explain(a))
	}
}

// js-03: a payload crosses as a copy; a function in it is called where it lives.
func TestCaseSharedPayload(t *testing.T) {
	w := newWorld(t)
	_, parts, _ := strings.Cut(read(t, "js-03.js"), "// --- A ---\n")
	a, b, _ := strings.Cut(parts, "// --- B ---\n")
	w.js("b.js", "let result\nmodule.exports = (ctx) => { const on = ctx.on;\n"+b+"\nctx.on('report', async () => console.log(JSON.stringify(result))) ; ctx.on('shared', async (p) => console.log(await p.f())) }")
	w.js("a.js", "module.exports = (ctx) => { const emit = ctx.emit;\n"+a+"\nctx.on('report', () => console.log(JSON.stringify(payload))) }")
	w.expect("1")
	w.emit("report")
	w.expect("1", `{"n":1,"len":3,"f":"function"}`, `{"n":1,"list":[1,2],"when":"1970-01-01T00:00:00.000Z"}`)
}
