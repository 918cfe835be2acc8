package cordistools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// groupName is the fiber that all mounts stand below.
const groupName = "cordis-dynamic"

// always may be injected without a grant.
var always = []string{"tools", "timer", "logger", "events", "memory", "llm"}

type config struct {
	VMTimeoutMS float64 `json:"vmTimeoutMs"`
	MaxMounts   int     `json:"maxMounts"`
	Policy      policy  `json:"policy"`
}

type policy struct {
	Allow any `json:"allow"` // "*" or []any of names
	Wrap  any `json:"wrap"`
}

func names(description string) *schema.Schema {
	return schema.Union(schema.Const("*"), schema.Array(schema.String())).Description(description)
}

var configSchema = schema.As[config](schema.Object(schema.Fields{
	"vmTimeoutMs": schema.Number().Min(1).Default(5000).Description("bounds each synchronous turn of a mount, in milliseconds"),
	"maxMounts":   schema.Natural().Min(1).Default(32).Description("mounts at a time"),
	"policy": schema.Object(schema.Fields{
		"allow": names("services a mount may inject beside tools, timer, logger, events, memory and llm; '*' is all of them, which is as much as a shell"),
		"wrap":  names("waterfall events a mount may wrap"),
	}),
}))

// permit answers an error, with the line of policy that would allow it, for what
// is not granted.
func (p policy) permit(want script.Permission) error {
	has := func(v any, name string) bool {
		list, _ := v.([]any)
		return v == "*" || slices.Contains(list, any(name))
	}
	switch {
	case p.Allow == "*":
		return nil
	case want.Kind == script.Inject && (slices.Contains(always, want.Name) || has(p.Allow, want.Name)):
		return nil
	case want.Kind == script.Wrap && has(p.Wrap, want.Name):
		return nil
	}
	line, what := "allow", "inject the service"
	if want.Kind == script.Wrap {
		line, what = "wrap", "wrap the event"
	}
	list, _ := map[string]any{"allow": p.Allow, "wrap": p.Wrap}[line].([]any)
	var all []string
	for _, n := range list {
		all = append(all, fmt.Sprint(n))
	}
	return seams.Errorf(seams.NotPermitted, "cordis_mount", "a mount may not %s %q here; the entry cordis-tools would permit it with\n  policy: {%s: [%s]}",
		what, want.Name, line, strings.Join(append(all, want.Name), ", "))
}

// Plugin returns the plugin; engine makes plugins of code.
func Plugin(engine *script.Engine) *cordis.Plugin {
	p := cordis.Define("cordis-tools", func(ctx *cordis.Context, cfg config) error { return apply(ctx, cfg, engine) },
		cordis.Need{Name: tools.Key.Name})
	p.Config = configSchema
	return p
}

// toolset is one activation of the plugin.
type toolset struct {
	engine *script.Engine
	cfg    config
	ctx    *cordis.Context
	group  *cordis.Context // mounts stand below it

	mu     sync.Mutex
	count  int
	under  int      // mounts on their way
	mounts []*mount // in order of mounting
}

// mount is a row of the table.
type mount struct {
	id    string
	name  string
	fiber *cordis.Fiber
}

