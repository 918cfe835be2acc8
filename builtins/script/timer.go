package script

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// timerService has the verbs as methods too.
var timerService = service{
	Service: Service{Name: "timer", Summary: "Timers that end with the plugin; its methods are also ctx's own."},
	methods: timers,
}

var timers = []method{
	{Method: Method{"setTimeout", "setTimeout(callback: (...args: any[]) => any, ms: number, ...args: any[]): Disposer",
		"Calls back once, after ms milliseconds."}, call: timeout},
	{Method: Method{"setInterval", "setInterval(callback: (...args: any[]) => any, ms: number, ...args: any[]): Disposer",
		"Calls back every ms milliseconds; calls never overlap."}, call: interval},
	{Method: Method{"timeout", "timeout(callback: () => any, ms: number): Disposer; timeout(ms: number): Promise<void>",
		"With a callback setTimeout, without one sleep."}, call: timeout},
	{Method: Method{"interval", "interval(callback: () => any, ms: number): Disposer; interval(ms: number): AsyncIterable<void>",
		"With a callback setInterval, without one an iteration that yields every ms milliseconds and ends when the loop is left."}, call: interval},
	{Method: Method{"sleep", "sleep(ms: number): Promise<void>",
		"Settles after ms milliseconds, and rejects when the plugin ends before."}, call: sleep},
	{Method: Method{"throttle", "throttle(callback: (...args: any[]) => any, ms: number): ((...args: any[]) => void) & { dispose: Disposer }",
		"Makes a function that calls back at once and then at most once in ms milliseconds, with the last arguments it was given."}, call: throttle},
	{Method: Method{"debounce", "debounce(callback: (...args: any[]) => any, ms: number): ((...args: any[]) => void) & { dispose: Disposer }",
		"Makes a function that calls back once when it has not been called for ms milliseconds."}, call: debounce},
}

func sleep(_ context.Context, h *host, args []any) (any, error) {
	d, err := delay("ctx.sleep", args, 0)
	if err != nil {
		return nil, err
	}
	return sandbox.Later(func(ctx context.Context) (any, error) { return nil, h.ctx.Sleep(ctx, d) }), nil
}

// timeout is C-72 and, without a callback, C-73.
func timeout(ctx context.Context, h *host, args []any) (any, error) {
	if _, ms := arg(args, 0).(float64); ms {
		return sleep(ctx, h, args)
	}
	fn, err := funcArg("ctx.timeout", args, 0, "a callback")
	if err != nil {
		return nil, err
	}
	d, err := delay("ctx.timeout", args, 1)
	if err != nil {
		return nil, err
	}
	done, err := h.timer()
	if err != nil {
		return nil, err
	}
	call := h.tick(fn, rest(args))
	undo, err := h.ctx.Timeout(d, func(ctx context.Context) { done(); call(ctx) })
	return disposer(func() { fn.Drop(); done() }, undo, err)
}

// interval is C-74 and, without a callback, C-75 and C-76.
func interval(_ context.Context, h *host, args []any) (any, error) {
	if _, ms := arg(args, 0).(float64); ms {
		d, err := delay("ctx.interval", args, 0)
		if err != nil {
			return nil, err
		}
		return ticks(h, d), nil
	}
	fn, err := funcArg("ctx.interval", args, 0, "a callback")
	if err != nil {
		return nil, err
	}
	d, err := delay("ctx.interval", args, 1)
	if err != nil {
		return nil, err
	}
	done, err := h.timer()
	if err != nil {
		return nil, err
	}
	undo, err := h.ctx.Interval(max(d, minInterval), h.tick(fn, rest(args)))
	return disposer(func() { fn.Drop(); done() }, undo, err)
}

// throttle is C-77.
func throttle(_ context.Context, h *host, args []any) (any, error) {
	return h.limited("ctx.throttle", args, h.ctx.Throttle)
}

// debounce is C-78.
func debounce(_ context.Context, h *host, args []any) (any, error) {
	return h.limited("ctx.debounce", args, h.ctx.Debounce)
}

// timer counts a timer among those of the realm until done is called or the
// plugin ends.
func (h *host) timer() (done func(), err error) {
	count, err := h.realm.Timer()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(h.ctx.Context(), count)
	return func() { stop(); count() }, nil
}

// minInterval keeps an interval of 0 from being a loop.
const minInterval = time.Millisecond

// rest are the arguments a callback is given.
func rest(args []any) []any { return args[min(2, len(args)):] }

// tick calls back within the plugin's lease; a promise it answers is not waited
// for.
func (h *host) tick(fn *sandbox.Func, args []any) func(context.Context) {
	return func(ctx context.Context) { h.uncaught(fn.Start(ctx, args...)) }
}

// ticks yields until the loop is left or the plugin ends.
func ticks(h *host, d time.Duration) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for _, err := range h.ctx.Ticks(h.ctx.Context(), max(d, minInterval)) {
			if !yield(nil, err) || err != nil {
				return
			}
		}
	}
}

// limited makes a throttled or debounced function. Its callback gets the
// arguments of the last call.
func (h *host) limited(op string, args []any, limit func(time.Duration, func(context.Context)) (func(), seams.Undo, error)) (any, error) {
	fn, err := funcArg(op, args, 0, "a callback")
	if err != nil {
		return nil, err
	}
	d, err := delay(op, args, 1)
	if err != nil {
		return nil, err
	}
	done, err := h.timer()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var last []any
	leading, off := false, false
	call, undo, err := limit(d, func(ctx context.Context) {
		mu.Lock()
		args, post, over := last, leading, off
		mu.Unlock()
		if over {
			return
		}
		if post {
			// JavaScript itself called: it must not wait for itself.
			h.uncaught(fn.Post(args...))
			return
		}
		h.uncaught(fn.Start(ctx, args...))
	})
	if err != nil {
		return nil, err
	}
	lead := func(on bool, args []any) {
		mu.Lock()
		defer mu.Unlock()
		leading, last = on, args
	}
	return sandbox.Callable{
		Call: func(_ context.Context, args []any) (any, error) {
			lead(true, args)
			call()
			lead(false, args)
			return nil, nil
		},
		Members: map[string]any{"dispose": release(func() {
			mu.Lock()
			defer mu.Unlock()
			off = true
			done()
		}, undo)},
	}, nil
}

// uncaught reports an error that no caller is answered with. That a realm or a
// registration is over is none.
func (h *host) uncaught(err error) {
	if err != nil && !errors.Is(err, seams.Unloaded) && !errors.Is(err, seams.Aborted) && h.realm.Err() == nil {
		h.report("script", err)
	}
}
