package cordis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"github.com/ouro-run/ouro/seams"
)

// D1 is the deterministic driver: one thing happens at a time. Commands of the
// container are parked; a tape says which of them is executed next, and which
// of those executed is reported to the scheduler next, alone or with others in
// one batch.

// tape is the schedule: a list of choices, used again from the start when it is
// at its end.
type tape struct {
	list []int
	at   int
}

func (t *tape) next(n int) int {
	if len(t.list) == 0 || n <= 1 {
		return 0
	}
	v := t.list[t.at%len(t.list)]
	t.at++
	return v % n
}

// adversary is a bias of the schedule: what it names happens only when nothing
// else can; batches are landings, all at once.
type adversary string

var adversaries = []adversary{"", "undos", "stages", "landings", "batches", "calls", "old", "young"}

// parking is the executor of D1.
type parking struct{ cmds []command }

func (p *parking) start(_ *Container, cmds []command) {
	for _, cmd := range cmds {
		if cmd.kind != cmdDrain { // only a deadline
			p.cmds = append(p.cmds, cmd)
		}
	}
}

// d1 plays one plan.
type d1 struct {
	*host
	park   *parking
	tape   *tape
	adv    adversary
	plan   model.Plan
	landed []*event
	calls  []func()
	want   []want // per slot
	given  context.Context
}

// want is what was last asked of a slot.
type want struct {
	script *model.Script
	cfg    int
}

type move struct {
	kind string // of adversary, or the command's
	do   func()
}

func newD1(plan model.Plan, list []int, adv adversary, mut mutation) *d1 {
	d := &d1{park: &parking{}, tape: &tape{list: list}, adv: adv, plan: plan, want: make([]want, len(plan.Slots))}
	d.host = newHost(d.park, mut)
	d.exact = true
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d.given = ctx // a wait with it makes the request and does not wait
	if plan.Watched {
		d.watch(d.tape.next)
	}
	return d
}

func (d *d1) moves() []move {
	var all []move
	for i, cmd := range d.park.cmds {
		kind := "stages"
		if cmd.kind == cmdUndo {
			kind = "undos"
		}
		all = append(all, move{kind, func() { d.execute(i) }})
	}
	for i := range d.landed {
		all = append(all, move{"landings", func() { d.land(i) }})
	}
	for i := range d.calls {
		all = append(all, move{"calls", func() {
			end := d.calls[i]
			d.calls = slices.Delete(d.calls, i, i+1)
			end()
		}})
	}
	return all
}

// own runs fn in a goroutine of its own, because scripts call Goexit.
func own(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	<-done
}

func (d *d1) execute(i int) {
	cmd := d.park.cmds[i]
	d.park.cmds = slices.Delete(d.park.cmds, i, i+1)
	ev := aborted(cmd)
	own(func() { ev = d.c.execute(cmd) })
	if ev != nil {
		d.landed = append(d.landed, ev)
	}
}

// land reports what has been executed; now and then all at once.
func (d *d1) land(i int) {
	batch := d.landed[i : i+1 : i+1]
	if len(d.landed) > 1 && (d.adv == "batches" || d.tape.next(4) == 3) {
		batch = slices.Clone(d.landed)
		d.landed = nil
	} else {
		batch = slices.Clone(batch)
		d.landed = slices.Delete(d.landed, i, i+1)
	}
	d.c.sched.mu.Lock()
	d.c.sched.q = append(d.c.sched.q, batch...)
	d.park.start(d.c, d.c.drain(drainBound))
}

// step lets one thing happen; false means that nothing can.
func (d *d1) step() bool {
	all := d.moves()
	if len(all) == 0 {
		return false
	}
	some := all
	switch d.adv {
	case "":
	case "old":
		some = all[:1]
	case "young":
		some = all[len(all)-1:]
	default:
		last := string(d.adv)
		if d.adv == "batches" {
			last = "landings"
		}
		some = slices.DeleteFunc(slices.Clone(all), func(m move) bool { return m.kind == last })
		if len(some) == 0 {
			some = all
		}
	}
	some[d.tape.next(len(some))].do()
	return true
}

