package agents

import (
	"context"
	"errors"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// Key is the service a composition keeps its agents in.
var Key = seams.Key[*Registry]{Name: "agents"}

// LLM is what agents need of the language-model seam; *llm.Registry is one.
type LLM interface {
	Prepare(ctx context.Context, scope *seams.Scope, cfg llm.CallConfig) (*llm.PreparedCall, error)
	Stream(ctx context.Context, scope *seams.Scope, req llm.Request) llm.Stream
}

// Tools is what agents need of the tools seam; *tools.Registry is one.
type Tools interface {
	Schemas(scope *seams.Scope) []llm.ToolSchema
	Get(scope *seams.Scope, name string) (tools.Definition, bool)
	ExecutionMode(ctx context.Context, scope *seams.Scope, name string, args any) tools.ExecutionMode
	Execute(ctx context.Context, c tools.Call) *tools.Result
}

// Deps is what agents work with. All but Stamp and Contained are needed.
type Deps struct {
	Bus      seams.Bus
	LLM      LLM
	Tools    Tools
	Sessions events.Store
	Prompt   Prompt
	// Stamp is the container's publication stamp, see [seams.NewRegistry].
	Stamp func() uint64
	// Contained is told what observers failed with.
	Contained func(ctx context.Context, err error)
}

// Registry makes agents and finds them. It is the service "agents".
type Registry struct {
	deps   Deps
	agents *seams.Registry[*Agent]
	waits  waits
}

// New makes a registry.
func New(d Deps) *Registry {
	return &Registry{deps: d, agents: seams.NewRegistry[*Agent]("agent", d.Stamp), waits: waits{of: map[*Agent][]*Agent{}}}
}

// Spec describes an agent to be made.
type Spec struct {
	// Header is the session's; its ID is the agent's too.
	Header events.Header
	// Seed is the history a new session begins with, see [events.Spec].
	Seed    []events.Event
	Options Options
	// Setup prepares the agent before anybody sees it: what is registered in
	// its scope is there for its first prompt. The Undo it returns, which may be
	// nil, is called when the agent has become idle for the last time.
	Setup func(ctx context.Context, a *Agent) (seams.Undo, error)
}

// Create makes an agent with a new session, as an effect of o: the agent is
// disposed with it. The agent's scope lies in o's. ctx bounds the creation
// alone. It fails with INVALID_ARGUMENT for options, SESSION_ALREADY_EXISTS or
// DUPLICATE for the id, and with the error of Setup or of a listener of [Created];
// then nothing of it is left and the id is free.
func (r *Registry) Create(ctx context.Context, o seams.Owner, s Spec) (*Agent, error) {
	return r.make(ctx, o, s, Startup, func(scope *seams.Scope) (events.Session, error) {
		return r.deps.Sessions.Prepare(ctx, events.Spec{Header: s.Header, Seed: s.Seed, Scope: scope})
	})
}

// Resume makes an agent of the closed session with the header's ID; of the rest
// of the header and the seed nothing is used. Options without a model take the
// session's. It fails as Create does, and with SESSION_NOT_FOUND or
// SESSION_ALREADY_LIVE.
func (r *Registry) Resume(ctx context.Context, o seams.Owner, s Spec) (*Agent, error) {
	return r.make(ctx, o, s, Resumed, func(scope *seams.Scope) (events.Session, error) {
		return r.deps.Sessions.Resume(ctx, s.Header.ID, scope)
	})
}

// Get returns the agent of an id that scope sees.
func (r *Registry) Get(scope *seams.Scope, id string) (*Agent, bool) {
	e, ok := r.agents.Get(scope, id)
	return e.Value, ok
}

// List returns the agents that scope sees, in order of creation.
func (r *Registry) List(scope *seams.Scope) []*Agent {
	var out []*Agent
	for _, e := range r.agents.All(scope) {
		out = append(out, e.Value)
	}
	return out
}

// make takes an agent from nothing to published, in the order of dsh §5.5.
func (r *Registry) make(ctx context.Context, o seams.Owner, s Spec, source StartSource, open func(*seams.Scope) (events.Session, error)) (*Agent, error) {
	opts, err := s.Options.check()
	if err != nil {
		return nil, err
	}
	id := s.Header.ID
	a := &Agent{
		deps: &r.deps, waits: &r.waits, scope: seams.NewScope("agent "+id, o.Scope()), over: make(chan struct{}),
		editor: make(chan struct{}, 1), options: opts, edits: 1, locked: true, callIDs: map[string]bool{},
	}
	a.undo = func(context.Context) error { return a.busy("dispose") }
	// Without a name nobody finds it yet; it is unregistered after its teardown.
	entry, err := r.agents.Register(o, "agents.entry("+id+")", a)
	if err != nil {
		return nil, err
	}
	p := &publication{Agent: a, entry: entry}
	end, err := o.Effect("agents.create("+id+")", func(context.Context) (seams.Undo, error) {
		if err := p.prepare(ctx, s, open); err != nil {
			return nil, err
		}
		return p.teardown, nil
	})
	if err != nil {
		return nil, errors.Join(err, entry.Undo(context.WithoutCancel(ctx)))
	}
	undo := func(ctx context.Context) error {
		if err := end(ctx); err != nil {
			return err
		}
		select {
		case <-a.over:
			return entry.Undo(ctx)
		case <-ctx.Done():
			select {
			case <-a.over:
				return entry.Undo(ctx)
			default:
			}
			return seams.Errorf(seams.Aborted, "agents.dispose", "waiting for the end of agent %q: %w", id, context.Cause(ctx))
		}
	}
	a.mu.Lock()
	a.undo = undo
	a.mu.Unlock()
	if err := p.publish(ctx, source); err != nil {
		return nil, errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	a.unlock()
	return a, nil
}

// publication is how far an agent has come, so that what was announced is
// taken back and nothing else.
type publication struct {
	*Agent
	entry     *seams.Registration[*Agent]
	unset     seams.Undo // of Setup
	announced bool
}

func (p *publication) prepare(ctx context.Context, s Spec, open func(*seams.Scope) (events.Session, error)) error {
	session, err := open(p.scope)
	if err != nil {
		return err
	}
	p.session = session
	if err = p.restore(); err == nil && s.Setup != nil {
		p.unset, err = s.Setup(ctx, p.Agent)
	}
	if err == nil && ctx.Err() != nil {
		err = seams.Errorf(seams.Aborted, "agents.create", "agent %q: %w", s.Header.ID, context.Cause(ctx))
	}
	if err != nil {
		return errors.Join(err, p.unwind(context.WithoutCancel(ctx)))
	}
	return nil
}

func (p *publication) publish(ctx context.Context, source StartSource) error {
	if err := p.session.Enter(); err != nil {
		return err
	}
	if err := p.entry.Rename(p.ID()); err != nil {
		return err
	}
	if err := p.session.Announce(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.announced = !p.closing
	p.mu.Unlock()
	if !p.announced {
		return p.gone("publish")
	}
	ctx = context.WithValue(ctx, agentKey{}, p.Agent)
	if _, err := Created.Dispatch(ctx, p.deps.Bus, p.scope, Notice{p.Agent}, nil); err != nil {
		return err
	}
	notify(ctx, p.Agent, SessionStart, StartNotice{p.Agent, source})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return p.gone("publish")
	}
	return nil
}

// unlock starts what was sent while the agent was published.
func (a *Agent) unlock() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.locked = false
	if len(a.woken) > 0 {
		a.launch()
	}
}

// teardown ends the agent: cancel, wait, undo Setup, say so, close the session
//
func (p *publication) teardown(ctx context.Context) error {
	p.mu.Lock()
	p.closing, p.woken = true, nil
	p.mu.Unlock()
	err := p.Cancel(ctx, events.Cause{Kind: events.ByDisposal}, true)
	// An undo is never left half done: past its deadline it is reported, and
	// still waits.
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, p.idle(ctx), p.unwind(ctx))
}

func (p *publication) unwind(ctx context.Context) error {
	var err error
	if p.unset != nil {
		err = p.unset(ctx)
	}
	p.mu.Lock()
	announced := p.announced
	p.mu.Unlock()
	if announced {
		notify(ctx, p.Agent, Disposed, Notice{p.Agent})
	}
	_ = p.entry.Rename() // nobody finds it any more; it has no name if it never was found
	err = errors.Join(err, p.session.Close(ctx))
	close(p.over)
	return err
}
