package script

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// listener is a JavaScript function on an event.
type listener struct {
	h   *host
	fn  *sandbox.Func
	op  string
	off atomic.Bool // its disposer was called
	// observer: what it throws, answers and takes time for is its own affair.
	observer bool
}

// listening is a context that registers listeners with options.
type listening struct {
	*cordis.Context
	opts []cordis.ListenOption
}

// On implements seams.Owner.
func (l listening) On(event string, h seams.Handler) (seams.Undo, error) {
	return l.Listen(event, h, l.opts...)
}

// lifecycle says what to write for the events by which other frameworks tell a
// plugin of its own life.
var lifecycle = map[string]string{
	"ready":   "apply runs when the plugin is ready, so do it there",
	"dispose": "return a disposer from apply, or register one with ctx.effect(() => () => { … })",
}

// on is the verb on, or once.
func (h *host) on(args []any, once bool) (any, error) {
	name, err := textArg("ctx.on", args, 0, "the event's name")
	if err != nil {
		return nil, err
	}
	fn, err := funcArg("ctx.on", args, 1, "a listener")
	if err != nil {
		return nil, err
	}
	owner := listening{Context: h.ctx}
	if once {
		owner.opts = append(owner.opts, cordis.Once())
	}
	switch o := arg(args, 2).(type) {
	case nil:
	case bool:
		if o {
			owner.opts = append(owner.opts, cordis.Prepend())
		}
	case map[string]any:
		if o["prepend"] == true {
			owner.opts = append(owner.opts, cordis.Prepend())
		}
		if o["global"] == true {
			owner.opts = append(owner.opts, cordis.Global())
		}
	default:
		return nil, seams.Errorf(seams.InvalidArgument, "ctx.on", "argument 3: expected {prepend, global}, got %s", kind(o))
	}
	if instead := lifecycle[name]; instead != "" {
		return nil, seams.Errorf(seams.InvalidArgument, "ctx.on", "nothing sends the event %q: %s", name, instead)
	}
	refused := h.source.rules.allows(Wrap, name)
	l := &listener{h: h, fn: fn, op: name, observer: refused != nil}
	e, ok := h.source.e.events[name]
	if !ok {
		e.listen = func(o seams.Owner, l *listener) (seams.Undo, error) { return o.On(name, l.undeclared) }
	}
	if e.Mode == seams.Waterfall && refused != nil {
		return nil, refused
	}
	undo, err := e.listen(owner, l)
	if err != nil {
		return nil, err
	}
	return release(func() { l.off.Store(true); fn.Drop() }, undo), nil
}

// sent is the event and the mode in which a JavaScript plugin dispatches.
type sent struct {
	event string
	mode  seams.Mode
}

type sentKey struct{}

// undeclared handles an event of a plugin's own. In which mode it is sent is
// known if JavaScript sends it; else its answer is taken to matter.
func (l *listener) undeclared(ctx context.Context, payload any, next seams.Next) (any, error) {
	args, ok := payload.(seams.Args)
	if !ok {
		data, err := encode(payload)
		if err != nil {
			return nil, seams.Errorf(seams.WrongType, l.op, "%s was dispatched with %T, which JavaScript cannot see", l.op, payload)
		}
		args = seams.Args{data}
	}
	s, _ := ctx.Value(sentKey{}).(sent)
	if ok && l.observer && s.event != l.op {
		// Go sent it, and may change it before the observer is called.
		data, err := encode([]any(args))
		if err != nil {
			return nil, seams.Errorf(seams.WrongType, l.op, "%s was dispatched with arguments that JavaScript cannot see: %w", l.op, err)
		}
		args = data.([]any)
	}
	switch {
	case next == nil && s == sent{l.op, seams.Emit}:
		return nil, l.notify(ctx, args)
	case next == nil && s == sent{l.op, seams.Parallel}:
		return nil, l.settle(ctx, args)
	case l.observer:
		err := l.later(args)
		if next != nil {
			return next(ctx)
		}
		return nil, err
	case next != nil:
		v, err := l.fn.Invoke(ctx, append(args[:len(args):len(args)], sandbox.AsyncFunc(func(ctx context.Context, _ []any) (any, error) { return next(ctx) }))...)
		if l.gone(err) {
			return next(ctx)
		}
		return v, err
	}
	v, err := l.fn.Invoke(ctx, args...)
	if l.gone(err) {
		return nil, nil
	}
	return v, err
}

// notify calls the listener and does not wait for a promise that it answers; its
// rejection is reported. An observer cannot hold up what it observes: it is
// called later.
func (l *listener) notify(ctx context.Context, args []any) error {
	if l.observer {
		return l.later(args)
	}
	if err := l.fn.Start(ctx, args...); !l.gone(err) {
		return err
	}
	return nil
}

// settle calls the listener and awaits what it answers; an observer is not
// waited for.
func (l *listener) settle(ctx context.Context, args []any) error {
	if l.observer {
		return l.later(args)
	}
	if err := l.fn.Do(ctx, args...); !l.gone(err) {
		return err
	}
	return nil
}

// later queues the call.
func (l *listener) later(args []any) error {
	l.h.uncaught(l.fn.Post(args...))
	return nil
}

// gone reports whether a call failed because its disposer had been called
// before it began.
func (l *listener) gone(err error) bool {
	return err != nil && l.off.Load() && errors.Is(err, seams.Unloaded)
}
