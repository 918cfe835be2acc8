package cordistools_test

import (
	"context"
	"fmt"

	"github.com/ouro-run/ouro/builtins/cordistools"
	"github.com/ouro-run/ouro/builtins/script"
	toolsplugin "github.com/ouro-run/ouro/builtins/tools"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/tools"
)

// An agent's calls: it mounts a tool it has written, uses it, and takes it out.
func ExamplePlugin() {
	ctx := context.Background()
	c := cordis.New(cordis.Options{})
	engine := script.New(script.Options{})
	defer engine.Close()
	defer c.Close(ctx)
	for _, p := range []*cordis.Plugin{toolsplugin.Plugin(), cordistools.Plugin(engine)} {
		f, err := c.Root().Plugin(p, map[string]any{})
		if err == nil {
			err = f.Settle(ctx)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	registry, _ := cordis.Lookup(c.Root(), tools.Key)
	call := func(name string, args map[string]any) {
		fmt.Println(registry.Execute(ctx, tools.Call{ID: "1", Name: name, Arguments: args}).Content.Text())
	}
	call("cordis_mount", map[string]any{"code": `
		return { name: 'counter', inject: ['tools'], apply(ctx) {
			harness.registerTool(ctx, harness.defineTool({
				name: 'count_words', description: 'Count the words of a text.',
				parameters: { text: { type: 'string', required: true } },
				execute: ({ text }) => text.split(/\s+/).length,
			}))
		} }`})
	call("count_words", map[string]any{"text": "the snake eats its tail"})
	call("cordis_unmount", map[string]any{"id": "dyn-1"})
	call("cordis_inspect", map[string]any{"what": "tools"})
	// Output:
	// Temporary Plugin dyn-1 is running (plugin "counter"; in memory only, until it is unmounted or the process ends)
	// 5
	// Temporary Plugin dyn-1 (plugin "counter") is unmounted.
	// ## tools
	// - cordis_inspect
	// - cordis_mount
	// - cordis_unmount
}