func (d *d1) run(n int) {
	for ; n > 0 && d.step(); n-- {
	}
}

// settle lets everything happen and checks that the container is then at rest.
func (d *d1) settle(when string) bool {
	for range 20000 {
		if len(d.violations()) > 0 {
			return false
		}
		if !d.step() {
			d.rest(when)
			return len(d.violations()) == 0
		}
	}
	d.violate("PROGRESS: no end of it (%s)", when)
	return false
}

func (d *d1) violations() []string { return d.mon.violations() }

func (d *d1) rest(when string) {
	if err := d.c.Settle(d.given); err != nil {
		d.violate("QUIET: nothing can happen any more (%s) and the container is not at rest: %v", when, err)
	}
	d.rested()
}

// place is where slot i is mounted: the context, and the entry in it.
func (d *d1) place(i int) (*Context, *Entry) {
	s := d.plan.Slots[i]
	ctx := d.c.Root()
	if s.Parent >= 0 {
		hold, _ := d.versions(s.Parent)
		if hold == nil || hold.State() == Loading {
			return nil, nil
		}
		a := d.act(hold)
		if a == nil {
			return nil, nil
		}
		ctx = a.ctx
	}
	for _, n := range slices.Sorted(maps.Keys(s.Realms)) {
		ctx = ctx.Isolate(n, s.Realms[n])
	}
	return ctx, ctx.Entry(fmt.Sprint("slot", i))
}

// versions are the holder of slot i and its successor.
func (d *d1) versions(i int) (hold, next *Fiber) {
	_, e := d.place(i)
	if e == nil {
		return nil, nil
	}
	return e.Versions()
}

// refusal is how mounting s at the place must be answered.
func (d *d1) refusal(ctx *Context, e *Entry, s *model.Script, realms model.Realms) (code seams.Code) {
	d.mon.find(func(w *model.World) {
		parent := d.mon.twins[ctx.ep.f]
		entry := 0
		if at := ctx.ep.entries[e.name]; at != nil {
			entry = d.mon.entries[at]
		}
		switch {
		case !parent.Open() || ctx.ep.f.ep != ctx.ep:
			code = seams.InactiveEffect
		case w.Clash(parent, entry, s, realms) != nil:
			code = seams.Clash
		}
	})
	return
}

func (d *d1) expect(what string, err error, code seams.Code) {
	if errors.Is(err, errRefused) && code == "" {
		return
	}
	if seams.CodeOf(err) != code {
		d.violate("ANSWER: %s answers %v, should be %q", what, err, code)
	}
}

func (d *d1) exec(o model.Op) {
	if o.Kind == model.Run {
		d.run(o.N)
		return
	}
	if o.Kind == model.Batch {
		d.batch(o.Sub)
		return
	}
	if o.Kind == model.Dispatch {
		d.emit(d.c.Root(), context.Background(), o.Name)
		return
	}
	ctx, e := d.place(o.Slot)
	if ctx == nil {
		return
	}
	hold, next := e.Versions()
	newest := next
	if newest == nil {
		newest = hold
	}
	switch o.Kind {
	case model.Set:
		d.set(o.Slot, d.plan.Slots[o.Slot].Variants[o.Variant], o.N)
	case model.Unmount:
		d.want[o.Slot] = want{}
		d.mon.during(func() { e.Unmount() }, e.spot())
		if hold, _ := e.Versions(); hold != nil {
			d.violate("ANSWER: after Unmount %v is still there", hold)
		}
	case model.Withdraw:
		if next != nil {
			d.mon.ask(next)
			d.want[o.Slot] = want{d.script(hold.p), hold.raw.(int)}
		}
		e.Withdraw()
	}
	if newest == nil {
		return
	}
	act := d.act(hold)
	current := act != nil && hold.ep == act.ctx.ep
	switch o.Kind {
	case model.Restart:
		code := d.refusal(ctx, e, d.script(newest.p), d.plan.Slots[o.Slot].Realms)
		f, err := newest.Restart()
		d.expect("Restart", err, code)
		if err == nil && (f == newest || f.p != newest.p) {
			d.violate("ANSWER: Restart of %v answers %v", newest, f)
		}
	case model.Update:
		d.update(ctx, e, o, newest)
	case model.Dispose:
		d.mon.ask(hold)
		hold.Dispose()
		if _, err := hold.Restart(); !errors.Is(err, seams.InactiveEffect) {
			d.violate("IDENTITY: Restart of the disposed %v answers %v", hold, err)
		}
	case model.Call:
		if act != nil {
			d.call(act, current)
		}
	case model.Change:
		if current {
			d.change(act, o.Name)
		}
	case model.Provide:
		if current && hold.State() == Active {
			d.provide(act, o.Name)
		}
	case model.Revoke:
		if current && hold.State() == Active {
			own(func() { act.revoke(o.N, d.given) })
		}
	}
}

