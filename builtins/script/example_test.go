package script_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/tools"
)

func Example() {
	ctx := context.Background()
	container := cordis.New(cordis.Options{})
	engine := script.New(script.Options{})
	defer engine.Close()
	defer container.Close(ctx)
	registry := tools.New(tools.Options{Bus: container.Root(), Stamp: container.Stamp})
	if _, err := cordis.Provide(container.Root(), tools.Key, registry); err != nil {
		fmt.Println(err)
		return
	}

	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "shout.ts")
	_ = os.WriteFile(path, []byte(`
export const name = 'shout'
export const inject = ['tools']
export function apply(ctx: any, config: { mark: string }) {
  ctx.tools.register({
    name: 'shout', description: 'Says it louder.', parameters: { text: { type: 'string', required: true } },
    execute: ({ text }: { text: string }) => text.toUpperCase() + config.mark,
  })
}`), 0o600)

	src, err := engine.File(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fiber, err := container.Root().Plugin(src.Plugin, map[string]any{"mark": "!"})
	if err == nil {
		err = fiber.Ready().Wait(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	result := registry.Execute(ctx, tools.Call{ID: "1", Name: "shout", Arguments: map[string]any{"text": "hello"}})
	fmt.Println(result.Value)
	// Output: HELLO!
}
