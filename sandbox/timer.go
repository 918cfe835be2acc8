package sandbox

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// timers are a realm's: one heap, one alarm. All but the alarm belongs to the
// realm's goroutine.
type timers struct {
	due   dueHeap
	byID  map[int64]*timer
	last  int64 // id and order
	alarm *time.Timer
}

type timer struct {
	id    int64
	order int64
	at    time.Time
	every time.Duration // 0 for once
	call  goja.Callable
	args  []goja.Value
	index int
}

// setTimer answers the id of a timer that is a number, as in browsers.
func (r *Realm) setTimer(call goja.Callable, args []goja.Value, ms int64, repeat bool) (goja.Value, error) {
	t := &r.timers
	if err := r.countTimer(); err != nil {
		return nil, err
	}
	if t.byID == nil {
		t.byID = map[int64]*timer{}
	}
	t.last++
	d := time.Duration(min(max(ms, 1), 1<<31-1)) * time.Millisecond
	x := &timer{id: t.last, order: t.last, at: time.Now().Add(d), call: call, args: args}
	if repeat {
		x.every = d
	}
	t.byID[x.id] = x
	heap.Push(&t.due, x)
	r.arm()
	return r.vm.ToValue(x.id), nil
}

func (r *Realm) clearTimer(id goja.Value) {
	if !goja.IsNumber(id) {
		return // whatever it is, it is no timer (pitfall 13)
	}
	if x := r.timers.byID[id.ToInteger()]; x != nil {
		r.forget(x)
	}
}

func (r *Realm) forget(x *timer) {
	delete(r.timers.byID, x.id)
	if x.index >= 0 {
		heap.Remove(&r.timers.due, x.index)
	}
	r.uncountTimer()
}

// Timer counts a timer that the host keeps for the plugin among the realm's own,
// until done is called; calling it again does nothing. It fails with OVER_BUDGET
// when the realm has as many as it may.
func (r *Realm) Timer() (done func(), err error) {
	if err := r.countTimer(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(r.uncountTimer), nil
}

func (r *Realm) countTimer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.usage.Timers >= r.budgets.Timers {
		return overBudget("%d timers are already set: clear some of them first", r.budgets.Timers)
	}
	r.usage.Timers++
	return nil
}

func (r *Realm) uncountTimer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage.Timers--
}

// arm sets the alarm for the timer that is due next.
func (r *Realm) arm() {
	t := &r.timers
	if len(t.due) == 0 {
		return
	}
	d := max(time.Until(t.due[0].at), 0)
	if t.alarm == nil {
		t.alarm = time.AfterFunc(d, func() { r.post(r.fire) })
	} else {
		t.alarm.Reset(d)
	}
}

// fire calls one timer that is due, as a turn of its own.
func (r *Realm) fire() error {
	t := &r.timers
	now := time.Now()
	if len(t.due) == 0 || t.due[0].at.After(now) {
		r.arm()
		return nil
	}
	x := t.due[0]
	if x.every > 0 {
		t.last++
		x.at, x.order = now.Add(x.every), t.last
		heap.Fix(&t.due, 0)
	} else {
		r.forget(x)
	}
	r.arm()
	_, err := x.call(goja.Undefined(), x.args...)
	return err
}

func (t *timers) stop() {
	if t.alarm != nil {
		t.alarm.Stop()
	}
}

type dueHeap []*timer

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].order < h[j].order
	}
	return h[i].at.Before(h[j].at)
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *dueHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *dueHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

// ambient puts on globalThis what the options grant, and traps for the rest.
func (r *Realm) ambient() error {
	vm := r.vm
	hide := func(name string, v goja.Value) {
		vm.GlobalObject().DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	trap := func(instead string, names ...string) {
		for _, name := range names {
			hide(name, r.native(name, func(goja.FunctionCall) goja.Value {
				panic(r.toError(seams.Errorf(seams.NotAvailable, name, "not available here: %s", instead)))
			}))
		}
	}
	set := func(name string, repeat bool) {
		hide(name, r.native(name, func(c goja.FunctionCall) goja.Value {
			f, ok := goja.AssertFunction(c.Argument(0))
			if !ok {
				panic(vm.NewTypeError(name + " needs a function"))
			}
			ms, given := int64(0), 1
			if name != "setImmediate" {
				ms, given = c.Argument(1).ToInteger(), 2
			}
			args := slices.Clone(c.Arguments[min(given, len(c.Arguments)):]) // the engine takes its slice back
			return r.must(r.setTimer(f, args, ms, repeat))
		}))
	}
	clear := func(name string) {
		hide(name, r.native(name, func(c goja.FunctionCall) goja.Value { r.clearTimer(c.Argument(0)); return nil }))
	}
	if r.options.Ambient.Timers {
		set("setTimeout", false)
		set("setImmediate", false)
		set("setInterval", true)
		clear("clearTimeout")
		clear("clearImmediate")
		clear("clearInterval")
	} else {
		trap("inject the timer service: inject: ['timer'], then ctx.setTimeout, ctx.interval and the like, which end with the plugin",
			"setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate")
	}
	if r.options.Ambient.Fetch != nil {
		f, err := r.fetchFunc(r.options.Ambient.Fetch)
		if err != nil {
			return err
		}
		hide("fetch", f)
	} else {
		trap("inject the http service: inject: ['http'], then ctx.http.fetch(url, init)", "fetch")
	}
	if r.options.Ambient.Env == nil {
		trap("import ouro, cordis or schemastery at the top; for files inject the fs service, for the network http", "require")
		return nil
	}
	env := vm.NewObject()
	for k, v := range r.options.Ambient.Env {
		env.Set(k, v)
	}
	process := vm.NewObject()
	process.Set("env", env)
	process.Set("nextTick", vm.Get("queueMicrotask"))
	hide("process", process)
	r.lazily(func() *goja.Object { return r.node().Get("buffer").ToObject(vm) }, "Buffer")
	return nil
}
