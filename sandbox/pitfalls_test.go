package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// The twenty pitfalls of the engine: each test shows that one cannot happen
// here. 14 and 16 run in a child process.

// Pitfall 1: targets between ES2018 and ES2024 leave async generators alone.
func TestPitfall01Target(t *testing.T) {
	l := open(t, Options{})
	l.want(`class A { static #n = 1; async *s() { for await (const x of [1, Promise.resolve(2)]) yield x + A.#n; yield* inner() } }
	async function* inner() { yield 9 }
	const out = []; for await (const x of new A().s()) out.push(x); return out`, []any{2, 3, 9})
}

// Pitfall 2: without Symbol.asyncIterator an async iterable has a key
// "undefined".
func TestPitfall02AsyncIterator(t *testing.T) {
	l := open(t, Options{})
	l.want(`const o = { [Symbol.asyncIterator]() { let n = 0; return { next: async () => ({ done: n++ > 1, value: n }) } } };
	const out = []; for await (const x of o) out.push(x); return [out, 'undefined' in o, Symbol.asyncIterator === Symbol.for('Symbol.asyncIterator')]`,
		[]any{[]any{1, 2}, false, true})
}

// Pitfall 3: \p{…} matched the letters p{…}, toLocaleString threw, 1e400 was a
// syntax error.
func TestPitfall03Language(t *testing.T) {
	l := open(t, Options{})
	for _, c := range []struct {
		code string
		want any
	}{
		{`return /^\p{L}+$/u.test('가나abcé')`, true},
		{`return /^\p{L}/u.test('p{L}')`, true}, // a p is a letter
		{`return /^\p{L}{4}$/u.test('p{L}')`, false},
		{`return new RegExp('^\\p{Script=Hangul}+$', 'u').test('가나')`, true},
		{`return '가 나!다'.replace(/[^\p{L}]+/gu, '_')`, "가_나_다"},
		{`return 'aB가'.replace(/\P{Lu}/gu, '.')`, ".B."},
		{`return 'x1٣'.match(/\p{Nd}/gu)`, []any{"1", "٣"}},
		{`return /(?<y>\d{4})/.exec('in 2026').groups.y`, "2026"},
		{`return (1234567.891).toLocaleString('en-US')`, "1,234,567.891"},
		{`return (1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })`, "$1,234.50"},
		{`return (-0.256).toLocaleString(undefined, { style: 'percent' })`, "-26%"},
		{`return JSON.parse('{"a":1e400}').a === Infinity`, true},
		{`return JSON.parse('[1,2]', (k, v) => k === '' ? v : v * 2)`, []any{2, 4}},
		{`return JSON.parse('"\\ud83d\\ude00\\u00e9"')`, "😀é"},
		{`return Object.keys(JSON.parse('{"__proto__": 1, "a": 2}'))`, []any{"__proto__", "a"}},
	} {
		l.want(c.code, c.want)
	}
	l.fails(`return /\p{Emoji}/u.test('x')`, seams.ScriptError, "Emoji")
	for _, bad := range []string{``, `{`, `[1,]`, `{"a"}`, `01`, `1.`, `"\x"`, `tru`, `1 2`, "\"\n\"", `-`, `nulll`} {
		l.fails(fmt.Sprintf(`return JSON.parse(%q)`, bad), seams.ScriptError, "SyntaxError")
	}
}

// Pitfall 4: a generator that delegates to itself exhausted the process stack.
func TestPitfall04Delegation(t *testing.T) {
	l := open(t, Options{})
	l.fails(`function* g() { yield* g() } for (const x of g()) ;`, seams.OverBudget, "nested")
	if l.Err() == nil {
		t.Error("the realm lives on")
	}
}

// Pitfall 5: an interrupt that comes between turns ends the next turn; after
// one inside a microtask the flag stays.
func TestPitfall05LateInterrupt(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Turn: 100 * time.Millisecond}})
	o := l.exports("a.js", `exports.twice = (n) => n * 2`)
	for i := range 200 {
		l.dog.stop(errors.New("late"))
		if v, err := o.Call(t.Context(), "twice", i); err != nil || v != float64(2*i) {
			t.Fatal(i, v, err)
		}
	}
	l.fails(`await null; for (;;) await null`, seams.OverBudget)
	_, err := o.Call(t.Context(), "twice", 1)
	wantError(t, err, seams.OverBudget, "stopped")
}

