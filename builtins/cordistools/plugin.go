package cordistools

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams/tools"
)

// groupName is the fiber that all mounts stand below.
const groupName = "cordis-dynamic"

type config struct {
	VMTimeoutMS    float64 `json:"vmTimeoutMs"`
	ApplyTimeoutMS float64 `json:"applyTimeoutMs"`
	CallTimeoutMS  float64 `json:"callTimeoutMs"`
	MaxMounts      int     `json:"maxMounts"`
	Policy         policy  `json:"policy"`
}

var configSchema = schema.As[config](schema.Object(schema.Fields{
	"vmTimeoutMs":    schema.Number().Min(1).Default(5000).Description("bounds each synchronous turn of a mount, in milliseconds"),
	"applyTimeoutMs": schema.Number().Min(1).Default(10_000).Description("bounds the start of a mount, in milliseconds"),
	"callTimeoutMs":  schema.Number().Min(1).Default(30_000).Description("bounds a call of a mount's tool, in milliseconds"),
	"maxMounts":      schema.Natural().Min(1).Default(32).Description("mounts at a time"),
	"policy":         policySchema,
}))

// Plugin returns the plugin; engine makes plugins of code. The ids of mounts are
// unique among all activations of the one that is returned.
func Plugin(engine *script.Engine) *cordis.Plugin {
	ids := new(atomic.Int64)
	p := cordis.Define("cordis-tools", func(ctx *cordis.Context, cfg config) error {
		return (&toolset{engine: engine, ids: ids, cfg: cfg, ctx: ctx}).apply()
	}, cordis.Need{Name: tools.Key.Name})
	p.Config = configSchema
	return p
}

// toolset is one activation of the plugin.
type toolset struct {
	engine *script.Engine
	ids    *atomic.Int64
	cfg    config
	ctx    *cordis.Context
	group  *cordis.Context // mounts stand below it

	mu     sync.Mutex
	coming int      // mounts on their way
	mounts []*mount // in order of mounting
}

func (t *toolset) apply() error {
	registry, err := cordis.Get(t.ctx, tools.Key)
	if err != nil {
		return err
	}
	group, err := t.ctx.Plugin(&cordis.Plugin{Name: groupName, Apply: func(ctx *cordis.Context, _ any) error {
		t.group = ctx
		return nil
	}}, nil)
	if err != nil {
		return err
	}
	if err := group.Ready().Wait(t.ctx.Context()); err != nil {
		return err
	}
	for _, d := range t.definitions() {
		if _, err := registry.Register(t.ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
