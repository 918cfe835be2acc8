package timer

import (
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Key is the service. Its value says nothing; that it is there is the permission.
var Key = seams.Key[struct{}]{Name: "timer"}

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "timer", Provide: []string{Key.Name}, Config: schema.Object(nil),
		Apply: func(ctx *cordis.Context, _ any) error {
			_, err := cordis.Provide(ctx, Key, struct{}{})
			return err
		},
	}
}
