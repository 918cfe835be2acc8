// The modules that plugins import: ouro and the names that upstream documents.
// Types are erased when a source is compiled, so only values stand here.
(function (native) {
'use strict';

// Schema: schemastery's vocabulary. A schema is a function that validates and
// fills in defaults; as data it is {type, meta?, dict?, inner?, list?, …}.
const describe = (v) => v === null ? 'null' : Array.isArray(v) ? 'a list' : typeof v;
const fail = (path, text) => { throw native.fail('TypeError', `${path || 'value'}: ${text}`, 'INVALID_ARGUMENT') };
const member = (path, key) => typeof key === 'number' ? `${path}[${key}]` : path ? `${path}.${key}` : key;
const own = (o, k) => Object.prototype.hasOwnProperty.call(o, k);
const then = Function.prototype.call.bind(Promise.prototype.then);
const isMap = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);

const check = (s, v, path) => {
  const meta = s.meta;
  if (v === undefined || v === null && s.type !== 'const' && s.type !== 'any') {
    if (meta.required) fail(path, 'is required');
    if ('default' in meta) return structuredClone(meta.default);
    if (s.type !== 'object' && s.type !== 'intersect') return v === null && s.type === 'union' ? kinds.union(s, v, path) : undefined;
    v = {};
  }
  const kind = own(kinds, s.type) ? kinds[s.type] : fail(path, `unknown schema type ${s.type}`);
  return kind(s, v, path);
};
const range = (s, n, path, what) => {
  if (s.meta.min !== undefined && n < s.meta.min) fail(path, `${what} is at least ${s.meta.min}, got ${n}`);
  if (s.meta.max !== undefined && n > s.meta.max) fail(path, `${what} is at most ${s.meta.max}, got ${n}`);
};
const kinds = {
  any: (s, v) => v,
  never: (s, v, path) => fail(path, 'must be absent'),
  const: (s, v, path) => v === s.value ? v : fail(path, `must be ${JSON.stringify(s.value)}`),
  string(s, v, path) {
    if (typeof v !== 'string') fail(path, `expected a string, got ${describe(v)}`);
    range(s, v.length, path, 'length');
    const p = s.meta.pattern;
    if (p && !new RegExp(p.source, p.flags).test(v)) fail(path, `must match /${p.source}/${p.flags || ''}`);
    return v;
  },
  number(s, v, path) {
    if (typeof v !== 'number' || v !== v) fail(path, `expected a number, got ${describe(v)}`);
    range(s, v, path, 'it');
    const { step, min = 0 } = s.meta;
    if (step && Math.abs((v - min) / step - Math.round((v - min) / step)) > 1e-9) fail(path, step === 1 ? `expected a whole number, got ${v}` : `must be a multiple of ${step}`);
    return v;
  },
  boolean: (s, v, path) => typeof v === 'boolean' ? v : fail(path, `expected a boolean, got ${describe(v)}`),
  array(s, v, path) {
    if (!Array.isArray(v)) fail(path, `expected a list, got ${describe(v)}`);
    range(s, v.length, path, 'length');
    return v.map((x, i) => check(s.inner, x, member(path, i)));
  },
  dict(s, v, path) {
    if (!isMap(v)) fail(path, `expected a mapping, got ${describe(v)}`);
    const out = {};
    for (const k of Object.keys(v)) out[s.sKey ? check(s.sKey, k, member(path, k)) : k] = check(s.inner, v[k], member(path, k));
    return out;
  },
  tuple(s, v, path) {
    if (!Array.isArray(v)) fail(path, `expected a list, got ${describe(v)}`);
    return s.list.map((x, i) => check(x, v[i], member(path, i))).concat(v.slice(s.list.length));
  },
  object(s, v, path) {
    if (!isMap(v)) fail(path, `expected a mapping, got ${describe(v)}`);
    const out = { ...v };
    for (const k of Object.keys(s.dict)) {
      const x = check(s.dict[k], own(v, k) ? v[k] : undefined, member(path, k));
      if (x !== undefined) out[k] = x; else delete out[k];
    }
    return out;
  },
  union(s, v, path) {
    const why = [];
    for (const x of s.list) try { return check(x, v, path) } catch (e) { why.push(e.message) }
    fail(path, 'fits none of the alternatives: ' + why.join('; '));
  },
  intersect(s, v, path) {
    let out = v;
    for (const x of s.list) { const y = check(x, v, path); out = isMap(y) && isMap(out) ? { ...out, ...y } : y }
    return out;
  },
  transform: (s, v, path) => s.callback(check(s.inner, v, path)),
};

function Schema(json) {
  const s = function (v) { return check(s, v, '') };
  Object.setPrototypeOf(s, Schema.prototype);
  Object.assign(s, json);
  s.meta = { ...json.meta };
  if (json.dict) { s.dict = {}; for (const k of Object.keys(json.dict)) s.dict[k] = Schema.from(json.dict[k]) }
  if (json.inner !== undefined) s.inner = Schema.from(json.inner);
  if (json.sKey) s.sKey = Schema.from(json.sKey);
  if (json.list) s.list = Array.from(json.list, Schema.from);
  return s;
}
Schema.prototype = Object.create(Function.prototype, { constructor: { value: Schema, configurable: true, writable: true } });
const derive = (s, meta) => Schema({ ...s, meta: { ...s.meta, ...meta } });
const method = (name, f) => Object.defineProperty(Schema.prototype, name, { value: f, configurable: true, writable: true });
method('required', function (required = true) { return derive(this, { required }) });
method('default', function (v) { return derive(this, { default: v }) });
method('role', function (role, extra) { return derive(this, extra === undefined ? { role } : { role, extra }) });
method('pattern', function (p) { return derive(this, { pattern: { source: p.source, flags: p.flags } }) });
for (const k of ['description', 'comment', 'link', 'min', 'max', 'step', 'i18n']) method(k, function (v) { return derive(this, { [k]: v }) });
for (const k of ['hidden', 'deprecated', 'experimental', 'disabled', 'collapse', 'loose', 'secret']) method(k, function (v = true) { return derive(this, { [k]: v }) });
method('length', function (n) { return derive(this, { min: n, max: n }) });
method('extra', function (k, v) { return derive(this, { [k]: v }) });
method('set', function (k, v) { return Schema({ ...this, dict: { ...this.dict, [k]: v } }) });
method('push', function (v) { return Schema({ ...this, list: [...this.list, v] }) });
method('toJSON', function () {
  const out = { type: this.type };
  if (this.type === 'transform') return Schema.prototype.toJSON.call(this.inner);
  if (Object.keys(this.meta).length) out.meta = this.meta;
  if (this.dict) { out.dict = {}; for (const k of Object.keys(this.dict)) out.dict[k] = this.dict[k].toJSON() }
  if (this.inner) out.inner = this.inner.toJSON();
  if (this.sKey) out.sKey = this.sKey.toJSON();
  if (this.list) out.list = this.list.map((x) => x.toJSON());
  if ('value' in this) out.value = this.value;
  return out;
});
Schema.from = (v) => {
  if (v instanceof Schema) return v;
  if (v === undefined) return Schema.any();
  if (v === String || v === Number || v === Boolean) return Schema[v.name.toLowerCase()]().required();
  if (v === null || ['string', 'number', 'boolean'].includes(typeof v)) return Schema.const(v).required();
  if (typeof v === 'object' && typeof v.type === 'string') return Schema(v);
  throw native.fail('TypeError', `not a schema: ${describe(v)}; use Schema.string(), Schema.object({…}) and the like`, 'INVALID_ARGUMENT');
};
const define = (name, f) => { Schema[name] = f };
for (const type of ['any', 'never', 'string', 'number', 'boolean']) define(type, () => Schema({ type }));
define('natural', () => Schema.number().step(1).min(0));
define('integer', () => Schema.number().step(1));
define('percent', () => Schema.number().step(0.01).min(0).max(1).role('slider'));
define('const', (value) => Schema({ type: 'const', value }));
define('array', (inner) => Schema({ type: 'array', inner }));
define('dict', (inner, sKey) => Schema({ type: 'dict', inner, sKey }));
define('tuple', (list) => Schema({ type: 'tuple', list }));
define('object', (dict) => Schema({ type: 'object', dict }));
define('union', (list) => Schema({ type: 'union', list }));
define('intersect', (list) => Schema({ type: 'intersect', list }));
define('transform', (inner, callback) => Schema({ type: 'transform', inner, callback }));
define('date', () => Schema.string().role('datetime'));

// Container.
class Context {
  constructor() { throw native.fail('TypeError', 'a plugin gets its Context as the first argument of apply', 'INVALID_ARGUMENT') }
  static is(v) { return v instanceof Context }
}
const init = Symbol.for('cordis.init');
// Service provides itself under its name: class Greeter extends Service { constructor(ctx) { super(ctx, 'greeter') } }
class Service {
  static init = init;
  constructor(ctx, name = new.target.provide) {
    if (Array.isArray(name)) name = name[0];
    if (typeof name !== 'string' || !name) throw native.fail('TypeError', "a Service needs a name: super(ctx, 'name') or static provide = 'name'", 'INVALID_PLUGIN');
    Object.defineProperty(this, 'ctx', { value: ctx, configurable: true, writable: true });
    Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true });
    ctx.provide(name, this);
  }
}

