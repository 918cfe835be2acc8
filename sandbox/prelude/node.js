// The parts of Node's url, util and buffer modules that plugins use. URL and
// URLSearchParams are globals too, Buffer where process is.
(function (native) {
'use strict';
// URLs are parsed by the host: native.url answers the parts, or undefined.
const encode = (s) => encodeURIComponent(s).replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, '+');
const decode = (s) => { s = s.replace(/\+/g, ' '); try { return decodeURIComponent(s) } catch { return s.replace(/%[0-9a-f]{2}/gi, (m) => { try { return decodeURIComponent(m) } catch { return '\uFFFD' } }) } };
class URLSearchParams {
  #list = []; #changed;
  constructor(init = '', changed) {
    this.#changed = changed ?? (() => {});
    if (init === null || typeof init !== 'object') {
      for (const part of ('' + init).replace(/^\?/, '').split('&')) if (part) { const i = part.indexOf('='); this.#list.push(i < 0 ? [decode(part), ''] : [decode(part.slice(0, i)), decode(part.slice(i + 1))]) }
    } else if (typeof init[Symbol.iterator] === 'function') for (const [k, v] of init) this.#list.push(['' + k, '' + v]);
    else for (const k of Object.keys(init)) this.#list.push([k, '' + init[k]]);
  }
  get size() { return this.#list.length }
  get(k) { return this.#list.find((e) => e[0] === k)?.[1] ?? null }
  getAll(k) { return this.#list.filter((e) => e[0] === k).map((e) => e[1]) }
  has(k, v) { return this.#list.some((e) => e[0] === k && (v === undefined || e[1] === v)) }
  append(k, v) { this.#list.push(['' + k, '' + v]); this.#changed() }
  delete(k, v) { this.#list = this.#list.filter((e) => e[0] !== k || v !== undefined && e[1] !== v); this.#changed() }
  set(k, v) {
    const i = this.#list.findIndex((e) => e[0] === k);
    if (i < 0) return this.append(k, v);
    this.#list = this.#list.filter((e, j) => j <= i || e[0] !== k);
    this.#list[i] = ['' + k, '' + v];
    this.#changed();
  }
  sort() { this.#list.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0); this.#changed() }
  forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this) }
  keys() { return this.#list.map((e) => e[0])[Symbol.iterator]() }
  values() { return this.#list.map((e) => e[1])[Symbol.iterator]() }
  entries() { return this.#list.map((e) => [...e])[Symbol.iterator]() }
  [Symbol.iterator]() { return this.entries() }
  toString() { return this.#list.map(([k, v]) => encode(k) + '=' + encode(v)).join('&') }
}
const parse = (input, base) => native.url('' + input, base === undefined ? undefined : '' + base);
class URL {
  #u; #params;
  constructor(input, base) {
    this.#u = parse(input, base);
    if (!this.#u) throw native.fail('TypeError', `Invalid URL: ${JSON.stringify(('' + input).slice(0, 200))}`, 'ERR_INVALID_URL');
  }
  static canParse(input, base) { return parse(input, base) !== undefined }
  static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null }
  #set(part, v) { const u = parse(URL.#join({ ...this.#u, [part]: v })); if (u) { this.#u = u; if (part === 'search') this.#params = undefined } }
  static #join(u) {
    const user = u.username ? u.username + (u.password ? ':' + u.password : '') + '@' : '';
    return u.protocol + (u.slashes ? '//' + user + u.hostname + (u.port ? ':' + u.port : '') : '') + u.pathname + u.search + u.hash;
  }
  get href() { return URL.#join(this.#u) }
  set href(v) { const u = parse(v); if (!u) throw new TypeError('Invalid URL'); this.#u = u; this.#params = undefined }
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
  get search() { return this.#u.search }
  set search(v) { v = '' + v; this.#set('search', v && v.replace(/^\??/, '?').replace(/#/g, '%23')) }
  get hash() { return this.#u.hash }
  set hash(v) { v = '' + v; this.#set('hash', v && v.replace(/^#?/, '#')) }
  get searchParams() { return this.#params ??= new URLSearchParams(this.#u.search, () => { const s = '' + this.#params; this.#u = { ...this.#u, search: s && '?' + s } }) }
  toString() { return this.href }
  toJSON() { return this.href }
}

const bytes = (s, encoding = 'utf8') => {
  switch (('' + encoding).toLowerCase()) {
    case 'utf8': case 'utf-8': return new TextEncoder().encode(s);
    case 'hex': return Uint8Array.from(s.match(/[0-9a-f]{2}/gi) ?? [], (h) => parseInt(h, 16));
    case 'base64': case 'base64url': return new Uint8Array(native.unbase64(s));
    case 'latin1': case 'binary': case 'ascii': return Uint8Array.from(s, (c) => c.charCodeAt(0) & 255);
  }
  throw new TypeError(`unknown encoding ${encoding}`);
};
class Buffer extends Uint8Array {
  static from(v, a, b) {
    if (typeof v === 'string') return Buffer.from(bytes(v, a).buffer);
    if (v instanceof ArrayBuffer) return new Buffer(v, a, b);
    if (v?.type === 'Buffer' && Array.isArray(v.data)) v = v.data;
    const out = new Buffer(v.length);
    for (let i = 0; i < v.length; i++) out[i] = v[i];
    return out;
  }
  static alloc(n, fill = 0) { const out = new Buffer(n); return typeof fill === 'number' ? out.fill(fill) : out }
  static allocUnsafe(n) { return new Buffer(n) }
  static isBuffer(v) { return v instanceof Buffer }
  static byteLength(s, encoding) { return typeof s === 'string' ? bytes(s, encoding).length : s.byteLength }
  static concat(list, n = list.reduce((sum, b) => sum + b.length, 0)) {
    const out = new Buffer(n);
    let at = 0;
    for (const b of list) { out.set(at + b.length > n ? b.subarray(0, n - at) : b, at); at += b.length }
    return out;
  }
  toString(encoding = 'utf8', from = 0, to = this.length) {
    const part = new Uint8Array(this.buffer, this.byteOffset + from, Math.max(0, to - from));
    switch (encoding.toLowerCase()) {
      case 'utf8': case 'utf-8': return new TextDecoder('utf-8', { ignoreBOM: true }).decode(part);
      case 'hex': return Array.from(part, (b) => b.toString(16).padStart(2, '0')).join('');
      case 'base64': return native.base64(part, false);
      case 'base64url': return native.base64(part, true);
      case 'latin1': case 'binary': case 'ascii': return Array.from(part, (b) => String.fromCharCode(b)).join('');
    }
    throw new TypeError(`unknown encoding ${encoding}`);
  }
  toJSON() { return { type: 'Buffer', data: Array.from(this) } }
  equals(b) { return this.length === b.length && this.every((x, i) => x === b[i]) }
  slice(from, to) { return this.subarray(from, to) }
  write(s, at = 0) { const b = bytes(s).subarray(0, this.length - at); this.set(b, at); return b.length }
}
const util = {
  format: (...args) => native.format(args),
  inspect: (v) => native.show(v, 1, []),
  promisify: (f) => (...args) => new Promise((resolve, reject) => f(...args, (e, v) => e ? reject(e) : resolve(v))),
  TextEncoder, TextDecoder,
};
const url = { URL, URLSearchParams, fileURLToPath: (u) => decodeURIComponent(new URL(u).pathname), pathToFileURL: (p) => new URL('file://' + p) };
return { url, util, buffer: { Buffer } };
})