// set mounts s in slot i, or replaces what stands there.
func (d *d1) set(i int, s *model.Script, cfg int) *Fiber {
	ctx, e := d.place(i)
	if ctx == nil {
		return nil
	}
	hold, next := e.Versions()
	newest := next
	if newest == nil {
		newest = hold
	}
	same := newest != nil && d.script(newest.p) == s && newest.raw == any(cfg) && newest.State() != Failed && newest.Err() == nil
	code := d.refusal(ctx, e, s, d.plan.Slots[i].Realms)
	if takes := next == nil && hold != nil && hold.p == d.plugin(s) && hold.takes(); takes {
		same, code = true, ""
	}
	f, err := e.Set(d.plugin(s), cfg, nil)
	d.expect("Set", err, code)
	if errors.Is(err, errRefused) {
		if h, n := e.Versions(); h != hold || n != next {
			d.violate("UNTOUCHED: a mount was refused, and %v and %v became %v and %v", hold, next, h, n)
		}
	}
	if err != nil {
		return nil
	}
	d.want[i] = want{s, cfg}
	if same != (f == newest) {
		d.violate("ANSWER: Set of what is there: %v, answers %v after %v", same, f, newest)
	}
	return f
}

func (d *d1) batch(sub []model.Op) {
	b := d.c.Root().Batch()
	var places []spot
	var asked []func(*Fiber) // one for each mount: notes what it was for
	for _, o := range sub {
		ctx, e := d.place(o.Slot)
		if ctx == nil || d.plan.Slots[o.Slot].Parent >= 0 {
			continue
		}
		s := d.plan.Slots[o.Slot].Variants[o.Variant]
		switch o.Kind {
		case model.Set:
			b.Set(e, d.plugin(s), o.N, nil)
			asked = append(asked, func(f *Fiber) {
				if f != nil && !f.retired {
					d.want[o.Slot] = want{s, o.N}
				}
			})
		case model.Unmount:
			b.Unmount(e)
			places = append(places, e.spot())
			d.want[o.Slot] = want{}
		}
	}
	var fs []*Fiber
	var err error
	last := d.c.st.ids
	d.mon.during(func() { fs, err = b.Commit() }, places...)
	if len(fs) != len(asked) {
		d.violate("ANSWER: a batch of %d mounts answers %d fibers", len(asked), len(fs))
		return
	}
	if err != nil {
		if code := seams.CodeOf(err); code != seams.Clash && !errors.Is(err, errRefused) {
			d.violate("ANSWER: a batch answers %v", err)
		}
	}
	for i, f := range fs {
		asked[i](f)
		// What came and went in it never began.
		if f != nil && f.id > last && f.State() == Disposed && f.Begins() > 0 {
			d.violate("BATCH: %v began and went in one batch", f)
		}
	}
}

// takes reports whether the script of f takes another configuration in place.
func (f *Fiber) takes() bool { return f.phase == active && len(f.ep.updates) > 0 }

