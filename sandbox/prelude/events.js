// Event, EventTarget, AbortController and AbortSignal, as far as plugins use
// them.
(function (native) {
'use strict';
class Event {
  constructor(type, init = {}) { this.type = '' + type; this.cancelable = !!init.cancelable; this.defaultPrevented = false; this.target = null; this.timeStamp = native.now() }
  preventDefault() { if (this.cancelable) this.defaultPrevented = true }
  stopImmediatePropagation() { this.stopped = true }
}
class CustomEvent extends Event {
  constructor(type, init = {}) { super(type, init); this.detail = init.detail ?? null }
}
const fire = (f, self, event) => { try { typeof f === 'function' ? f.call(self, event) : f.handleEvent(event) } catch (e) { native.report(e) } };
class EventTarget {
  #listeners = [];
  addEventListener(type, f, options = {}) {
    if (f === null || f === undefined || this.#listeners.some((l) => l.type === type && l.f === f)) return;
    const l = { type: '' + type, f, once: options === true ? false : !!options.once };
    if (options.signal) { if (options.signal.aborted) return; options.signal.addEventListener('abort', () => this.removeEventListener(type, f), { once: true }) }
    this.#listeners.push(l);
  }
  removeEventListener(type, f) { this.#listeners = this.#listeners.filter((l) => l.type !== type || l.f !== f) }
  dispatchEvent(event) {
    event.target = event.currentTarget = this;
    const on = this['on' + event.type];
    if (typeof on === 'function') fire(on, this, event);
    for (const l of [...this.#listeners]) {
      if (event.stopped) break;
      if (l.type !== event.type || !this.#listeners.includes(l)) continue;
      if (l.once) this.removeEventListener(l.type, l.f);
      fire(l.f, this, event);
    }
    return !event.defaultPrevented;
  }
}
const reason = (name, message, code) => native.fail(name, message, code);
const aborted = () => reason('AbortError', 'This operation was aborted', 'ABORTED');
let making = false, abort;
class AbortSignal extends EventTarget {
  #aborted = false; #reason; onabort = null;
  constructor() { super(); if (!making) throw new TypeError('use new AbortController()') }
  get aborted() { return this.#aborted }
  get reason() { return this.#reason }
  throwIfAborted() { if (this.#aborted) throw this.#reason }
  static { abort = (s, why) => { if (s.#aborted) return; s.#aborted = true; s.#reason = why === undefined ? aborted() : why; s.dispatchEvent(new Event('abort')) } }
  static abort(why) { const s = make(); abort(s, why); return s }
  static timeout(ms) { const s = make(); native.after(ms, () => abort(s, reason('TimeoutError', 'The operation timed out', 'TIMEOUT'))); return s }
  static any(signals) {
    const s = make();
    for (const o of signals) { if (o.aborted) { abort(s, o.reason); break } o.addEventListener('abort', () => abort(s, o.reason), { once: true }) }
    return s;
  }
}
const make = () => { making = true; try { return new AbortSignal() } finally { making = false } };
class AbortController {
  #signal = make();
  get signal() { return this.#signal }
  abort(why) { abort(this.#signal, why) }
}
// listen answers a function that takes the listener off again.
const listen = (s, f) => {
  const heard = () => f(s.reason);
  if (s.aborted) heard(); else s.addEventListener('abort', heard, { once: true });
  return () => s.removeEventListener('abort', heard);
};
return { Event, CustomEvent, EventTarget, AbortSignal, AbortController, make, abort, listen };
})
