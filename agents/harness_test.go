package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bus is an in-memory seams.Bus.
type bus struct {
	mu        sync.Mutex
	listeners []*listener
}

type listener struct {
	event string
	scope *seams.Scope
	h     seams.Handler
}

func (b *bus) of(event string, scope *seams.Scope) []*listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*listener
	for _, l := range b.listeners {
		if l.event == event && scope.Within(l.scope) {
			out = append(out, l)
		}
	}
	return out
}

func (b *bus) Dispatch(ctx context.Context, d seams.Dispatch) (any, error) {
	ls := b.of(d.Event, d.Scope)
	call := func(l *listener, next seams.Next) (v any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = seams.Errorf(seams.Panicked, d.Event, "%v", p)
			}
		}()
		return l.h(ctx, d.Payload, next)
	}
	if d.Mode == seams.Waterfall {
		var at func(i int) seams.Next
		at = func(i int) seams.Next {
			return func(ctx context.Context) (any, error) {
				if i == len(ls) {
					if d.Default == nil {
						return nil, nil
					}
					return d.Default(ctx)
				}
				return call(ls[i], at(i+1))
			}
		}
		return at(0)(ctx)
	}
	var errs error
	for _, l := range ls {
		v, err := call(l, nil)
		switch {
		case d.Mode == seams.Emit || d.Mode == seams.Parallel:
			errs = errors.Join(errs, err)
		case err != nil || seams.Bails(v):
			return v, err
		}
	}
	return nil, errs
}

// owner is an in-memory seams.Owner, its own claim.
type owner struct {
	name  string
	bus   *bus
	scope *seams.Scope

	mu      sync.Mutex
	effects []*effect
	gone    bool
}

type effect struct {
	begun atomic.Bool
	undo  seams.Undo
}

// run undoes the effect once; a second caller does not wait for the first.
func (e *effect) run(ctx context.Context) error {
	if e.begun.Swap(true) {
		return nil
	}
	return e.undo(ctx)
}

func (o *owner) Effect(_ string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	if !o.Visible() {
		return nil, seams.InactiveEffect
	}
	undo, err := setup(context.Background())
	if err != nil {
		return nil, err
	}
	e := &effect{undo: undo}
	o.mu.Lock()
	gone := o.gone
	if !gone {
		o.effects = append(o.effects, e)
	}
	o.mu.Unlock()
	if gone {
		return nil, errors.Join(seams.InactiveEffect, e.run(context.Background()))
	}
	return e.run, nil
}

func (o *owner) On(event string, h seams.Handler) (seams.Undo, error) {
	return o.Effect("on "+event, func(context.Context) (seams.Undo, error) {
		l := &listener{event, o.scope, h}
		o.bus.mu.Lock()
		defer o.bus.mu.Unlock()
		o.bus.listeners = append(o.bus.listeners, l)
		return func(context.Context) error {
			o.bus.mu.Lock()
			defer o.bus.mu.Unlock()
			o.bus.listeners = slices.DeleteFunc(o.bus.listeners, func(k *listener) bool { return k == l })
			return nil
		}, nil
	})
}

func (o *owner) Scope() *seams.Scope  { return o.scope }
func (o *owner) Claim() seams.Claim   { return o }
func (o *owner) Kin(seams.Claim) bool { return false }
func (o *owner) String() string       { return o.name }
func (o *owner) in(s *seams.Scope) *owner {
	return &owner{name: o.name + "/" + s.Name(), bus: o.bus, scope: s}
}

func (o *owner) Visible() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.gone
}

func (o *owner) Enter(ctx context.Context) (context.Context, func(), error) {
	if !o.Visible() {
		return nil, nil, seams.InactiveEffect
	}
	return ctx, func() {}, nil
}

// dispose undoes what the owner has, last first.
func (o *owner) dispose(t testing.TB) {
	t.Helper()
	o.mu.Lock()
	o.gone = true
	effects := o.effects
	o.effects = nil
	o.mu.Unlock()
	for _, e := range slices.Backward(effects) {
		if err := e.run(context.Background()); err != nil {
			t.Errorf("undo: %v", err)
		}
	}
}