// Pitfall 6: an interrupt drops all microtasks, so promises never settle.
func TestPitfall06DroppedMicrotasks(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Turn: 100 * time.Millisecond}})
	o := l.exports("a.js", `exports.never = () => new Promise(() => {}); exports.spin = () => { for (;;) ; }`)
	waiting := make(chan error)
	go func() { _, err := o.Call(context.Background(), "never"); waiting <- err }()
	eventually(t, "the call is in", func() bool { return l.Usage().Turns > 1 })
	_, err := o.Call(t.Context(), "spin")
	wantError(t, err, seams.OverBudget)
	wantError(t, <-waiting, seams.OverBudget)
}

// Pitfall 7: outside of calls the engine panics with an interrupt.
func TestPitfall07InterruptAsPanic(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Turn: 50 * time.Millisecond}})
	l.fails(`return { get a() { for (;;) ; } }`, seams.OverBudget)
}

// Pitfall 8: a nil value from a promise reaction is a nil dereference in the
// engine.
func TestPitfall08NilReaction(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "nothing"}}}})
	err := l.apply(`export const apply = (ctx) => Promise.resolve(1).then(ctx.nothing).then((v) => { if (v !== undefined) throw new Error('got ' + v) })`, &record{}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// Pitfall 9: a function of one VM used on another goroutine is a race. Here it
// can be reached through handles alone, whose calls run one at a time.
func TestPitfall09HandlesFromAnywhere(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `let n = 0; exports.next = () => { const o = {}; for (let i = 0; i < 50; i++) o['k' + i] = i; return ++n }`)
	const each = 50
	seen := make(chan float64, 8*each)
	done := make(chan error)
	for range 8 {
		go func() {
			for range each {
				v, err := o.Call(context.Background(), "next")
				if err != nil {
					done <- err
					return
				}
				seen <- v.(float64)
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	close(seen)
	distinct := map[float64]bool{}
	for n := range seen {
		distinct[n] = true
	}
	if len(distinct) != 8*each {
		t.Errorf("%d distinct results", len(distinct))
	}
}

// Pitfall 10: one function that somebody keeps pinned its whole VM.
func TestPitfall10KeptFunction(t *testing.T) {
	kept := make([]*Func, 20)
	gone := make(chan struct{}, len(kept))
	for i := range kept {
		r, err := New(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewCompiler().Compile(compile.Source{Name: "a.js", Text: `const big = new Array(1000).fill('x'); exports.get = () => () => big.length`})
		if err != nil {
			t.Fatal(err)
		}
		o, err := exportsOf(t.Context(), r, p)
		if err != nil {
			t.Fatal(err)
		}
		v, err := o.Invoke(t.Context(), "get")
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = v.(*Func)
		runtime.AddCleanup(r.vm, func(int) { gone <- struct{}{} }, 0)
		if err := r.Close(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all VMs are collected", func() bool { runtime.GC(); return len(gone) == len(kept) })
	_, err := kept[0].Call(t.Context())
	wantError(t, err, seams.Unloaded)
}

// Pitfall 11: a comment in evaluated code made the engine read host files.
func TestPitfall11SourceMapComment(t *testing.T) {
	l := open(t, Options{})
	pipe := filepath.Join(t.TempDir(), "map")
	if err := os.WriteFile(pipe, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.want("return 1\n//# sourceMappingURL=file://"+pipe, 1)
	for _, code := range []string{`return eval('1')`, `return globalThis.eval('1')`, `return new Function('return 1')()`, `return (() => {}).constructor('return 1')()`,
		`return (async () => {}).constructor('')()`, `return (function*(){}).constructor('')()`, `return Reflect.construct((() => {}).constructor, ['return 1'])()`} {
		if v, err := l.eval(code); err == nil {
			t.Errorf("%s answered %v", code, v)
		}
	}
}

// Pitfall 12: a Go error showed its fields and methods to JavaScript.
func TestPitfall12GoErrors(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "open", Async: true}, {Name: "openNow"}}}})
	h := &record{answer: func(context.Context, string, string, []any) (any, error) {
		return nil, &os.PathError{Op: "open", Path: "/x", Err: os.ErrNotExist}
	}}
	err := l.apply(`export async function apply(ctx) {
		for (const f of [() => ctx.open(), () => ctx.openNow()]) {
			try { await f(); throw new Error('no error') } catch (e) {
				if (Object.getOwnPropertyNames(e).sort().join() !== 'cause,message,stack' || e.value !== undefined || e.Path !== undefined || !(e instanceof Error)) throw new Error('shows ' + Object.getOwnPropertyNames(e))
				if (e.message !== 'open /x: file does not exist') throw e
			}
		}
	}`, h, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// Pitfall 13: clearTimeout of a stranger killed the process, Stop inside the
// loop hung, errors of callbacks vanished.
func TestPitfall13Timers(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Timers: true}})
	l.want(`clearTimeout({}); clearInterval({}); clearTimeout(); clearTimeout('x'); clearInterval(NaN); clearImmediate(12345);
	const id = setTimeout(() => {}, 1e6); clearTimeout(id); clearTimeout(id); return typeof id`, "number")
	l.want(`setTimeout(() => { throw new TypeError('in timer') }, 1); return await new Promise((f) => setTimeout(f, 20, 'next'))`, "next")
	if rs := l.reports(); len(rs) != 1 || !strings.Contains(rs[0].Error(), "TypeError: in timer (test.js:1:") {
		t.Error(rs)
	}
	if l.Err() != nil || l.Usage().Timers != 0 {
		t.Error(l.Err(), l.Usage())
	}
}

// Pitfall 14: reading plugin values runs plugin code, and text of deep values
// takes quadratic time. In the process both are capped; a child shows that the
// caps hold.
func TestPitfall14NativeWork(t *testing.T) {
	for _, code := range []string{
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a)`,
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a)`,
		`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`,
		`let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a)`,
		`let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a.flat(Infinity).length`,
		`let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return String(a)`,
		`let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a`,
		`return JSON.parse('['.repeat(1e6))`,
		`let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()`,
		`let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); return o.x`,
		`return new Proxy({}, { ownKeys: () => { for (;;) ; } })`,
		`return { toJSON() { for (;;) ; } }`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if out := child(t, "eval", code); !refused.MatchString(out) {
				t.Errorf("%s\n  answered %.200s", code, out)
			}
		})
	}
}

