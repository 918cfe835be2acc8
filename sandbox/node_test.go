package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	nodeutil "github.com/dop251/goja_nodejs/util"

	"github.com/ouro-run/ouro/seams"
)

func openNode(t testing.TB) *lab {
	return open(t, Options{Ambient: Ambient{Env: map[string]string{}}})
}

// What prelude/node.js does in place of goja_nodejs: each row is right in a realm
// and wrong in the library alone. When the library has it, remove what node.js
// does for it. Not run here, because they end or hang the process:
// Buffer.from({valueOf() { return {valueOf: this.valueOf} }}), Buffer.alloc(1, "").
func TestNodeLibrary(t *testing.T) {
	run := func(code string, exports func(e *engine, name string) goja.Value) (out string) {
		e, err := newEngine()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"url", "buffer", "util"} {
			e.vm.Set(name, exports(e, name))
		}
		defer func() {
			if x := recover(); x != nil {
				out = fmt.Sprint("panic: ", x) // the library panics where it should throw
			}
		}()
		v, err := e.vm.RunString("{" + code + "}")
		if err != nil {
			return err.Error()
		}
		return v.String()
	}
	for code, want := range map[string]string{
		// URL
		`new url.URL('v1/x', 'https://h/api/').href`:                                    "https://h/api/v1/x",
		`new url.URL('../x', 'https://h/a/b/c').href`:                                   "https://h/a/x",
		`new url.URL('https://h/a/').href`:                                              "https://h/a/",
		`new url.URL('http://h:8080/').origin`:                                          "http://h:8080",
		`new url.URL('http://[::1]:8080/').hostname`:                                    "[::1]",
		`new url.URL('mailto:a@b').pathname`:                                            "a@b",
		`let u = new url.URL('http://h/?a=1'); u.searchParams.append('b', '2'); u.href`: "http://h/?a=1&b=2",
		`let s = new url.URL('http://h/'); s.search = '?a=1'; s.href`:                   "http://h/?a=1",
		`typeof url.URL.canParse`:                                                       "function",
		`Object.getOwnPropertyNames(new url.URL('http://h/')).join()`:                   "",
		`url.URL.name`: "URL",
		// URLSearchParams
		`let l = []; new url.URLSearchParams('k=v').forEach((v, k) => l.push(v, k)); l.join()`:                                        "v,k",
		`let d = new url.URLSearchParams('a=1'); d.delete('a', undefined); '' + d`:                                                    "",
		`let x = new url.URLSearchParams(); x.own = 1; x.own`:                                                                         "1",
		`new (class extends url.URLSearchParams { own() { return 1 } })().own()`:                                                      "1",
		`let r = new url.URLSearchParams('a=1&b=2'); r.set('a', { toString() { r.delete('a'); r.delete('b'); return 'x' } }); '' + r`: "a=x",
		// util
		`util.format('x', { a: 1 })`:          "x { a: 1 }",
		`util.format('%i %O', 3.7, { a: 1 })`: "3 { a: 1 }",
		`typeof util.inspect`:                 "function",
		`typeof util.promisify`:               "function",
		// Buffer
		`buffer.Buffer.from('abc').map((x) => x).length`:           "3",
		`buffer.Buffer.from('abc').toString('base64url')`:          "YWJj",
		`buffer.Buffer.from('abc').toString('UTF8')`:               "abc",
		`buffer.Buffer.from('é', 'latin1').length`:                 "1",
		`JSON.stringify(buffer.Buffer.from('a'))`:                  `{"type":"Buffer","data":[97]}`,
		`buffer.Buffer.from({ type: 'Buffer', data: [1] }).length`: "1",
		`typeof buffer.Buffer.isBuffer`:                            "function",
		`typeof buffer.Buffer.byteLength`:                          "function",
		`typeof buffer.Buffer.allocUnsafe`:                         "function",
		`Object.getOwnPropertySymbols(buffer.Buffer).length`:       "0",
		`buffer.Buffer.prototype.equals.name`:                      "equals",
	} {
		if got := run(code, func(e *engine, name string) goja.Value { return e.node().Get(name) }); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
		if got := run(code, func(e *engine, name string) goja.Value {
			if name == "util" {
				module, exports := e.vm.NewObject(), e.vm.NewObject()
				module.Set("exports", exports)
				nodeutil.Require(e.vm, module)
				return exports
			}
			return e.library(goja.FunctionCall{Arguments: []goja.Value{e.vm.ToValue(name)}})
		}); got == want {
			t.Errorf("the library can do it now: %s", code)
		}
	}
}