// on registers a listener of a typed event.
func on[P, R any](t testing.TB, o *owner, e seams.Event[P, R], fn func(ctx context.Context, p P, next func(context.Context) (R, error)) (R, error)) {
	t.Helper()
	if _, err := e.On(o, fn); err != nil {
		t.Fatal(err)
	}
}

// observe registers a listener of an emitted event.
func observe[P any](t testing.TB, o *owner, e seams.Event[P, struct{}], fn func(ctx context.Context, p P)) {
	t.Helper()
	on(t, o, e, func(ctx context.Context, p P, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		fn(ctx, p)
		return struct{}{}, nil
	})
}

// reply is what the scripted model answers to one request.
type reply func(ctx context.Context, req llm.Request) llm.Stream

// model is an adapter that plays replies and keeps the requests it got.
type model struct {
	mu       sync.Mutex
	replies  []reply
	requests []llm.Request
	info     llm.ModelInfo
}

func (m *model) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		m.mu.Lock()
		m.requests = append(m.requests, req)
		var r reply
		switch {
		case len(m.replies) > 1:
			r, m.replies = m.replies[0], m.replies[1:]
		case len(m.replies) == 1:
			r = m.replies[0]
		default:
			r = say("ok")
		}
		m.mu.Unlock()
		r(ctx, req)(yield)
	}
}

func (m *model) ResolveModel(_ context.Context, route, id string) (llm.ModelInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	info := m.info
	info.Provider, info.ID, info.Name = route, id, id
	return info, nil
}

func (m *model) asked() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// script appends replies; the last one is repeated for ever.
func (m *model) script(rs ...reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies = rs
}

func chunks(cs ...llm.Chunk) reply {
	return func(ctx context.Context, _ llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			for _, c := range cs {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

func text(i int, s string) []llm.Chunk {
	return []llm.Chunk{llm.BlockStart{Index: i, BlockType: llm.KindText}, llm.TextDelta{Index: i, Text: s}, llm.BlockEnd{Index: i, Block: llm.Text{Text: s}}}
}

func finish(kind llm.FinishKind) llm.Chunk { return llm.Finish{Reason: llm.FinishReason{Kind: kind}} }

func failing(code seams.Code, status int) reply {
	return func(context.Context, llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			e := llm.NewError(code, "it failed")
			e.Status = status
			yield(nil, e)
		}
	}
}

func say(s string) reply {
	return chunks(append(text(0, s), llm.Usage{Usage: llm.TokenUsage{InputTokens: 10, OutputTokens: 5}}, finish(llm.Stop))...)
}

func want(calls ...llm.ToolCall) reply {
	var cs []llm.Chunk
	for i, c := range calls {
		cs = append(cs, llm.BlockStart{Index: i, BlockType: llm.KindToolCall},
			llm.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, ArgumentsDelta: c.Arguments}, llm.BlockEnd{Index: i, Block: c})
	}
	return chunks(append(cs, finish(llm.ToolCalls))...)
}

func use(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: args}
}

// hang yields chunks and then waits for the cancel.
func hang(began chan<- struct{}, cs ...llm.Chunk) reply {
	return func(ctx context.Context, _ llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			for _, c := range cs {
				if !yield(c, nil) {
					return
				}
			}
			if began != nil {
				began <- struct{}{}
			}
			<-ctx.Done()
			yield(nil, ctx.Err())
		}
	}
}

// world is everything an agent needs, in memory.
type world struct {
	t       testing.TB
	bus     *bus
	owner   *owner
	llm     *llm.Registry
	tools   *tools.Registry
	store   *events.Memory
	prompt  *agents.Sections
	agents  *agents.Registry
	model   *model
	mu      sync.Mutex
	strayed []error // contained failures
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, bus: &bus{}, model: &model{}}
	w.owner = &owner{name: "test", bus: w.bus}
	contained := func(_ context.Context, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.strayed = append(w.strayed, err)
	}
	w.llm = llm.NewRegistry(w.bus, nil)
	w.tools = tools.New(tools.Options{Bus: w.bus, Contained: contained})
	w.store = events.NewMemory(events.Options{Bus: w.bus, Contained: contained, Enforce: true})
	w.prompt = agents.NewSections(nil)
	w.agents = agents.New(agents.Deps{Bus: w.bus, LLM: w.llm, Tools: w.tools, Sessions: w.store, Prompt: w.prompt, Contained: contained})
	if _, err := w.llm.RegisterAdapter(w.owner, llm.Registration{Routes: []string{"test"}, Adapter: w.model}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.owner.dispose(t) })
	return w
}

