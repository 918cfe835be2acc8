package sandbox

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// job is what one turn does. An exception it returns is reported; any other
// error ends the realm.
type job func() error

// post queues a job. It fails when the realm is over.
func (r *Realm) post(j job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return r.over
	}
	r.queue = append(r.queue, j)
	if !r.running {
		r.running = true
		r.tasks.Add(1)
		go r.work()
	}
	return nil
}

// work is the realm's goroutine. It lives while there are jobs.
func (r *Realm) work() {
	defer r.tasks.Done()
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.running = false
			r.mu.Unlock()
			return
		}
		jobs := r.queue
		r.queue = nil
		r.mu.Unlock()
		for _, id := range r.released.take() {
			delete(r.handles, id)
		}
		for _, j := range jobs {
			if r.Err() != nil {
				break
			}
			r.turn(j)
		}
	}
}

// turn runs one job under the watchdog, then reports what it left unhandled.
func (r *Realm) turn(j job) {
	r.dog.begin(min(r.budgets.Turn, time.Duration(r.minute.left(int64(r.budgets.Minute)))))
	err := r.contain(j)
	if err == nil {
		err = r.contain(r.settleTurn)
	}
	spent, stopped := r.dog.end(fatal(err))
	r.frame = nil
	fits := r.minute.add(int64(spent), int64(r.budgets.Minute))
	r.mu.Lock()
	r.usage.CPU += spent
	r.usage.Turns++
	r.mu.Unlock()
	switch {
	case stopped != nil:
		r.end(r.named(stopped), true)
	case fatal(err):
		r.end(r.named(overBudget("calls were nested more than %d deep: the call stack is bounded, so recurse less or loop", r.budgets.Depth)), true)
	case err != nil:
		r.end(r.named(err), true)
	case !fits:
		r.end(r.named(overBudget("the plugin ran for more than %v within a minute", r.budgets.Minute)), true)
	}
}

// contain runs f. What JavaScript threw is reported; what remains is an error
// after which the VM must not run.
func (r *Realm) contain(f func() error) error {
	err := r.protect(f)
	if ex := (*goja.Exception)(nil); errors.As(err, &ex) {
		return r.protect(func() error { r.report(r.thrown(ex)); return nil })
	}
	return err
}

func (r *Realm) named(err error) error {
	if e := (*seams.Error)(nil); errors.As(err, &e) {
		return &seams.Error{Code: e.Code, Op: r.options.Name, Msg: e.Msg, Err: e.Err}
	}
	return err
}

// lookAgain takes the methods of the objects that were handed out in this turn.
func (r *Realm) lookAgain() {
	fresh := r.fresh
	r.fresh = nil
	for _, look := range fresh {
		r.vm.Try(look) // one that cannot be read keeps the methods it had
	}
}

// settleTurn reports the promises that were rejected in this turn and that
// nobody has listened to.
func (r *Realm) settleTurn() error {
	r.lookAgain()
	for p := range r.rejected {
		delete(r.rejected, p)
		r.report(r.fromError(p.Result()))
	}
	return nil
}

// frame is one entry into the realm: the context under which its host calls
// are made, also those after an await, until its result has settled.
type frame struct {
	ctx  *borrowed
	over bool
	undo []func() bool // stops what links signals to contexts
}

func (r *Realm) frameOf(ctx context.Context) *frame {
	return &frame{ctx: &borrowed{realm: r.ctx, caller: ctx}}
}

func (f *frame) settle() {
	f.over = true
	f.ctx.giveBack()
	for _, stop := range f.undo {
		stop()
	}
	f.undo = nil
}

// frameTracker carries the frame across await.
type frameTracker struct{ r *Realm }

func (t frameTracker) Grab() any     { return t.r.frame }
func (t frameTracker) Resumed(f any) { t.r.frame, _ = f.(*frame) }
func (t frameTracker) Exited()       { t.r.frame = nil }
func (r *Realm) here() context.Context {
	if r.frame == nil || r.frame.over {
		return r.ctx
	}
	return r.frame.ctx
}