// url, buffer and util from a module, as globals and by require.
func TestNodeModules(t *testing.T) {
	l := openNode(t)
	for code, want := range map[string]any{
		`return [require('url').URL === URL, require('node:url').URLSearchParams === URLSearchParams, require('buffer').Buffer === Buffer, require('node:util') === require('util')]`:                                                                                                                                                                                                                                               []any{true, true, true, true},
		`const u = new URL('http://h/?y=%20'), q = u.searchParams; const before = u.href; q.append('a', 'b c'); const after = u.href; q.delete('y'); q.delete('a'); return [before, after, u.href, u.search, u.searchParams === q]`:                                                                                                                                                                                                 []any{"http://h/?y=%20", "http://h/?y=+&a=b+c", "http://h/", "", true},
		`const u = new URL('http://h/a/?x=1'); u.searchParams.set('x', 2); u.pathname = '/b/'; u.search = '?z=3'; return [u.href, u.searchParams.get('z'), URL.parse('nope'), new URL('v1', 'https://h/api/').href, new URL('http://h:81').origin]`:                                                                                                                                                                                 []any{"http://h/b/?z=3", "3", nil, "https://h/api/v1", "http://h:81"},
		`const p = new URLSearchParams([['b', 1], ['a', null], ['b', 'x y']]), seen = []; p.forEach(function (v, k, o) { seen.push(k + v + (o === p) + this.t) }, { t: 1 }); p.sort(); return [seen.join(), '' + p, p.getAll('b'), [...p.keys()].join(), [...p.values()].join(), [...p.entries()].length, p.has('b', '1'), p.has('b', 2), p.get('none'), new URLSearchParams(p).size]`:                                              []any{"b1true1,anulltrue1,bx ytrue1", "a=null&b=1&b=x+y", []any{"1", "x y"}, "a,b,b", "null,1,x y", 3, true, false, nil, 3},
		`class Q extends URLSearchParams { #n = 1; own = 2; both() { return this.#n + this.own } } const q = new Q('a=1'); q.more = 3; return [q.both(), q.more, q instanceof URLSearchParams, new (class extends URL { x() { return this.host } })('http://h').x()]`:                                                                                                                                                               []any{3, 3, true, "h"},
		`return [new URLSearchParams(null) + '', new URLSearchParams('?a=%zz&b=%C3%A9') + '', new URLSearchParams("a='~*()!") + '']`:                                                                                                                                                                                                                                                                                                []any{"null=", "a=%25zz&b=%C3%A9", "a=%27%7E*%28%29%21"},
		`const b = Buffer.alloc(12); b.writeUInt32BE(0xdeadbeef, 0); b.writeInt16LE(-2, 4); b.writeDoubleBE; return [b.readUInt32BE(0), b.readInt16LE(4), b.toString('hex'), b.write('hé', 6), b.toString('utf8', 6, 9)]`:                                                                                                                                                                                                           []any{float64(3735928559), -2, "deadbeeffeff000000000000", 3, "hé"},
		`return [Buffer.from('_-8', 'base64url').toString('hex'), Buffer.from('/+8=', 'base64').toString('base64url'), Buffer.from('é', 'latin1').length, Buffer.from([233]).toString('latin1'), Buffer.from('616zz', 'HEX').length, Buffer.from([0xEF, 0xBB, 0xBF, 65]).toString().length, Buffer.from([0xff]).toString()]`:                                                                                                        []any{"ffef", "_-8", 1, "é", 1, 2, "\uFFFD"},
		`const b = Buffer.from('abc'); const s = b.slice(1); s[0] = 120; return ['' + b, b.map((x) => x + 1) instanceof Buffer, new Buffer(2).length, '' + Buffer.from(b.buffer, 1, 2), Buffer.from({ type: 'Buffer', data: [65] }) + '', Buffer.alloc(5, 'ab') + '', Buffer.alloc(2, 7)[1], Buffer.allocUnsafe(3).length, '' + Buffer.concat([b, b], 4), structuredClone(b) instanceof Buffer, Buffer.from(new String('x')) + '']`: []any{"axc", true, 2, "xc", "A", "ababa", 7, 3, "axca", true, "x"},
		`const { format } = require('util'); return [format('%s %i %O', 'a', 3.7, { b: [1] }), format('x', { a: 1 })]`:                                                                                                                                                                                                                                                                                                              []any{"a 3 { b: [ 1 ] }", "x { a: 1 }"},
		`return new URL('http://h/')`: "http://h/",
	} {
		l.want(code, want)
	}
	o := l.exports("m.ts", `import { URL as U } from 'node:url'; import { Buffer as B } from 'buffer'; import { format } from 'util'
export const f = () => [new U('http://h').href, B.from('a').toString('hex'), format('%d', 1)]`)
	if v, err := o.Call(t.Context(), "f"); err != nil || fmt.Sprint(v) != "[http://h/ 61 1]" {
		t.Error(v, err)
	}
	fresh := openNode(t)
	fresh.want(`const lazy = (k) => 'get' in Object.getOwnPropertyDescriptor(globalThis, k); const before = [lazy('URL'), lazy('Buffer')]; new URL('http://h'); return [...before, lazy('URL'), lazy('Buffer')]`, []any{true, true, false, true})
	bare := open(t, Options{})
	bare.want(`return [typeof Buffer, typeof URL, require('url').URL === URL]`, []any{"undefined", "function", true})
	bare.fails(`require('buffer')`, seams.ModuleNotAvailable)
	bare.fails(`require('/etc/hostname')`, seams.ModuleNotAvailable)
}