var refused = regexp.MustCompile(`\[(OVER_BUDGET|SCRIPT_ERROR|TOO_LARGE)\]`)

// Pitfall 15: a callable Proxy in place of a global broke instanceof.
func TestPitfall15Instanceof(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Env: map[string]string{}}})
	l.want(`return [
		new Uint8Array(1) instanceof Uint8Array, new Map instanceof Map, /x/ instanceof RegExp, RegExp('x') instanceof RegExp,
		(() => {}) instanceof Function, new (class extends Map {}) instanceof Map, new (class extends Uint8Array {})(2).length === 2,
		Map.prototype.constructor === Map, new Set([1]).constructor === Set, Uint8Array.from([1]) instanceof Uint8Array,
		Map.name, Set.length, Buffer.from('x') instanceof Uint8Array, [] instanceof Array, Promise.resolve() instanceof Promise, new ArrayBuffer(2) instanceof ArrayBuffer]`,
		[]any{true, true, true, true, true, true, true, true, true, true, "Map", 0, true, true, true, true})
}

// hostile sources, by name.
var hostile = map[string]func() string{
	"brackets":    func() string { return strings.Repeat("[", 200_000) },
	"parens":      func() string { return strings.Repeat("(", 200_000) + "1" },
	"braces":      func() string { return strings.Repeat("{", 200_000) },
	"not":         func() string { return strings.Repeat("!", 200_000) + "1" },
	"plus":        func() string { return "1" + strings.Repeat("+1", 100_000) },
	"plus lines":  func() string { return "1" + strings.Repeat("\n+1", 80_000) },
	"members":     func() string { return "a" + strings.Repeat(".b", 100_000) },
	"calls":       func() string { return "a" + strings.Repeat("()", 100_000) },
	"new":         func() string { return strings.Repeat("new ", 60_000) + "a" },
	"typeof":      func() string { return strings.Repeat("typeof ", 35_000) + "a" },
	"arrows":      func() string { return strings.Repeat("a=>", 80_000) + "a" },
	"ternary":     func() string { return strings.Repeat("a?", 100_000) },
	"if":          func() string { return strings.Repeat("if(a)", 50_000) },
	"else":        func() string { return strings.Repeat("if(a){}else ", 20_000) + ";" },
	"blocks":      func() string { return strings.Repeat("for(;;){", 30_000) },
	"templates":   func() string { return strings.Repeat("`${", 60_000) },
	"functions":   func() string { return strings.Repeat("function f(){", 19_000) },
	"labels":      func() string { return strings.Repeat("a:", 100_000) + ";" },
	"assign":      func() string { return strings.Repeat("a=", 100_000) + "1" },
	"hidden":      func() string { return "if(1)/\"/;" + strings.Repeat("[", 200_000) },
	"hidden plus": func() string { return "if(1)/\"/;1" + strings.Repeat("+1", 100_000) },
	"regexp":      func() string { return "/" + strings.Repeat("(", 200_000) + "/" },
	"commas":      func() string { return strings.Repeat("a,", 120_000) + "a" },
	"await":       func() string { return strings.Repeat("await ", 40_000) + "a" },
	"spread":      func() string { return strings.Repeat("[...", 50_000) },
	"optional":    func() string { return "a" + strings.Repeat("?.b", 80_000) },
	"types":       func() string { return "let x: " + strings.Repeat("A<", 80_000) },
}

