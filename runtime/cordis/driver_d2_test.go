package cordis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"github.com/ouro-run/ouro/seams"
	"pgregory.net/rapid"
)

// D2 runs plans with real goroutines in virtual time: scripts and operations
// sleep for as long as the tape says, operations overlap, and whoever would wait
// for ever ends the test. D3 is the same in real time; see there.

// crowd plays a plan with many goroutines.
type crowd struct {
	*host
	plan model.Plan
	next func(n int) int
	wg   sync.WaitGroup // operations under way

	loaded []*model.Script // see load
}

// newCrowd makes one whose choices next makes; nap is one pause of n units.
func newCrowd(plan model.Plan, next func(int) int, nap func(n int), mut mutation) *crowd {
	d := &crowd{plan: plan, next: next}
	d.host = newHost(goroutines{}, mut)
	d.pause = func() { nap(next(4)) }
	d.meddle = d.disturb
	d.mode = func() seams.Mode { return seams.Mode(next(5)) }
	if plan.Watched {
		d.watch(next)
	}
	return d
}

// sequence makes a tape safe for many goroutines.
func choices(list []int) func(int) int {
	var mu sync.Mutex
	t := &tape{list: list}
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return t.next(n)
	}
}

// play runs the plan, empties the container and closes it.
func (d *crowd) play() []string {
	ctx := context.Background()
	for _, o := range d.plan.Ops {
		d.pause()
		if d.next(2) == 0 {
			d.exec(o)
		} else {
			d.wg.Go(func() { d.exec(o) })
		}
	}
	d.wg.Wait()
	d.rest("after the plan")
	d.mon.find(func(w *model.World) {
		for _, f := range w.Fibers {
			w.Ask(f)
		}
	})
	d.closing.Store(true)
	if err := d.c.Close(ctx); err != nil && !strings.Contains(err.Error(), "injected") {
		d.violate("CLOSE: %v", err)
	}
	if len(d.mon.violations()) == 0 {
		d.mon.find(func(w *model.World) {
			if len(w.Fibers) > 0 || len(w.Listeners) > 0 {
				d.mon.note("EMPTY: %v and listeners %v are left", w.Fibers, w.Listeners)
			}
		})
		d.c.slots.all(func(s *slot) {
			if s.used() || s != d.c.st.vacant {
				d.violate("EMPTY: slot %s is left", s.key.name)
			}
		})
		d.c.events.all(func(l *events) { d.violate("EMPTY: listeners of %s are left", l.name) })
	} else {
		d.abandon()
	}
	return d.mon.violations()
}

// rest waits until nothing is on its way and checks what must be then.
func (d *crowd) rest(when string) {
	if err := d.c.Settle(context.Background()); err != nil {
		d.violate("QUIET: %s: %v", when, err)
	}
	d.rested()
}

// place is where slot i is mounted; nil if what it stands below is not there.
func (d *crowd) place(i int) *Entry {
	s := d.plan.Slots[i]
	ctx := d.c.Root()
	if s.Parent >= 0 {
		up := d.place(s.Parent)
		if up == nil {
			return nil
		}
		hold, _ := up.Versions()
		if hold == nil || hold.State() != Active {
			return nil
		}
		a := d.act(hold)
		if a == nil {
			return nil
		}
		ctx = a.ctx
	}
	for _, n := range slices.Sorted(maps.Keys(s.Realms)) {
		ctx = ctx.Isolate(n, s.Realms[n])
	}
	return ctx.Entry(fmt.Sprint("slot", i))
}

// allow checks that err is none or one of codes.
func (d *crowd) allow(what string, err error, codes ...seams.Code) {
	if err != nil && !errors.Is(err, errRefused) && !slices.Contains(codes, seams.CodeOf(err)) {
		d.violate("ANSWER: %s answers %v", what, err)
	}
}

func (d *crowd) exec(o model.Op) {
	ctx := context.Background()
	switch o.Kind {
	case model.Run:
		for range o.N {
			d.pause()
		}
		return
	case model.Dispatch:
		d.emit(d.c.Root(), ctx, o.Name)
		return
	case model.Batch:
		d.batch(o.Sub)
		return
	case model.Restart:
		if d.next(2) == 0 {
			d.load(o.Slot)
			return
		}
	}
	e := d.place(o.Slot)
	if e == nil {
		return
	}
	hold, next := e.Versions()
	newest := next
	if next == nil {
		newest = hold
	}
	switch o.Kind {
	case model.Set:
		_, err := e.Set(d.plugin(d.plan.Slots[o.Slot].Variants[o.Variant]), o.N, nil)
		d.allow("Set", err, seams.Clash, seams.InactiveEffect)
	case model.Unmount:
		var done *Done
		d.mon.during(func() { done = e.Unmount() }, e.spot())
		if d.next(2) == 0 {
			d.gone(done.Wait(ctx), hold, next)
		}
	case model.Withdraw:
		var done *Done
		d.mon.during(func() { done = e.Withdraw() }, e.spot())
		d.allow("Withdraw", done.Wait(ctx))
	}
	if newest == nil {
		return
	}
	switch o.Kind {
	case model.Restart:
		_, err := newest.Restart()
		d.allow("Restart", err, seams.InactiveEffect)
	case model.Update:
		_, err := newest.Update(o.N)
		d.allow("Update", err, seams.InactiveEffect)
	case model.Dispose:
		d.mon.ask(hold)
		d.gone(hold.Dispose().Wait(ctx), hold)
	}
	a := d.act(hold)
	if a == nil {
		return
	}
	switch o.Kind {
	case model.Call:
		if !d.plan.Plain && d.next(3) == 0 {
			a.attach()
		} else {
			d.call(a)
		}
	case model.Change:
		a.mu.Lock()
		v := &service{a: a, name: o.Name}
		a.mu.Unlock()
		d.allow("Set", Set(a.ctx, serviceKey(o.Name), v), seams.NotProvided, seams.NotOwner)
	case model.Provide:
		if hold.State() != Active || d.act(hold) != a { // while it loads, its script provides
			return
		}
		undo, err := Provide(a.ctx, serviceKey(o.Name), &service{a: a, name: o.Name})
		d.allow("Provide", err, seams.Clash, seams.Duplicate, seams.InactiveEffect)
		a.keep(kept{undo: undo}, err)
	case model.Revoke:
		own(func() { a.revoke(o.N, ctx) })
	}
}