func apply(ctx *cordis.Context, cfg config, engine *script.Engine) error {
	registry, err := cordis.Get(ctx, tools.Key)
	if err != nil {
		return err
	}
	t := &toolset{engine: engine, cfg: cfg, ctx: ctx}
	group, err := ctx.Plugin(&cordis.Plugin{Name: groupName, Apply: func(ctx *cordis.Context, _ any) error {
		t.group = ctx
		return nil
	}}, nil)
	if err != nil {
		return err
	}
	if err := group.Ready().Wait(ctx.Context()); err != nil {
		return err
	}
	for _, d := range t.definitions() {
		if _, err := registry.Register(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// budgets bound a mount's realm.
func (t *toolset) budgets() sandbox.Budgets {
	return sandbox.Budgets{Turn: time.Duration(t.cfg.VMTimeoutMS * float64(time.Millisecond))}
}

// report is what cordis_mount answers.
type report struct {
	id, name, state   string
	provides, waiting []string
}

func (r report) value() map[string]any {
	return map[string]any{"id": r.id, "pluginName": r.name, "state": r.state, "provides": list(r.provides), "waitingFor": list(r.waiting)}
}

func list(s []string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}

const lifetime = "in memory only, until it is unmounted or the process ends"

func (r report) text() string {
	if len(r.waiting) > 0 {
		return fmt.Sprintf("Temporary Plugin %s is pending (plugin %q; missing services: %s; %s). It starts by itself when they are provided.", r.id, r.name, strings.Join(r.waiting, ", "), lifetime)
	}
	return fmt.Sprintf("Temporary Plugin %s is running (plugin %q; %s). Its tools can be called from the next step on.", r.id, r.name, lifetime)
}

// mount evaluates code and runs the plugin it returns.
func (t *toolset) mount(ctx context.Context, code string) (report, error) {
	t.running()
	t.mu.Lock()
	if len(t.mounts)+t.under >= t.cfg.MaxMounts {
		t.mu.Unlock()
		return report{}, seams.Errorf(seams.TooMany, "cordis_mount", "there are %d temporary plugins, which is the limit; unmount one first (cordis_inspect with what: temporary lists them)", t.cfg.MaxMounts)
	}
	t.count++
	t.under++
	m := &mount{id: fmt.Sprintf("dyn-%d", t.count)}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.under--
		t.mu.Unlock()
	}()

	p, err := t.engine.Mount(ctx, script.Mount{ID: m.id, Code: code, Budgets: t.budgets(), Permit: t.cfg.Policy.permit})
	if err != nil {
		return report{}, err
	}
	m.name = p.Name
	if m.name == "" {
		m.name = "<anonymous>"
	}
	f, err := t.group.Plugin(p, nil)
	if err != nil {
		return report{}, teach(err)
	}
	m.fiber = f
	if err := f.Settle(ctx); err != nil {
		if gone := f.Dispose().Wait(context.WithoutCancel(ctx)); gone != nil {
			err = fmt.Errorf("%w; and taking it back failed: %w", err, gone)
		}
		return report{}, teach(err)
	}
	t.mu.Lock()
	t.mounts = append(t.mounts, m)
	t.mu.Unlock()
	return t.describe(t.ctx.Container().Inspect(), m), nil
}

// teach adds the way out to an error of a name that is taken.
func teach(err error) error {
	code := seams.CodeOf(err)
	if code != seams.Duplicate && code != seams.Clash {
		return err
	}
	return seams.Errorf(code, "cordis_mount", "%w. If an older version of this plugin holds it, unmount that one first (cordis_inspect with what: temporary shows its id), then mount the new version", err)
}

// unmount removes a mount. When it returns, nothing of it is left; called from
// inside the mount itself it returns before, and the mount goes when that call
// has ended.
func (t *toolset) unmount(ctx context.Context, id string) (m *mount, later bool, err error) {
	t.mu.Lock()
	i := slices.IndexFunc(t.mounts, func(m *mount) bool { return m.id == id })
	if i < 0 {
		t.mu.Unlock()
		return nil, false, seams.Errorf(seams.NotFound, "cordis_unmount", "there is no temporary plugin %q; cordis_inspect with what: temporary lists those there are", id)
	}
	m = t.mounts[i]
	t.mounts = slices.Delete(t.mounts, i, i+1)
	t.mu.Unlock()
	switch err = m.fiber.Dispose().Wait(ctx); seams.CodeOf(err) {
	case seams.WouldDeadlock:
		return m, true, nil
	default:
		return m, false, err
	}
}

// describe reads a mount's row from a snapshot.
func (t *toolset) describe(s cordis.Snapshot, m *mount) report {
	r := report{id: m.id, name: m.name, state: cordis.Disposed.String()}
	below := map[uint64]bool{}
	for _, f := range s.Fibers { // parents stand before their children
		if f.ID == m.fiber.ID() {
			r.state = f.State
			below[f.ID] = true
			if f.State == cordis.Pending.String() {
				for _, n := range f.Inject {
					if n.Provider == 0 && !n.Optional {
						r.waiting = append(r.waiting, n.Service)
					}
				}
			}
		}
		if below[f.Parent] {
			below[f.ID] = true
		}
	}
	for _, sv := range s.Services {
		if below[sv.Provider] {
			r.provides = append(r.provides, sv.Name)
		}
	}
	return r
}

// running returns the mounts that are still there, oldest first. One whose realm
// died, or whose owner disposed it, has gone by itself.
func (t *toolset) running() []*mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mounts = slices.DeleteFunc(t.mounts, func(m *mount) bool { return m.fiber.State() == cordis.Disposed })
	return slices.Clone(t.mounts)
}
