package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// An async iterable of JavaScript is a Go sequence.
func TestIterate(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.ts", `
let closed = ''
export const log = () => closed
export async function* count(n: number) { try { for (let i = 0; i < n; i++) { await null; yield { i } } } finally { closed += 'f'; await null; closed += 'F' } }
export function* sync() { yield 1; yield 2 }
export const list = () => [1, 2]
export const later = async () => (async function* () { yield 'x' })()
export const odd = () => ({ [Symbol.asyncIterator]: () => ({ next: () => 7 }) })
export async function* fails() { yield 1; throw Object.assign(new Error('mid'), { code: 'E_MID' }) }
export const none = () => 5
export async function* func() { yield () => {} }
export async function* stuck(signal: AbortSignal) { yield 1; await new Promise((_, no) => signal.addEventListener('abort', () => { closed += signal.reason.name; no(signal.reason) })) }
export class S { *[Symbol.iterator]() { yield 's' } }
`)
	collect := func(seq iter.Seq2[any, error], stop int) (out []any, err error) {
		for v, e := range seq {
			if e != nil {
				return out, e
			}
			if out = append(out, v); len(out) == stop {
				break
			}
		}
		return out, nil
	}
	for _, c := range []struct {
		name, want string
		args       []any
	}{
		{"count", "[map[i:0] map[i:1]]", []any{2}}, {"sync", "[1 2]", nil}, {"list", "[1 2]", nil}, {"later", "[x]", nil},
	} {
		got, err := collect(o.Iterate(t.Context(), c.name, c.args...), -1)
		if fmt.Sprint(got) != c.want || err != nil {
			t.Error(c.name, got, err)
		}
	}
	if got, err := collect(o.Iterate(t.Context(), "count", 1e9), 3); len(got) != 3 || err != nil {
		t.Error(got, err)
	}
	if v, _ := o.Call(t.Context(), "log"); v != "fFfF" {
		t.Error("return was not awaited:", v)
	}
	_, err := collect(o.Iterate(t.Context(), "fails"), -1)
	wantError(t, err, "E_MID", "mid")
	_, err = collect(o.Iterate(t.Context(), "none"), -1)
	wantError(t, err, seams.ScriptError, "5 is not iterable")
	_, err = collect(o.Iterate(t.Context(), "odd"), -1)
	wantError(t, err, seams.WrongType)
	_, err = collect(o.Iterate(t.Context(), "func"), -1)
	wantError(t, err, seams.NotJSON, "item")
	_, err = collect(o.Iterate(t.Context(), "absent"), -1)
	wantError(t, err, seams.NotFound)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = collect(o.Iterate(ctx, "stuck", ctx), -1)
	wantError(t, err, seams.Aborted)
	if v, _ := o.Call(t.Context(), "log"); v != "fFfFAbortError" {
		t.Error(v)
	}
}

// A Go sequence is an async iterable, a context an AbortSignal, a function a
// function.
func TestGiven(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.ts", `
export const all = async (s: AsyncIterable<number>) => { const out = []; for await (const v of s) out.push(v); return out }
export const first = async (s: AsyncIterable<number>) => { for await (const v of s) return v }
export const hold = (s: AsyncIterable<number>) => { s[Symbol.asyncIterator]().next() }
export const signal = async (s: AbortSignal) => { const out = [s instanceof AbortSignal, s.aborted]; s.onabort = () => out.push('on'); await new Promise((f) => s.addEventListener('abort', f)); try { s.throwIfAborted() } catch (e) { out.push(e.name, e.code) } return out }
export const done = (s: AbortSignal) => [s.aborted, s.reason.code]
export const call = async (f: Function) => [f(1, 2), typeof f, f.name]
export const next = async (next: () => Promise<number>) => { const p = next(); return [p instanceof Promise, await p] }
export const later = async (p: Promise<number>) => [p instanceof Promise, await p]
export const callable = (c: any) => [c('x'), c.dispose(), c.n]
export const err = (e: any) => [e instanceof Error, e.code, e.message, e.cause.message]
`)
	closed := 0
	counting := func(n int) iter.Seq2[any, error] {
		return func(yield func(any, error) bool) {
			defer func() { closed++ }()
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			if n == 3 {
				yield(nil, seams.Errorf(seams.Server, "x", "broken"))
			}
		}
	}
	want := func(name, want string, args ...any) {
		t.Helper()
		if v, err := o.Call(t.Context(), name, args...); fmt.Sprint(v) != want || err != nil {
			t.Errorf("%s: %v, %v; want %s", name, v, err, want)
		}
	}
	want("all", "[0 1]", counting(2))
	_, err := o.Call(t.Context(), "all", counting(3))
	wantError(t, err, seams.Server, "broken")
	want("first", "0", counting(1e9))
	if closed != 3 {
		t.Error(closed)
	}
	want("hold", "<nil>", counting(5))
	if _, err := o.Call(t.Context(), "all", counting(2)); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(seams.Errorf("E_STOP", "", "enough")) })
	want("signal", "[true false on Error E_STOP]", ctx)
	want("done", "[true E_STOP]", ctx)
	deadline, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	want("done", "[true TIMEOUT]", deadline)

	want("call", "[3 function host]", HostFunc(func(_ context.Context, args []any) (any, error) { return args[0].(float64) + args[1].(float64), nil }))
	want("next", "[true 5]", AsyncFunc(func(context.Context, []any) (any, error) { return 5, nil }))
	want("later", "[true 6]", Later(func(context.Context) (any, error) { return 6, nil }))
	want("callable", "[called disposed 2]", Callable{
		Call:    func(context.Context, []any) (any, error) { return "called", nil },
		Members: map[string]any{"n": 2, "dispose": HostFunc(func(context.Context, []any) (any, error) { return "disposed", nil })},
	})
	want("err", "[true X_Y op: told because]", &seams.Error{Code: "X_Y", Op: "op", Msg: "told", Err: errors.New("because")})
	if err := l.Realm.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	if closed != 5 {
		t.Error("a stream that nobody ended is open:", closed)
	}
}

// A signal of JavaScript is a context for the host, and cancels.
func TestSignalOut(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "wait", Async: true}}}})
	h := &record{answer: func(_ context.Context, _, _ string, args []any) (any, error) {
		ctx := args[0].(map[string]any)["signal"].(context.Context)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	err := l.apply(`export async function apply(ctx) {
		const c = new AbortController(), p = ctx.wait({ signal: c.signal })
		c.abort(new Error('enough'))
		try { await p; throw new Error('no error') } catch (e) { if (e.code !== 'ABORTED' || e.cause.message !== 'enough') throw e }
		if (!AbortSignal.abort().aborted || !AbortSignal.any([c.signal]).aborted) throw new Error('statics')
		const t = AbortSignal.timeout(5); await new Promise((f) => t.addEventListener('abort', f, { once: true })); if (t.reason.name !== 'TimeoutError') throw t.reason
		const et = new EventTarget(); let n = 0; const f = () => n++; et.addEventListener('x', f); et.dispatchEvent(new Event('x')); et.removeEventListener('x', f); et.dispatchEvent(new CustomEvent('x')); if (n !== 1) throw new Error('events ' + n)
	}`, h, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// Leaving and closing: what waits hears of it, nothing runs on. (J3)
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ran, cancelled atomic.Int32
		l := open(t, Options{Ambient: Ambient{Timers: true}, Facade: &Facade{Verbs: []Method{{Name: "wait", Async: true}, {Name: "ran"}}}})
		h := hostFunc(func(ctx context.Context, _, method string, _ []any) (any, error) {
			if method == "ran" {
				ran.Add(1)
				return nil, nil
			}
			<-ctx.Done()
			cancelled.Add(1)
			return nil, context.Cause(ctx)
		})
		p, _ := l.load("p.js", `module.exports = async (ctx) => { setInterval(() => ctx.ran(), 1); setTimeout(() => { throw new Error('late') }, 50); ctx.wait().catch(() => ctx.ran()); await ctx.wait() }`, compile.Module)
		done := make(chan error, 1)
		go func() { done <- p.Apply(context.Background(), Activation{Host: h}) }()
		eventually(t, "the timer runs", func() bool { return ran.Load() > 2 })
		if err := l.Realm.Close(time.Second); err != nil {
			t.Fatal(err)
		}
		wantError(t, <-done, seams.Unloaded)
		n := ran.Load()
		time.Sleep(60 * time.Millisecond)
		if ran.Load() != n || cancelled.Load() != 2 || len(l.reports()) != 0 {
			t.Error(n, ran.Load(), cancelled.Load(), l.reports())
		}
		if err := l.Realm.Close(time.Second); err != nil || !errors.Is(l.Err(), seams.Unloaded) {
			t.Error(err, l.Err())
		}
		select {
		case <-l.Done():
		default:
			t.Error("not done")
		}
		_, err := l.Realm.Load(t.Context(), &Program{})
		wantError(t, err, seams.Unloaded)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.died) != 0 {
			t.Error("a closed realm is not a dead one:", l.died)
		}
	})
}

// A turn that runs while the realm is closed is interrupted.
func TestCloseWhileRunning(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.spin = () => { console.log('in'); try { for (;;) ; } finally { console.log('finally') } }`)
	done := make(chan error, 1)
	go func() { _, err := o.Call(context.Background(), "spin"); done <- err }()
	eventually(t, "the turn runs", func() bool { return l.said() != "" })
	if err := l.Realm.Close(time.Minute); err != nil {
		t.Error(err)
	}
	wantError(t, <-done, seams.Unloaded)
	if l.said() != "info in" {
		t.Error(l.said())
	}
}

