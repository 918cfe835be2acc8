package sandbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
)

// host hears what the plugin registers.
type host struct{ tool map[string]any }

func (h *host) Call(_ context.Context, target, method string, args []any) (any, error) {
	if target == "tools" && method == "register" {
		h.tool = args[0].(map[string]any)
	}
	return nil, nil
}

// A text becomes a plugin, the plugin registers a tool, the tool is called.
func Example() {
	program, err := sandbox.NewCompiler().Compile(compile.Source{Name: "dyn-1", Form: compile.Body, Text: `
		return {
			name: 'adder',
			inject: ['tools'],
			apply(ctx) {
				ctx.tools.register({ name: 'add', execute: async ({ a, b }) => ({ sum: a + b }) })
			},
		}`})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	realm, err := sandbox.New(ctx, sandbox.Options{Name: "dyn-1", Facade: &sandbox.Facade{
		Services: []sandbox.Service{{Name: "tools", Methods: []sandbox.Method{{Name: "register"}}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer realm.Close(time.Second)

	plugin, err := realm.Load(ctx, program)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plugin.Name, "needs", plugin.Inject[0].Name)

	h := &host{}
	if err := plugin.Apply(ctx, sandbox.Activation{Host: h}); err != nil {
		fmt.Println(err)
		return
	}
	sum, err := h.tool["execute"].(*sandbox.Func).Call(ctx, map[string]any{"a": 40, "b": 2})
	fmt.Println(sum, err)
	// Output:
	// adder needs tools
	// map[sum:42] <nil>
}
