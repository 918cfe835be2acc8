package cordistools_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var cycles = flag.Int("cycles", 300, "how often TestCycles mounts, calls and unmounts; the acceptance figure is of 10000")

// Mount, call and unmount leave nothing: goroutines are as many as before, and
// the heap is within 2%.
func TestCycles(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	cycle := func(i int) {
		// A few texts, so that both the kept programs and the compiler are used.
		id := w.running(fmt.Sprintf("// version %d\n%s", i%4, adder))
		if got := w.ok("add", map[string]any{"a": 1.0, "b": 2.0}); got != "1 + 2 = 3" {
			t.Fatal(got)
		}
		w.unmount(id)
	}
	for i := range 100 {
		cycle(i)
	}
	time.Sleep(300 * time.Millisecond) // the compiler holds its last build for a quarter of a second
	start := rest()
	began := time.Now()
	for i := range *cycles {
		cycle(i)
	}
	took := time.Since(began)
	end := rest()
	change := 100 * (float64(end.heap) - float64(start.heap)) / float64(start.heap)
	t.Logf("%d cycles of %v each: goroutines %d, then %d; heap %.2f MB, then %.2f MB (%+.2f%%)",
		*cycles, (took / time.Duration(*cycles)).Round(time.Microsecond), start.goroutines, end.goroutines, float64(start.heap)/1e6, float64(end.heap)/1e6, change)
	if end.goroutines != start.goroutines {
		t.Errorf("goroutines: %d, then %d", start.goroutines, end.goroutines)
	}
	if change > 2 {
		t.Errorf("the heap grew by %.2f%%", change)
	}
	w.same(before)
}

type usage struct {
	goroutines int
	heap       uint64
}

// rest measures the process when what was on its way has ended.
func rest() usage {
	var u usage
	for same := 0; same < 5; {
		time.Sleep(5 * time.Millisecond)
		if n := runtime.NumGoroutine(); n == u.goroutines {
			same++
		} else {
			u.goroutines, same = n, 0
		}
	}
	for range 4 { // cleanups run between collections
		runtime.GC()
		time.Sleep(2 * time.Millisecond)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap = m.HeapAlloc
	return u
}