// syncKey marks the context of a synchronous host call while it lasts.
type syncKey struct{}

// refuseSync refuses to wait for a realm inside a synchronous host call, whose
// realm waits for it.
func refuseSync(ctx context.Context) error {
	if running, ok := ctx.Value(syncKey{}).(*atomic.Bool); ok && running.Load() {
		return seams.Errorf(seams.WouldDeadlock, "sandbox", "a synchronous host method waits for JavaScript while JavaScript waits for it: make the method asynchronous")
	}
	return nil
}

// entry describes one call into the realm. Its functions run on the realm's
// goroutine.
type entry struct {
	frame *frame
	begin func() (goja.Value, error)
	read  func(goja.Value) (any, error) // of the settled value
	last  bool                          // the frame ends with this entry
}

type outcome struct {
	v   any
	err error
}

// call makes an entry and waits until its value has settled, ctx ends or the
// realm does.
func (r *Realm) call(ctx context.Context, en entry) (any, error) {
	if err := refuseSync(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, aborted(ctx)
	}
	ch := make(chan outcome, 1)
	read := func(settled goja.Value) (v any, err error) {
		err = r.protect(func() error { v, err = en.read(settled); return err })
		if fatal(err) {
			panic(err)
		}
		return v, r.coded(err)
	}
	settle := func(v any, err error) {
		r.lookAgain()
		if en.last {
			en.frame.settle()
		}
		select {
		case ch <- outcome{v, err}:
		default: // what throws after it has settled has nobody to tell
		}
	}
	err := r.post(func() error {
		r.frame = en.frame
		err := r.protect(func() error {
			v, err := en.begin()
			if err != nil {
				return err
			}
			return r.await(v, func(v goja.Value) { settle(read(v)) }, func(err error) { settle(nil, err) })
		})
		if err == nil || fatal(err) {
			return err
		}
		settle(nil, r.coded(err))
		if errors.Is(err, seams.Panicked) {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case o := <-ch:
		return o.v, o.err
	case <-ctx.Done():
		err := aborted(ctx)
		en.frame.ctx.giveBack()
		return nil, err
	case <-r.done:
		en.frame.ctx.giveBack()
		select {
		case o := <-ch:
			return o.v, o.err
		default:
			return nil, r.Err()
		}
	}
}

// await calls ok or failed when v has settled: at once if it is no promise or
// a fulfilled one.
func (r *Realm) await(v goja.Value, ok func(goja.Value), failed func(error)) error {
	o, isObject := v.(*goja.Object)
	if !isObject {
		ok(v)
		return nil
	}
	if o.ExportType() == promiseType {
		if p := o.Export().(*goja.Promise); p.State() == goja.PromiseStateFulfilled {
			ok(p.Result())
			return nil
		}
	} else if then := o.Get("then"); then == nil || !callable(then) {
		ok(v)
		return nil
	}
	_, err := r.lib.await(goja.Undefined(), v,
		r.native("settled", func(c goja.FunctionCall) goja.Value { ok(c.Argument(0)); return nil }),
		r.native("failed", func(c goja.FunctionCall) goja.Value { failed(r.fromError(c.Argument(0))); return nil }))
	return err
}

var promiseType = reflect.TypeFor[*goja.Promise]()

func callable(v goja.Value) bool {
	_, ok := goja.AssertFunction(v)
	return ok
}

// aborted tells why a context ended.
func aborted(ctx context.Context) error {
	cause := context.Cause(ctx)
	code := seams.Aborted
	if errors.Is(cause, context.DeadlineExceeded) {
		code = seams.Timeout
	}
	if e := (*seams.Error)(nil); errors.As(cause, &e) {
		code = e.Code
	}
	return seams.Errorf(code, "sandbox", "the wait for JavaScript ended: %w", cause)
}
