package cordis_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

func benchWorld(b *testing.B, unrelated int) *cordis.Container {
	c := cordis.New(cordis.Options{})
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	for i := range unrelated {
		k := seams.Key[string]{Name: fmt.Sprint("unrelated", i)}
		if _, err := c.Root().Plugin(provider(k.Name, k, "v"), nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.Settle(bg); err != nil {
		b.Fatal(err)
	}
	return c
}

// reader returns the context of an active plugin that injects key.
func reader(b *testing.B, c *cordis.Container) *cordis.Context {
	if _, err := cordis.Provide(c.Root(), key, "v"); err != nil {
		b.Fatal(err)
	}
	var ctx *cordis.Context
	f, err := c.Root().Plugin(plugin("r", func(x *cordis.Context) error { ctx = x; return nil }, "key"), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Ready().Wait(bg); err != nil {
		b.Fatal(err)
	}
	return ctx
}

// Goal: 2 ns, no allocation.
func BenchmarkReadResolved(b *testing.B) {
	ref, err := cordis.Resolve(reader(b, benchWorld(b, 0)), key)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if ref.Load() == "" {
			b.Fatal()
		}
	}
}

// Goal: 15 ns, no allocation.
func BenchmarkReadByKey(b *testing.B) {
	ctx := reader(b, benchWorld(b, 0))
	b.ReportAllocs()
	for b.Loop() {
		if v, _ := cordis.Get(ctx, key); v == "" {
			b.Fatal()
		}
	}
}

// Goal: 335 ns, flat from 10 to 10,000 unrelated fibers.
func BenchmarkProvideDispose(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx := benchWorld(b, n).Root()
			b.ReportAllocs()
			for b.Loop() {
				undo, err := cordis.Provide(ctx, key, "v")
				if err != nil {
					b.Fatal(err)
				}
				if err := undo(bg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Goal: 1 µs.
func BenchmarkLoadDispose(b *testing.B) {
	ctx := benchWorld(b, 0).Root()
	p := plugin("p", func(*cordis.Context) error { return nil })
	b.ReportAllocs()
	for b.Loop() {
		f, err := ctx.Load(bg, p, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Dispose().Wait(bg); err != nil {
			b.Fatal(err)
		}
	}
}

// Goal: 90 µs for 100.
func BenchmarkDependants(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := benchWorld(b, 0)
			p := plugin("d", func(*cordis.Context) error { return nil }, "key")
			for range n {
				if _, err := c.Root().Plugin(p, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				undo, err := cordis.Provide(c.Root(), key, "v")
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Settle(bg); err != nil {
					b.Fatal(err)
				}
				if err := undo(bg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Goals for ten listeners: 105 ns of one owner, 260 ns of ten.
func BenchmarkEmit(b *testing.B) {
	for _, owners := range []int{1, 10} {
		b.Run(fmt.Sprint(owners, "owners"), func(b *testing.B) {
			c := benchWorld(b, 0)
			heard := 0
			for range owners {
				f, err := c.Root().Plugin(plugin("l", func(ctx *cordis.Context) error {
					for range 10 / owners {
						if _, err := ctx.On("e", func(context.Context, any, seams.Next) (any, error) { heard++; return nil, nil }); err != nil {
							return err
						}
					}
					return nil
				}), nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Ready().Wait(bg); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				_, _ = c.Root().Dispatch(bg, seams.Dispatch{Event: "e"})
			}
			if heard != 10*n {
				b.Fatal(heard, n)
			}
		})
	}
}

func BenchmarkWaterfall(b *testing.B) {
	c := benchWorld(b, 0)
	for range 10 {
		if _, err := c.Root().On("e", func(ctx context.Context, _ any, next seams.Next) (any, error) { return next(ctx) }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Root().Dispatch(bg, seams.Dispatch{Event: "e", Mode: seams.Waterfall})
	}
}
