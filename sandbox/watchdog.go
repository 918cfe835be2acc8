package sandbox

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/dop251/goja"
)

// tick is how often a running turn is looked at.
const tick = 5 * time.Millisecond

// watchdog interrupts a turn that is over its time or grows the heap too much.
// It interrupts only while it knows that this very turn is in JavaScript: an
// interrupt of an idle VM would end the next, innocent turn (pitfall 5).
type watchdog struct {
	vm   *goja.Runtime
	heap int64
	// enter holds the realm open for the time of a collection; leave ends that.
	enter func() bool
	leave func()

	mu      sync.Mutex
	timer   *time.Timer // fires look while a turn runs
	turn    uint64
	active  bool
	paused  bool          // inside a synchronous host call
	since   time.Time     // the turn's last begin or resume
	spent   time.Duration // the turn's time before that
	limit   time.Duration // of this turn
	base    int64         // heap at the turn's first look, -1 before
	before  time.Duration // the turn's time at that look
	cpu     time.Duration // the process's processor time then
	told    bool          // cpu is known
	stopped error         // why the turn was interrupted
}

func (w *watchdog) begin(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	w.active, w.paused, w.spent, w.base, w.told, w.stopped = true, false, 0, -1, false, nil
	w.limit, w.since = limit, time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(min(tick, limit), w.look)
	} else {
		w.timer.Reset(min(tick, limit))
	}
}

// end answers the turn's time and why it was interrupted, if it was. An
// interrupt that came too late to be seen is cleared.
func (w *watchdog) end(seen bool) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	spent := w.used()
	w.active = false
	if w.stopped != nil && !seen {
		w.vm.ClearInterrupt()
		return spent, nil
	}
	return spent, w.stopped
}

func (w *watchdog) elapsed() time.Duration {
	if w.paused {
		return w.spent
	}
	return w.spent + time.Since(w.since)
}

// used is the turn's time without that in which the machine ran other processes:
// no turn has used more than its process has.
func (w *watchdog) used() time.Duration {
	wall := w.elapsed()
	if !w.told {
		return wall
	}
	now, _ := processTime()
	return min(wall, w.before+now-w.cpu)
}

func (w *watchdog) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent, w.paused = w.elapsed(), true
}

func (w *watchdog) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.paused = time.Now(), false
}

// stop interrupts the turn that runs now, if one does.
func (w *watchdog) stop(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupt(why)
}

func (w *watchdog) interrupt(why error) {
	if w.active && w.stopped == nil {
		w.stopped = why
		w.vm.Interrupt(why)
	}
}

func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.active || w.stopped != nil {
		return
	}
	if w.elapsed() >= w.limit && w.used() >= w.limit {
		w.interrupt(overBudget("one turn ran for more than %v and was stopped: do less at a time, or await in between", w.limit))
		return
	}
	if w.grown() && (w.grownSurely() || w.grownIndeed()) {
		w.interrupt(overBudget("the heap grew by more than %d MiB while one turn ran: keep less in memory", w.heap>>20))
		return
	}
	if w.active {
		next := tick
		if left := w.limit - w.elapsed(); !w.paused && left > 0 {
			next = max(min(tick, left), time.Microsecond)
		}
		w.timer.Reset(next)
	}
}

func (w *watchdog) grown() bool {
	now := heapBytes()
	if w.base < 0 {
		w.base, w.before = now, w.elapsed()
		w.cpu, w.told = processTime()
	}
	return now-w.base > w.heap
}

// grownSurely reports whether the heap is larger than garbage could make it: at
// most GOGC percent of what lives. A plugin that doubles its memory again and
// again does not wait for a collection.
func (w *watchdog) grownSurely() bool {
	s := [1]metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s[:])
	gogc := s[0].Value.Uint64()
	return gogc <= 1000 && heapBytes() > (w.base+w.heap)*int64(100+gogc)/100
}

// grownIndeed looks again after a collection, for the first reading counts
// garbage too. The lock is free meanwhile.
func (w *watchdog) grownIndeed() bool {
	turn := w.turn
	if !w.enter() {
		return false
	}
	w.mu.Unlock()
	runtime.GC()
	w.mu.Lock()
	w.leave()
	return w.active && w.turn == turn && w.grown()
}

func heapBytes() int64 {
	s := [2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64())
}
