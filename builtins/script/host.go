package script

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// host answers the calls of one activation: of the plugin that a source
// declares, or of a child that it mounted in the same realm.
type host struct {
	*reading
	ctx      *cordis.Context
	injected []string
	tools    atomic.Int64 // registered now
}

// Call implements sandbox.Host.
func (h *host) Call(ctx context.Context, target, name string, args []any) (any, error) {
	if target == "" {
		switch name {
		case "get":
			return h.get(text(args, 0))
		case "services":
			return h.services(), nil
		case "effect":
			return h.effect(args)
		}
	}
	m := h.source.e.table[target+"."+name]
	if m == nil {
		return nil, seams.Errorf(seams.NotExposed, h.source.name, "%s.%s is not in the table", target, name)
	}
	return m.call(ctx, h, args)
}

// use reads a service for one call. It is the one the plugin is committed to,
// or, if it injects none, whoever provides it now, held until give is called.
func use[T any](h *host, key seams.Key[T]) (v T, give func(), err error) {
	v, err = cordis.Get(h.ctx, key)
	if errors.Is(err, seams.NotInjected) {
		var ok bool
		if v, give, ok = cordis.Borrow(h.ctx, key); ok {
			return v, give, nil
		}
		err = seams.Errorf(seams.NotProvided, h.source.name, "service %q is not provided now", key.Name)
	}
	return v, func() {}, err
}

// of binds a method to the Go value of a service. When another JavaScript
// plugin provides the service instead, the method is its object's.
func of[T any](key seams.Key[T], name string, call func(ctx context.Context, h *host, service T, args []any) (any, error)) func(context.Context, *host, []any) (any, error) {
	return func(ctx context.Context, h *host, args []any) (any, error) {
		v, give, err := use(h, key)
		if errors.Is(err, seams.WrongType) {
			if o, ok := cordis.Lookup(h.ctx, seams.Key[any](key)); ok {
				if o, ok := o.(*sandbox.Object); ok {
					return sandbox.Later(func(ctx context.Context) (any, error) { return o.Invoke(ctx, name, args...) }), nil
				}
			}
		}
		if err != nil {
			return nil, err
		}
		defer give()
		return call(ctx, h, v, args)
	}
}

// get reads a service that has no row in the table: what a JavaScript plugin
// provided, as its object or as a copy, or data that Go provided.
func (h *host) get(name string) (any, error) {
	v, ok := cordis.Lookup(h.ctx, seams.Key[any]{Name: name})
	if !ok {
		return nil, nil
	}
	switch v.(type) {
	case nil, bool, string, float64, []any, map[string]any, *sandbox.Object, *sandbox.Func:
		return v, nil
	}
	return nil, seams.Errorf(seams.NotExposed, h.source.name, "service %q has no methods for JavaScript; those that have are %s", name, h.serviceNames())
}

// serviceNames lists the rows of the table for messages.
func (h *host) serviceNames() string {
	var out []string
	for _, s := range h.source.e.file.Services {
		out = append(out, s.Name)
	}
	return strings.Join(out, ", ")
}

func (h *host) services() []string {
	list := h.ctx.Services()
	slices.Sort(list)
	return list
}

// effect owns a disposer of JavaScript. The answer undoes just it.
func (h *host) effect(args []any) (any, error) {
	dispose := args[1].(*sandbox.Func)
	undo, err := h.ctx.Effect(text(args, 0), func(context.Context) (seams.Undo, error) {
		return func(ctx context.Context) error {
			if h.realm.Err() != nil {
				return nil // what the realm ended of has been told
			}
			err := dispose.Do(ctx)
			if ctx.Err() != nil {
				// It had all the time there is for an undo. The realm is given up, so
				// that those that follow do not wait as long each.
				_ = h.realm.Close(0)
			}
			return err
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return sandbox.AsyncFunc(func(ctx context.Context, _ []any) (any, error) { return nil, undo(ctx) }), nil
}

// disposer is the answer of a registration: its undo as JavaScript calls it.
func disposer(take func(), undo seams.Undo, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return release(take, undo), nil
}

// release is an undo as JavaScript calls it: it has taken effect when the call
// returns, and nothing of what it undid runs any more when the promise settles.
// take keeps a callback from being called, where the undo waits for one that is:
// that cannot be waited for here, in the realm where it runs.
func release(take func(), undo seams.Undo) sandbox.HostFunc {
	return func(ctx context.Context, _ []any) (any, error) {
		var err error
		if take != nil {
			take()
		} else {
			// With a context that has ended an undo begins and is not waited for.
			ended, cancel := context.WithCancel(ctx)
			cancel()
			err = undo(ended)
		}
		return sandbox.Later(func(ctx context.Context) (any, error) {
			if err != nil && !errors.Is(err, context.Canceled) {
				return nil, err
			}
			return true, undo(ctx)
		}), nil
	}
}
