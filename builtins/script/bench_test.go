package script_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins/script"
)

const benchTool = `return { name: 'bench', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'total', description: 'Adds up amounts.',
    parameters: { amounts: { type: 'array', items: { type: 'number' }, required: true } },
    output: { schema: { type: 'number' }, render: (args, value) => [{ type: 'text', text: String(value) }] },
    execute: async ({ amounts }) => amounts.reduce((a, b) => a + b, 0),
  }))
  // %d
} }`

// From source text to a callable tool and back, in a warm process.
func BenchmarkMount(b *testing.B) {
	for _, cached := range []bool{false, true} {
		name := "source"
		if cached {
			name = "cached"
		}
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.ctx = b.Context()
			for n := 0; b.Loop(); n++ {
				code := fmt.Sprintf(benchTool, n)
				if cached {
					code = fmt.Sprintf(benchTool, 0)
				}
				p, err := w.engine.Mount(w.ctx, script.Mount{ID: fmt.Sprintf("dyn-%d", n), Code: code})
				if err != nil {
					b.Fatal(err)
				}
				f, err := w.root.Plugin(p, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Ready().Wait(w.ctx); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := f.Dispose().Wait(w.ctx); err != nil {
					b.Fatal(err)
				}
				time.Sleep(3 * time.Millisecond) // mounts follow one another no faster; the next realm is ready then
				b.StartTimer()
			}
		})
	}
}

// A call through the whole pipeline into JavaScript and back.
func BenchmarkToolCall(b *testing.B) {
	w := newWorld(b)
	w.ctx = b.Context()
	for name, code := range map[string]string{
		"body":   `return { inject: ['tools'], apply(ctx) { ctx.tools.register(harness.defineTool({ name: 'body', description: 'd', execute: ({ n }) => n + 1 })) } }`,
		"render": `return { inject: ['tools'], apply(ctx) { ctx.tools.register(harness.defineTool({ name: 'render', description: 'd', execute: async ({ n }) => n + 1, output: { render: (a, v) => [{ type: 'text', text: '' + v }] } })) } }`,
	} {
		if _, err := w.mounted("dyn-"+name, code); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			call := callTool(name, map[string]any{"n": 1.0})
			for b.Loop() {
				if r := w.tools.Execute(context.Background(), call); r.Value != 2.0 {
					b.Fatal(r.Error)
				}
			}
		})
	}
}

// An event to one JavaScript listener, and an answer of it.
func BenchmarkListener(b *testing.B) {
	w := newWorld(b)
	w.ctx = b.Context()
	w.js("l.js", `module.exports = (ctx) => { ctx.on('ping', (n) => n); ctx.provide('pinger', { emit: () => ctx.emit('ping', 1) }) }`)
	b.Run("from-go", func(b *testing.B) {
		for b.Loop() {
			w.emit("ping", 1.0)
		}
	})
	b.Run("from-javascript", func(b *testing.B) {
		for b.Loop() {
			w.call("pinger", "emit")
		}
	})
}

func BenchmarkEval(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		if _, err := w.engine.Eval(context.Background(), "process.env.WHO"); err != nil {
			b.Fatal(err)
		}
	}
}
