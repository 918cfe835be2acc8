package cordis

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ouro-run/ouro/seams"
)

// Options configure a container. The zero value is usable.
type Options struct {
	// Context bounds everything; its cancellation disposes the root (C11).
	Context context.Context
	// UndoTimeout is the deadline of one undo, 5 s if zero. After it the fiber is
	// stuck and reported; the undo is not skipped.
	UndoTimeout time.Duration
	// DrainTimeout is how long calls inside a plugin may go on after it was
	// unloaded before their contexts are cancelled, 30 s if zero.
	DrainTimeout time.Duration
	// Report is told, once, each error that no caller is answered with, and each
	// of an undo. It is called from any goroutine, several at a time; no observer
	// holds it up. Nil drops reports.
	Report func(Report)
}

// Report is an error with where it came from.
type Report struct {
	Fiber *Fiber // nil if it is nobody's
	Phase string // apply, undo, listener, observer, goroutine, timer, event
	Label string // the effect or event
	Err   error
}

// Container holds fibers and what they provide. Make one with New.
type Container struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelCauseFunc
	exec   executor
	sched  sched
	st     state
	slots  *table[slot]
	events *table[events]
	stamp  atomic.Uint64
	watch  atomic.Bool // internal/plugin has listeners
	wg     sync.WaitGroup
	root   *Context
	unhook func() bool
	traces func(what string, f *Fiber, e *effect)

	mu     sync.Mutex
	realms map[realmKey]weak.Pointer[realm]
}

type realmKey struct{ name, label string }

// New makes a container. Close it.
func New(opts Options) *Container { return newContainer(opts, goroutines{}, 0) }

func newContainer(opts Options, exec executor, mut mutation) *Container {
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	if opts.UndoTimeout == 0 {
		opts.UndoTimeout = 5 * time.Second
	}
	if opts.DrainTimeout == 0 {
		opts.DrainTimeout = 30 * time.Second
	}
	c := &Container{opts: opts, exec: exec, slots: newTable[slot](), events: newTable[events](), realms: map[realmKey]weak.Pointer[realm]{}}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(opts.Context))
	root := &Fiber{c: c, p: &Plugin{}, phase: active}
	root.status.Store(uint32(Active))
	root.ep = &episode{f: root, heard: true}
	root.ep.gate.ep = root.ep
	root.ep.visible.Store(true)
	root.last.Store(root.ep)
	c.st = state{c: c, mut: mut, root: root}
	c.root = &Context{ep: root.ep}
	c.unhook = context.AfterFunc(opts.Context, func() { root.Dispose() })
	return c
}

// Root is the context everything is mounted below. It reads every service.
func (c *Container) Root() *Context { return c.root }

// Stamp is odd while what is visible changes and grows with each change; see
// seams.NewRegistry.
func (c *Container) Stamp() uint64 { return c.stamp.Load() }

// Settle waits until nothing is on its way: nothing loads or unloads, no undo
// runs. Fibers that wait for a service are at rest. STUCK names an undo that
// does not end.
func (c *Container) Settle(ctx context.Context) error {
	return (&Done{c: c, what: restOfAll}).Wait(ctx)
}

// Close disposes everything and waits for it, at most until ctx ends; the root
// takes no registration any more. It then
// joins every goroutine the container started. An undo that hangs is STUCK; its
// goroutine is not waited for.
func (c *Container) Close(ctx context.Context) error {
	c.unhook()
	c.do(func(st *state) { st.closed = true })
	root := c.root.ep
	root.f.Dispose()
	err := c.Settle(ctx)
	root.life.leave()
	root.life.cancel(&ended{root.f, false})
	var own []*effect
	c.do(func(*state) { own = slices.Clone(root.effects) })
	for _, e := range slices.Backward(own) {
		if e.kind == childEffect || e.kind == groupEffect {
			continue
		}
		go func() { _ = e.undoEarly(context.WithoutCancel(ctx)) }()
		if uerr := (&Done{c: c, f: root.f, eff: e, what: effectDone}).Wait(ctx); err == nil {
			err = uerr
		}
	}
	c.cancel(seams.Errorf(seams.Unloaded, "cordis.Close", "the container was closed"))
	if err != nil {
		return err
	}
	joined := make(chan struct{})
	go func() { c.wg.Wait(); close(joined) }()
	select {
	case <-joined:
		return nil
	case <-ctx.Done(): // an undo that was abandoned still runs
		return context.Cause(ctx)
	}
}

// Abandon gives up on the stuck undo of f: it counts as done, what waited for it
// goes on. The undo itself may still run; it is reported.
func (c *Container) Abandon(f *Fiber) {
	c.do(func(st *state) {
		for _, e := range append([]*effect(nil), st.stuck...) {
			if e.ep.f == f {
				st.blame(Report{Fiber: f, Phase: "undo", Label: e.label(), Err: seams.Errorf(seams.Stuck, f.label(), "undoing %s was abandoned", e.label())})
				st.undone(&event{eff: e, last: true})
			}
		}
	})
}

// report hands over what failed outside of the scheduler.
func (c *Container) report(r Report) {
	if c.opts.Report != nil {
		c.opts.Report(r)
	}
}

// blame queues what failed, or was noticed, inside a step.
func (st *state) blame(r Report) {
	if st.c.opts.Report != nil {
		if st.reports = append(st.reports, r); !st.reporting {
			st.reporting = true
			st.out = append(st.out, command{kind: cmdReport})
		}
	}
}

// reportAll hands over queued reports until there are none.
func (c *Container) reportAll() {
	for ended := false; !ended; {
		var next []Report
		c.do(func(st *state) {
			next, st.reports = st.reports, nil
			ended = len(next) == 0
			st.reporting = !ended
		})
		for _, r := range next {
			c.report(r)
		}
	}
}

// namedRealm returns the realm all contexts share that isolate name under
// label. It goes when the last of them does.
func (c *Container) namedRealm(name, label string) *realm {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := realmKey{name, label}
	if r := c.realms[k].Value(); r != nil {
		return r
	}
	r := &realm{label}
	c.realms[k] = weak.Make(r)
	runtime.AddCleanup(r, func(k realmKey) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.realms[k].Value() == nil {
			delete(c.realms, k)
		}
	}, k)
	return r
}

// trace tells a test what happened, inside the step in which it does.
func (st *state) trace(what string, f *Fiber, e *effect) {
	if st.c.traces != nil {
		st.c.traces(what, f, e)
	}
}