// A host call that ignores its context holds Close until grace, and is named.
func TestCloseStuck(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "hang", Async: true}}}})
	gate := make(chan struct{})
	if err := l.apply(`export const apply = (ctx) => { ctx.hang() }`, hostFunc(func(context.Context, string, string, []any) (any, error) { <-gate; return nil, nil }), nil); err != nil {
		t.Fatal(err)
	}
	wantError(t, l.Realm.Close(20*time.Millisecond), seams.Stuck)
	close(gate)
}

// The caller's context ends the wait, not the realm.
func TestCallCancelled(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.never = () => new Promise(() => {}); exports.one = () => 1`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := o.Call(ctx, "never")
	wantError(t, err, seams.Timeout)
	_, err = o.Call(ctx, "one")
	wantError(t, err, seams.Timeout)
	if v, err := o.Call(t.Context(), "one"); v != 1.0 || err != nil {
		t.Error(v, err)
	}
}

func TestUnhandled(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Timers: true}})
	l.want(`Promise.reject(new Error('lost')); const kept = Promise.reject(new Error('kept')); kept.catch(() => {});
	queueMicrotask(() => { throw new Error('in microtask') }); new EventTarget().dispatchEvent(new Event('x'));
	const et = new EventTarget(); et.addEventListener('x', () => { throw new Error('in listener') }); et.dispatchEvent(new Event('x'));
	Promise.reject({ get message() { throw 1 }, get name() { throw 2 } }); return 1`, 1)
	eventually(t, "all are reported", func() bool { return len(l.reports()) == 4 })
	var all []string
	for _, err := range l.reports() {
		all = append(all, err.Error())
	}
	text := strings.Join(all, "\n")
	for _, part := range []string{"lost (test.js:1:", "in microtask (test.js:2:", "in listener", "cannot be read"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not reported in\n%s", part, text)
		}
	}
	if strings.Contains(text, "kept") || l.Err() != nil {
		t.Error(text, l.Err())
	}
}

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		b     Budgets
		code  string
		want  seams.Code
		parts []string
		dies  bool
	}{
		"turn":      {Budgets{Turn: 30 * time.Millisecond}, `for (;;) ;`, seams.OverBudget, []string{"30ms"}, true},
		"microtask": {Budgets{Turn: 30 * time.Millisecond}, `for (;;) await null`, seams.OverBudget, []string{"30ms"}, true},
		"minute":    {Budgets{Turn: 50 * time.Millisecond, Minute: 100 * time.Millisecond}, `for (;;) { await new Promise((f) => setTimeout(f, 1)); const t = performance.now(); while (performance.now() < t + 10) ; }`, seams.OverBudget, nil, true},
		"depth":     {Budgets{Depth: 100}, `const f = () => f(); f()`, seams.OverBudget, []string{"nested more than 100"}, true},
		"heap":      {Budgets{Heap: 16 << 20, Turn: time.Minute, Minute: time.Minute}, `const a = []; for (;;) a.push('x'.repeat(1000))`, seams.OverBudget, []string{"16 MiB"}, true},
		"timers":    {Budgets{Timers: 5}, `for (let i = 0; i < 9; i++) setTimeout(() => {}, 1e6)`, seams.OverBudget, []string{"5 timers"}, false},
		"output":    {Budgets{Output: 1000}, `return 'x'.repeat(2000)`, seams.OverBudget, []string{"1000 bytes"}, false},
		"value":     {Budgets{Value: 1000}, `return 'x'.repeat(2000)`, seams.TooLarge, []string{"1000 bytes"}, false},
		"negative":  {Budgets{Turn: -1}, ``, seams.InvalidArgument, []string{"turn"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == seams.InvalidArgument {
				_, err := New(t.Context(), Options{Budgets: c.b})
				wantError(t, err, c.want, c.parts...)
				return
			}
			l := open(t, Options{Budgets: c.b, Ambient: Ambient{Timers: true}})
			l.fails(c.code, c.want, c.parts...)
			if c.dies != (l.Err() != nil) {
				t.Error(l.Err())
			}
		})
	}
}

// What an error carries is handed to the host too, and counted: what does not
// fit is left out.
func TestBudgetOfThrownData(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Output: 1000}})
	for _, c := range []struct {
		bytes int
		told  bool
	}{{400, true}, {400, true}, {400, false}} {
		_, err := l.eval(fmt.Sprintf(`throw Object.assign(new Error('told'), { data: 'x'.repeat(%d) })`, c.bytes))
		wantError(t, err, seams.ScriptError, "told")
		var thrown *Thrown
		if !errors.As(err, &thrown) || c.told != (thrown.Data != nil) {
			t.Errorf("%+v", thrown)
		}
	}
	if n := l.Usage().Output; n < 1200 {
		t.Errorf("%d bytes were counted", n)
	}
}

// Host calls are counted; over the budget the realm ends.
func TestBudgetOfCalls(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Calls: 50}, Facade: &Facade{Verbs: []Method{{Name: "x"}}}})
	n := 0
	err := l.apply(`export const apply = (ctx) => { for (;;) try { ctx.x() } catch {} }`, hostFunc(func(context.Context, string, string, []any) (any, error) { n++; return nil, nil }), nil)
	wantError(t, err, seams.OverBudget, "50 host calls")
	if n != 50 || l.Err() == nil {
		t.Error(n, l.Err())
	}
}

// Time inside a synchronous host method is not the plugin's.
func TestBudgetOfHostTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, Options{Budgets: Budgets{Turn: 40 * time.Millisecond}, Facade: &Facade{Verbs: []Method{{Name: "slow"}}}})
		if err := l.apply(`export const apply = (ctx) => { ctx.slow() }`, hostFunc(func(context.Context, string, string, []any) (any, error) {
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}), nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogBudget(t *testing.T) {
	print := program(t, `console.log('0123456789')`)
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Budgets: Budgets{Log: 100}})
		for range 50 {
			l.run(print)
		}
		if n := strings.Count(l.said(), "0123456789"); n != 10 || strings.Count(l.said(), "dropped") != 1 {
			t.Error(n, l.said())
		}
		time.Sleep(time.Minute)
		l.run(print)
		if n := strings.Count(l.said(), "0123456789"); n != 11 {
			t.Error(n, l.said())
		}
	})
}

// Timers follow the clock: order, intervals, arguments.
func TestTimers(t *testing.T) {
	p := program(t, `const out = [];
		setTimeout((a, b) => out.push(a + b), 20, 'c', 'd'); setTimeout(() => out.push('a'), 10); setTimeout(() => out.push('b'), 10); setImmediate((x) => out.push(x), 'i'); process.nextTick(() => out.push('t'));
		let n = 0; const id = setInterval(() => { out.push(++n); if (n === 3) clearInterval(id) }, 100);
		await new Promise((f) => setTimeout(f, 3600e3)); return out.join()`)
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Ambient: Ambient{Timers: true, Env: map[string]string{}}})
		start := time.Now()
		if v, err := l.run(p); v != "t,i,a,b,cd,1,2,3" || err != nil {
			t.Error(v, err)
		}
		if d := time.Since(start); d != time.Hour {
			t.Error(d)
		}
	})
}

func TestFetch(t *testing.T) {
	var closed atomic.Int32
	blocked := make(chan struct{})
	body := func(text string) io.ReadCloser { return &closing{strings.NewReader(text), &closed} }
	f := func(ctx context.Context, r *Request) (*Response, error) {
		switch {
		case strings.HasSuffix(r.URL, "/echo"):
			return &Response{Status: 200, StatusText: "OK", URL: r.URL, Header: http.Header{"Content-Type": {"application/json"}, "X-M": {r.Method}, "Set-Cookie": {"a", "b"}},
				Body: body(fmt.Sprintf(`{"body":%q,"type":%q,"k":%q}`, r.Body, r.Header.Get("Content-Type"), r.Header.Get("X-K")))}, nil
		case strings.HasSuffix(r.URL, "/fail"):
			return nil, seams.Errorf(seams.Transport, "http", "refused")
		case strings.HasSuffix(r.URL, "/slow"):
			close(blocked)
			<-ctx.Done()
			return nil, ctx.Err()
		case strings.HasSuffix(r.URL, "/endless"):
			return &Response{Status: 200, Body: &endless{ctx, &closed}}, nil
		}
		return &Response{Status: 404, Body: body("gone")}, nil
	}
	check := func(t *testing.T, facade *Facade, ambient Ambient, host Host, fetch string) {
		closed.Store(0)
		l := open(t, Options{Facade: facade, Ambient: ambient, Budgets: Budgets{Body: 100_000}})
		err := l.apply(`export const inject = ['http']
		export async function apply(ctx) {
			const fetch = `+fetch+`, eq = (a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error('got ' + JSON.stringify(a)) }
			let r = await fetch('http://h/echo', { method: 'post', headers: { 'X-K': 'v', none: undefined }, body: JSON.stringify({ a: 1 }) })
			eq([r.ok, r.status, r.statusText, r.url, r.headers.get('x-m'), r.headers.get('set-cookie'), [...r.headers.keys()]], [true, 200, 'OK', 'http://h/echo', 'POST', 'a, b', ['content-type', 'set-cookie', 'x-m']])
			eq(await r.json(), { body: '{"a":1}', type: 'text/plain;charset=UTF-8', k: 'v' })
			eq(r.bodyUsed, true)
			try { await r.text(); throw 0 } catch (e) { if (!(e instanceof TypeError)) throw e }
			r = await fetch(new URL('http://h/echo'), { method: 'PUT', body: new URLSearchParams({ q: 'a b' }) }); eq((await r.json()).type.split(';')[0], 'application/x-www-form-urlencoded')
			r = await fetch(new Request('http://h/echo', { method: 'POST', body: new Uint8Array([104, 105]) })); eq((await r.json()).body, 'hi')
			r = await fetch('http://h/none'); eq([r.ok, r.status], [false, 404])
			let text = ''; const d = new TextDecoder(); for await (const c of r.body) text += d.decode(c, { stream: true }); eq(text, 'gone')
			r = await fetch('http://h/none'); const reader = r.body.getReader(); let s = await reader.read(); eq([s.done, s.value.length], [false, 4]); eq((await reader.read()).done, true)
			try { await fetch('http://h/fail'); throw 0 } catch (e) { eq([e.code, e.message], ['TRANSPORT', 'http: refused']) }
			const c = new AbortController(); const p = fetch('http://h/slow', { signal: c.signal }); setTimeout2(() => c.abort(), ctx); try { await p; throw 0 } catch (e) { eq([e.name, e.code], ['AbortError', 'ABORTED']) }
			try { await fetch('http://h/none', { signal: AbortSignal.abort() }); throw 0 } catch (e) { eq(e.name, 'AbortError') }
			r = await fetch('http://h/endless'); for await (const c of r.body) { eq(c.length > 0, true); break }
			r = await fetch('http://h/endless'); try { await r.text(); throw 0 } catch (e) { eq(e.code, 'TOO_LARGE') }
			r = await fetch('http://h/endless'); s = r.body.getReader(); await s.read(); ctx.left(1)
			try { await fetch('http://h/none', { method: 'GET', body: 'x' }); throw 0 } catch (e) { if (!(e instanceof TypeError)) throw e }
			eq(await new Response('é').text(), 'é'); eq(await Response.json([1]).json(), [1]); eq(new Response(null, { status: 204 }).body, null)
		}
		const setTimeout2 = (f, ctx) => { ctx.blocked().then(f) }`, host, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Realm.Close(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		if n := closed.Load(); n != 8 {
			t.Errorf("%d bodies closed", n)
		}
		blocked = make(chan struct{})
	}
	verbs := []Method{{Name: "left"}, {Name: "blocked", Async: true}}
	h := &record{answer: func(ctx context.Context, target, method string, args []any) (any, error) {
		return nil, nil
	}}
	host := hostFunc(func(ctx context.Context, target, method string, args []any) (any, error) {
		switch {
		case target == "http":
			return f(ctx, args[0].(*Request))
		case method == "blocked":
			<-blocked
			return nil, nil
		}
		return h.Call(ctx, target, method, args)
	})
	t.Run("ambient", func(t *testing.T) {
		check(t, &Facade{Verbs: verbs, Services: []Service{{Name: "http"}}}, Ambient{Fetch: f}, host, "globalThis.fetch")
	})
	t.Run("service", func(t *testing.T) {
		check(t, &Facade{Verbs: verbs, Services: []Service{{Name: "http", Methods: []Method{{Name: "fetch", Fetch: true}}}}}, Ambient{}, host, "ctx.http.fetch")
	})
}

// A request that has ended has let go of its signal, however it ended.
func TestFetchLetsGoOfSignal(t *testing.T) {
	var closed atomic.Int32
	l := open(t, Options{Ambient: Ambient{Timers: true, Fetch: func(ctx context.Context, r *Request) (*Response, error) {
		switch {
		case strings.HasSuffix(r.URL, "/fail"):
			return nil, errors.New("refused")
		case strings.HasSuffix(r.URL, "/none"):
			return &Response{Status: 204}, nil
		}
		return &Response{Status: 200, Body: &closing{strings.NewReader("text"), &closed}}, nil
	}}})
	l.want(`const c = new AbortController(), s = c.signal, { addEventListener: add, removeEventListener: remove } = EventTarget.prototype
		let made = 0, held = 0
		s.addEventListener = function (...a) { made++; held++; return add.apply(this, a) }
		s.removeEventListener = function (...a) { held--; return remove.apply(this, a) }
		for (let i = 0; i < 3; i++) {
			await (await fetch('http://h/text', { signal: s })).text()
			await (await fetch('http://h/text', { signal: s })).body.cancel()
			await fetch('http://h/none', { signal: s })
			await fetch('http://h/fail', { signal: s }).catch(() => {})
		}
		for (let i = 0; held && i < 1000; i++) await new Promise((f) => setTimeout(f, 1))
		return [made, held]`, []any{12, 0})
}

// A read that failed is over: the next one fails of the same.
func TestFetchedBodyFails(t *testing.T) {
	var closed atomic.Int32
	l := open(t, Options{Ambient: Ambient{Fetch: func(ctx context.Context, r *Request) (*Response, error) {
		return &Response{Status: 200, Body: &closing{iotest.ErrReader(errors.New("cut off")), &closed}}, nil
	}}})
	l.want(`const reader = (await fetch('http://h/')).body.getReader(), said = []
		for (let i = 0; i < 2; i++) try { await reader.read() } catch (e) { said.push(e.message) }
		return said`, []any{"cut off", "cut off"})
}

type closing struct {
	io.Reader
	n *atomic.Int32
}

func (c *closing) Close() error { c.n.Add(1); return nil }

type endless struct {
	ctx context.Context
	n   *atomic.Int32
}

func (e *endless) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return len(p), nil
}
func (e *endless) Close() error { e.n.Add(1); return nil }

// What stands on globalThis in every realm.
func TestGlobals(t *testing.T) {
	l := open(t, Options{Attribution: map[string]string{"user-agent": "ouro/1"}, Ambient: Ambient{Env: map[string]string{"A": "1"}}})
	for code, want := range map[string]any{
		`const o = { d: new Date(5), m: new Map([[1, { a: [1] }]]), s: new Set(['x']), u: new Uint8Array([1, 2]), r: /a/g, n: null }; o.self = o; const c = structuredClone(o); return [c !== o, c.self === c, +c.d, c.m.get(1).a[0], c.s.has('x'), c.u[1], c.u.buffer !== o.u.buffer, c.r.flags]`: []any{true, true, 5, 1, true, 2, true, "g"},
		`try { structuredClone(() => {}) } catch (e) { return e.name }`: "DataCloneError",
		`const u = new URL('http://u:p@EXAMPLE.com:8080/a/./b/../c d?x=1&y=%20#f'); u.searchParams.append('z', 'é&'); u.pathname = '/new'; u.hash = ''; u.port = 80; return [u.href, u.origin, u.host, u.searchParams.get('y'), URL.canParse('nope'), new URL('../x', 'https://h/a/b/c').href, new URL('//o/p', 'https://h').href, new URL('mailto:a@b').pathname]`: []any{"http://u:p@example.com/new?x=1&y=+&z=%C3%A9%26", "http://example.com", "example.com", " ", false, "https://h/a/x", "https://o/p", "a@b"},
		`const p = new URLSearchParams('?a=1&b=2&a=3'); p.set('a', 'x'); p.delete('b'); p.append('c', ' '); return [p.toString(), [...new URLSearchParams({ k: 'v' })][0].join(), p.has('c'), p.size]`:                                                                                                                                                              []any{"a=x&c=+", "k,v", true, 2},
		`const b = Buffer.from('héé', 'utf8'); return [b.toString('hex'), b.toString('base64'), Buffer.from('aMOp', 'base64').toString(), Buffer.concat([b, Buffer.alloc(1)]).length, Buffer.isBuffer(b), Buffer.byteLength('é'), b.equals(Buffer.from(b)), b.slice(1, 3).toString(), JSON.stringify(Buffer.from('a'))]`:                                            []any{"68c3a9c3a9", "aMOpw6k=", "hé", 6, true, 2, true, "é", `{"type":"Buffer","data":[97]}`},
		`const { format, inspect, promisify } = require('node:util'); return [format('%s-%d', 'a', 2), inspect({ a: [1] }), await promisify((x, f) => f(null, x + 1))(1)]`:                                                                                                                                                                                          []any{"a-2", "{ a: [ 1 ] }", 2},
		`const d = new TextDecoder(), e = new TextEncoder().encode('가'); return [d.decode(e.subarray(0, 1), { stream: true }) + d.decode(e.subarray(1)), new TextDecoder().decode(new Uint8Array([0xEF, 0xBB, 0xBF, 65, 0xFF]))]`:                                                                                                                                   []any{"가", "A\uFFFD"},
		`try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return e instanceof TypeError }`:                                                                                                                                                                                                                               true,
		`return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.getRandomValues(new Uint8Array(8)).some((x) => x)]`:                                                                                                                                                                                      []any{true, true},
		`return [Object.groupBy([1, 2, 3], (x) => x % 2 ? 'o' : 'e').o.join(), Map.groupBy([1, 2], (x) => x % 2).get(1).length, (await Array.fromAsync((async function* () { yield 1; yield 2 })())).join(), Promise.withResolvers().promise instanceof Promise, await Promise.try(() => 3), 'a\uD800'.isWellFormed(), RegExp.escape('a.b')]`:                       []any{"1,3", 1, "1,2", true, 3, false, `\x61\.b`},
		`return [[1, [2, [3]]].flat().length, [1, [2, [3]]].flat(Infinity).length, [1, 2].flatMap((x) => [x, x]).join(), [[1, 2], [3]].join(';'), Array.from(new Set([1, 1, 2])).length, Array.from({ length: 2 }, (_, i) => i * 2).join(), 'ab'.repeat(2), [3, 1, 2].sort().join(), [1].concat([2], 3).length]`:                                                    []any{3, 3, "1,1,2,2", "1,2;3", 2, "0,2", "abab", "1,2,3", 3},
		`class L extends Array {}; class M extends Map { get(k) { return super.get(k) ?? 'none' } }; return [new L(3).length, new M([[1, 2]]).get(1), new M().get(0)]`:                                                                                                                                                                                              []any{3, 2, "none"},
		`const f = function (a) { return [this.v, a] }.bind({ v: 1 }, 2).bind(null); return [f(), f.name]`:                                                                                                                                                                                                                                                          []any{[]any{1, 2}, "bound bound "},
		`const { attributionHeaders, CallId, LlmError, LlmAdapter, z } = require('ouro'); const e = new LlmError('m', 'RATE_LIMIT', { status: 429 }); return [attributionHeaders(), CallId('c'), e.failure, e instanceof Error, new (class extends LlmAdapter {})() instanceof LlmAdapter, z === require('schemastery')]`:                                           []any{map[string]any{"user-agent": "ouro/1"}, "c", map[string]any{"message": "m", "code": "RATE_LIMIT", "status": 429}, true, true, true},
	} {
		l.want(code, want)
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
}

// Single calls that would run or allocate without end are refused at once.
func TestGuard(t *testing.T) {
	l := open(t, Options{})
	for _, code := range []string{
		`'a'.repeat(2 ** 40)`, `'a'.padEnd(2 ** 30)`, `'a'.padStart(2 ** 40)`, `new ArrayBuffer(1e12)`, `new Float64Array(2 ** 40)`, `new Uint8Array(1e9)`, `new Array(1e9).fill(0)`,
		`[].indexOf.call({ length: 2 ** 53 - 1 }, 1)`, `[].includes.call({ length: 2 ** 53 - 1 }, 1)`, `[].copyWithin.call({ length: 2 ** 53 - 1 }, 1)`, `Array.from({ length: 2 ** 32 - 1 })`,
		`Array(1e8).join()`, `new Array(4294967295).sort()`, `Array(1e9).map((x) => x)`, `new Array(4294967295).reverse()`, `Math.max.apply(null, { length: 1e8 })`, `Reflect.apply(Math.max, null, { length: 2 ** 31 })`,
		`Reflect.construct(Array, { length: 1e9 })`, `BigInt.asUintN(2 ** 53 - 1, -1n)`, `Object.keys(new Array(1e9))`, `new RegExp('a'.repeat(30000))`, `'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e3))`, `Array.prototype.concat.call([], new Array(1e9))`,
		`JSON.parse('['.repeat(1000))`, `'x'.repeat(1.1e7).split('')`, `new Array(1e8).toLocaleString()`, `let o = null; for (let i = 0; i < 5000; i++) o = Object.create(o)`, `Uint8Array.from({ length: 1e9 })`,
		`BigInt('9'.repeat(3e6))`, `BigInt({ toString: () => '9'.repeat(3e6) })`, `BigInt.asIntN(64, '9'.repeat(3e6))`, `String.raw({ raw: Array(100).fill('x'.repeat(1e6)) })`,
	} {
		_, err := l.eval(code)
		if err == nil || !strings.Contains(err.Error(), "RangeError") {
			t.Errorf("%s: %v", code, err)
		}
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	for _, code := range []string{`new Set({ [Symbol.iterator]: () => ({ next: Object }) })`, `Array.from({ [Symbol.iterator]: () => ({ next: Object }) })`, `/(?=a)(a+)+$/.test('a'.repeat(40) + '!') || (() => { for (;;) ; })()`} {
		l := open(t, Options{Budgets: Budgets{Turn: 600 * time.Millisecond}})
		if _, err := l.eval(code); err == nil {
			t.Errorf("%s: no error", code)
		}
	}
}

