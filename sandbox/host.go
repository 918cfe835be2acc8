package sandbox

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Host answers the calls of one activation.
type Host interface {
	// Call carries out a method of a service, or a verb when target is "". args
	// are of the kinds the table gives. A panic is contained and becomes
	// PANICKED for the caller. ctx is the caller's while its call is unsettled,
	// then the realm's.
	//
	// Three verbs are always sent, as synchronous ones:
	//
	//	get(name)             the value of a service that no table row describes, nil if there is none
	//	services()            []string, the names of the live services, for messages
	//	effect(label, *Func)  own this disposer, call it once, with the rest; INACTIVE_EFFECT when over
	//
	// effect answers an [AsyncFunc] that undoes just it, ahead of time.
	Call(ctx context.Context, target, method string, args []any) (any, error)
}

// HostFunc is a Go function as JavaScript calls it, synchronously: it must not
// wait for a realm. Its arguments are [Any].
type HostFunc func(ctx context.Context, args []any) (any, error)

// AsyncFunc is a Go function that JavaScript calls and awaits; a waterfall's
// next is one. Its arguments are [Any].
type AsyncFunc func(ctx context.Context, args []any) (any, error)

// Later is a value that is not there yet: a promise.
type Later func(ctx context.Context) (any, error)

// Callable is a function with members.
type Callable struct {
	Call    HostFunc
	Members map[string]any
}

// guardCall calls host code; its panic becomes an error.
func guardCall(what string, f func() (any, error)) (v any, err error) {
	defer func() {
		if x := recover(); x != nil {
			v, err = nil, panicked(what, x)
		}
	}()
	return f()
}

// callNow runs a synchronous host call on the realm's goroutine. Its time is not
// the plugin's.
func (r *Realm) callNow(what string, f func(ctx context.Context) (any, error)) (goja.Value, error) {
	if err := r.countCall(); err != nil {
		return nil, err
	}
	running := new(atomic.Bool)
	running.Store(true)
	ctx := context.WithValue(r.here(), syncKey{}, running)
	r.dog.pause()
	v, err := guardCall(what, func() (any, error) { return f(ctx) })
	r.dog.resume()
	running.Store(false)
	if err != nil {
		return nil, err
	}
	return r.toJS(v)
}

// async runs a host call off the realm's goroutine and answers a promise. ctx
// is the caller's; the end of the realm cancels it too.
func (r *Realm) async(ctx context.Context, f func(ctx context.Context) (any, error)) (goja.Value, error) {
	return r.settleLater(ctx, f, r.toJS)
}