// Nothing of Go shows: no names, no methods behind symbols, no stack frames.
func TestNodeShowsNoGo(t *testing.T) {
	l := openNode(t)
	v, err := l.eval(`
		const seen = new Set(), words = new Set();
		const walk = (o) => {
			if (o === null || typeof o !== 'object' && typeof o !== 'function' || seen.has(o) || o === Object.prototype || o === Function.prototype) return;
			seen.add(o);
			for (const k in o) words.add(k);
			for (const k of Object.keys(o)) words.add(k);
			for (const k of Reflect.ownKeys(o)) {
				words.add(String(k));
				const d = Object.getOwnPropertyDescriptor(o, k);
				for (const x of [d.value, d.get, d.set]) { if (typeof x === 'function') words.add(x.name); walk(x) }
			}
			walk(Object.getPrototypeOf(o));
		};
		const thrown = (f) => { try { f() } catch (e) { if (!(e instanceof TypeError || e instanceof RangeError)) words.add('foreign ' + e); words.add(e.stack); words.add(e.message); return e } throw new Error('nothing thrown by ' + f) };
		const u = new URL('http://h/?a=1'), b = Buffer.from('abc');
		const own = [u, u.searchParams, u.searchParams.entries()].map((o) => Object.getOwnPropertyNames(o).length + Object.getOwnPropertySymbols(o).length);
		[u, u.searchParams, u.searchParams.entries(), u.searchParams.getAll('a'), b, require('url'), require('buffer'), require('util'),
			thrown(() => new URL('nope')), thrown(() => u.searchParams.append()), thrown(() => new URLSearchParams([[1]])), thrown(() => b.readInt8(9)),
			thrown(() => b.writeInt8('x')), thrown(() => b.equals(1)), thrown(() => URLSearchParams.prototype.get.call({}, 'a')), thrown(() => b.toString('nope'))].forEach(walk);
		for (const k of ['String', 'WrapBytes', 'RequiredBufferArgument']) if (words.has(k)) words.add('method ' + k);
		words.delete('String');
		return [own.join(), Object.keys(u).length, [...words].filter((w) => /^method |^foreign |goja|github|\.go:|\bfunc\d|-fm|runtime error|nodejs|api/.test(w))]`)
	if err != nil || fmt.Sprint(v) != "[0,0,0 0 []]" {
		t.Error(v, err)
	}
}

