package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Key is the service a composition provides its tools under.
var Key = seams.Key[*Registry]{Name: "tools"}

// reserved is the name code mode will take.
const reserved = "run_code"

// Options is what a Registry needs of the container.
type Options struct {
	Bus seams.Bus
	// Stamp is the container's publication stamp, see [seams.NewRegistry].
	Stamp func() uint64
	// Approver returns who answers questions now, nil if nobody is provided, and
	// what gives it back after the answer. A nil function is one that returns nil.
	Approver func() (approver Approver, give func())
	// Contained is told what observers of Results and Changed failed with.
	Contained func(ctx context.Context, err error)
}

// Registry holds the tools of a composition and runs calls to them.
type Registry struct {
	opt          Options
	tools        *seams.Registry[*tool]
	guards       *seams.Registry[Guard]
	restrictions *seams.Registry[Filter]
	serial       atomic.Uint64 // names guards and restrictions, in order
}

// New makes a registry.
func New(opt Options) *Registry {
	if opt.Approver == nil {
		opt.Approver = func() (Approver, func()) { return nil, nil }
	}
	if opt.Contained == nil {
		opt.Contained = func(context.Context, error) {}
	}
	return &Registry{
		opt:          opt,
		tools:        seams.NewRegistry[*tool]("tool", opt.Stamp),
		guards:       seams.NewRegistry[Guard]("guard", opt.Stamp),
		restrictions: seams.NewRegistry[Filter]("restriction", opt.Stamp),
	}
}

// Guard returns why a call may not run, or "". An error denies too.
type Guard func(ctx context.Context, exec *Exec) (reason string, err error)

// Filter narrows the tools a scope inherits. An empty list is not given.
type Filter struct {
	Allow []string // nothing else is inherited
	Deny  []string // these are not inherited
}

// tool is a registered definition.
type tool struct {
	Definition
	wire llm.ToolSchema // what of it reaches a model
}

