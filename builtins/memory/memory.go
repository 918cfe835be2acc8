package memory

import (
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/memory"
)

// Plugin returns the plugin.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: "memory", Provide: []string{memory.Key.Name}, Apply: func(ctx *cordis.Context, _ any) error {
		var store memory.Store = memory.New(memory.Options{})
		_, err := cordis.Provide(ctx, memory.Key, store)
		return err
	}}
}
