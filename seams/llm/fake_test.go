package llm_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bus is a waterfall and no more.
type bus struct {
	mu       sync.Mutex
	handlers []seams.Handler
}

func (b *bus) Dispatch(ctx context.Context, d seams.Dispatch) (any, error) {
	b.mu.Lock()
	list := slices.Clone(b.handlers)
	b.mu.Unlock()
	var from func(i int) seams.Next
	from = func(i int) seams.Next {
		if i == len(list) {
			return d.Default
		}
		return func(ctx context.Context) (any, error) { return list[i](ctx, d.Payload, from(i+1)) }
	}
	return from(0)(ctx)
}

// owner is one activation; end closes it as a container would: no new lease,
// leases waited for, effects undone last first.
type owner struct {
	bus   *bus
	scope *seams.Scope
	name  string
	entry string // owners of one entry are versions of each other

	mu     sync.Mutex
	gone   bool
	hidden bool
	leases sync.WaitGroup
	held   int
	undos  []seams.Undo
}

func (o *owner) Effect(label string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	o.mu.Lock()
	gone := o.gone
	o.mu.Unlock()
	if gone {
		return nil, seams.Errorf(seams.InactiveEffect, "test", "%s is gone", o.name)
	}
	undo, err := setup(context.Background())
	if err != nil {
		return nil, err
	}
	once := sync.OnceValue(func() error { return undo(context.Background()) })
	u := func(context.Context) error { return once() }
	o.undos = append(o.undos, u)
	return u, nil
}

func (o *owner) On(_ string, h seams.Handler) (seams.Undo, error) {
	o.bus.mu.Lock()
	defer o.bus.mu.Unlock()
	o.bus.handlers = append(o.bus.handlers, h)
	return func(context.Context) error { return nil }, nil
}

func (o *owner) Scope() *seams.Scope { return o.scope }
func (o *owner) Claim() seams.Claim  { return o }
func (o *owner) String() string      { return o.name }

func (o *owner) Visible() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.gone && !o.hidden
}

func (o *owner) Kin(other seams.Claim) bool {
	p, ok := other.(*owner)
	return !ok || p != o && o.entry != "" && p.entry == o.entry
}

func (o *owner) Enter(ctx context.Context) (context.Context, func(), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return nil, nil, seams.Errorf(seams.InactiveEffect, "test", "%s is gone", o.name)
	}
	o.leases.Add(1)
	o.held++
	return ctx, func() {
		o.mu.Lock()
		o.held--
		o.mu.Unlock()
		o.leases.Done()
	}, nil
}

func (o *owner) leasesHeld() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}

func (o *owner) end() {
	o.mu.Lock()
	o.gone = true
	o.mu.Unlock()
	o.leases.Wait()
	for _, u := range slices.Backward(o.undos) {
		_ = u(context.Background())
	}
}

// world is a registry with its bus.
type world struct {
	*llm.Registry
	bus *bus
}

func newWorld() *world {
	b := &bus{}
	return &world{llm.NewRegistry(b, nil), b}
}

func (w *world) owner(name string) *owner { return &owner{bus: w.bus, name: name} }

func (w *world) add(t testing.TB, a llm.Adapter, routes ...string) (*owner, *llm.Handle) {
	t.Helper()
	o := w.owner("owner of " + routes[0])
	h, err := w.RegisterAdapter(o, llm.Registration{Routes: routes, Adapter: a})
	if err != nil {
		t.Fatal(err)
	}
	return o, h
}

// adapterFunc is an adapter of one function.
type adapterFunc func(ctx context.Context, req llm.Request) llm.Stream

func (f adapterFunc) Stream(ctx context.Context, req llm.Request) llm.Stream { return f(ctx, req) }

// says is an adapter that answers text.
func says(text string) adapterFunc {
	return func(context.Context, llm.Request) llm.Stream { return chunks(reply(text)...) }
}

func reply(text string) []llm.Chunk {
	return []llm.Chunk{
		llm.BlockStart{BlockType: llm.KindText},
		llm.TextDelta{Text: text},
		llm.BlockEnd{Block: llm.Text{Text: text}},
		llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}},
	}
}

func chunks(list ...llm.Chunk) llm.Stream { return thenError(nil, list...) }

func thenError(err error, list ...llm.Chunk) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		for _, c := range list {
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// drain reads a stream: its chunks, its finish, its error.
func drain(s llm.Stream) (all []llm.Chunk, fin *llm.Finish, err error) {
	for c, e := range s {
		if e != nil {
			err = e
			continue
		}
		all = append(all, c)
		if f, ok := c.(llm.Finish); ok {
			fin = &f
		}
	}
	return all, fin, err
}

func to(provider, model string) llm.Request {
	return llm.Request{CallConfig: llm.CallConfig{Provider: provider, Model: model}, Messages: []llm.Message{llm.UserText("hi")}}
}
