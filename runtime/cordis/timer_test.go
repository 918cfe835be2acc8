package cordis_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

func (w *world) tick(name string) func(context.Context) {
	return func(context.Context) { w.note(name) }
}

// C-72
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.root.Timeout(time.Second, w.tick("fired")); err != nil {
			t.Fatal(err)
		}
		undo, err := w.root.Timeout(time.Second, w.tick("cancelled"))
		if err != nil {
			t.Fatal(err)
		}
		if err := undo(bg); err != nil {
			t.Fatal(err)
		}
		f := w.mount(plugin("p", func(ctx *cordis.Context) error { _, err := ctx.Timeout(time.Second, w.tick("disposed")); return err }), nil)
		w.dispose(f)
		time.Sleep(5 * time.Second)
		w.want("fired")
		if n := len(w.Inspect().Fibers[0].Effects); n != 0 {
			t.Fatal("what has fired is no effect any more", n)
		}
	})
}

// C-73
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		if err := w.root.Sleep(bg, time.Second); err != nil || time.Since(began) != time.Second {
			t.Fatal(err)
		}
		var ctx *cordis.Context
		f := w.mount(plugin("p", func(c *cordis.Context) error { ctx = c; return nil }), nil)
		done := make(chan error)
		go func() { done <- ctx.Sleep(bg, time.Hour) }()
		synctest.Wait()
		w.dispose(f)
		if err := <-done; !errors.Is(err, seams.Unloaded) {
			t.Fatal(err)
		}
	})
}

// C-74
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		undo, err := w.root.Interval(time.Second, w.tick("tick"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		if err := undo(bg); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.want("tick", "tick", "tick")
	})
}

// C-75, C-76
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := 0
		for _, err := range w.root.Ticks(bg, time.Second) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 3 {
				break
			}
		}
		var ctx *cordis.Context
		f := w.mount(plugin("p", func(c *cordis.Context) error { ctx = c; return nil }), nil)
		done := make(chan error)
		go func() {
			var last error
			for _, err := range ctx.Ticks(bg, time.Second) {
				last = err
			}
			done <- last
		}()
		time.Sleep(2500 * time.Millisecond)
		w.dispose(f)
		if err := <-done; !errors.Is(err, seams.Unloaded) {
			t.Fatal(err)
		}
	})
}

// C-77
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		call, undo, err := w.root.Throttle(time.Second, w.tick("run"))
		if err != nil {
			t.Fatal(err)
		}
		call()
		w.want("run")
		call()
		call()
		w.want()
		time.Sleep(1100 * time.Millisecond)
		w.want("run")
		time.Sleep(3 * time.Second)
		w.want()
		call()
		call()
		w.want("run")
		if err := undo(bg); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		call()
		w.want()
	})
}

// C-78
func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		call, undo, err := w.root.Debounce(time.Second, w.tick("run"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			call()
			time.Sleep(500 * time.Millisecond)
		}
		w.want()
		time.Sleep(time.Second)
		w.want("run")
		call()
		if err := undo(bg); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		call()
		time.Sleep(3 * time.Second)
		w.want()
	})
}

// A timer of a plugin never runs after its dispose, and its panic is contained.
func TestTimerOfPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.mount(plugin("p", func(ctx *cordis.Context) error {
			_, err := ctx.Interval(time.Second, func(context.Context) { w.note("tick"); panic("boom") })
			return err
		}), nil)
		time.Sleep(1500 * time.Millisecond)
		w.dispose(f)
		time.Sleep(5 * time.Second)
		w.want("tick")
		if r := w.errs(); len(r) != 1 || r[0].Phase != "timer" {
			t.Fatal(r)
		}
	})
}
