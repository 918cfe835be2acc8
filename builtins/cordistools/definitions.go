package cordistools

import (
	"context"
	"fmt"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

const inspectText = `Show the running container: its services, plugins, tools, the temporary plugins you have mounted, and the API and events that mounted code can use. Call it before you write a plugin: read the api section of a service before you call it (what: "api", name: "<service>" gives its full text). Without what, all sections are shown.`

const mountText = `Add a plugin you have written to the running container. It lives in memory only: nothing is installed and no file is written; it stays over turns, not over a restart; other sessions of this process may see it. It is no security boundary.

code is the body of an async function, in JavaScript or TypeScript, that must return a plugin, best an object:
  return { name: 'my-plugin', inject: ['tools'], apply(ctx) { … } }
or a function (ctx) => { … }, which injects nothing and reaches no service. ctx has the services named in inject (the plugin waits for those that are missing), on, once, provide, get and effect, with 'timer' also setTimeout and its kin, and nothing else. Read a service's api with cordis_inspect before you call it.

A tool, callable on the next step:
  return { name: 'adder', inject: ['tools'], apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'add', description: 'Add two numbers.',
      parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
      output: { schema: { type: 'number' }, render: (args, value) => [{ type: 'text', text: String(value) }] },
      execute: async ({ a, b }) => a + b,
    }))
  } }
Parameters map names to {type: string|number|integer|boolean|null|array|object|json, required?: true, description?, enum?, items?, properties?, additionalProperties?, oneOf?}; a JSON Schema object is accepted too. execute returns the value, or null; render makes content blocks of it; without output, text is shown as it is and other values as JSON.

Plugins use each other by ctx.provide(name, value) and inject; calls between them return promises. What is registered through ctx is undone when the plugin goes; own clean-up: ctx.effect(() => () => { … }). Globals: console, btoa, atob, TextEncoder, TextDecoder, URL, structuredClone. There is no require, process, Buffer, fetch or setTimeout: inject fs, http or timer instead. A listener of a waterfall event must call and return next(), or it cuts the chain. Never await something that ends only after this turn.

To replace a plugin, unmount the older id, then mount the new code.`

const unmountText = `Remove a temporary plugin by its id (dyn-1, …). When this returns, its tools, listeners, services and timers are gone.`

func (t *toolset) definitions() []tools.Definition {
	text := func(s string) llm.Content { return llm.Content{llm.Text{Text: s}} }
	return []tools.Definition{{
		Name: "cordis_inspect", Description: inspectText,
		Parameters: must(schema.Parameters(map[string]any{
			"what": map[string]any{"type": "string", "enum": list(sections), "description": "one section; all of them when left out"},
			"name": map[string]any{"type": "string", "description": "with what api or events: one service or event, in full"},
		})),
		Output: &tools.Output{Schema: must(schema.Output(map[string]any{"type": "string"}))},
		Execute: func(_ context.Context, exec *tools.Exec, args any) (any, error) {
			a := args.(map[string]any)
			what, _ := a["what"].(string)
			name, _ := a["name"].(string)
			return t.inspect(exec.Scope, what, name)
		},
		IsConcurrencySafe: func(any) bool { return true },
	}, {
		Name: "cordis_mount", Description: mountText,
		Parameters: must(schema.Parameters(map[string]any{
			"code": map[string]any{"type": "string", "required": true, "description": "the body of an async function that returns a plugin"},
		})),
		Output: &tools.Output{
			Schema: must(schema.Output(map[string]any{
				"type": "object", "additionalProperties": false,
				"properties": map[string]any{
					"id":         map[string]any{"type": "string", "required": true},
					"pluginName": map[string]any{"type": "string", "required": true},
					"state":      map[string]any{"type": "string", "required": true, "enum": []any{"pending", "loading", "active", "failed", "disposed", "unloading"}},
					"provides":   map[string]any{"type": "array", "required": true, "items": map[string]any{"type": "string"}},
					"waitingFor": map[string]any{"type": "array", "required": true, "items": map[string]any{"type": "string"}},
				},
			})),
			Render: func(_, value any) (llm.Content, error) {
				v := value.(map[string]any)
				r := report{id: v["id"].(string), name: v["pluginName"].(string)}
				for _, w := range v["waitingFor"].([]any) {
					r.waiting = append(r.waiting, w.(string))
				}
				return text(r.text()), nil
			},
		},
		Execute: func(ctx context.Context, _ *tools.Exec, args any) (any, error) {
			r, err := t.mount(ctx, args.(map[string]any)["code"].(string))
			if err != nil {
				return nil, err
			}
			return r.value(), nil
		},
	}, {
		Name: "cordis_unmount", Description: unmountText,
		Parameters: must(schema.Parameters(map[string]any{
			"id": map[string]any{"type": "string", "required": true, "description": "the temporary plugin's id"},
		})),
		Output: &tools.Output{
			Schema: must(schema.Output(map[string]any{
				"type": "object", "additionalProperties": false,
				"properties": map[string]any{
					"id":         map[string]any{"type": "string", "required": true},
					"pluginName": map[string]any{"type": "string", "required": true},
				},
			})),
			Render: func(_, value any) (llm.Content, error) {
				v := value.(map[string]any)
				return text(fmt.Sprintf("Temporary Plugin %s (plugin %q) is unmounted.", v["id"], v["pluginName"])), nil
			},
		},
		Execute: func(ctx context.Context, exec *tools.Exec, args any) (any, error) {
			m, later, err := t.unmount(ctx, args.(map[string]any)["id"].(string))
			if err != nil {
				return nil, err
			}
			if later {
				exec.DeferContext(llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: "cordis-tools", Form: "notice"},
					llm.Text{Text: fmt.Sprintf("Temporary Plugin %s goes when the call that asked for it, its own, has ended.", m.id)}))
			}
			return map[string]any{"id": m.id, "pluginName": m.name}, nil
		},
	}}
}

func must(s *schema.Schema, err error) *schema.Schema {
	if err != nil {
		panic(err)
	}
	return s
}
