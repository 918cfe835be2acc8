package fs

import (
	"context"
	"path/filepath"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Plugin returns the plugin that provides the service. A root that is relative
// is below base.
func Plugin(base string) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "fs", Provide: []string{Key.Name},
		Config: schema.Object(schema.Fields{
			"root":  schema.String().Min(1).Default(".").Description("the folder that plugins see"),
			"write": schema.Boolean().Default(false).Description("whether they may write there"),
		}),
		Apply: func(ctx *cordis.Context, config any) error {
			cfg := config.(map[string]any)
			root := cfg["root"].(string)
			if !filepath.IsAbs(root) {
				root = filepath.Join(base, root)
			}
			f, err := Open(root, cfg["write"].(bool))
			if err != nil {
				return err
			}
			_, err = ctx.Effect("fs.folder", func(context.Context) (seams.Undo, error) {
				return func(context.Context) error { return f.Close() }, nil
			})
			if err != nil {
				_ = f.Close()
				return err
			}
			_, err = cordis.Provide(ctx, Key, f)
			return err
		},
	}
}
