// With guard.go: bounds the built-in functions that run or allocate natively
// without looking at an interrupt, repairs what the engine gets wrong, and adds
// what it lacks. Runs first in every VM. What stands here in JavaScript, and not
// in Go, does so to be seen by the interrupt or by the call depth.
(function (native) {
'use strict';
// Parts that are made later find it as it is now.
const { apply, construct, defineProperty, get, getPrototypeOf, setPrototypeOf, ownKeys, getOwnPropertyDescriptor } = Reflect;
native.reflect = { apply, defineProperty, ownKeys, setPrototypeOf };
const ITEMS = 5e6, TEXT = 1 << 26, BYTES = 1 << 27;
const iterator = Symbol.iterator, isArray = Array.isArray;

const put = (o, k, v) => defineProperty(o, k, { value: v, writable: true, configurable: true, enumerable: false });
const named = (o, k, f) => { defineProperty(f, 'name', { value: k, configurable: true }); put(o, k, f) };
const over = (what) => { throw new RangeError(what + ' exceeds the limit of plugins') };
const length = (v) => { if (v === null || v === undefined) return 0; const n = +v.length; return n > 0 ? n : 0 };

// replace puts a plain function in front of a constructor; a Proxy would break
// instanceof in this engine (pitfall 15).
const replace = (name, check, make = construct) => {
  const C = globalThis[name];
  const W = function (...a) {
    if (!new.target) throw new TypeError('Constructor ' + name + " requires 'new'");
    check(a);
    return make(C, a, new.target === W ? C : new.target);
  };
  adopt(W, C, name);
};
const adopt = (W, C, name) => {
  setPrototypeOf(W, getPrototypeOf(C));
  for (const k of ownKeys(C)) if (k !== 'prototype') defineProperty(W, k, getOwnPropertyDescriptor(C, k));
  W.prototype = C.prototype;
  defineProperty(W, 'prototype', { writable: false });
  put(C.prototype, 'constructor', W);
  put(globalThis, name, W);
};

// Arrays. Nested ones meet join and flat once for each way to them.
const A = Array.prototype;
for (const k of ['join', 'toLocaleString']) {
  const f = A[k];
  named(A, k, function (...a) {
    const n = length(this);
    let text = n * (a[0] === undefined ? 1 : ('' + a[0]).length);
    if (n > ITEMS) over('joined text');
    for (let i = 0; i < n; i++) { const v = this[i]; if (typeof v === 'string') text += v.length }
    if (text > TEXT) over('joined text');
    return apply(f, this, a);
  });
}
const { join } = A;
const flatten = (out, a, depth, f, self) => {
  for (let i = 0, n = length(a); i < n; i++) if (i in a) {
    const v = f ? apply(f, self, [a[i], i, a]) : a[i];
    if (depth > 0 && isArray(v)) flatten(out, v, depth - 1);
    else if (out.push(v) > ITEMS) over('array length');
  }
  return out;
};
named(A, 'flat', function (depth) { return flatten([], this, depth === undefined ? 1 : +depth || 0) });
named(A, 'flatMap', function (f, self) { if (typeof f !== 'function') throw new TypeError('flatMap needs a function'); return flatten([], this, 1, f, self) });
const from = Array.from;
named(Array, 'from', function (source, f, self) {
  if (source === null || source === undefined || typeof source[iterator] !== 'function') { if (length(source) > ITEMS) over('array length'); return apply(from, this, [source, f, self]) }
  if (f !== undefined && typeof f !== 'function') throw new TypeError('Array.from needs a function');
  const out = typeof this === 'function' && this !== Array ? new this() : [];
  let i = 0;
  for (const v of source) { out[i] = f ? apply(f, self, [v, i]) : v; if (++i > ITEMS) over('array length') }
  out.length = i;
  return out;
});

// Buffers, and typed arrays when the first is used.
replace('ArrayBuffer', (a) => { if (a[0] > BYTES) over('buffer size') });
const typed = (name) => replace(name, ([a]) => { if ((a !== null && typeof a === 'object' ? length(a) : +a) > BYTES / 8) over('buffer size') });

// Collections take an iterable item by item.
const fill = (add) => (C, [source], target) => {
  const out = construct(C, [], target);
  if (source !== null && source !== undefined) for (const v of source) add(out, v);
  return out;
};
const any = () => {};
replace('Set', any, fill((s, v) => s.add(v)));
replace('Map', any, fill((m, v) => m.set(v[0], v[1])));

// A generator that delegates to itself counts as a call each time; natively it
// would exhaust the stack of the process (pitfall 4).
const G = getPrototypeOf(function* () {}).prototype;
for (const k of ['next', 'throw', 'return']) { const f = G[k]; named(G, k, function (v) { return apply(f, this, [v]) }) }
// So does what makes text of its own members: an error whose message is itself.
for (const [o, k] of [[Error.prototype, 'toString'], [RegExp.prototype, 'toString'], [Object.prototype, 'toLocaleString']]) { const f = o[k]; named(o, k, function () { return apply(f, this, []) }) }
// So does a chain of bound functions.
const BOUND = Symbol('bound'), bind = Function.prototype.bind;
named(Function.prototype, 'bind', function (...a) {
  const depth = (this[BOUND] || 0) + 1;
  if (depth > 100) over('chain of bound functions');
  const f = apply(bind, this, a);
  if (depth > 1 || typeof this.name === 'string' && this.name.startsWith('bound ')) defineProperty(f, BOUND, { value: depth });
  return f;
});

named(String, 'raw', function (strings, ...values) {
  const { raw } = strings, n = length(raw), parts = [];
  let made = 0;
  const add = (v) => { if ((made += v.length) > TEXT || parts.length > ITEMS) over('string length'); parts[parts.length] = v };
  for (let i = 0; i < n; i++) {
    add(`${raw[i]}`);
    if (i + 1 < n && i < values.length) add(`${values[i]}`);
  }
  return apply(join, parts, ['']);
});

// Numbers. Reading a text as a BigInt takes the square of its length.
const Big = BigInt;
adopt(function (v) {
  if (new.target) throw new TypeError('BigInt is not a constructor');
  if (v !== null && (typeof v === 'object' || typeof v === 'function')) {
    const given = v[Symbol.toPrimitive];
    if (given !== undefined && given !== null) v = apply(given, v, ['number']);
    else { const n = v.valueOf(); v = n !== null && typeof n === 'object' ? v.toString() : n }
  }
  if (typeof v === 'string' && v.length > 1e5) over('BigInt width');
  return Big(v);
}, Big, 'BigInt');
const grouped = (s) => s.replace(/\B(?=(\d{3})+$)/g, ',');
const group = (v, o = {}) => {
  const n = +v;
  if (!isFinite(n)) return n !== n ? 'NaN' : n > 0 ? '∞' : '-∞';
  const money = o.style === 'currency', whole = o.currency === 'JPY' || o.currency === 'KRW';
  const min = o.minimumFractionDigits ?? (money && !whole ? 2 : 0);
  const max = o.maximumFractionDigits ?? Math.max(min, money ? min : o.style === 'percent' ? 0 : 3);
  let [i, f = ''] = Math.abs(o.style === 'percent' ? n * 100 : n).toFixed(Math.min(max, 100)).split('.');
  while (f.length > min && f.endsWith('0')) f = f.slice(0, -1);
  if (o.useGrouping !== false) i = grouped(i);
  const sign = money ? { USD: '$', EUR: '€', GBP: '£', JPY: '¥', KRW: '₩' }[o.currency] || o.currency + ' ' : '';
  return (n < 0 ? '-' : '') + sign + i + (f && '.' + f) + (o.style === 'percent' ? '%' : '');
};
named(Number.prototype, 'toLocaleString', function (locales, options) { return group(this, options) });
named(BigInt.prototype, 'toLocaleString', function () { return grouped('' + this) });

// JSON. The native parser is ours: it bounds depth and reads 1e400.
const revive = (holder, key, f) => {
  const v = holder[key];
  if (v !== null && typeof v === 'object') for (const k of Object.keys(v)) {
    const n = revive(v, k, f);
    if (n === undefined) delete v[k]; else defineProperty(v, k, { value: n, writable: true, enumerable: true, configurable: true });
  }
  return apply(f, holder, [key, v]);
};
const parse = native.parse;
named(JSON, 'parse', function (source, reviver) { const v = parse('' + source); return typeof reviver === 'function' ? revive({ '': v }, '', reviver) : v });

// Regular expressions: \p{…} becomes explicit ranges, which the engine
// otherwise reads as the letters p{…}.
const R = RegExp, compiled = new Map();
const W = function (pattern, flags) {
  if (typeof pattern !== 'string') return new.target ? construct(R, [pattern, flags], new.target === W ? R : new.target) : R(pattern, flags);
  if (pattern.length > 20000) over('pattern length');
  if (typeof flags !== 'string' || !flags.includes('u')) return construct(R, [pattern, flags], new.target && new.target !== W ? new.target : R);
  // Compiled patterns are kept: literals with this flag come here each time.
  const key = flags + '/' + pattern;
  let re = compiled.get(key);
  if (!re) {
    if (compiled.size > 64) compiled.clear();
    compiled.set(key, re = construct(R, [native.classes(pattern), flags]));
  }
  return new.target && new.target !== W ? construct(R, [re, flags], new.target) : construct(R, [re]);
};
adopt(W, R, 'RegExp');
named(RegExp, 'escape', (s) => {
  if (typeof s !== 'string') throw new TypeError('RegExp.escape needs a string');
  return s.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/^[0-9a-zA-Z]/, (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'));
});

// No code from strings: it would escape the caps on source.
const refuse = function () { throw new TypeError('code generation from strings is disabled: write the code in the plugin itself') };
for (const f of [any, async () => {}, function* () {}]) put(getPrototypeOf(f), 'constructor', refuse);
refuse.prototype = Function.prototype;
named(globalThis, 'Function', refuse);
delete globalThis.eval;
delete globalThis.GoError;

// A forgotten await is the commonest mistake: what a promise lacks says so. One
// object in the chain of prototypes says it of all names.
const lacking = { __proto__: null };
for (const k of [iterator, 'length', 'map', 'filter', 'forEach', 'reduce', 'find', 'some', 'every', 'join', 'slice', 'split', 'trim', 'match', 'replace', 'includes', 'ok', 'status', 'text', 'json']) lacking[k] = true;
setPrototypeOf(Promise.prototype, new Proxy({}, {
  get(o, k, self) {
    if (lacking[k]) throw new TypeError(`a promise has no ${typeof k === 'string' ? k : 'elements'}: is an await missing?`);
    return get(o, k, self);
  },
}));

// Missing pieces.
for (const k of ['asyncIterator', 'dispose', 'asyncDispose']) defineProperty(Symbol, k, { value: Symbol.for('Symbol.' + k) });
named(Promise, 'withResolvers', function () { let resolve, reject; const promise = new this((a, b) => { resolve = a; reject = b }); return { promise, resolve, reject } });
named(Promise, 'try', function (f, ...a) { return new this((resolve) => resolve(f(...a))) });
named(Object, 'groupBy', (source, f) => { const out = Object.create(null); let i = 0; for (const v of source) (out[f(v, i++)] ||= []).push(v); return out });
named(Map, 'groupBy', (source, f) => { const out = new Map(); let i = 0; for (const v of source) { const k = f(v, i++), l = out.get(k); if (l) l.push(v); else out.set(k, [v]) } return out });
named(Array, 'fromAsync', async (source, f) => {
  const out = [], it = source[Symbol.asyncIterator] ? source[Symbol.asyncIterator]() : (source[iterator] ? source : from(source))[iterator]();
  for (let i = 0, s; !(s = await it.next()).done; i++) { let v = await s.value; if (f) v = await f(v, i); if (out.push(v) > ITEMS) over('array length') }
  return out;
});
named(String.prototype, 'isWellFormed', function () { return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?:^|[^\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(this) });
named(Error, 'captureStackTrace', (e) => { if (!('stack' in e)) put(e, 'stack', new Error(e.message).stack) });
return { typed };
})