// Models.
class LlmAdapter {}
class LlmError extends Error {
  constructor(message, code = 'UNKNOWN', facts = {}) {
    super(message, 'cause' in facts ? { cause: facts.cause } : undefined);
    Object.defineProperty(this, 'name', { value: 'LlmError', configurable: true, writable: true });
    this.code = code;
    for (const k of ['status', 'providerRetryAfterMs', 'requestId']) if (facts[k] !== undefined) this[k] = facts[k];
  }
  get failure() {
    const { message, code, status, providerRetryAfterMs, requestId } = this;
    return JSON.parse(JSON.stringify({ message, code, status, providerRetryAfterMs, requestId }));
  }
}
const CallId = (id) => {
  if (typeof id !== 'string') throw native.fail('TypeError', `a call id is a string, got ${describe(id)}`, 'INVALID_ARGUMENT');
  return id;
};
const attributionHeaders = () => ({ ...native.attribution });

// Tools. The definition is marked, so that a host can tell that it was checked
// here. What is deeper than the members of the definition is checked when it
// is registered.
const defining = (op) => (def) => {
  const bad = (path, text) => { throw native.fail('TypeError', `${op}${path}: ${text}`, 'INVALID_ARGUMENT') };
  if (!isMap(def)) bad('', `expected {name, description, parameters, execute}, got ${describe(def)}`);
  if (typeof def.name !== 'string' || !def.name) bad('.name', `expected a name, got ${describe(def.name)}`);
  if (def.parameters !== undefined && !isMap(def.parameters)) bad('.parameters', `must be a parameter spec object such as {city: {type: 'string', required: true}}, got ${describe(def.parameters)}`);
  if (def.output !== undefined) {
    if (!isMap(def.output)) bad('.output', `must be an object {schema, render}, got ${describe(def.output)}`);
    for (const k of ['render', 'presentationMeta']) if (def.output[k] !== undefined && typeof def.output[k] !== 'function') bad('.output.' + k, `must be a function, got ${describe(def.output[k])}`);
  }
  if (typeof def.execute !== 'function') {
    const other = ['handler', 'run', 'call', 'fn', 'func', 'function', 'invoke', 'callback'].find((k) => typeof def[k] === 'function');
    bad('.execute', `must be a function (args) => value, got ${describe(def.execute)}` + (other ? `: rename ${other} to execute` : ''));
  }
  const given = (v) => {
    if (v === undefined) throw native.fail('', `tool ${JSON.stringify(def.name)} returned nothing: return its value from execute, or return null`, 'INVALID_TOOL_OUTPUT');
    return v;
  };
  const execute = (args, exec) => {
    const v = def.execute(args, exec);
    return v instanceof Promise ? then(v, given) : given(v);
  };
  return { ...def, execute, kind: 'tool' };
};
const defineTool = defining('defineTool');

