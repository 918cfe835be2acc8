package cordistools_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ouro-run/ouro/seams/tools"
)

// BenchmarkMount is from source text to callable tool, and back to nothing: with
// a text that was compiled before, and with one that was not.
func BenchmarkMount(b *testing.B) {
	for _, c := range []struct {
		name string
		text func(i int) string
	}{
		{"cached", func(int) string { return adder }},
		{"new", func(i int) string { return fmt.Sprintf("// %d\n%s", i, adder) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, nil)
			w.unmount(w.running(adder))
			i := 0
			for b.Loop() {
				i++
				id := w.running(c.text(i))
				if !w.has("add") {
					b.Fatal("no tool")
				}
				b.StopTimer()
				w.unmount(id)
				time.Sleep(5 * time.Millisecond) // the next realm is made ready
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCycle is mount, call and unmount without a pause between them, so
// that no realm is ready when the next one is wanted.
func BenchmarkCycle(b *testing.B) {
	w := newWorld(b, nil)
	for b.Loop() {
		id := w.running(adder)
		w.ok("add", map[string]any{"a": 1.0, "b": 2.0})
		w.unmount(id)
	}
}

// BenchmarkToolCall is a call into JavaScript and back, through the whole
// pipeline, arguments and value checked and rendered.
func BenchmarkToolCall(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"plain", tool(`parameters: { a: { type: 'number', required: true } }, execute: ({ a }) => a + 1`)},
		{"rendered", tool(`parameters: { a: { type: 'number', required: true } }, output: { schema: { type: 'number' }, render: (args, v) => [{ type: 'text', text: String(v) }] }, execute: async ({ a }) => a + 1`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, nil)
			w.running(c.code)
			call := tools.Call{ID: "call", Name: "t", Arguments: map[string]any{"a": 1.0}}
			b.ReportAllocs()
			for b.Loop() {
				if r := w.tools.Execute(context.Background(), call); r.IsError {
					b.Fatal(r.Error.Message)
				}
			}
		})
	}
}

// BenchmarkThousandMounts reports the memory of each of 1,000 mounted plugins.
func BenchmarkThousandMounts(b *testing.B) {
	const n = 1000
	for b.Loop() {
		w := newWorld(b, map[string]any{"maxMounts": n})
		start := rest()
		for i := range n {
			w.running(fmt.Sprintf(`return { name: 'p', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 't%d', description: 'x', execute: () => %d })) } }`, i, i))
		}
		end := rest()
		b.ReportMetric(float64(end.heap-start.heap)/n/1e3, "KB/plugin")
		b.ReportMetric(float64(end.goroutines-start.goroutines)/n, "goroutines/plugin")
	}
}