func (d *d1) update(ctx *Context, e *Entry, o model.Op, f *Fiber) {
	s := d.script(f.p)
	begins := f.Begins()
	takes := f.takes()
	same := f.raw == any(o.N) && f.State() != Failed
	code := d.refusal(ctx, e, s, d.plan.Slots[o.Slot].Realms)
	if same || takes {
		code = ""
	}
	g, err := f.Update(o.N)
	d.expect("Update", err, code)
	if err != nil {
		return
	}
	d.want[o.Slot].cfg = o.N
	if (same || takes) != (g == f) {
		d.violate("UPDATE: of %v, equal %v, taken in place %v, answers %v", f, same, takes, g)
	}
	if g == f && (f.Begins() != begins || f.Config() != any(o.N)) {
		d.violate("UPDATE: of %v in place: begins %d to %d, config %v", f, begins, f.Begins(), f.Config())
	}
}

// call enters an activation as a call would; it ends when the schedule says so.
func (d *d1) call(a *act, current bool) {
	open := false
	d.mon.find(func(w *model.World) {
		f := d.mon.twins[a.f]
		open = current && (f.Phase == model.Loading || f.Phase == model.Active || f.Phase == model.Leaving && w.Reliance(f) > 0)
	})
	_, exit, err := a.ctx.Claim().Enter(context.Background())
	if open != (err == nil) {
		d.violate("CALLS: a call into %v, open %v, answers %v", a.f, open, err)
	}
	if err != nil {
		return
	}
	a.frames.Add(1)
	a.check("a call")
	d.calls = append(d.calls, func() {
		a.check("a call")
		a.frames.Add(-1)
		exit()
	})
}

// change replaces a service in place.
func (d *d1) change(a *act, name string) {
	a.mu.Lock()
	old := a.values[name]
	a.mu.Unlock()
	bound := false
	d.mon.find(func(w *model.World) {
		for _, e := range d.mon.twins[a.f].Stack {
			bound = bound || e.Kind == model.Bind && e.Name == name && !e.Early
		}
	})
	if !bound {
		return
	}
	v := &service{a: a, name: name, n: old.n + 1}
	a.mu.Lock()
	a.values[name] = v
	a.mu.Unlock()
	if err := Set(a.ctx, serviceKey(name), v); err != nil {
		d.violate("SET: of %s by %v: %v", name, a.f, err)
	}
}

// provide binds name outside of apply.
func (d *d1) provide(a *act, name string) {
	code := seams.Code("")
	d.mon.find(func(w *model.World) {
		f := d.mon.twins[a.f]
		if w.Taken(f, name) != nil {
			code = seams.Clash
		}
		for _, e := range f.Stack {
			if e.Kind == model.Bind && e.Name == name && !e.Early {
				code = seams.Duplicate
			}
		}
	})
	v := &service{a: a, name: name}
	if code == "" {
		a.mu.Lock()
		a.values[name] = v
		a.mu.Unlock()
	}
	undo, err := Provide(a.ctx, serviceKey(name), v)
	d.expect("Provide", err, code)
	a.keep(kept{undo: undo}, err)
}

// play runs a plan under a schedule and answers what was violated.
func play(plan model.Plan, list []int, adv adversary, mut mutation) []string {
	d := newD1(plan, list, adv, mut)
	d.all()
	v := d.violations()
	if len(v) > 0 {
		d.abandon()
	}
	slices.Sort(v)
	return slices.Compact(v)
}

func (d *d1) all() {
	for _, o := range d.plan.Ops {
		d.exec(o)
		d.run(d.tape.next(4))
		if len(d.violations()) > 0 {
			return
		}
	}
	d.closing.Store(true)
	if !d.settle("after the plan") {
		return
	}
	if d.plan.Plain {
		d.fresh()
		if !d.untouched() || !d.exactlyOne() || !d.underway() {
			return
		}
	}
	d.empty()
}

// fresh checks that whatever a fresh start on the last variants would run, runs,
// and sees the same providers (N-6, Q5).
func (d *d1) fresh() {
	var nodes []model.Node
	nodes = append(nodes, model.Node{Script: &model.Script{}, Parent: -1})
	for i, w := range d.want {
		if w.script != nil {
			nodes = model.Declared(nodes, w.script.Name, w.script, 0, d.plan.Slots[i].Realms)
		}
	}
	d.mon.find(func(w *model.World) {
		now := w.Observe()
		for _, l := range model.Observation(nodes) {
			if !slices.Contains(now, l) {
				d.mon.note("FRESH: a fresh start has %q, here is %q", l, now)
			}
		}
	})
}