// harness is what mounted code registers its tools through.
const harness = { defineTool: defining('harness.defineTool'), registerTool(ctx, tool) {
  if (!(ctx instanceof Context)) throw native.fail('TypeError', `harness.registerTool: argument 1: expected the ctx of apply, got ${describe(ctx)}: write harness.registerTool(ctx, harness.defineTool({…}))`, 'INVALID_ARGUMENT');
  return ctx.tools.register(tool);
} };

const all = { Schema, z: Schema, Context, Service, LlmAdapter, LlmError, CallId, attributionHeaders, defineTool };
const modules = (values, fallback) => Object.defineProperty({ ...values, default: fallback ?? values }, '__esModule', { value: true });
// require('schemastery') is the schema itself, as upstream's CommonJS build has it.
Object.defineProperty(Schema, '__esModule', { value: true });
Schema.Schema = Schema.default = Schema.z = Schema;
const cordis = modules({ Context, Service, Schema }, Context);
const one = modules(all);
return {
  __proto__: null,
  ouro: one,
  cordis, '@deepseek-ai/cordis': cordis,
  schemastery: Schema, '@deepseek-ai/schemastery': Schema,
  '@deepseek-ai/dsh-llm': modules({ LlmAdapter, LlmError, CallId, attributionHeaders }),
  '@deepseek-ai/dsh-tools': modules({ defineTool }),
  harness,
};
})
