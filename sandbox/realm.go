package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Options describe a realm.
type Options struct {
	// Name is the plugin's name in messages, such as the entry's id.
	Name    string
	Facade  *Facade // nil: a ctx without services
	Ambient Ambient
	Budgets Budgets
	// Attribution is what attributionHeaders() answers.
	Attribution map[string]string
	// Log gets every console call. Level is "debug", "info", "warn" or "error".
	Log func(level, text string)
	// Report gets what nobody awaits: uncaught errors of timers, microtasks
	// and event listeners, unhandled rejections.
	Report func(error)
	// Dead is called once, if the realm dies before it is closed, with the
	// cause, on the realm's goroutine: it must return at once and not close the
	// realm itself. The realm still has to be closed.
	Dead func(error)
}

// Ambient is what stands on globalThis beyond the language and its helpers.
// What is absent throws an error that names the service to inject instead.
type Ambient struct {
	Timers bool              // setTimeout and its kin
	Env    map[string]string // process.env, with Buffer beside it; nil: both undefined
	Fetch  Fetch             // nil: fetch is absent
}

// Realm is one VM with its queue.
type Realm struct {
	options Options
	budgets Budgets
	ctx     context.Context // the realm's lifetime
	cancel  context.CancelCauseFunc
	dog     watchdog

	mu       sync.Mutex
	queue    []job
	running  bool // the goroutine exists
	over     error
	done     chan struct{} // closed with over
	tasks    sync.WaitGroup
	release  sync.Once
	released *garbage
	open     map[*resource]struct{}
	usage    Usage
	logged   perMinute

	// All below belongs to the realm's goroutine.
	*engine
	frame    *frame
	handles  map[uint64]goja.Value
	handle   uint64
	rejected map[*goja.Promise]struct{}
	fresh    []func() // looks again at objects handed out in this turn
	timers   timers
	programs map[uint64]*Program
	context  *goja.Object // prototype of every ctx, nil before the first
	minute   perMinute    // nanoseconds of turns
	calls    perMinute
	handed   perMinute
}

// Usage is what a realm has used since it was made.
type Usage struct {
	CPU     time.Duration
	Turns   int64
	Calls   int64 // host calls
	Output  int64 // bytes of values handed to the host
	Log     int64 // bytes logged
	Timers  int   // now
	Pending int   // asynchronous host calls in flight now
}

// New makes a realm. ctx carries values for host calls and ends them when it
// ends; the realm lives until Close.
func New(ctx context.Context, o Options) (*Realm, error) {
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	return newRealm(ctx, o, e)
}

func newRealm(ctx context.Context, o Options, e *engine) (*Realm, error) {
	b, err := o.Budgets.filled()
	if err != nil {
		return nil, err
	}
	if o.Facade == nil {
		o.Facade = &Facade{}
	}
	r := &Realm{
		options: o, budgets: b, engine: e,
		done: make(chan struct{}), released: &garbage{}, open: map[*resource]struct{}{},
		handles: map[uint64]goja.Value{}, rejected: map[*goja.Promise]struct{}{}, programs: map[uint64]*Program{},
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.dog = watchdog{vm: e.vm, heap: b.Heap, enter: r.enter, leave: r.tasks.Done}
	e.realm = r
	e.vm.SetMaxCallStackSize(b.Depth)
	e.vm.SetPromiseRejectionTracker(func(p *goja.Promise, op goja.PromiseRejectionOperation) {
		if op == goja.PromiseRejectionReject {
			r.rejected[p] = struct{}{}
		} else {
			delete(r.rejected, p)
		}
	})
	e.vm.SetAsyncContextTracker(frameTracker{r})
	if err := e.protect(r.ambient); err != nil {
		return nil, seams.Errorf(seams.Panicked, o.Name, "the globals cannot be made: %w", err)
	}
	return r, nil
}

// Done is closed when the realm is dead or closed.
func (r *Realm) Done() <-chan struct{} { return r.done }

// Err returns nil while the realm lives, then what it died of.
func (r *Realm) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// Usage returns what the realm has used so far.
func (r *Realm) Usage() Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.usage
}

// Close ends the realm: pending calls fail with UNLOADED, timers, streams and
// host calls are cancelled, a running turn is interrupted. It returns when
// nothing of the realm runs any more, or with STUCK after grace: then one
// native operation or host call holds a goroutine that cannot be stopped.
// Idempotent.
func (r *Realm) Close(grace time.Duration) error {
	r.end(seams.Errorf(seams.Unloaded, r.options.Name, "the plugin was unloaded"), false)
	r.dog.stop(r.Err())
	joined := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(joined)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-joined:
	case <-timer.C:
		return seams.Errorf(seams.Stuck, r.options.Name, "the realm did not end within %v: a native operation or a host call holds it", grace)
	}
	r.release.Do(func() {
		r.mu.Lock()
		left := r.open
		r.open = nil
		r.mu.Unlock()
		for o := range left {
			o.close()
		}
		r.timers.stop()
		// Handles that somebody keeps must not keep the VM (pitfall 10).
		r.engine, r.handles, r.rejected, r.frame, r.timers, r.programs, r.context, r.dog.vm = nil, nil, nil, nil, timers{}, nil, nil, nil
	})
	return nil
}

// end makes err what the realm died of, once. tell says whether Dead hears it.
func (r *Realm) end(err error, tell bool) {
	r.mu.Lock()
	if r.over != nil {
		r.mu.Unlock()
		return
	}
	r.over = err
	r.queue = nil
	close(r.done)
	r.mu.Unlock()
	r.cancel(err)
	if tell && r.options.Dead != nil {
		r.options.Dead(err)
	}
}

// enter adds one to what Close waits for; the caller ends it with tasks.Done.
// It fails when the realm is over.
func (r *Realm) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return false
	}
	r.tasks.Add(1)
	return true
}

// resource is something of the host that the realm closes at the latest when
// it is closed itself.
type resource struct{ close func() }

// keep makes a resource. Nil when the realm is over: then it is closed already.
func (r *Realm) keep(close func()) *resource {
	o := &resource{close}
	r.mu.Lock()
	if r.over == nil {
		r.open[o] = struct{}{}
		r.mu.Unlock()
		return o
	}
	r.mu.Unlock()
	close()
	return nil
}

// drop closes a resource ahead of time, once.
func (r *Realm) drop(o *resource) {
	if o == nil {
		return
	}
	r.mu.Lock()
	_, there := r.open[o]
	delete(r.open, o)
	r.mu.Unlock()
	if there {
		o.close()
	}
}

func (r *Realm) report(err error) {
	if r.options.Report != nil {
		r.options.Report(err)
	}
}
