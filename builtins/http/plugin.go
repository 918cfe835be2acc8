package http

import (
	"context"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "http", Provide: []string{Key.Name},
		Config: schema.Object(schema.Fields{
			"timeoutMs": schema.Natural().Min(1).Default(60_000).Description("milliseconds until a response's headers are there"),
			"idleMs":    schema.Natural().Min(1).Default(120_000).Description("milliseconds between two pieces of a body"),
			"maxBody":   schema.Natural().Min(1).Default(64 << 20).Description("bytes of a body"),
		}),
		Apply: func(ctx *cordis.Context, config any) error {
			cfg := config.(map[string]any)
			ms := func(name string) time.Duration { return time.Duration(cfg[name].(float64)) * time.Millisecond }
			c := New(Config{Timeout: ms("timeoutMs"), Idle: ms("idleMs"), MaxBody: int64(cfg["maxBody"].(float64))})
			_, err := ctx.Effect("http.client", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { c.Close(); return nil }, nil
			})
			if err != nil {
				return err
			}
			_, err = cordis.Provide(ctx, Key, c)
			return err
		},
	}
}