// holders reports whether no slot has an undecided successor.
func (d *d1) decided() bool {
	for i := range d.plan.Slots {
		if _, next := d.versions(i); next != nil {
			return false
		}
	}
	return true
}

// snapshot is what every fiber is and how often it has begun.
type snapshot map[*Fiber]struct {
	begins uint64
	state  State
}

func (d *d1) snapshot() snapshot {
	s := snapshot{}
	d.mon.find(func(*model.World) {
		for f := range d.mon.fibers {
			s[f] = struct {
				begins uint64
				state  State
			}{f.Begins(), f.State()}
		}
	})
	return s
}

func (d *d1) observe() (out string) {
	d.mon.find(func(w *model.World) { out = strings.Join(w.Observe(), "\n") })
	return
}

// untouched: a successor that fails, stays pending or is withdrawn leaves every
// other fiber alone (N-2).
func (d *d1) untouched() bool {
	for i, slot := range d.plan.Slots {
		hold, next := d.versions(i)
		if hold == nil || next != nil || hold.State() != Active {
			continue
		}
		before, seen := d.snapshot(), d.observe()
		s := slot.Variants[d.tape.next(4)]
		kind := d.tape.next(3)
		switch kind {
		case 0:
			s = s.Failing(d.tape.next(8), model.Errs)
		case 1:
			s = s.Wanting("nobody")
		}
		if own := slices.ContainsFunc(s.Needs, func(n string) bool { return slices.Contains(d.script(hold.p).Provides, n) }); own {
			continue // replaced with a gap
		}
		q := d.set(i, s, 7)
		if q == nil {
			return false
		}
		for n := d.tape.next(20); n > 0; n-- {
			if kind == 2 && q.State() == Loading {
				break
			}
			d.step()
		}
		if kind != 2 && !d.settle("with a successor that cannot run") {
			return false
		}
		same := func(when string) {
			for f, b := range before {
				if f.Begins() != b.begins || f.State() != b.state {
					d.violate("UNTOUCHED: %v is %v and was %v, begins %d and %d; %s, successor %v", f, f.State(), b.state, f.Begins(), b.begins, when, q)
				}
			}
		}
		if q.State() != Active {
			same("undecided")
		}
		if _, next := d.versions(i); next == q {
			d.mon.ask(q)
			_, e := d.place(i)
			e.Withdraw()
			if !d.settle("after a withdrawal") {
				return false
			}
			same("withdrawn")
			if now := d.observe(); now != seen {
				d.violate("UNTOUCHED: now %s\nbefore %s", now, seen)
			}
		} else if !d.settle("after a replacement") {
			return false
		}
	}
	return true
}

// dependants are the fibers that rely on f, by views or as children.
func (d *d1) dependants(f *Fiber) map[*model.Fiber]bool {
	out := map[*model.Fiber]bool{}
	d.mon.find(func(w *model.World) {
		root := d.mon.twins[f]
		for changed := true; changed; {
			changed = false
			for _, g := range w.Fibers {
				if out[g] || g == root {
					continue
				}
				hit := g.Parent == root || out[g.Parent]
				for _, c := range g.View {
					hit = hit || c.To == root || out[c.To]
				}
				if hit {
					out[g], changed = true, true
				}
			}
		}
	})
	return out
}