// Pitfall 16: the parsers die or hang on nested source.
func TestPitfall16HostileSource(t *testing.T) {
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child(t, "compile", name) // it must come back, whatever it says
		})
	}
}

// Pitfall 17: what adapters need must come from the host.
func TestPitfall17HostGlobals(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Timers: true, Env: map[string]string{"KEY": "v"}, Fetch: func(context.Context, *Request) (*Response, error) { return &Response{Status: 204}, nil }}})
	l.want(`const r = await fetch('http://x/'); return [process.env.KEY, process.env.NONE === undefined, r.status, typeof AbortController, typeof TextEncoder, typeof URL, typeof structuredClone, typeof Buffer,
		typeof queueMicrotask, typeof performance.now(), crypto.randomUUID().length, typeof setTimeout, typeof ReadableStream]`,
		[]any{"v", true, 204, "function", "function", "function", "function", "function", "function", "number", 36, "function", "undefined"})
}

// Pitfall 18: a hashbang behind the wrapper does not parse, and a wrapper whose
// end stands behind the map's comment loses the map.
func TestPitfall18Wrapper(t *testing.T) {
	l := open(t, Options{})
	p, err := l.load("tool.mjs", "#!/usr/bin/env node\n\nexport const name = 'x'\nexport function apply() {\n  throw new Error('here')\n}\n", compile.Module)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Apply(t.Context(), Activation{Host: &record{}})
	wantError(t, err, seams.ScriptError, "tool.mjs:5:")
}

// Pitfall 19: top-level await cannot work.
func TestPitfall19TopLevelAwait(t *testing.T) {
	l := open(t, Options{})
	_, err := l.load("a.ts", "const x = 1\nawait x\nexport function apply() {}", compile.Module)
	wantError(t, err, seams.CompileFailed, "a.ts:2:1", "await inside apply")
}

// Pitfall 20: the protocol of async generators costs 25 µs a chunk. That is
// fine for a model's stream; what matters is that a long one holds neither
// memory nor turns.
func TestPitfall20LongStream(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.stream = async function* () { for (let i = 0; i < 3000; i++) yield i }`)
	n := 0
	for v, err := range o.Iterate(t.Context(), "stream") {
		if err != nil || v != float64(n) {
			t.Fatal(v, err)
		}
		n++
	}
	if n != 3000 {
		t.Error(n)
	}
}
