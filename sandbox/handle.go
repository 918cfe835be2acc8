package sandbox

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// hold keeps a JavaScript value for a handle. The value is let go when owner,
// the handle, is garbage, or when the realm is closed.
func hold[T any](r *Realm, owner *T, v goja.Value) uint64 {
	r.handle++
	id := r.handle
	r.handles[id] = v
	runtime.AddCleanup(owner, r.released.add, id)
	return id
}

// garbage are the ids of handles that Go has dropped. It refers to nothing: what
// a cleanup refers to is kept, and a realm's options may lead back to a handle.
type garbage struct {
	mu  sync.Mutex
	ids []uint64
}

func (g *garbage) add(id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = append(g.ids, id)
}

func (g *garbage) take() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := g.ids
	g.ids = nil
	return ids
}

// Func is a JavaScript function. Keeping it keeps neither its realm's memory
// nor a goroutine.
type Func struct {
	r      *Realm
	id     uint64 // of the function
	thisID uint64 // of what it is called on, 0 for none

	dropped atomic.Bool // see Drop
}

func (r *Realm) newFunc(f *goja.Object, this goja.Value) *Func {
	out := &Func{r: r}
	out.id = hold(r, out, f)
	if !goja.IsUndefined(this) {
		out.thisID = hold(r, out, this)
	}
	return out
}

// Call calls the function and awaits its result, which must be data. A context
// among the arguments is an AbortSignal until the result has settled. ctx ends
// the wait (ABORTED, TIMEOUT); the function itself runs on until its turn ends.
func (f *Func) Call(ctx context.Context, args ...any) (any, error) {
	return f.r.invoke(ctx, f.bound, args, false)
}

// Invoke is Call for results that may hold functions and streams.
func (f *Func) Invoke(ctx context.Context, args ...any) (any, error) {
	return f.r.invoke(ctx, f.bound, args, true)
}

// Iterate calls the function and ranges over what it answers: an async or sync
// iterable, whose return method is awaited when the loop is left early. An
// error is the last element.
func (f *Func) Iterate(ctx context.Context, args ...any) iter.Seq2[any, error] {
	return f.r.iterate(ctx, f.bound, args)
}

// target finds a function and what it is called on, on the realm's goroutine.
type target func() (f goja.Callable, this goja.Value, err error)

func (f *Func) bound() (goja.Callable, goja.Value, error) {
	fn, ok := goja.AssertFunction(nonNil(f.r.handles[f.id]))
	if !ok || f.dropped.Load() {
		return nil, nil, seams.Errorf(seams.Unloaded, f.r.options.Name, "the function is gone")
	}
	return fn, nonNil(f.r.handles[f.thisID]), nil
}

func (r *Realm) invoke(ctx context.Context, t target, args []any, live bool) (any, error) {
	return r.call(ctx, entry{
		frame: r.frameOf(ctx), last: true,
		begin: func() (goja.Value, error) { return r.apply(t, args) },
		read:  func(v goja.Value) (any, error) { return r.output(v, live, "result") },
	})
}

func (r *Realm) apply(t target, args []any) (goja.Value, error) {
	f, this, err := t()
	if err != nil {
		return nil, err
	}
	values := make([]goja.Value, len(args))
	for i, a := range args {
		if values[i], err = r.toJS(a); err != nil {
			return nil, err
		}
	}
	return f(this, values...)
}

// output reads a value that is handed to the host.
func (r *Realm) output(v goja.Value, live bool, what string) (any, error) {
	rd := reader{r: r, live: live, what: what}
	out, err := rd.protected(v)
	if err != nil {
		return nil, r.coded(err)
	}
	return out, r.spend(rd.size)
}

// spend counts what is handed to the host.
func (r *Realm) spend(n int64) error {
	r.mu.Lock()
	r.usage.Output += n
	r.mu.Unlock()
	if r.handed.add(n, r.budgets.Output) {
		return nil
	}
	err := overBudget("the plugin handed over more than %d bytes within a minute", r.budgets.Output)
	r.dog.stop(err)
	return err
}

// returnGrace is how long leaving a loop waits for the iterator's return.
const returnGrace = time.Second

func (r *Realm) iterate(ctx context.Context, t target, args []any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		fr := r.frameOf(ctx)
		var it, step *goja.Object // touched on the realm's goroutine only
		var next goja.Callable
		_, err := r.call(ctx, entry{
			frame: fr,
			begin: func() (goja.Value, error) { return r.apply(t, args) },
			read: func(v goja.Value) (any, error) {
				v, err := r.lib.iterate(goja.Undefined(), v)
				if err != nil {
					return nil, r.coded(err)
				}
				it = v.ToObject(r.vm)
				var ok bool
				if next, ok = goja.AssertFunction(nonNil(it.Get("next"))); !ok {
					return nil, seams.Errorf(seams.WrongType, r.options.Name, "the iterator has no next")
				}
				return nil, nil
			},
		})
		for err == nil {
			var v any
			done := false
			v, err = r.call(ctx, entry{
				frame: fr,
				begin: func() (goja.Value, error) { return next(it) },
				read: func(v goja.Value) (any, error) {
					var ok bool
					if step, ok = v.(*goja.Object); !ok {
						return nil, seams.Errorf(seams.WrongType, r.options.Name, "the iterator's next answered no object")
					}
					if done = nonNil(step.Get("done")).ToBoolean(); done {
						return nil, nil
					}
					return r.output(step.Get("value"), false, "item")
				},
			})
			if done {
				r.settle(fr)
				return
			}
			if err == nil && !yield(v, nil) {
				r.finishIterator(ctx, fr, &it)
				return
			}
		}
		r.finishIterator(ctx, fr, &it)
		yield(nil, err)
	}
}

