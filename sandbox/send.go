package sandbox

import (
	"context"
	"errors"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Do is Call for a function whose answer does not matter: it is awaited and not
// read.
func (f *Func) Do(ctx context.Context, args ...any) error {
	return f.send(ctx, args, func(v goja.Value) goja.Value { return v })
}

// Start calls the function and returns when the call has returned. A promise it
// answers is not awaited: its rejection is reported like any other that nobody
// listens to, and the host calls it makes from then on are the realm's.
func (f *Func) Start(ctx context.Context, args ...any) error {
	return f.send(ctx, args, func(goja.Value) goja.Value { return goja.Undefined() })
}

func (f *Func) send(ctx context.Context, args []any, wait func(goja.Value) goja.Value) error {
	_, err := f.r.call(ctx, entry{
		frame: f.r.frameOf(ctx), last: true,
		begin: func() (goja.Value, error) {
			v, err := f.r.apply(f.bound, args)
			if err != nil {
				return nil, err
			}
			return wait(v), nil
		},
		read: func(goja.Value) (any, error) { return nil, nil },
	})
	return err
}

// Post queues a call and returns at once, also from within a synchronous host
// call. What the function throws is reported, and so is an argument that does
// not cross. The error says that the realm is over.
func (f *Func) Post(args ...any) error {
	return f.r.post(func() error {
		f.r.frame = nil
		if f.dropped.Load() {
			return nil
		}
		_, err := f.r.apply(f.bound, args)
		if refused := (*seams.Error)(nil); errors.As(err, &refused) && refused.Code != seams.Panicked {
			f.r.report(err)
			return nil
		}
		return err
	})
}

// Drop gives the function up: calls that have not begun fail with UNLOADED.
func (f *Func) Drop() { f.dropped.Store(true) }
