package builtins

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins/agentloop"
	"github.com/ouro-run/ouro/builtins/http"
	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Options say what to run.
type Options struct {
	// File is the path of cordis.yml.
	File string
	// Text is a composition that does not stand on disk; File then only names it.
	Text []byte
	// CWD is the agents' working directory, absolute.
	CWD string
	// Env is what plugin files and expressions see as process.env.
	Env map[string]string
	// Version is the program's.
	Version string
	// Watch applies changes of files as they happen.
	Watch bool
	// Log gets what plugins log, a line each.
	Log io.Writer
	// Fault is told each fault of the composition once. Report is told each other
	// error that no caller is answered with. Both may be called from any
	// goroutine; nil drops them.
	Fault  func(loader.Fault)
	Report func(cordis.Report)
}

// Runtime is a running composition.
type Runtime struct {
	opt       Options
	dir       string
	identity  llm.Identity
	client    *http.Client // of plugin files' global fetch
	engine    *script.Engine
	container *cordis.Container
	loader    *loader.Loader
}

// Open starts a composition and waits until it is at rest: entries are active,
// failed, or wait for a service.
func Open(ctx context.Context, opt Options) (*Runtime, error) {
	r, err := prepare(opt)
	if err != nil {
		return nil, err
	}
	if err = r.loader.Start(ctx); err == nil {
		err = r.loader.Settle(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// Check answers everything that is wrong with a composition, and starts nothing.
func Check(ctx context.Context, opt Options) ([]loader.Fault, error) {
	r, err := prepare(opt)
	if err != nil {
		return nil, err
	}
	defer r.Close(context.WithoutCancel(ctx))
	return append(r.loader.Check(ctx), r.lint()...), nil
}

func prepare(opt Options) (*Runtime, error) {
	file, err := filepath.Abs(opt.File)
	if err != nil {
		return nil, seams.Errorf(seams.InvalidArgument, "builtins.Open", "%q is not a path: %w", opt.File, err)
	}
	if opt.Report == nil {
		opt.Report = func(cordis.Report) {}
	}
	if opt.Log == nil {
		opt.Log = io.Discard
	}
	r := &Runtime{opt: opt, dir: filepath.Dir(file), identity: llm.Ouro(opt.Version), client: http.New(http.Config{})}
	r.container = cordis.New(cordis.Options{Report: r.report})
	r.engine = script.New(script.Options{Env: opt.Env, Fetch: r.client.Fetch, Identity: r.identity, Report: opt.Report, Log: r.log})
	r.loader, err = loader.New(r.container.Root(), loader.Options{
		File: file, Text: opt.Text, Builtins: r.catalogue(), Defaults: defaults,
		Load: r.engine.File, Eval: func(expr string) (any, error) { return r.engine.Eval(context.Background(), expr) },
		Report: opt.Fault, Watch: opt.Watch,
	})
	if err != nil {
		return nil, errors.Join(err, r.Close(context.Background()))
	}
	return r, nil
}

// report leaves failures of entries to the loader, which knows their place.
func (r *Runtime) report(rep cordis.Report) {
	if rep.Phase == "apply" && rep.Fiber != nil && r.loader.Owns(rep.Fiber) {
		return
	}
	r.opt.Report(rep)
}

func (r *Runtime) log(plugin, level, text string) {
	_, _ = io.WriteString(r.opt.Log, level+" "+plugin+": "+strings.ReplaceAll(text, "\n", "\n\t")+"\n")
}

// Container returns the container, to inspect it or to mount Go plugins.
func (r *Runtime) Container() *cordis.Container { return r.container }

// Loader returns the loader, to see the entries.
func (r *Runtime) Loader() *loader.Loader { return r.loader }

// Loop returns the agents that the composition declares. NOT_PROVIDED when no
// entry runs an agent loop.
func (r *Runtime) Loop() (*agentloop.Loop, error) {
	l, ok := cordis.Lookup(r.container.Root(), agentloop.Key)
	if ok {
		return l, nil
	}
	for _, e := range r.loader.Entries() {
		if e.Name == "agent-loop" || aliases[e.Name] == "agent-loop" {
			return nil, seams.Errorf(seams.NotProvided, "builtins", "no agent loop runs: the entry %s is %s", e.ID, e.State)
		}
	}
	return nil, seams.Errorf(seams.NotProvided, "builtins", "no agent loop runs: the composition has no entry `name: agent-loop`")
}

// Agent returns a declared agent, the first one for "".
func (r *Runtime) Agent(name string) (*agents.Agent, error) {
	l, err := r.Loop()
	if err != nil {
		return nil, err
	}
	return l.Agent(name)
}

// Provides reports whether name is a model route or the id of an entry, so that
// `name/model` means the model of that provider.
func (r *Runtime) Provides(name string) bool {
	for _, e := range r.loader.Entries() {
		if e.ID == name {
			return true
		}
	}
	registry, ok := cordis.Lookup(r.container.Root(), llm.Key)
	return ok && slices.ContainsFunc(registry.ListProviders(nil), func(p llm.ProviderInfo) bool { return p.ID == name })
}

// Close stops everything and joins it, at most until ctx ends. Idempotent.
func (r *Runtime) Close(ctx context.Context) error {
	var errs []error
	if r.loader != nil {
		errs = append(errs, r.loader.Close(ctx))
	}
	errs = append(errs, r.container.Close(ctx), r.engine.Close())
	r.client.Close()
	return errors.Join(errs...)
}
