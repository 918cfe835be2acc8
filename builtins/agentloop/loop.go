package agentloop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// Key is the service through which front ends find the declared agents.
var Key = seams.Key[*Loop]{Name: "agentLoop"}

// identity is the one line of the system prompt that is always there.
const identity = "You are an agent in Ouro, a runtime that can be inspected and extended while it runs."

// Plugin returns the plugin. cwd is the working directory of agents that name
// none; it is absolute.
func Plugin(cwd string) *cordis.Plugin {
	p := cordis.Define("agent-loop", func(ctx *cordis.Context, cfg config) error { return apply(ctx, cfg, cwd) },
		cordis.Inject(llm.Key.Name, tools.Key.Name, events.Key.Name)...)
	p.Provide = []string{agents.Key.Name, agents.PromptKey.Name, Key.Name}
	p.Config = configSchema
	return p
}

// Loop keeps the agents of one entry.
type Loop struct {
	ctx *cordis.Context
	reg *agents.Registry
	cwd string

	updating sync.Mutex // held while the agents change

	mu       sync.Mutex
	cfg      config
	override func(agents.Options) agents.Options
	agents   []declared
}

// declared is an agent the entry names. One whose creation failed has an error.
type declared struct {
	label string
	agent *agents.Agent
	err   error
}

func apply(ctx *cordis.Context, cfg config, cwd string) error {
	llms, err := cordis.Get(ctx, llm.Key)
	if err != nil {
		return err
	}
	toolset, err := cordis.Get(ctx, tools.Key)
	if err != nil {
		return err
	}
	store, err := cordis.Get(ctx, events.Key)
	if err != nil {
		return err
	}
	prompt := agents.NewSections(ctx.Container().Stamp)
	l := &Loop{ctx: ctx, cwd: cwd, cfg: cfg, reg: agents.New(agents.Deps{
		Bus: ctx, LLM: llms, Tools: toolset, Sessions: store, Prompt: prompt,
		Stamp:     ctx.Container().Stamp,
		Contained: func(_ context.Context, err error) { ctx.Report("observer", "agent", err) },
	})}
	if err := l.sections(prompt); err != nil {
		return err
	}
	if _, err := cordis.Provide(ctx, agents.Key, l.reg); err != nil {
		return err
	}
	if _, err := cordis.Provide(ctx, agents.PromptKey, prompt); err != nil {
		return err
	}
	if _, err := cordis.Provide(ctx, Key, l); err != nil {
		return err
	}
	var made []declared
	for _, a := range cfg.all() {
		made = append(made, l.create(ctx.Context(), a))
	}
	l.mu.Lock()
	l.agents = made
	l.mu.Unlock()
	return ctx.OnUpdate(func(raw any) (bool, error) {
		next, ok := raw.(config)
		if !ok {
			return false, nil
		}
		l.updating.Lock()
		defer l.updating.Unlock()
		return true, l.update(next)
	})
}

func (l *Loop) sections(prompt *agents.Sections) error {
	text := func(f func() string) func(context.Context, agents.PromptRequest) (string, error) {
		return func(context.Context, agents.PromptRequest) (string, error) { return f(), nil }
	}
	workspace := agents.Workspace()
	inner := workspace.Text
	workspace.Text = func(ctx context.Context, r agents.PromptRequest) (string, error) {
		if !l.config().WorkspaceContext {
			return "", nil
		}
		return inner(ctx, r)
	}
	for _, s := range []agents.Section{
		{Name: "identity", Order: -100, Text: text(func() string { return identity })},
		{Name: "persona", Order: 0, Text: text(func() string { return l.config().Persona })},
	} {
		if _, err := prompt.Section(l.ctx, s); err != nil {
			return err
		}
	}
	_, err := prompt.Context(l.ctx, workspace)
	return err
}

func (l *Loop) config() config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg
}

// create makes one declared agent. A failure is kept for whoever asks for that
// agent, and reported; the others are made all the same.
func (l *Loop) create(ctx context.Context, a agentConfig) declared {
	spec := agents.Spec{Header: events.Header{ID: a.SessionID, CWD: l.cwd}, Options: l.options(l.config(), a)}
	if a.CWD != "" {
		spec.Header.CWD = a.CWD
		if !filepath.IsAbs(a.CWD) {
			spec.Header.CWD = filepath.Join(l.cwd, a.CWD)
		}
	}
	d := declared{label: a.ID}
	switch {
	case a.SessionID != "" && a.ResumeSessionID != "":
		d.err = seams.Errorf(seams.InvalidArgument, "agent-loop", "agent %s has both sessionId and resumeSessionId", a.ID)
	case a.ResumeSessionID != "":
		spec.Header.ID = a.ResumeSessionID
		d.agent, d.err = l.reg.Resume(ctx, l.ctx, spec)
	default:
		if spec.Header.ID == "" {
			spec.Header.ID = a.ID + "-session-" + fresh()
		}
		d.agent, d.err = l.reg.Create(ctx, l.ctx, spec)
	}
	if d.err != nil {
		l.ctx.Report("agent", a.ID, d.err)
	}
	return d
}

func fresh() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// update takes a changed configuration in place. Until the agents are those of
// the new one, [Loop.Agent] finds those of the old. updating is held.
func (l *Loop) update(next config) error {
	l.mu.Lock()
	old := slices.Clone(l.agents)
	l.cfg = next
	l.mu.Unlock()
	var errs error
	var made []declared
	for _, a := range next.all() {
		kept := false
		for i, d := range old {
			if d.label == a.ID && d.agent != nil {
				kept = true
				if err := d.agent.Configure(l.options(next, a)); err != nil && errs == nil {
					errs = err
				}
				made = append(made, d)
				old = slices.Delete(old, i, i+1)
				break
			}
		}
		if !kept {
			made = append(made, l.create(l.ctx.Context(), a))
		}
	}
	l.mu.Lock()
	l.agents = made
	l.mu.Unlock()
	for _, d := range old {
		if d.agent == nil {
			continue
		}
		if _, err := l.ctx.Go("agent "+d.label+" leaves", func(ctx context.Context) error {
			if err := d.agent.WhenIdle(ctx); err != nil {
				return err
			}
			return d.agent.Dispose(ctx)
		}); err != nil && errs == nil {
			errs = err
		}
	}
	return errs
}

// Agent returns the declared agent called label, the first one for "". NOT_FOUND
// lists those there are; an agent that could not be made answers why.
func (l *Loop) Agent(label string) (*agents.Agent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, d := range l.agents {
		if d.label == label || label == "" {
			return d.agent, d.err
		}
		names = append(names, d.label)
	}
	return nil, seams.Errorf(seams.NotFound, "agent-loop", "there is no agent %q; there are: %s", label, strings.Join(names, ", "))
}

// Override changes the options of every agent, those created later included,
// after what the configuration says: a command line wins over the file.
func (l *Loop) Override(f func(agents.Options) agents.Options) error {
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	l.override = f
	cfg := l.cfg
	l.mu.Unlock()
	return l.update(cfg)
}

// options returns what a declared agent runs with.
func (l *Loop) options(c config, a agentConfig) agents.Options {
	l.mu.Lock()
	f := l.override
	l.mu.Unlock()
	if f == nil {
		return c.options(a)
	}
	return f(c.options(a))
}
