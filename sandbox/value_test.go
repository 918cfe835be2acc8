package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
)

// jsonValue draws a value of JSON shape that crosses without loss.
func jsonValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(i int64) any { return float64(i) }),
		rapid.Map(rapid.Float64Range(-1e15, 1e15), func(f float64) any { return f }),
	)
	if depth == 0 {
		return leaf
	}
	inner := jsonValue(depth - 1)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(inner, 0, 5), func(l []any) any {
			if l == nil {
				l = []any{}
			}
			return l
		}),
		rapid.Map(rapid.MapOfN(rapid.OneOf(rapid.StringMatching(`[a-z]{1,6}`), rapid.SampledFrom([]string{"__proto__", "constructor", "toString", "length", "0", ""})), inner, 0, 5),
			func(m map[string]any) any { return m }),
	)
}

// What crosses into JavaScript and back is the same, and looks there as
// JSON.parse would have it.
func TestValueRoundTrip(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.same = (v) => v === undefined ? null : v; exports.text = (v) => JSON.stringify(v); exports.parse = (s) => JSON.parse(s)`)
	rapid.Check(t, func(t *rapid.T) {
		v := jsonValue(3).Draw(t, "v")
		got, err := o.Call(context.Background(), "same", v)
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("%#v came back as %#v, %v", v, got, err)
		}
		if v == nil {
			return
		}
		text, err := o.Call(context.Background(), "text", v)
		if err != nil {
			t.Fatal(err)
		}
		var read any
		if err := json.Unmarshal([]byte(text.(string)), &read); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, v) {
			t.Fatalf("%#v is %s in JavaScript", v, text)
		}
		data, _ := json.Marshal(v)
		parsed, err := o.Call(context.Background(), "parse", string(data))
		if err != nil || !reflect.DeepEqual(parsed, v) {
			t.Fatalf("JSON.parse(%s) is %#v, %v", data, parsed, err)
		}
	})
}

func TestValueOut(t *testing.T) {
	l := open(t, Options{})
	for _, c := range []struct {
		code string
		want any
	}{
		{`return undefined`, nil},
		{`return { a: undefined, b: null }`, map[string]any{"b": nil}},
		{`return new Date(0)`, "1970-01-01T00:00:00.000Z"},
		{`return { toJSON: () => ({ x: 1 }) }`, map[string]any{"x": 1.0}},
		{`return Object.assign(new (class P { m() {} get g() { throw 1 } }), { x: 1 })`, map[string]any{"x": 1.0}},
		{`return [new Number(1), new String('s'), new Boolean(false)]`, []any{1.0, "s", false}},
		{`return new Proxy({ a: 1 }, {})`, map[string]any{"a": 1.0}},
		{`return Object.create(null, { a: { value: 1, enumerable: true }, b: { value: 2 } })`, map[string]any{"a": 1.0}},
		{`return Promise.resolve({ then: (f) => f(7) })`, 7.0},
		{`const e = new TypeError('bad'); e.code = 'E_X'; e.status = 4; return { e }`, map[string]any{"e": map[string]any{"name": "TypeError", "message": "bad", "code": "E_X", "status": 4.0}}},
		{`return { __proto__: null, ['__proto__']: 1 }`, map[string]any{"__proto__": 1.0}},
	} {
		got, err := l.eval(c.code)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n  got  %#v, %v\n  want %#v", c.code, got, err, c.want)
		}
	}
	v, err := l.eval(`return -0`)
	if f, ok := v.(float64); err != nil || !ok || !math.Signbit(f) {
		t.Error(v, err)
	}
}

func TestValueOutRefused(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Value: 1 << 20}})
	for _, c := range []struct {
		code, path string
		want       seams.Code
	}{
		{`return { a: [1, { b: NaN }] }`, ".a[1].b", seams.NotJSON},
		{`return [Infinity]`, "[0]", seams.NotJSON},
		{`return { n: 2 ** 53 + 2 }`, ".n", seams.NotJSON},
		{`return { n: 10n }`, ".n", seams.NotJSON},
		{`return { f() {} }`, ".f", seams.NotJSON},
		{`return { s: Symbol('x') }`, ".s", seams.NotJSON},
		{`const o = { in: {} }; o.in.out = o; return o`, ".in.out", seams.NotJSON},
		{`return [1, , 2]`, "[1]", seams.NotJSON},
		{`return [undefined]`, "[0]", seams.NotJSON},
		{`return { p: Promise.resolve(1) }`, ".p", seams.NotJSON},
		{`return { m: new Map() }`, ".m", seams.NotJSON},
		{`return { s: new Set() }`, ".s", seams.NotJSON},
		{`return { r: /x/ }`, ".r", seams.NotJSON},
		{`return { b: new Uint8Array(2) }`, ".b", seams.NotJSON},
		{`return { b: new ArrayBuffer(2) }`, ".b", seams.NotJSON},
		{`return { d: new Date(NaN) }`, ".d", seams.NotJSON},
		{`const a = []; a[4294967294] = 1; return { a }`, ".a", seams.TooLarge},
		{`let o = {}; for (let i = 0; i < 100; i++) o = { o }; return o`, ".o.o", seams.TooLarge},
		{`return 'x'.repeat(2e6)`, "", seams.TooLarge},
		{`return Array.from({ length: 60000 }, () => [0])`, "", seams.TooLarge},
		{`return { get g() { throw new Error('in getter') } }`, "", seams.ScriptError},
		{`return new Proxy({}, { ownKeys() { throw new Error('in trap') } })`, "", seams.ScriptError},
	} {
		t.Run(c.code, func(t *testing.T) {
			_, err := l.eval(c.code)
			wantError(t, err, c.want, c.path)
		})
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
}

func TestValueIn(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.show = (v) => JSON.stringify(v) ?? typeof v; exports.kind = (v) => typeof v`)
	type named string
	for _, c := range []struct {
		in   any
		want string
	}{
		{nil, "undefined"}, {[]any{nil}, "[null]"}, {map[string]any{"b": 1, "a": int64(2)}, `{"a":2,"b":1}`},
		{[]string{"x"}, `["x"]`}, {map[string]string{"k": "v"}, `{"k":"v"}`}, {named("n"), `"n"`}, {[]map[string]any{{"a": uint8(1)}}, `[{"a":1}]`},
		{json.Number("1.5"), "1.5"}, {float32(0.5), "0.5"}, {seams.NotFound, `{"code":"NOT_FOUND"}`},
	} {
		if got, err := o.Call(t.Context(), "show", c.in); err != nil || got != c.want {
			t.Errorf("%#v: %v, %v", c.in, got, err)
		}
	}
	cycle := map[string]any{}
	cycle["self"] = cycle
	for _, c := range []struct {
		in   any
		want seams.Code
		part string
	}{
		{math.NaN(), seams.NotJSON, "NaN"}, {[]any{1, math.Inf(1)}, seams.NotJSON, "[1]"}, {int64(1<<53 + 1), seams.NotJSON, "2^53"}, {uint64(1 << 60), seams.NotJSON, "2^53"},
		{map[string]any{"t": struct{ A int }{1}}, seams.NotJSON, ".t"}, {&struct{}{}, seams.NotJSON, "struct"}, {[]byte("x"), seams.NotJSON, "bytes"}, {make(chan int), seams.NotJSON, "chan"},
		{cycle, seams.TooLarge, "nested"}, {make([]any, 200_000), seams.TooLarge, "200000"}, {strings.Repeat("x", 9<<20) + "y", "", ""}, {[]any{strings.Repeat("x", 9<<20), 1}, seams.TooLarge, "bytes"},
	} {
		_, err := o.Call(t.Context(), "kind", c.in)
		if c.want == "" {
			continue
		}
		wantError(t, err, c.want, c.part)
	}
}

