// What every realm has on globalThis beyond the language, and the helpers that
// Go keeps. Everything is captured here, before a plugin can change it.
(function (native) {
'use strict';
const put = (o, k, v) => Object.defineProperty(o, k, { value: v, writable: true, configurable: true, enumerable: false });
const resolve = Promise.resolve.bind(Promise);
const then = Function.prototype.call.bind(Promise.prototype.then);
const isThenable = (v) => v !== null && (typeof v === 'object' || typeof v === 'function') && typeof v.then === 'function';
const asyncIterator = Symbol.asyncIterator, iterator = Symbol.iterator;
const { getPrototypeOf, ownKeys, getOwnPropertyDescriptor } = Reflect;

// Console: one call of the logger for each call.
const show = (v, depth, seen) => {
  switch (typeof v) {
    case 'string': return depth ? JSON.stringify(v) : v;
    case 'bigint': return v + 'n';
    case 'symbol': return v.toString();
    case 'function': return /^class\b/.test(Function.prototype.toString.call(v)) ? `[class ${v.name || '(anonymous)'}]` : `[Function: ${v.name || '(anonymous)'}]`;
    case 'object': break;
    default: return Object.is(v, -0) ? '-0' : '' + v;
  }
  if (v === null) return 'null';
  if (v instanceof Error) {
    const head = (v.name || 'Error') + (v.code ? ` [${v.code}]` : '') + ': ' + v.message, stack = typeof v.stack === 'string' ? v.stack.split('\n').filter((l) => /^\s+at /.test(l)) : [];
    return [head, ...stack].join('\n') + (v.cause === undefined || depth > 3 ? '' : '\n  cause: ' + show(v.cause, depth + 1, seen));
  }
  if (v instanceof Date) return isNaN(v) ? 'Invalid Date' : v.toISOString();
  if (v instanceof RegExp) return '' + v;
  if (v instanceof Promise) return 'Promise {}';
  if (seen.includes(v)) return '[Circular]';
  if (depth > 3) return Array.isArray(v) ? '[Array]' : '[Object]';
  seen = [...seen, v];
  const list = (a, f) => a.slice(0, 100).map(f).join(', ') + (a.length > 100 ? `, … ${a.length - 100} more` : '');
  const item = (x) => show(x, depth + 1, seen);
  if (Array.isArray(v)) return '[' + (v.length ? ' ' + list(v, item) + ' ' : '') + ']';
  if (ArrayBuffer.isView(v)) return `${v.constructor.name}(${v.length ?? v.byteLength}) [ ${list(Array.from(v.subarray?.(0, 101) ?? []), item)} ]`;
  if (v instanceof Set) return `Set(${v.size}) { ${list([...v], item)} }`;
  if (v instanceof Map) return `Map(${v.size}) { ${list([...v], ([k, x]) => item(k) + ' => ' + item(x))} }`;
  const name = getPrototypeOf(v) === Object.prototype || getPrototypeOf(v) === null ? '' : (v.constructor?.name || 'Object') + ' ';
  const body = list(Object.keys(v), (k) => (/^[\w$]+$/.test(k) ? k : JSON.stringify(k)) + ': ' + item(v[k]));
  return name + (body ? '{ ' + body + ' }' : '{}');
};
const format = (args) => {
  let i = 0, head = '';
  if (typeof args[0] === 'string' && args[0].includes('%')) {
    i = 1;
    head = args[0].replace(/%[sdifjoOc%]/g, (m) => {
      if (m === '%%') return '%';
      if (i >= args.length) return m;
      const a = args[i++];
      return m === '%c' ? '' : m === '%j' ? JSON.stringify(a) : m === '%d' || m === '%f' ? '' + Number(a) : m === '%i' ? '' + Math.trunc(Number(a)) : show(a, m === '%s' ? 0 : 1, []);
    });
  }
  const rest = args.slice(i).map((a) => show(a, 0, []));
  return (i ? [head, ...rest] : rest).join(' ');
};
const console = {};
for (const [method, level] of Object.entries({ log: 'info', info: 'info', warn: 'warn', error: 'error', debug: 'debug', trace: 'debug', dir: 'info', table: 'info' }))
  console[method] = (...args) => native.log(level, format(args));
console.assert = (ok, ...args) => { if (!ok) native.log('error', 'Assertion failed' + (args.length ? ': ' + format(args) : '')) };
console.group = console.log;
console.groupEnd = () => {};
const marks = new Map();
console.time = (label = 'default') => { marks.set(label, native.now()) };
console.timeEnd = (label = 'default') => { native.log('info', `${label}: ${(native.now() - marks.get(label)).toFixed(3)}ms`); marks.delete(label) };
put(globalThis, 'console', console);

// Small globals.
put(globalThis, 'queueMicrotask', (f) => { if (typeof f !== 'function') throw new TypeError('queueMicrotask needs a function'); then(resolve(), () => f()) });
put(globalThis, 'btoa', (s) => native.btoa('' + s));
put(globalThis, 'atob', (s) => native.atob('' + s));
put(globalThis, 'performance', { now: native.now, timeOrigin: native.origin });
put(globalThis, 'crypto', {
  randomUUID: native.uuid,
  getRandomValues(view) {
    if (!ArrayBuffer.isView(view)) throw new TypeError('getRandomValues needs a typed array');
    if (view.byteLength > 65536) throw new RangeError('getRandomValues fills at most 65536 bytes');
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(new Uint8Array(native.random(view.byteLength)));
    return view;
  },
});
put(globalThis, 'TextEncoder', class TextEncoder {
  get encoding() { return 'utf-8' }
  encode(s = '') { return new Uint8Array(native.encode('' + s)) }
});
put(globalThis, 'TextDecoder', class TextDecoder {
  #fatal; #bom; #rest = new Uint8Array(0);
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`encoding ${label} is not available: only utf-8`);
    this.#fatal = fatal; this.#bom = ignoreBOM;
  }
  get encoding() { return 'utf-8' }
  get fatal() { return this.#fatal }
  decode(input, { stream = false } = {}) {
    let bytes = input === undefined ? new Uint8Array(0) : input instanceof ArrayBuffer ? new Uint8Array(input) : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    if (this.#rest.length) { const all = new Uint8Array(this.#rest.length + bytes.length); all.set(this.#rest); all.set(bytes, this.#rest.length); bytes = all }
    const [text, used] = native.decode(bytes, this.#fatal, stream);
    this.#rest = bytes.slice(used);
    return !this.#bom && text.charCodeAt(0) === 0xFEFF ? text.slice(1) : text;
  }
});
const clone = (v, seen) => {
  if (typeof v === 'function' || typeof v === 'symbol') throw Object.assign(new Error('a function or symbol cannot be cloned'), { name: 'DataCloneError' });
  if (v === null || typeof v !== 'object') return v;
  if (seen.has(v)) return seen.get(v);
  const keep = (o) => { seen.set(v, o); return o };
  if (v instanceof Date) return keep(new Date(+v));
  if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
  if (v instanceof ArrayBuffer) return keep(v.slice(0));
  if (ArrayBuffer.isView(v)) return keep(v instanceof DataView ? new DataView(clone(v.buffer, seen), v.byteOffset, v.byteLength) : new globalThis[v.constructor.name](clone(v.buffer, seen), v.byteOffset, v.length));
  if (v instanceof Map) { const o = keep(new Map()); for (const [k, x] of v) o.set(clone(k, seen), clone(x, seen)); return o }
  if (v instanceof Set) { const o = keep(new Set()); for (const x of v) o.add(clone(x, seen)); return o }
  if (v instanceof Error) { const o = keep(new Error(v.message)); put(o, 'name', v.name); put(o, 'stack', v.stack); if ('cause' in v) put(o, 'cause', clone(v.cause, seen)); return o }
  if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet) throw Object.assign(new Error('this object cannot be cloned'), { name: 'DataCloneError' });
  const o = keep(Array.isArray(v) ? new Array(v.length) : {});
  for (const k of Object.keys(v)) o[k] = clone(v[k], seen);
  return o;
};
put(globalThis, 'structuredClone', (v) => clone(v, new Map()));
put(globalThis, 'global', globalThis);
put(globalThis, 'self', globalThis);

// Disposers run last first, all of them, without waiting until one answers a
// promise, and one after another from then on.
const undo = (list) => {
  const failed = [];
  const next = () => {
    while (list.length) {
      let p;
      try { p = list.pop()() } catch (e) { failed.push(e); continue }
      if (isThenable(p)) return then(resolve(p), next, (e) => { failed.push(e); return next() });
    }
    if (failed.length === 1) throw failed[0];
    if (failed.length) throw new AggregateError(failed, `${failed.length} disposers failed: ` + failed.map((e) => e?.message ?? e).join('; '));
  };
  return next();
};

// effect runs a setup and owns what it answers: a disposer, a promise of one,
// or an iterable of them. own(label, dispose) registers with the host first,
// so that nothing is set up for an owner that is gone, and answers a function
// that takes the registration back. done is called when an asynchronous setup
// has ended.
const effect = (setup, label, own) => {
  const list = [];
  let stopped = false, pending, cleaning;
  const dispose = () => {
    stopped = true;
    if (!cleaning) { cleaning = {}; cleaning.ended = pending ? then(pending, () => undo(list), () => undo(list)) : undo(list) }
    return cleaning.ended;
  };
  const keep = (v) => {
    if (typeof v === 'function') list.push(v);
    else if (v !== undefined && v !== null) throw invalid(v);
  };
  const pull = async (it) => {
    for (;;) {
      if (stopped) { if (typeof it.return === 'function') await it.return(); return }
      const s = await it.next();
      keep(s.value);
      if (s.done) return;
    }
  };
  const collect = (v) => {
    if (v === undefined || v === null || typeof v === 'function') return keep(v);
    if (isThenable(v)) return then(resolve(v), collect);
    if (typeof v === 'object' && typeof v[asyncIterator] === 'function') return pull(v[asyncIterator]());
    if (typeof v === 'object' && typeof v[iterator] === 'function') {
      const it = v[iterator]();
      for (;;) { const s = it.next(); keep(s.value); if (s.done) return }
    }
    throw invalid(v);
  };
  const release = own(label, dispose);
  const drop = () => { then(resolve(release()), undefined, () => {}) };
  const off = () => { try { return dispose() } finally { drop() } };
  const fail = (e) => {
    let p;
    try { p = off() } catch {}
    if (isThenable(p)) return then(p, () => { throw e }, () => { throw e });
    throw e;
  };
  let p;
  try { p = collect(setup()) } catch (e) { return fail(e) }
  if (p !== undefined) {
    const settled = pending = then(p, () => { pending = undefined });
    const ready = then(settled, () => off, (e) => { pending = undefined; return fail(e) });
    return Object.assign(() => off(), { then: (a, b) => then(ready, () => a?.(() => off()), b) });
  }
  return off;
};
// finish takes what apply answered in the same way, but registers an effect
// only if there is something to own.
const finish = (v, own) => {
  if (v === undefined || v === null) return;
  if (isThenable(v)) return then(resolve(v), (x) => finish(x, own));
  const off = effect(() => v, 'apply', own);
  if (isThenable(off)) return then(resolve(off), () => {});
};
const invalid = (v) => new TypeError(`an effect answers a disposer function, a promise of one, an iterable of them, or nothing; got ${show(v, 1, []).slice(0, 120)}`);

return {
  effect, finish, show, format,
  methods(o) {
    const names = new Set();
    for (let p = o, n = 0; p !== null && p !== Object.prototype && p !== Function.prototype && n < 64; p = getPrototypeOf(p), n++)
      for (const k of ownKeys(p)) if (typeof k === 'string' && k !== 'constructor' && typeof getOwnPropertyDescriptor(p, k)?.value === 'function') names.add(k);
    return [...names];
  },
  // await calls back when a value has settled.
  await: (v, ok, failed) => { then(resolve(v), ok, failed) },
  iterate(v) {
    if (v === null || v === undefined) throw new TypeError(v + ' is not iterable');
    const f = v[asyncIterator] ?? v[iterator];
    if (typeof f !== 'function') throw new TypeError(show(v, 1, []).slice(0, 120) + ' is not iterable');
    return f.call(v);
  },
  stream(next, stop) {
    let last = resolve(), over = false;
    const queue = (f) => (last = then(last, f, f));
    const end = () => ({ done: true, value: undefined });
    return {
      [asyncIterator]() { return this },
      next: () => queue(() => over ? end() : then(next(), (s) => { if (s.done) over = true; return s }, (e) => { over = true; throw e })),
      return: (value) => queue(() => { if (over) return { done: true, value }; over = true; return then(stop(), () => ({ done: true, value })) }),
    };
  },
  fail(name, message, code, stack, data, cause) {
    const C = name === 'TypeError' ? TypeError : name === 'RangeError' ? RangeError : name === 'SyntaxError' ? SyntaxError : Error;
    const e = new C(message);
    if (name && e.name !== name) put(e, 'name', name);
    if (data) for (const k of Object.keys(data)) if (!(k in e)) e[k] = data[k];
    if (code) e.code = code;
    if (stack) put(e, 'stack', stack);
    if (cause !== undefined) put(e, 'cause', cause);
    return e;
  },
};
})
