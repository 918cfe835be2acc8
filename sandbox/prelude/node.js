// Node's url, buffer and util as far as plugins use them, each made when it is
// first asked for. URL and URLSearchParams are globals too, Buffer where process
// is. What goja_nodejs gets right is its own: native.library(name) answers the
// exports of its module, native.tame(name, f) one of its functions as plugins may
// call it. No object behind which the library keeps Go values reaches a plugin.
// What it lacks or gets wrong stands here; TestNodeLibrary fails when the library
// has it, and then it can go.
(function (native) {
'use strict';
const { apply, defineProperty, ownKeys, setPrototypeOf } = native.reflect;
const isArray = Array.isArray;
const put = (o, k, v) => defineProperty(o, k, { value: v, writable: true, configurable: true, enumerable: false });
const once = (make) => { let made; return () => made ??= make() };

const url = once(() => {
  // The library parses, keeps and writes the pairs. Iterables are walked here,
  // where the interrupt sees it; names and values become text before the library
  // looks at its list. Its forEach swaps the arguments, its delete takes an
  // undefined value for one.
  const { URLSearchParams: Pairs } = native.library('url'), library = {};
  for (const k of ['append', 'delete', 'entries', 'get', 'getAll', 'has', 'set', 'sort', 'toString']) library[k] = native.tame(k, Pairs.prototype[k]);
  const next = native.tame('next', new Pairs().entries().next);
  const text = (list) => list.map((v) => '' + v);
  class URLSearchParams {
    #pairs;
    constructor(init = '') {
      if (init === null || typeof init !== 'object') {
        const query = '' + init;
        if (query.length > 1e7) throw new RangeError('query length exceeds the limit of plugins');
        this.#pairs = new Pairs(query);
        return;
      }
      this.#pairs = new Pairs();
      if (typeof init[Symbol.iterator] !== 'function') { for (const k of Object.keys(init)) this.append(k, init[k]); return }
      for (const pair of init) {
        const [k, v, ...more] = Array.from(pair);
        if (v === undefined || more.length) throw native.fail('TypeError', 'each query pair must be an iterable [name, value] tuple', 'ERR_INVALID_TUPLE');
        this.append(k, v);
      }
    }
    #list() {
      const out = [], it = apply(library.entries, this.#pairs, []);
      for (let s; !(s = apply(next, it, [])).done;) out.push(s.value);
      return out;
    }
    get size() { return this.#pairs.size }
    append(...pair) { apply(library.append, this.#pairs, text(pair)) }
    delete(...pair) { if (pair[1] === undefined) pair.length = Math.min(pair.length, 1); apply(library.delete, this.#pairs, text(pair)) }
    get(...name) { return apply(library.get, this.#pairs, text(name)) }
    getAll(...name) { return Array.from(apply(library.getAll, this.#pairs, text(name))) }
    has(...pair) { if (pair[1] === undefined) pair.length = Math.min(pair.length, 1); return apply(library.has, this.#pairs, text(pair)) }
    set(...pair) { apply(library.set, this.#pairs, text(pair)) }
    sort() { apply(library.sort, this.#pairs, []) }
    toString() { return apply(library.toString, this.#pairs, []) }
    forEach(f, self) { for (const [k, v] of this.#list()) f.call(self, v, k, this) }
    keys() { return this.#list().map((e) => e[0])[Symbol.iterator]() }
    values() { return this.#list().map((e) => e[1])[Symbol.iterator]() }
    entries() { return this.#list()[Symbol.iterator]() }
    [Symbol.iterator]() { return this.entries() }
  }

  // URL is not the library's: that one resolves '../x' and 'v1/x' against the
  // root of the base, drops the slash at the end of a path and the port of an
  // origin, loses the query from href after searchParams changed it, and shows
  // a Go method. Here the host parses: native.url answers the parts, or undefined.
  const parse = (input, base) => native.url('' + input, base === undefined ? undefined : '' + base);
  class URL {
    #u; #params; #text;
    constructor(input, base) {
      this.#u = parse(input, base);
      if (!this.#u) throw native.fail('TypeError', `Invalid URL: ${JSON.stringify(('' + input).slice(0, 200))}`, 'ERR_INVALID_URL');
    }
    static canParse(input, base) { return parse(input, base) !== undefined }
    static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null }
    // parts answers the URL with what was changed through searchParams.
    #parts() {
      const text = this.#params && '' + this.#params;
      if (text !== this.#text) { this.#text = text; this.#u = { ...this.#u, search: text && '?' + text } }
      return this.#u;
    }
    #replace(u) { this.#u = u; this.#params = this.#text = undefined }
    #set(part, v) { const u = parse(URL.#join({ ...this.#parts(), [part]: v })); if (!u) return; if (part === 'search') this.#replace(u); else this.#u = u }
    static #join(u) {
      const user = u.username ? u.username + (u.password ? ':' + u.password : '') + '@' : '';
      return u.protocol + (u.slashes ? '//' + user + u.hostname + (u.port ? ':' + u.port : '') : '') + u.pathname + u.search + u.hash;
    }
    get href() { return URL.#join(this.#parts()) }
    set href(v) { const u = parse(v); if (!u) throw new TypeError('Invalid URL'); this.#replace(u) }
    get origin() { return this.#u.slashes ? this.#u.protocol + '//' + this.host : 'null' }
    get protocol() { return this.#u.protocol }
    set protocol(v) { this.#set('protocol', ('' + v).replace(/:?$/, ':')) }
    get username() { return this.#u.username }
    set username(v) { this.#set('username', encodeURIComponent(v)) }
    get password() { return this.#u.password }
    set password(v) { this.#set('password', encodeURIComponent(v)) }
    get host() { return this.#u.hostname + (this.#u.port ? ':' + this.#u.port : '') }
    set host(v) { const [, h, p] = /^(.*?)(?::(\d+))?$/.exec(v); this.#set('hostname', h); this.#set('port', p ?? '') }
    get hostname() { return this.#u.hostname }
    set hostname(v) { this.#set('hostname', '' + v) }
    get port() { return this.#u.port }
    set port(v) { this.#set('port', '' + v) }
    get pathname() { return this.#u.pathname }
    set pathname(v) { this.#set('pathname', ('' + v).replace(/^\/?/, '/').replace(/[?#]/g, encodeURIComponent)) }
    get search() { return this.#parts().search }
    set search(v) { v = '' + v; this.#set('search', v && v.replace(/^\??/, '?').replace(/#/g, '%23')) }
    get hash() { return this.#u.hash }
    set hash(v) { v = '' + v; this.#set('hash', v && v.replace(/^#?/, '#')) }
    get searchParams() {
      if (!this.#params) { this.#params = new URLSearchParams(this.#u.search); this.#text = '' + this.#params }
      return this.#params;
    }
    toString() { return this.href }
    toJSON() { return this.href }
  }
  const fileURLToPath = (u) => decodeURIComponent(new URL(u).pathname), pathToFileURL = (p) => new URL('file://' + p);
  return { URL, URLSearchParams, fileURLToPath, pathToFileURL };
});

const buffer = once(() => {
  // The library encodes and decodes, reads and writes numbers, compares. Its own
  // from and alloc are not called with what a plugin passes: a valueOf that
  // answers a new object each time exhausts the stack of the process, a size or
  // length its memory, and an empty fill never ends. Its constructor takes no
  // size, so that map and slice fail, and carries Go methods.
  const { Buffer: Library } = native.library('buffer'), prototype = Library.prototype, Bytes = Uint8Array;
  for (const k of ownKeys(prototype)) put(prototype, k, native.tame(k, prototype[k], true));
  const { toString } = prototype, decode = native.tame('from', Library.from);
  const codecs = { utf8: 'utf8', 'utf-8': 'utf8', hex: 'hex', base64: 'base64', base64url: 'base64Url', latin1: '', binary: '', ascii: '' };
  // codec answers the library's name of an encoding, '' for one byte a character.
  const codec = (encoding = 'utf8') => {
    const name = codecs[('' + encoding).toLowerCase()];
    if (name === undefined) throw native.fail('TypeError', `Unknown encoding: ${('' + encoding).slice(0, 40)}`, 'ERR_UNKNOWN_ENCODING');
    return name;
  };
  const as = (bytes, proto) => { setPrototypeOf(bytes, proto); return bytes };
  function Buffer(v, a, b) {
    const out = typeof v === 'number' ? Buffer.alloc(v) : Buffer.from(v, a, b);
    return new.target && new.target !== Buffer ? as(out, new.target.prototype) : out;
  }
  setPrototypeOf(Buffer, Bytes);
  defineProperty(Buffer, 'prototype', { value: prototype, writable: false });
  put(prototype, 'constructor', Buffer);
  const statics = {
    from(v, a, b) {
      if (typeof v === 'string') {
        const name = codec(a);
        if (name) return decode(v, name);
        const out = Buffer.alloc(v.length);
        for (let i = 0; i < v.length; i++) out[i] = v.charCodeAt(i);
        return out;
      }
      if (v instanceof ArrayBuffer) return as(new Bytes(v, a, b), prototype);
      if (v instanceof String) return Buffer.from('' + v, a);
      if (v?.type === 'Buffer' && isArray(v.data)) v = v.data;
      if (v === null || typeof v !== 'object' || typeof v.length !== 'number') throw native.fail('TypeError', 'the first argument must be a string, a Buffer, an ArrayBuffer, an array or array-like', 'ERR_INVALID_ARG_TYPE');
      const out = Buffer.alloc(v.length);
      for (let i = 0; i < out.length; i++) out[i] = v[i];
      return out;
    },
    alloc(n, fill = 0, encoding) {
      if (typeof n !== 'number' || !(n >= 0)) throw native.fail('TypeError', 'the "size" argument must be a number of at least 0', 'ERR_INVALID_ARG_TYPE');
      const out = as(new Bytes(n), prototype);
      if (typeof fill === 'number') return fill ? out.fill(fill) : out;
      const pattern = Buffer.from(fill, encoding);
      for (let i = 0; pattern.length && i < n; i += pattern.length) out.set(pattern.subarray(0, n - i), i);
      return out;
    },
    allocUnsafe(n) { return Buffer.alloc(n) },
    isBuffer(v) { return v instanceof Buffer },
    byteLength(v, encoding) { return typeof v === 'string' ? Buffer.from(v, encoding).length : v.byteLength },
    concat(list, n = list.reduce((sum, b) => sum + b.length, 0)) {
      const out = Buffer.alloc(n);
      let at = 0;
      for (const b of list) { if (at >= n) break; out.set(b.subarray(0, n - at), at); at += b.length }
      return out;
    },
  };
  for (const k of ownKeys(statics)) put(Buffer, k, statics[k]);
  const methods = {
    toString(encoding, from, to) {
      const name = codec(encoding);
      return name ? apply(toString, this, [name, from, to]) : Array.from(this.subarray(from, to), (b) => String.fromCharCode(b)).join('');
    },
    toJSON() { return { type: 'Buffer', data: Array.from(this) } },
    slice(from, to) { return this.subarray(from, to) },
  };
  for (const k of ownKeys(methods)) put(prototype, k, methods[k]);
  return { Buffer };
});

// util is not the library's: that has format alone, which shows objects as
// [object Object] and does not know %i, %f, %o, %O and %c. The console's does.
const util = once(() => ({
  format: (...args) => native.format(args),
  inspect: (v) => native.show(v, 1, []),
  promisify: (f) => (...args) => new Promise((resolve, reject) => f(...args, (e, v) => e ? reject(e) : resolve(v))),
  TextEncoder, TextDecoder,
}));
return { get url() { return url() }, get buffer() { return buffer() }, get util() { return util() } };
})