// Functions and objects cross as handles, and come back as themselves.
func TestValueHandles(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.ts", `
class Counter { #n = 0; step = (by: number) => this.#n += by; get(this: Counter) { return this.#n } static s() {} get boom() { throw new Error('read') } }
const c = new Counter(), f = (x: number) => x + 1
export const make = () => ({ f, inner: { name: 'in', who() { return this.name } } })
export const same = (g: unknown) => g === f
export const rejects = async () => { throw Object.assign(new RangeError('no'), { code: 'E_NO', status: 404, cause: new Error('why', { cause: 'root' }) }) }
export const throws = (v: unknown) => { throw v }
export default undefined
export { c }
`)
	v, err := o.Invoke(t.Context(), "make")
	if err != nil {
		t.Fatal(err)
	}
	made := v.(map[string]any)
	f := made["f"].(*Func)
	if v, err := f.Call(t.Context(), 1); v != 2.0 || err != nil {
		t.Error(v, err)
	}
	if v, err := made["inner"].(map[string]any)["who"].(*Func).Call(t.Context()); v != "in" || err != nil {
		t.Error(v, err)
	}
	if v, err := o.Call(t.Context(), "same", f); v != true || err != nil {
		t.Error(v, err)
	}
	_, err = o.Call(t.Context(), "make")
	wantError(t, err, seams.NotJSON, ".f")
	_, err = o.Call(t.Context(), "absent")
	wantError(t, err, seams.NotFound, "make", "rejects")

	_, err = o.Call(t.Context(), "rejects")
	wantError(t, err, "E_NO", "RangeError: no", "a.ts:6:")
	thrown := err.(*seams.Error).Err.(*Thrown)
	if thrown.Name != "RangeError" || thrown.Data["status"] != 404.0 || thrown.Cause.Error() != "Error: why" || thrown.Cause.(*Thrown).Cause.Error() != "root" {
		t.Errorf("%+v", thrown)
	}
	// what is no Error passes as it is.
	for _, v := range []any{"text", nil, 7, map[string]any{"a": 1}} {
		_, err := o.Call(t.Context(), "throws", v)
		wantError(t, err, seams.ScriptError, "a.ts:7:")
	}
	if err := l.Realm.Close(1e9); err != nil {
		t.Fatal(err)
	}
	_, err = f.Call(t.Context(), 1)
	wantError(t, err, seams.Unloaded)
}

// Handles that Go drops let go of what they held.
func TestValueHandlesReleased(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("a.js", `exports.make = () => () => 1`)
	for range 50 {
		for range 100 {
			if _, err := o.Invoke(t.Context(), "make"); err != nil {
				t.Fatal(err)
			}
		}
		heapNow()
	}
	eventually(t, "the table shrinks", func() bool {
		heapNow()
		n := make(chan int, 1)
		l.post(func() error { n <- len(l.handles); return nil })
		return <-n < 1000
	})
}

// An error that a host function answers reaches JavaScript with its code, and
// comes back as itself.
func TestErrorsThroughJavaScript(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "fail", Async: true}, {Name: "failNow"}, {Name: "panics"}, {Name: "panicsLater", Async: true}}}})
	inner := &Thrown{Name: "LlmError", Message: "limit", Code: "RATE_LIMIT", Data: map[string]any{"status": 429}}
	h := &record{answer: func(_ context.Context, _, method string, _ []any) (any, error) {
		if strings.HasPrefix(method, "panics") {
			panic(errors.New("on purpose"))
		}
		return nil, &seams.Error{Code: seams.RateLimit, Op: "llm", Msg: "limit", Err: inner}
	}}
	for _, code := range []string{`await ctx.fail()`, `ctx.failNow()`} {
		err := l.apply(`export async function apply(ctx) { try { `+code+` } catch (e) { if (e.code !== 'RATE_LIMIT' || e.status !== 429 || e.name !== 'LlmError' || e.message !== 'limit') throw new Error('wrong ' + e.stack); throw e } }`, h, nil)
		wantError(t, err, seams.RateLimit, "limit")
		if d := err.(*seams.Error).Err.(*Thrown).Data["status"]; d != 429.0 {
			t.Error(d)
		}
	}
	for _, code := range []string{`await ctx.panicsLater()`, `ctx.panics()`} {
		err := l.apply(`export async function apply(ctx) { try { `+code+` } catch (e) { if (e.cause !== undefined && /goroutine/.test(String(e.cause.message))) throw new Error('shows the Go stack'); throw e } }`, h, nil)
		wantError(t, err, seams.Panicked, "on purpose")
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
}

func FuzzValueBridge(f *testing.F) {
	for _, s := range []string{`null`, `{"a":[1,2.5,"x",true,null]}`, `[[[]]]`, `{"__proto__":{"x":1}}`, `"\ud83d\ude00"`, `-0`, `1e300`, `9007199254740993`} {
		f.Add(s)
	}
	l := open(f, Options{Budgets: Budgets{Minute: time.Hour, Output: 1 << 50}})
	o := func() *Object {
		p, err := l.compiler.Compile(compileSource(`exports.same = (v) => v; exports.parse = (s) => JSON.parse(s)`))
		if err != nil {
			f.Fatal(err)
		}
		o, err := exportsOf(context.Background(), l.Realm, p)
		if err != nil {
			f.Fatal(err)
		}
		return o
	}()
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		valid := json.Unmarshal([]byte(text), &v) == nil
		got, err := o.Call(context.Background(), "same", v)
		parsed, parseErr := o.Call(context.Background(), "parse", text)
		switch {
		case l.Err() != nil:
			t.Fatalf("%q ended the realm: %v", text, l.Err())
		case valid && err == nil && !reflect.DeepEqual(got, v):
			t.Fatalf("%q came back as %#v", text, got)
		case valid && err == nil && parseErr == nil && !strings.Contains(text, `\u`) && !reflect.DeepEqual(parsed, v) && fmt.Sprint(v) != "-0":
			t.Fatalf("%q is %#v for JSON.parse", text, parsed)
		case !valid && parseErr == nil && parsed != nil:
			t.Fatalf("JSON.parse takes %q as %#v", text, parsed)
		}
	})
}
