package agents

import (
	"context"
	"sync"

	"github.com/ouro-run/ouro/seams"
)

// notices is a queue of notifications that go out one at a time, in order,
// without a lock held. Who finds somebody delivering leaves his to them.
type notices struct {
	mu         sync.Mutex
	queue      []func(context.Context)
	delivering bool
}

func (n *notices) add(f func(context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, f)
}

func (n *notices) deliver(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delivering {
		return
	}
	n.delivering = true
	for len(n.queue) > 0 {
		f := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		f(ctx)
		n.mu.Lock()
	}
	n.delivering = false
}

func (a *Agent) tell(f func(context.Context)) { a.notices.add(f) }

// notify dispatches an event to observers, whose failures are contained.
func notify[P any](ctx context.Context, a *Agent, e seams.Event[P, struct{}], payload P) {
	_, err := e.Dispatch(ctx, a.deps.Bus, a.scope, payload, nil)
	a.contain(ctx, err)
}

func (a *Agent) contain(ctx context.Context, err error) {
	if err != nil && a.deps.Contained != nil {
		a.deps.Contained(ctx, err)
	}
}