func (w *world) contained() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.strayed)
}

var testOptions = agents.Options{CallConfig: llm.CallConfig{Provider: "test", Model: "m"}}

func (w *world) agent(opts ...func(*agents.Spec)) *agents.Agent {
	w.t.Helper()
	s := agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions}
	for _, o := range opts {
		o(&s)
	}
	a, err := w.agents.Create(w.t.Context(), w.owner, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) tool(name string, body func(ctx context.Context, args map[string]any) (any, error), change ...func(*tools.Definition)) seams.Undo {
	w.t.Helper()
	return w.toolOf(w.owner, name, body, change...)
}

func (w *world) toolOf(o *owner, name string, body func(ctx context.Context, args map[string]any) (any, error), change ...func(*tools.Definition)) seams.Undo {
	w.t.Helper()
	d := tools.Definition{Name: name, Description: name, Execute: func(ctx context.Context, _ *tools.Exec, args any) (any, error) {
		return body(ctx, args.(map[string]any))
	}}
	for _, c := range change {
		c(&d)
	}
	undo, err := w.tools.Register(o, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return undo
}

func parallel(d *tools.Definition) { d.IsConcurrencySafe = func(any) bool { return true } }

func echo(s string) func(context.Context, map[string]any) (any, error) {
	return func(context.Context, map[string]any) (any, error) { return s, nil }
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask sends a text and waits until the agent is idle.
func ask(t testing.TB, a *agents.Agent, s string) agents.Result {
	t.Helper()
	return a.Run(t.Context(), llm.UserText(s))
}

// types are the types of a log's events, chunks and splices left out.
func types(log []events.Event) []string {
	var out []string
	for _, e := range log {
		if e.Type != events.AssistantChunk.Name && e.Type != events.InboxSpliced.Name {
			out = append(out, e.Type)
		}
	}
	return out
}

func pick[T any](t testing.TB, a *agents.Agent, typ events.Type[T]) []T {
	t.Helper()
	var out []T
	for _, e := range a.Session().Events(0) {
		if typ.Is(e) {
			v, err := typ.Decode(e)
			must(t, err)
			out = append(out, v)
		}
	}
	return out
}

// lastEnd is why the last turn ended.
func lastEnd(t testing.TB, a *agents.Agent) events.EndReason {
	t.Helper()
	ends := pick(t, a, events.TurnEnd)
	if len(ends) == 0 {
		t.Fatal("no turn has ended")
	}
	return ends[len(ends)-1].Reason
}

// shape is a message in short: "user: hi", "assistant: text(c1,c2)", "result c1!: text".
func shape(m llm.Message) string {
	var calls []string
	for _, c := range m.Content.ToolCalls() {
		calls = append(calls, c.ID)
	}
	switch {
	case m.Source.Kind == llm.FromTool:
		r := m.Content[0].(llm.ToolResult)
		bang := ""
		if r.IsError {
			bang = "!"
		}
		return fmt.Sprintf("result %s%s: %s", r.ToolCallID, bang, r.Content.Text())
	case len(calls) > 0:
		return fmt.Sprintf("%s: %s(%s)", m.Role, m.Content.Text(), strings.Join(calls, ","))
	}
	return fmt.Sprintf("%s: %s", m.Role, m.Content.Text())
}

func shapes(ms []llm.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, shape(m))
	}
	return out
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	must(t, err)
	w, err := json.MarshalIndent(want, "", " ")
	must(t, err)
	if string(g) != string(w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