// What is made when it is first used is made of the language as it was, not as a
// plugin has left it.
func TestNodeIsMadeOfTheLanguage(t *testing.T) {
	l := openNode(t)
	l.want(`const seen = []
		for (const k of Reflect.ownKeys(Reflect)) if (typeof Reflect[k] === 'function') { const f = Reflect[k]; Reflect[k] = (...a) => { seen.push(k); return f(...a) } }
		const text = '' + new URLSearchParams('a=1') + new URL('http://h/?b=2').searchParams + Buffer.from('c').toString('hex')
		return [text, seen.length]`, []any{"a=1b=263", 0})
}

// Hostile arguments are refused with an error of JavaScript's, and the realm
// lives on.
func TestNodeHostile(t *testing.T) {
	l := openNode(t)
	l.want(`try { new URL({ toString() { throw 1 } }) } catch (e) { return e }`, 1)
	l.want(`try { new URLSearchParams({ [Symbol.iterator]() { throw new Error('it') } }) } catch (e) { return e.message }`, "it")
	l.want(`const p = new URLSearchParams('a=1&b=2&a=3'); p.set('a', { toString() { p.delete('a'); p.delete('b'); return 'x' } }); return '' + p`, "a=x")
	l.want(`return Buffer.alloc(3, '').join()+Buffer.alloc(2, 'zz', 'hex').join()`, "0,0,00,0")
	l.want(`return Buffer.from(Object.assign(Object.create(ArrayBuffer.prototype), { valueOf() { return { valueOf: this.valueOf } } })).length`, 0)
	for code, want := range map[string]string{
		`new URL('x'.repeat(1e6))`:                                                        "TypeError",
		`new URL('http://' + 'x['.repeat(5e5))`:                                           "TypeError",
		`new URLSearchParams('&'.repeat(1.1e7))`:                                          "RangeError",
		`Buffer.from({ length: 2 ** 31 })`:                                                "RangeError",
		`Buffer.from({ length: Infinity })`:                                               "RangeError",
		`Buffer.from({ length: -1 })`:                                                     "TypeError",
		`Buffer.alloc(2 ** 40)`:                                                           "RangeError",
		`Buffer.alloc(2 ** 53, 'x')`:                                                      "RangeError",
		`Buffer.allocUnsafe(2 ** 31)`:                                                     "RangeError",
		`new Buffer(2 ** 40)`:                                                             "RangeError",
		`Buffer.concat([], 2 ** 40)`:                                                      "RangeError",
		`Buffer.concat(Array(100).fill(Buffer.alloc(1e6)))`:                               "RangeError",
		`Buffer.from(Symbol('x'))`:                                                        "TypeError",
		`Buffer.from({ valueOf() { return { valueOf: this.valueOf } } })`:                 "TypeError",
		`Buffer.prototype.toString.call({ length: 2 ** 31 })`:                             "TypeError",
		`Buffer.prototype.toString.call({ [Symbol.iterator]: () => ({ next: Object }) })`: "TypeError",
		`Buffer.from('a').equals({ __proto__: Uint8Array.prototype, [Symbol.iterator]: () => ({ next: Object }) })`: "TypeError",
		`Buffer.from('abc').write('x', 0, -1)`:      "",
		`Buffer.from('abc').readDoubleBE(2 ** 63)`:  "",
		`Buffer.from('abc').readIntBE(2 ** 63, 2)`:  "",
		`Buffer.prototype.readInt8.call(undefined)`: "TypeError",
		`require('util').format('%d', Symbol('x'))`: "TypeError",
	} {
		if _, err := l.eval(code); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	l = open(t, Options{Budgets: Budgets{Turn: 600 * time.Millisecond}})
	if _, err := l.eval(`new URLSearchParams({ [Symbol.iterator]: () => ({ next: () => ({ value: ['a', 'b'] }) }) })`); err == nil {
		t.Error("an endless iterator ended")
	}
}
