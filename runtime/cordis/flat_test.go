package cordis

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/ouro-run/ouro/seams"
)

// heap is what is live after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // weak pointers and pools need a second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCyclesLeaveNothing: after ten thousand mounts, uses and unmounts there are
// as many goroutines as before the first, and the heap has grown by less than
// eight bytes a cycle since the first thousand: by less than one pointer (R2, C10).
func TestCyclesLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	c := New(Options{})
	defer func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	p := apply("p", func(ctx *Context) error {
		if _, err := Provide(ctx, num("k"), 1); err != nil {
			return err
		}
		if _, err := ctx.On("e", func(context.Context, any, seams.Next) (any, error) { return nil, nil }); err != nil {
			return err
		}
		if _, err := ctx.Go("go", func(ctx context.Context) error { <-ctx.Done(); return nil }); err != nil {
			return err
		}
		_, err := ctx.Isolate("k", "").Plugin(apply("child", func(*Context) error { return nil }), nil)
		return err
	})
	reader := apply("reader", func(ctx *Context) error { _, err := Get(ctx, num("k")); return err }, "k")
	cycle := func(i int) {
		e := c.Root().Entry(fmt.Sprint("e", i%7))
		if _, err := e.Set(p, i, nil); err != nil {
			t.Fatal(err)
		}
		r, err := c.Root().Plugin(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Ready().Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Root().Dispatch(context.Background(), seams.Dispatch{Event: "e"}); err != nil {
			t.Fatal(err)
		}
		r.Dispose()
		if err := e.Unmount().Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		cycle(i)
	}
	small := heap()
	for i := range 9000 {
		cycle(i)
	}
	if err := c.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	large := heap()
	if large > small+8*9000 {
		t.Errorf("the heap grew from %d to %d bytes", small, large)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestVisits: an operation looks at those it affects and at nobody else (A14, Q7).
func TestVisits(t *testing.T) {
	c := New(Options{})
	ctx := context.Background()
	none := func(*Context) error { return nil }
	mount := func(at *Context, needs ...string) {
		t.Helper()
		if _, err := at.Plugin(apply("p", none, needs...), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		mount(c.Root())
		mount(c.Root(), fmt.Sprint("other", i))
		mount(c.Root().Isolate("k", fmt.Sprint("r", i)), "k")
	}
	const affected = 3
	for range affected {
		mount(c.Root(), "k")
	}
	if err := c.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	visits := func() (n uint64) { c.do(func(st *state) { n = st.visits }); return }
	before := visits()
	undo, err := Provide(c.Root(), num("k"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if err := undo(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if n := visits() - before; n > 8*affected {
		t.Errorf("%d visits for %d subscribers", n, affected)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