// The guards leave the language what it is.
func TestGuardIsNoHindrance(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Env: map[string]string{}}})
	for code, want := range map[string]any{
		`globalThis.Buffer = require('buffer').Buffer; globalThis.URL = class Mine {}; new URLSearchParams(''); return [Buffer.from('a').length, URL.name, new (require('url').URL)('http://h').href]`: []any{1, "Mine", "http://h/"},
		`const p = Promise.resolve(1); p.json = 'x'; p.length = 2; try { Promise.resolve().json } catch (e) { return [p.json, p.length, await p, e.message] }`:                                         []any{"x", 2, 1, "a promise has no json: is an await missing?"},
		`class A { static name() {} }; class B { static name = Symbol('b') }; return [typeof A.bind(null), typeof B.bind(null)]`:                                                                       []any{"function", "function"},
		`let n = 0; const once = { valueOf: () => n++ % 2 ? 2 ** 36 : 0 }; return ['a'.repeat(once), n++, 'a'.padEnd(once), n++, 'a'.padStart(once), n]`:                                               []any{"", 1, "a", 3, "a", 5},
		`return [].concat('x'.repeat(6e6), [1]).length`: 2,
		`return [BigInt(5) === 5n, BigInt('0x10') === 16n, BigInt(true) === 1n, BigInt({ valueOf: () => 7 }) === 7n, BigInt(Object('8')) === 8n, typeof BigInt.asIntN, BigInt.name, BigInt.length, Object(1n) instanceof BigInt, 1n.constructor === BigInt, BigInt.asIntN(8, 255n) === -1n]`: []any{true, true, true, true, true, "function", "BigInt", 1, true, true, true},
		`return [() => new BigInt(1), () => BigInt(), () => BigInt(1.5), () => BigInt('x')].map((f) => { try { f() } catch (e) { return e.name } })`:                                                                                                                                         []any{"TypeError", "TypeError", "RangeError", "SyntaxError"},
		"return [String.raw`a\n${1}b${2}`, String.raw({ raw: 'xyz' }, 0, 1, 2), String.raw({ raw: [] })]": []any{`a
1b2`, "x0y1z", ""},
		`return ['ab'.repeat('2'), 'a'.padEnd('3', 'b'), 'a'.padStart(), 'a'.repeat()]`: []any{"abab", "abb", "a", ""},
	} {
		l.want(code, want)
	}
}

