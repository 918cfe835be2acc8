package sandbox

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
)

const benchTool = `
export const name = 'adder'
export const inject = ['tools']
export function apply(ctx: any) {
  ctx.tools.register({
    name: 'add',
    description: 'adds two numbers',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    async execute({ a, b }: { a: number, b: number }) { return { sum: a + b } },
  })
}
`

// toolHost keeps the tool that a plugin registers.
type toolHost struct{ tool map[string]any }

func (h *toolHost) Call(_ context.Context, target, method string, args []any) (any, error) {
	if target == "tools" && method == "register" {
		h.tool = args[0].(map[string]any)
	}
	return nil, nil
}

func mountTool(tb testing.TB, spare *Spare, p *Program) (*Realm, *Func) {
	tb.Helper()
	ctx := context.Background()
	o := Options{Name: "adder", Facade: &Facade{Services: []Service{{Name: "tools", Methods: []Method{{Name: "register"}}}}}}
	var r *Realm
	var err error
	if spare != nil {
		r, err = spare.New(ctx, o)
	} else {
		r, err = New(ctx, o)
	}
	if err != nil {
		tb.Fatal(err)
	}
	plugin, err := r.Load(ctx, p)
	if err != nil {
		tb.Fatal(err)
	}
	h := &toolHost{}
	if err := plugin.Apply(ctx, Activation{Host: h}); err != nil {
		tb.Fatal(err)
	}
	return r, h.tool["execute"].(*Func)
}

// From source text to a callable tool. Goals: 4 ms new, 1 ms compiled before.
func BenchmarkMount(b *testing.B) {
	for _, kind := range []string{"new", "compiled", "new without spare"} {
		b.Run(kind, func(b *testing.B) {
			var spare *Spare
			if kind != "new without spare" {
				spare = NewSpare()
				defer spare.Close()
			}
			c := NewCompiler()
			n := 0
			for b.Loop() {
				b.StopTimer()
				if spare != nil {
					spare.tasks.Wait()
				}
				if n++; kind != "compiled" {
					c = NewCompiler()
				}
				b.StartTimer()
				p, err := c.Compile(compile.Source{Name: "adder.ts", Text: benchTool})
				if err != nil {
					b.Fatal(err)
				}
				r, _ := mountTool(b, spare, p)
				b.StopTimer()
				r.Close(time.Second)
				b.StartTimer()
			}
		})
	}
}

// One call of a mounted tool and its answer. Goal: 20 µs.
func BenchmarkCall(b *testing.B) {
	p, err := NewCompiler().Compile(compile.Source{Name: "adder.ts", Text: benchTool})
	if err != nil {
		b.Fatal(err)
	}
	r, tool := mountTool(b, nil, p)
	defer r.Close(time.Second)
	args := map[string]any{"a": 1.0, "b": 2.0}
	for b.Loop() {
		if _, err := tool.Call(b.Context(), args); err != nil {
			b.Fatal(err)
		}
	}
}

// Heap of one mounted plugin, of 1,000. Goal: 400 KB.
func BenchmarkRealms(b *testing.B) {
	const count = 1000
	p, err := NewCompiler().Compile(compile.Source{Name: "adder.ts", Text: benchTool})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heapNow()
		realms := make([]*Realm, count)
		tools := make([]*Func, count)
		for i := range realms {
			realms[i], tools[i] = mountTool(b, nil, p)
		}
		b.ReportMetric(float64(heapNow()-before)/count/1024, "KB/realm")
		runtime.KeepAlive(tools)
		for _, r := range realms {
			r.Close(time.Second)
		}
	}
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// One chunk of an async generator.
func BenchmarkIterate(b *testing.B) {
	p, err := NewCompiler().Compile(compile.Source{Name: "s.ts", Text: `
export async function* apply() {}
export const stream = async function* () { for (let i = 0; ; i++) yield { type: 'text-delta', index: 0, text: 'chunk ' + i } }`})
	if err != nil {
		b.Fatal(err)
	}
	r, err := New(b.Context(), Options{Budgets: Budgets{Minute: time.Hour, Output: 1 << 40}})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close(time.Second)
	o, err := exportsOf(b.Context(), r, p)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	n := 0
	for _, err := range o.Iterate(context.Background(), "stream") {
		if n++; err != nil || n > 20000 {
			break
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/chunk")
}