// exactlyOne: of one replacement from rest, every dependant that ends active has
// begun once more, exactly; what was active and is none has not (N-4).
func (d *d1) exactlyOne() bool {
	for i, slot := range d.plan.Slots {
		if !d.decided() {
			return true
		}
		hold, _ := d.versions(i)
		if hold == nil || hold.State() != Active {
			continue
		}
		s := d.script(hold.p)
		if d.tape.next(2) == 1 {
			s = slot.Variants[d.tape.next(3)]
		}
		if slices.ContainsFunc(s.Needs, func(n string) bool { return slices.Contains(d.script(hold.p).Provides, n) }) {
			continue
		}
		same := s == d.script(hold.p)
		dep, before, seen := d.dependants(hold), d.snapshot(), d.observe()
		q := d.set(i, s, hold.raw.(int)+1)
		if q == nil || !d.settle("one replacement") {
			return false
		}
		if now, next := d.versions(i); now == hold && next == q {
			d.mon.ask(q)
			_, e := d.place(i)
			e.Withdraw()
			if !d.settle("a replacement withdrawn") {
				return false
			}
			dep = nil
		}
		for f, b := range before {
			n := f.Begins() - b.begins
			if f == hold || f.State() == Disposed {
				continue
			}
			in := dep[d.mon.twin(f)]
			if n > 1 || in && f.State() == Active && n != 1 || !in && b.state == Active && n != 0 {
				d.violate("ONE-RESTART: %v, a dependant of %v: %v, began %d times more", f, hold, in, n)
			}
		}
		if now := d.observe(); same && now != seen {
			d.violate("ONE-RESTART: now %s\nbefore %s", now, seen)
		}
	}
	return true
}

// underway: a failing successor that is offered while the holder is somewhere in
// a restart of its own changes nothing either.
func (d *d1) underway() bool {
	n := len(d.plan.Slots)
	for i, slot := range d.plan.Slots {
		if !d.decided() {
			return true
		}
		j := d.tape.next(n)
		hold, _ := d.versions(i)
		up, _ := d.versions(j)
		if i == j || hold == nil || up == nil || hold.State() != Active || up.State() != Active {
			continue
		}
		s := slot.Variants[d.tape.next(4)].Failing(d.tape.next(8), model.Errs)
		provided := append(slices.Clone(d.script(hold.p).Provides), d.script(up.p).Provides...)
		if slices.ContainsFunc(append(slices.Clone(s.Needs), d.script(up.p).Needs...), func(n string) bool { return slices.Contains(provided, n) }) {
			if slices.ContainsFunc(s.Needs, func(n string) bool { return slices.Contains(d.script(hold.p).Provides, n) }) {
				continue
			}
		}
		seen := d.observe()
		if _, err := up.Restart(); err != nil {
			d.violate("ANSWER: Restart: %v", err)
		}
		d.run(d.tape.next(25))
		if q := d.set(i, s, 9); q == nil {
			return false
		}
		if !d.settle("a failing successor during a restart") {
			return false
		}
		if _, next := d.versions(i); next != nil {
			d.mon.ask(next)
			_, e := d.place(i)
			e.Withdraw()
		}
		if !d.settle("and withdrawn") {
			return false
		}
		if now := d.observe(); now != seen {
			d.violate("UNTOUCHED: during a restart of %v: now %s\nbefore %s", up, now, seen)
		}
	}
	return true
}

// empty disposes of everything; nothing is left (R2).
func (d *d1) empty() {
	d.mon.find(func(w *model.World) {
		for _, f := range w.Fibers {
			w.Ask(f)
		}
	})
	d.c.Root().Fiber().Dispose()
	if !d.settle("when all is gone") {
		return
	}
	st := &d.c.st
	if st.root.kids.first != nil || len(st.stuck) > 0 || len(st.root.ep.entries) > 0 {
		d.violate("EMPTY: fibers are left")
	}
	for _, e := range st.root.ep.effects {
		if e.kind == childEffect && e.state != finished {
			d.violate("EMPTY: an effect of the root is left")
		}
	}
	d.c.slots.all(func(s *slot) {
		if s.used() || s != d.c.st.vacant {
			d.violate("EMPTY: slot %s is left", s.key.name)
		}
	})
	d.c.events.all(func(l *events) {
		if l.name != PluginEvent.Name && l.name != StatusEvent.Name {
			d.violate("EMPTY: listeners of %s are left", l.name)
		}
	})
	d.mon.find(func(w *model.World) {
		if len(w.Fibers) > 0 || len(w.Listeners) > 2 {
			d.mon.note("EMPTY: %v %v", w.Fibers, w.Listeners)
		}
	})
}
