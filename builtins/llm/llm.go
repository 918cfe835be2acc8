package llm

import (
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/llm"
)

// Plugin returns the plugin.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: "llm", Provide: []string{llm.Key.Name}, Apply: func(ctx *cordis.Context, _ any) error {
		_, err := cordis.Provide(ctx, llm.Key, llm.NewRegistry(ctx, ctx.Container().Stamp))
		return err
	}}
}
