package events

import (
	"context"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/events"
)

// Plugin returns the plugin.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: "events", Provide: []string{events.Key.Name}, Apply: func(ctx *cordis.Context, _ any) error {
		var store events.Store = events.NewMemory(events.Options{
			Bus:       ctx,
			Contained: func(_ context.Context, err error) { ctx.Report("observer", "session", err) },
			Enforce:   true,
		})
		_, err := cordis.Provide(ctx, events.Key, store)
		return err
	}}
}