func compile(d Definition) (*tool, error) {
	op := "tools.register(" + d.Name + ")"
	if d.Parameters == nil {
		d.Parameters = schema.Object(nil).Open()
	}
	if err := d.Parameters.Err(); err != nil {
		return nil, seams.Errorf(seams.CodeOf(err), op, "parameters: %w", err)
	}
	if d.Output != nil {
		out := *d.Output
		d.Output = &out
		if out.Schema != nil && out.Schema.Err() != nil {
			return nil, seams.Errorf(seams.CodeOf(out.Schema.Err()), op, "output: %w", out.Schema.Err())
		}
	}
	params := d.Parameters.JSONSchema()
	if params["type"] != "object" {
		return nil, seams.Errorf(seams.InvalidArgument, op, "the parameters describe no object; the arguments of a tool are one")
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, seams.Errorf(seams.NotJSON, op, "parameters: %w", err)
	}
	return &tool{d, llm.ToolSchema{Name: d.Name, Description: d.Description, Parameters: raw}}, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Register adds a tool to o's scope, where it shadows an outer one of its
// name. It fails with DUPLICATE when the scope has the name, with
// INVALID_ARGUMENT when the definition is not complete, and with the error of a
// listener of [Changed], which undoes it (T-05, T-38, T-39, T-48).
func (r *Registry) Register(o seams.Owner, d Definition) (seams.Undo, error) {
	op := "tools.register"
	switch {
	case !nameForm.MatchString(d.Name):
		return nil, seams.Errorf(seams.InvalidArgument, op, "tool name %q: expected 1 to 64 letters, digits, '_' or '-'", d.Name)
	case d.Name == reserved:
		return nil, seams.Errorf(seams.InvalidArgument, op, "tool name %q is reserved; choose another", d.Name)
	case d.Execute == nil:
		return nil, seams.Errorf(seams.InvalidArgument, op, "tool %q has no Execute", d.Name)
	case d.Timeout < 0:
		return nil, seams.Errorf(seams.InvalidArgument, op, "tool %q: Timeout %v is negative; leave it zero for none", d.Name, d.Timeout)
	}
	t, err := compile(d)
	if err != nil {
		return nil, err
	}
	reg, err := r.tools.Register(r.announcing(o, Change{What: "tool", Name: d.Name}), op+"("+d.Name+")", t, d.Name)
	if err != nil {
		if errors.Is(err, seams.Duplicate) && o.Scope() == nil {
			err = seams.Errorf(seams.Duplicate, op, "%w; to replace it for one agent, register it in that agent's scope", err)
		}
		return nil, err
	}
	return reg.Undo, nil
}

// Guard adds a check to the calls of o's scope and of those below it. Guards
// run after [PreExecute]; they can only deny, so their order does not matter
// (T-51).
func (r *Registry) Guard(o seams.Owner, g Guard) (seams.Undo, error) {
	if g == nil {
		return nil, seams.Errorf(seams.InvalidArgument, "tools.guard", "a guard is a function")
	}
	reg, err := r.guards.Register(r.announcing(o, Change{What: "guard"}), "tools.guard", g, r.next())
	if err != nil {
		return nil, err
	}
	return reg.Undo, nil
}

// Restrict narrows what o's scope, and those below it, inherit from outer
// scopes; a scope's own tools stay. Several restrictions all hold (T-49).
// INVALID_ARGUMENT when o has no scope or the filter is empty, NOT_FOUND when it
// names a tool that is not there to be inherited.
func (r *Registry) Restrict(o seams.Owner, f Filter) (seams.Undo, error) {
	op := "tools.restrict"
	if o.Scope() == nil {
		return nil, seams.Errorf(seams.InvalidArgument, op, "only a scope can be restricted, and %s has none", o.Claim())
	}
	if len(f.Allow)+len(f.Deny) == 0 {
		return nil, seams.Errorf(seams.InvalidArgument, op, "the filter is empty: name tools in allow or in deny")
	}
	f = Filter{slices.Clone(f.Allow), slices.Clone(f.Deny)}
	var inherited []string
	for _, e := range r.tools.All(o.Scope().Parent()) {
		inherited = append(inherited, e.Name)
	}
	for _, n := range slices.Concat(f.Allow, f.Deny) {
		if n == reserved || !slices.Contains(inherited, n) {
			return nil, seams.Errorf(seams.NotFound, op, "%q is not an inherited tool; there are: %s", n, list(inherited))
		}
	}
	reg, err := r.restrictions.Register(r.announcing(o, Change{What: "restriction"}), op, f, r.next())
	if err != nil {
		return nil, err
	}
	return reg.Undo, nil
}

// next names an entry that has no name of its own, so that names sort in order
// of registration.
func (r *Registry) next() string { return fmt.Sprintf("%020d", r.serial.Add(1)) }

// Get returns the definition a scope sees under a name, as a copy.
func (r *Registry) Get(scope *seams.Scope, name string) (Definition, bool) {
	e, ok := r.find(scope, name)
	if !ok {
		return Definition{}, false
	}
	return e.Value.Definition, true
}

// Schemas returns what of the scope's tools reaches a model, in order of
// registration; the slice belongs to the caller (T-01, T-02).
func (r *Registry) Schemas(scope *seams.Scope) []llm.ToolSchema {
	out := []llm.ToolSchema{}
	for _, e := range r.visible(scope) {
		out = append(out, e.Value.wire)
	}
	return out
}

// ExecutionMode says how a call may be scheduled.
type ExecutionMode string

// Modes of execution.
const (
	Exclusive ExecutionMode = "exclusive" // alone
	Parallel  ExecutionMode = "parallel"  // beside other parallel calls
)

// ExecutionMode classifies a call: Parallel only if the tool is known, the
// arguments check and its IsConcurrencySafe says so (T-42).
func (r *Registry) ExecutionMode(ctx context.Context, scope *seams.Scope, name string, args any) (mode ExecutionMode) {
	mode = Exclusive
	e, ok := r.find(scope, name)
	if !ok || e.Value.IsConcurrencySafe == nil {
		return
	}
	args, err := snapshotArguments(args)
	if err != nil || e.Value.checkArguments(args) != nil {
		return
	}
	_, exit, err := e.Claim.Enter(ctx)
	if err != nil {
		return
	}
	defer exit()
	defer func() { _ = recover() }()
	if e.Value.IsConcurrencySafe(args) {
		mode = Parallel
	}
	return
}

func (r *Registry) find(scope *seams.Scope, name string) (seams.Entry[*tool], bool) {
	e, ok := r.tools.Get(scope, name)
	if !ok || masked(e, r.restrictionsOf(scope)) {
		return seams.Entry[*tool]{}, false
	}
	return e, true
}

func (r *Registry) visible(scope *seams.Scope) []seams.Entry[*tool] {
	limits := r.restrictionsOf(scope)
	return slices.DeleteFunc(r.tools.All(scope), func(e seams.Entry[*tool]) bool { return masked(e, limits) })
}

func (r *Registry) restrictionsOf(scope *seams.Scope) []seams.Entry[Filter] {
	if scope == nil {
		return nil
	}
	return r.restrictions.All(scope)
}

// masked reports whether a restriction of a scope inside the tool's own keeps
// the tool out.
func masked(e seams.Entry[*tool], limits []seams.Entry[Filter]) bool {
	return slices.ContainsFunc(limits, func(l seams.Entry[Filter]) bool {
		own := e.Scope.Within(l.Scope)
		allowed := len(l.Value.Allow) == 0 || slices.Contains(l.Value.Allow, e.Name)
		return !own && (!allowed || slices.Contains(l.Value.Deny, e.Name))
	})
}

// announcing is o with a notice of [Changed] in each of its effects: one after
// setup, whose error undoes it, and one after the undo.
func (r *Registry) announcing(o seams.Owner, c Change) seams.Owner {
	return announcer{o, r, c}
}

type announcer struct {
	seams.Owner
	r      *Registry
	change Change
}

func (a announcer) Effect(label string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	return a.Owner.Effect(label, func(ctx context.Context) (seams.Undo, error) {
		undo, err := setup(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := Changed.Dispatch(ctx, a.r.opt.Bus, nil, a.change, nil); err != nil {
			return nil, errors.Join(err, undo(ctx))
		}
		return func(ctx context.Context) error {
			err := undo(ctx)
			gone := a.change
			gone.Gone = true
			if _, contained := Changed.Dispatch(ctx, a.r.opt.Bus, nil, gone, nil); contained != nil {
				a.r.opt.Contained(ctx, contained)
			}
			return err
		}, nil
	})
}

// list joins names for a message, 30 at most.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if more := len(names) - 30; more > 0 {
		return strings.Join(names[:30], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}