func TestSpare(t *testing.T) {
	s := NewSpare()
	s.tasks.Wait()
	warm := s.ready
	if warm == nil {
		t.Fatal("no VM is ready")
	}
	r, err := s.New(t.Context(), Options{Name: "a", Budgets: Budgets{Depth: 50}})
	if err != nil || r.vm != warm.vm {
		t.Fatal(err)
	}
	l := &lab{Realm: r, t: t, compiler: NewCompiler()}
	l.fails(`const f = (n) => n && f(n - 1); f(60)`, seams.OverBudget, "50")
	r.Close(time.Second)
	s.tasks.Wait()
	if s.ready == nil || s.ready == warm {
		t.Error("the next one is not ready")
	}
	s.Close()
	r, err = s.New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close(time.Second)
	if s.ready != nil {
		t.Error("a closed spare prepares")
	}
}

// Mounts, calls and unmounts leave neither goroutines nor heap behind.
func TestMountCycles(t *testing.T) {
	cycles := 300
	if os.Getenv("OURO_LONG") != "" {
		cycles = 10_000
	}
	p, err := NewCompiler().Compile(compile.Source{Name: "adder.ts", Text: benchTool})
	if err != nil {
		t.Fatal(err)
	}
	cycle := func() {
		r, tool := mountTool(t, nil, p)
		if v, err := tool.Call(t.Context(), map[string]any{"a": 1, "b": 2}); err != nil || v.(map[string]any)["sum"] != 3.0 {
			t.Fatal(v, err)
		}
		if err := r.Close(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		cycle()
	}
	goroutines, heap := runtime.NumGoroutine(), heapNow()
	for range cycles {
		cycle()
	}
	eventually(t, "goroutines are back", func() bool { return runtime.NumGoroutine() <= goroutines })
	if grown := heapNow() - heap; grown > heap/50+256<<10 {
		t.Errorf("the heap grew by %d KB from %d KB", grown>>10, heap>>10)
	}
}

// A posted call whose arguments do not cross is reported, and the realm lives.
func TestPostedArgumentsDoNotCross(t *testing.T) {
	l := open(t, Options{})
	v, err := l.exports("a.js", `exports.get = () => (x) => console.log('called', x)`).Invoke(t.Context(), "get")
	if err != nil {
		t.Fatal(err)
	}
	f := v.(*Func)
	for _, arg := range []any{make(chan int), "well"} {
		if err := f.Post(arg); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Do(t.Context(), "last"); err != nil {
		t.Fatal(err)
	}
	if got := l.said(); got != "info called well\ninfo called last" {
		t.Error(got)
	}
	if rs := l.reports(); len(rs) != 1 || !errors.Is(rs[0], seams.NotJSON) {
		t.Error(rs)
	}
}