func (r *Realm) settleLater(ctx context.Context, f func(ctx context.Context) (any, error), convert func(any) (goja.Value, error)) (goja.Value, error) {
	if err := r.countCall(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	switch {
	case r.over != nil:
		r.mu.Unlock()
		return nil, r.over
	case r.usage.Pending >= r.budgets.Pending:
		r.mu.Unlock()
		return nil, overBudget("%d host calls are already in flight: await some of them first", r.budgets.Pending)
	}
	r.usage.Pending++
	r.tasks.Add(1)
	r.mu.Unlock()
	promise, resolve, reject := r.vm.NewPromise()
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	go func() {
		defer r.tasks.Done()
		v, err := guardCall("host call", func() (any, error) { return f(ctx) })
		unlink()
		cancel(nil)
		r.mu.Lock()
		r.usage.Pending--
		r.mu.Unlock()
		r.post(func() error {
			if err == nil {
				var js goja.Value
				if js, err = convert(v); err == nil {
					return resolve(js)
				}
			}
			return reject(r.toError(err))
		})
	}()
	return r.vm.ToValue(promise), nil
}

func (r *Realm) countCall() error {
	r.mu.Lock()
	r.usage.Calls++
	r.mu.Unlock()
	if r.calls.add(1, r.budgets.Calls) {
		return nil
	}
	err := overBudget("the plugin made more than %d host calls within a minute", r.budgets.Calls)
	r.dog.stop(err)
	return err
}

// arguments reads a call's arguments by their kinds.
func (r *Realm) arguments(what string, kinds []Kind, args []goja.Value) ([]any, error) {
	out := make([]any, len(args))
	var size int64
	for i, a := range args {
		kind := Any
		if i < len(kinds) {
			kind = kinds[i]
		}
		rd := reader{r: r, live: kind != Data, what: what + " argument " + strconv.Itoa(i+1)}
		var err error
		switch o, isObject := a.(*goja.Object); {
		case kind == Child:
			out[i], err = r.declare(a, a, what)
		case kind == Instance && isObject && o.ClassName() != "Array" && !callable(o) && len(r.engine.methods(o)) > 0:
			out[i] = r.newObject(o)
		default:
			out[i], err = rd.protected(a)
		}
		if err != nil {
			return nil, err
		}
		size += rd.size
	}
	return out, r.spend(size)
}

// hostFunc makes a JavaScript function of a synchronous Go one.
func (r *Realm) hostFunc(f HostFunc) goja.Value {
	return r.native("host", func(c goja.FunctionCall) goja.Value {
		args, err := r.arguments("call", nil, c.Arguments)
		if err != nil {
			return r.must(nil, err)
		}
		return r.must(r.callNow("host call", func(ctx context.Context) (any, error) { return f(ctx, args) }))
	})
}

// asyncFunc makes a JavaScript function that answers a promise.
func (r *Realm) asyncFunc(f AsyncFunc) goja.Value {
	return r.native("host", func(c goja.FunctionCall) goja.Value {
		args, err := r.arguments("call", nil, c.Arguments)
		if err != nil {
			return r.must(nil, err)
		}
		return r.must(r.async(r.here(), func(ctx context.Context) (any, error) { return f(ctx, args) }))
	})
}

// giveStream makes an async iterable of a Go sequence. The sequence runs on
// goroutines of the realm, one element at a time.
func (r *Realm) giveStream(seq iter.Seq2[any, error]) (goja.Value, error) {
	var next func() (any, error, bool)
	var open *resource
	pull := r.native("next", func(goja.FunctionCall) goja.Value {
		if next == nil {
			var stop func()
			next, stop = iter.Pull2(seq)
			open = r.keep(stop)
		}
		return r.must(r.async(r.here(), func(context.Context) (any, error) {
			v, err, ok := next()
			if err != nil || !ok {
				r.drop(open)
			}
			if err != nil {
				return nil, err
			}
			step := map[string]any{"done": !ok}
			if v != nil {
				step["value"] = v
			}
			return step, nil
		}))
	})
	stop := r.native("stop", func(goja.FunctionCall) goja.Value {
		return r.must(r.async(r.here(), func(context.Context) (any, error) { r.drop(open); return nil, nil }))
	})
	return r.lib.stream(goja.Undefined(), pull, stop)
}

// giveSignal makes an AbortSignal of a context. It follows the context until
// the call that it came with has settled.
func (r *Realm) giveSignal(ctx context.Context) (goja.Value, error) {
	events := r.events()
	mk, _ := goja.AssertFunction(events.Get("make"))
	abort, _ := goja.AssertFunction(events.Get("abort"))
	signal, err := mk(goja.Undefined())
	if err != nil {
		return nil, err
	}
	end := func() error {
		_, err := abort(goja.Undefined(), signal, r.toError(signalCause(ctx)))
		return err
	}
	if ctx.Err() != nil {
		return signal, end()
	}
	fr := r.frame
	undo := context.AfterFunc(ctx, func() {
		r.post(func() error {
			if fr != nil && fr.over {
				return nil // the call settled while its context was ending
			}
			return end()
		})
	})
	if fr != nil && !fr.over {
		fr.undo = append(fr.undo, undo)
	}
	return signal, nil
}

// signalCause is the reason of an AbortSignal: the context's cause if it has a
// code, else an AbortError or a TimeoutError.
func signalCause(ctx context.Context) error {
	if cause := context.Cause(ctx); seams.CodeOf(cause) != seams.Unknown {
		return cause
	}
	return ctx.Err()
}

// signalOf makes a context of an AbortSignal, nil if o is none. The context is
// below the caller's. stop ends it and lets go of the signal; it may be called
// from any goroutine, once.
func (r *Realm) signalOf(o *goja.Object) (ctx context.Context, stop func()) {
	proto := o.Prototype()
	if !r.signals || proto == nil || proto == r.object || proto != r.events().Get("AbortSignal").ToObject(r.vm).Get("prototype") {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(r.here())
	listen, _ := goja.AssertFunction(r.events().Get("listen"))
	off := r.must(listen(goja.Undefined(), o, r.native("abort", func(c goja.FunctionCall) goja.Value {
		cancel(&seams.Error{Code: seams.Aborted, Op: r.options.Name, Msg: "the signal was aborted", Err: r.fromError(c.Argument(0))})
		return nil
	})))
	remove, _ := goja.AssertFunction(off)
	return ctx, func() {
		cancel(context.Canceled)
		r.post(func() error { _, err := remove(goja.Undefined()); return err })
	}
}