// load mounts, in the caller's goroutine, a plugin that needs what slot i
// provides, and disposes of it.
func (d *crowd) load(i int) {
	d.mu.Lock()
	if d.loaded == nil {
		for j := range d.plan.Slots {
			d.loaded = append(d.loaded, script(fmt.Sprint("loaded", j), fmt.Sprint("k", j), "", 2))
		}
	}
	s := d.loaded[i]
	d.mu.Unlock()
	f, err := d.c.Root().Load(context.Background(), d.plugin(s), 0)
	d.allow("Load", err)
	if err != nil {
		return
	}
	if f.Begins() == 0 && f.State() != Pending {
		d.violate("ANSWER: what Load answers is %v and has not begun", f)
	}
	d.mon.ask(f)
	d.gone(f.Dispose().Wait(context.Background()), f)
}

// gone checks fibers whose end has been waited for.
func (d *crowd) gone(err error, fs ...*Fiber) {
	d.allow("Dispose", err)
	for _, f := range fs {
		if f == nil {
			continue
		}
		if f.State() != Disposed {
			d.violate("ANSWER: %v is %v after its end was waited for", f, f.State())
		}
		if a := d.act(f); a != nil && (!a.over.Load() || a.frames.Load() > 0) {
			d.violate("ANSWER: something of %v runs after its end was waited for", f)
		}
	}
}

func (d *crowd) batch(sub []model.Op) {
	b := d.c.Root().Batch()
	var places []spot
	for _, o := range sub {
		if d.plan.Slots[o.Slot].Parent >= 0 {
			continue
		}
		e := d.place(o.Slot)
		switch o.Kind {
		case model.Set:
			b.Set(e, d.plugin(d.plan.Slots[o.Slot].Variants[o.Variant]), o.N, nil)
		case model.Unmount:
			b.Unmount(e)
			places = append(places, e.spot())
		}
	}
	d.mon.during(func() {
		_, err := b.Commit()
		d.allow("Commit", err, seams.Clash)
	}, places...)
}

// call calls into an activation.
func (d *crowd) call(a *act) {
	frame, exit, err := a.ctx.Claim().Enter(context.Background())
	if err != nil {
		d.allow("Enter", err, seams.InactiveEffect)
		return
	}
	a.frames.Add(1)
	if a.closed.Load() {
		d.violate("CALLS: a call enters %v, which is being undone", a.f)
	}
	a.check("a call")
	d.pause()
	if d.plan.Plain {
		d.pause()
	} else if d.next(2) == 0 {
		a.attach()
	} else {
		d.disturb(frame)
	}
	a.check("a call")
	a.frames.Add(-1)
	exit()
}

// disturb does, from plugin code whose context is c, what could be a wait for
// itself. It must be answered, whatever the answer is.
func (d *crowd) disturb(c context.Context) {
	if d.closing.Load() {
		return
	}
	var all []*act
	d.mu.Lock()
	for _, a := range d.acts {
		all = append(all, a)
	}
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b *act) int { return int(a.f.id) - int(b.f.id) })
	a := all[d.next(len(all))]
	answered := func(what string, err error) {
		if c.Err() == nil { // else the wait may have been given up
			d.allow(what, err, seams.WouldDeadlock)
		}
	}
	switch d.next(6) {
	case 0:
		d.mon.ask(a.f)
		answered("Dispose", a.f.Dispose().Wait(c))
	case 1:
		answered("Settle", d.c.Settle(c))
	case 2:
		if err := a.f.Settle(c); a.f.Err() == nil {
			answered("Settle", err)
		}
	case 3:
		own(func() { a.revoke(d.next(8), c) })
	case 4:
		short, cancel := context.WithTimeout(c, 20*time.Millisecond)
		defer cancel()
		_ = a.f.Ready().Wait(short)
	default:
		d.mon.ask(a.f)
		a.f.Dispose()
	}
}

// TestVirtual: the properties, with goroutines in virtual time.
func TestVirtual(t *testing.T) {
	check(t, max(*plans/4, 10), func(rt *rapid.T) {
		plan := model.Plans().Draw(rt, "plan")
		list := schedules().Draw(rt, "schedule")
		if bad := playVirtual(t, plan, list, 0); len(bad) > 0 {
			rt.Fatalf("%s", strings.Join(bad, "\n"))
		}
	})
}

func playVirtual(t *testing.T, plan model.Plan, list []int, mut mutation) (bad []string) {
	synctest.Test(t, func(*testing.T) {
		d := newCrowd(plan, choices(list), func(n int) { time.Sleep(time.Duration(n) * time.Millisecond) }, mut)
		bad = d.play()
	})
	return
}
