package cordis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// life is what an activation shows of its end, made when somebody asks for it.
type life struct {
	mu      sync.Mutex
	ctx     context.Context
	end     context.CancelCauseFunc
	cause   error
	left    chan struct{}
	leaves  bool
	frames  context.Context // cancelled when the drain deadline has passed
	cut     context.CancelCauseFunc
	cutAs   error
	drainer *time.Timer
	late    atomic.Bool // the drain deadline has passed
	empty   bool        // the last frame has left
}

// ended is why an activation's context has ended, an error coded UNLOADED. Its
// text is made when somebody reads it.
type ended struct {
	f       *Fiber
	loading bool
}

func (e *ended) Error() string {
	if e.loading {
		return e.f.label() + ": the plugin was disposed while it was loading [" + string(seams.Unloaded) + "]"
	}
	return e.f.label() + ": the plugin was unloaded [" + string(seams.Unloaded) + "]"
}

func (e *ended) Unwrap() error { return seams.Unloaded }

// cancel ends the activation's context. The first cause stays.
func (l *life) cancel(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		if l.end != nil {
			l.end(cause)
		}
	}
}

// context returns the activation's context. It does not inherit cancellation
// from the parent activation, which ends earlier than its children do.
func (l *life) context(c *Container, ep *episode) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		ctx, end := context.WithCancelCause(context.WithoutCancel(c.ctx))
		l.ctx, l.end = withFrame(ctx, ep, bodyFrame), end
		if l.cause != nil {
			end(l.cause)
		}
	}
	return l.ctx
}

func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leaves {
		l.leaves = true
		if l.left != nil {
			close(l.left)
		}
	}
}

func (l *life) leaving() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		l.left = make(chan struct{})
		if l.leaves {
			close(l.left)
		}
	}
	return l.left
}

// drain bounds the frames that are still inside: after d their contexts end.
func (l *life) drain(d time.Duration) {
	cut := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.late.Store(true)
		l.cutAs = seams.Errorf(seams.Unloaded, "drain", "the plugin was unloaded and this call did not end within %s", d)
		if l.cut != nil {
			l.cut(l.cutAs)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.empty {
		l.drainer = time.AfterFunc(d, cut)
	}
}

// drained releases the drain timer: the last frame has left.
func (l *life) drained() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.empty = true
	if l.drainer != nil {
		l.drainer.Stop()
	}
}

// bound returns ctx, cancelled too when the drain deadline passes.
func (l *life) bound(ctx context.Context) (context.Context, func()) {
	l.mu.Lock()
	if l.frames == nil {
		l.frames, l.cut = context.WithCancelCause(context.Background())
		if l.cutAs != nil {
			l.cut(l.cutAs)
		}
	}
	frames := l.frames
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(frames, func() { cancel(context.Cause(frames)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

type frameKind uint8

const (
	bodyFrame  frameKind = iota // the activation's own context: a frame while Apply runs
	callFrame                   // a listener, a service or a tool call
	undoFrame                   // an inverse
	ownedFrame                  // a goroutine or timer of the activation
)

// frame is a context that knows in which activation its code runs. Its Done is
// bound to the drain deadline of that activation only when somebody asks for it.
type frame struct {
	context.Context
	ep    *episode
	bound atomic.Pointer[boundFrame]

	kind   frameKind
	ticket ticket
	left   atomic.Bool // its code has returned
}

// boundFrame is a frame whose Done was asked for.
type boundFrame struct {
	context.Context
	free func()
}

type frameKey struct{}

func withFrame(ctx context.Context, ep *episode, kind frameKind) context.Context {
	return newFrame(ctx, ep, kind, 0)
}

func newFrame(ctx context.Context, ep *episode, kind frameKind, t ticket) *frame {
	return &frame{Context: ctx, ep: ep, kind: kind, ticket: t}
}

func (f *frame) Value(k any) any {
	if k == (frameKey{}) {
		return f
	}
	if b := f.bound.Load(); b != nil {
		return b.Value(k)
	}
	return f.Context.Value(k)
}

func (f *frame) Done() <-chan struct{} {
	if f.kind != callFrame {
		return f.Context.Done()
	}
	for {
		if b := f.bound.Load(); b != nil {
			return b.Done()
		}
		ctx, free := f.ep.life.bound(f.Context)
		if f.bound.CompareAndSwap(nil, &boundFrame{ctx, free}) {
			if f.left.Load() {
				free()
			}
			return ctx.Done()
		}
		free()
	}
}

func (f *frame) Err() error {
	if f.kind == callFrame && f.bound.Load() == nil && (f.left.Load() || f.ep.life.late.Load()) {
		<-f.Done()
	}
	if b := f.bound.Load(); b != nil {
		return b.Err()
	}
	return f.Context.Err()
}

// leave ends what Done had made. The frame's code has returned; who kept the
// context finds it cancelled. It reports whether this was the first time.
func (f *frame) leave() bool {
	first := !f.left.Swap(true)
	if b := f.bound.Load(); b != nil {
		b.free()
	}
	return first
}

// framesOf calls yield for every frame the context's code stands in, innermost
// first.
func framesOf(ctx context.Context, yield func(*frame)) {
	for {
		f, _ := ctx.Value(frameKey{}).(*frame)
		if f == nil {
			return
		}
		if !f.left.Load() {
			yield(f)
		}
		ctx = f.Context
	}
}

// over reports whether the activation's context is cancelled.
func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil
}
