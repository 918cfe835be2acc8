// Headers, Request, Response and fetch. The transfer is the host's: native.send
// answers {status, statusText, url, headers, read, close}; bytes exist only at
// read.
(function (native) {
'use strict';
const lower = (name) => { const n = ('' + name).toLowerCase(); if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(n)) throw new TypeError(`invalid header name ${JSON.stringify(n)}`); return n };
const value = (v) => { const s = ('' + v).trim(); if (/[\0\r\n]/.test(s)) throw new TypeError('invalid header value'); return s };
class Headers {
  #map = new Map();
  constructor(init) {
    if (init === undefined || init === null) return;
    if (init instanceof Headers || Array.isArray(init)) for (const [k, v] of init) this.append(k, v);
    else for (const k of Object.keys(init)) if (init[k] !== undefined && init[k] !== null) this.append(k, init[k]);
  }
  append(k, v) { const n = lower(k), old = this.#map.get(n); this.#map.set(n, old === undefined ? value(v) : old + ', ' + value(v)) }
  set(k, v) { this.#map.set(lower(k), value(v)) }
  get(k) { return this.#map.get(lower(k)) ?? null }
  has(k) { return this.#map.has(lower(k)) }
  delete(k) { this.#map.delete(lower(k)) }
  forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this) }
  entries() { return [...this.#map].sort(([a], [b]) => a < b ? -1 : 1)[Symbol.iterator]() }
  keys() { return [...this.entries()].map((e) => e[0])[Symbol.iterator]() }
  values() { return [...this.entries()].map((e) => e[1])[Symbol.iterator]() }
  [Symbol.iterator]() { return this.entries() }
}
const bytes = (v) => v instanceof ArrayBuffer ? new Uint8Array(v) : ArrayBuffer.isView(v) ? new Uint8Array(v.buffer, v.byteOffset, v.byteLength) : undefined;
// encode turns a body into text or bytes for the host, with its content type.
const encode = (body) => {
  if (body === undefined || body === null) return [undefined];
  if (typeof body === 'string') return [body, 'text/plain;charset=UTF-8'];
  if (Object.prototype.toString.call(body) === '[object URLSearchParams]' || body.constructor?.name === 'URLSearchParams') return ['' + body, 'application/x-www-form-urlencoded;charset=UTF-8'];
  const b = bytes(body);
  if (b) return [b];
  throw new TypeError('a body is a string, bytes or URLSearchParams; for JSON use JSON.stringify');
};
// Body reads a source {read(): promise of bytes or null, close()} once.
class Body {
  #source; #used = false; #stream;
  constructor(source) { this.#source = source }
  get bodyUsed() { return this.#used }
  get body() {
    if (!this.#source) return null;
    if (this.#stream) return this.#stream;
    const source = this.#source, used = () => { this.#used = true };
    let locked = false, done = false;
    const read = async () => { used(); if (done) return { done: true, value: undefined }; const b = await source.read(); if (b === null) { done = true; return { done, value: undefined } } return { done, value: new Uint8Array(b) } };
    const cancel = async () => { done = true; used(); await source.close() };
    return this.#stream = {
      get locked() { return locked },
      getReader() {
        if (locked) throw new TypeError('the body is already being read');
        locked = true;
        return { read, cancel, releaseLock() { locked = false }, closed: Promise.resolve() };
      },
      cancel,
      [Symbol.asyncIterator]() { locked = true; return { next: read, async return(value) { await cancel(); return { done: true, value } }, [Symbol.asyncIterator]() { return this } } },
    };
  }
  async bytes() {
    if (this.#used) throw new TypeError('the body has already been read');
    this.#used = true;
    if (!this.#source) return new Uint8Array(0);
    const parts = [];
    let n = 0;
    for (let b; (b = await this.#source.read()) !== null;) {
      if ((n += b.byteLength) > native.limit) { await this.#source.close(); throw native.fail('RangeError', `the body is larger than ${native.limit} bytes: read response.body in pieces`, 'TOO_LARGE') }
      parts.push(new Uint8Array(b));
    }
    if (parts.length === 1) return parts[0];
    const all = new Uint8Array(n);
    n = 0;
    for (const p of parts) { all.set(p, n); n += p.length }
    return all;
  }
  async arrayBuffer() { return (await this.bytes()).buffer }
  async text() { return new TextDecoder().decode(await this.bytes()) }
  async json() { return JSON.parse(await this.text()) }
  toJSON() { throw native.fail('TypeError', 'a request or response is not data: give what its text() or json() answers', 'NOT_JSON') }
}
const whole = (v) => { let left = v === undefined ? null : typeof v === 'string' ? new TextEncoder().encode(v) : v; return { async read() { const b = left; left = null; return b }, async close() { left = null } } };
class Request extends Body {
  constructor(input, init = {}) {
    const from = input instanceof Request ? input : undefined;
    const [body, type] = encode('body' in init ? init.body : undefined);
    super(body === undefined ? undefined : whole(body));
    this.url = from ? from.url : '' + (input?.href ?? input);
    this.method = ('' + (init.method ?? from?.method ?? 'GET')).toUpperCase();
    this.headers = new Headers(init.headers ?? from?.headers);
    if (type && !this.headers.has('content-type')) this.headers.set('content-type', type);
    this.signal = init.signal ?? from?.signal ?? null;
    Object.defineProperty(this, 'payload', { value: body === undefined ? from?.payload : body });
    if (this.payload !== undefined && (this.method === 'GET' || this.method === 'HEAD')) throw new TypeError('a GET request has no body');
  }
}
class Response extends Body {
  constructor(body, init = {}) {
    const [data, type] = body?.read ? [body] : encode(body);
    super(data === undefined ? undefined : data.read ? data : whole(data));
    this.status = init.status ?? 200;
    this.statusText = init.statusText ?? '';
    this.headers = new Headers(init.headers);
    if (type && !this.headers.has('content-type')) this.headers.set('content-type', type);
    this.url = init.url ?? '';
    this.type = 'basic';
    this.redirected = false;
  }
  get ok() { return this.status >= 200 && this.status < 300 }
  static json(v, init = {}) { return new Response(JSON.stringify(v), { ...init, headers: { 'content-type': 'application/json', ...init.headers } }) }
}
const fetch = (send) => async (input, init) => {
  const r = new Request(input, init ?? {});
  r.signal?.throwIfAborted();
  const headers = {};
  for (const [k, v] of r.headers) headers[k] = v;
  const answer = await send(r.method, r.url, headers, r.payload, r.signal ?? undefined);
  return new Response(answer, answer);
};
return { Headers, Request, Response, fetch };
})