// finishIterator calls and awaits the iterator's return method.
func (r *Realm) finishIterator(ctx context.Context, fr *frame, it **goja.Object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnGrace)
	defer cancel()
	r.call(ctx, entry{
		frame: fr, last: true,
		begin: func() (goja.Value, error) {
			if *it == nil {
				return goja.Undefined(), nil
			}
			ret, ok := goja.AssertFunction(nonNil((*it).Get("return")))
			if !ok {
				return goja.Undefined(), nil
			}
			return ret(*it)
		},
		read: func(goja.Value) (any, error) { return nil, nil },
	})
}

// settle ends a frame from outside.
func (r *Realm) settle(fr *frame) {
	r.post(func() error { fr.settle(); return nil })
}

// Object is a JavaScript object with methods. Keeping it keeps neither its
// realm's memory nor a goroutine.
type Object struct {
	r       *Realm
	id      uint64
	methods atomic.Pointer[[]string]
}

func (r *Realm) newObject(o *goja.Object) *Object {
	out := &Object{r: r}
	out.id = hold(r, out, o)
	out.look(o)
	r.fresh = append(r.fresh, func() { out.look(o) })
	return out
}

// look takes the names of the methods: at once, and again at the end of the
// turn, for a constructor may hand out an object that it has not filled yet.
func (o *Object) look(self *goja.Object) {
	names := o.r.engine.methods(self)
	o.methods.Store(&names)
}

// Methods lists the methods the object had at the end of the turn in which it was
// handed over, inherited ones included, constructor excluded.
func (o *Object) Methods() []string { return slices.Clone(*o.methods.Load()) }

// Has reports whether the object has a method.
func (o *Object) Has(name string) bool { return slices.Contains(*o.methods.Load(), name) }

// Call calls a method as [Func.Call] does. NOT_FOUND lists the methods there are.
func (o *Object) Call(ctx context.Context, name string, args ...any) (any, error) {
	return o.r.invoke(ctx, o.method(name), args, false)
}

// Invoke calls a method as [Func.Invoke] does.
func (o *Object) Invoke(ctx context.Context, name string, args ...any) (any, error) {
	return o.r.invoke(ctx, o.method(name), args, true)
}

// Iterate calls a method as [Func.Iterate] does; with the name "" it ranges
// over the object itself.
func (o *Object) Iterate(ctx context.Context, name string, args ...any) iter.Seq2[any, error] {
	return o.r.iterate(ctx, o.method(name), args)
}

func (o *Object) self() (*goja.Object, error) {
	self, ok := o.r.handles[o.id].(*goja.Object)
	if !ok {
		return nil, seams.Errorf(seams.Unloaded, o.r.options.Name, "the object is gone")
	}
	return self, nil
}

func (o *Object) method(name string) target {
	return func() (goja.Callable, goja.Value, error) {
		self, err := o.self()
		if err != nil {
			return nil, nil, err
		}
		if name == "" {
			return func(goja.Value, ...goja.Value) (goja.Value, error) { return self, nil }, self, nil
		}
		f, ok := goja.AssertFunction(nonNil(self.Get(name)))
		if !ok {
			return nil, nil, seams.Errorf(seams.NotFound, o.r.options.Name, "the object has no method %q; it has %s", name, listed(o.Methods()))
		}
		return f, self, nil
	}
}

// listed renders names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if n := len(names) - 40; n > 0 {
		return strings.Join(names[:40], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// giveFunc makes a function of a handle: the original in its own realm,
// elsewhere one that answers promises.
func (r *Realm) giveFunc(f *Func) (goja.Value, error) {
	if f.r == r {
		v, ok := r.handles[f.id]
		if !ok {
			return nil, seams.Errorf(seams.Unloaded, r.options.Name, "the function is gone")
		}
		return v, nil
	}
	return r.asyncFunc(func(ctx context.Context, args []any) (any, error) { return f.Invoke(ctx, args...) }), nil
}

func (r *Realm) giveObject(o *Object) (goja.Value, error) {
	if o.r == r {
		return o.self()
	}
	out := r.vm.NewObject()
	for _, name := range o.Methods() {
		out.Set(name, r.asyncFunc(func(ctx context.Context, args []any) (any, error) { return o.Invoke(ctx, name, args...) }))
	}
	return out, nil
}
