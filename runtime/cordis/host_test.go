package cordis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"github.com/ouro-run/ouro/seams"
)

// host runs scripts as plugins of a real container and keeps, outside of it, the
// ledger of what they hold: resources, goroutines, frames, injected errors.
type host struct {
	c   *Container
	mon *monitor
	// pause is called wherever a script could be interrupted.
	pause func()
	// exact is set where one thing happens at a time, so that what an operation
	// answers follows from the world.
	exact bool
	// mode chooses how an event is dispatched.
	mode func() seams.Mode
	// meddle lets code of a plugin, whose context is given, do what may disturb.
	meddle  func(context.Context)
	closing atomic.Bool // the plan is over: nothing is to disturb any more
	// quit ends the goroutines of scripts whose container is given up.
	quit chan struct{}

	mu      sync.Mutex
	plugins map[*model.Script]*Plugin
	scripts map[*Plugin]*model.Script
	acts    map[*Fiber]*act  // the newest activation of each
	faults  map[error]int    // injected errors: how often each was reported
	states  map[*Fiber]State // as last announced, if somebody observes
}

// act is one activation of a script.
type act struct {
	h      *host
	s      *model.Script
	ctx    *Context
	f      *Fiber
	life   uint64
	frames atomic.Int32 // calls and listeners inside
	undos  atomic.Int32 // inverses that run
	closed atomic.Bool  // it may be undone: nothing of it may run but its undos
	over   atomic.Bool  // inactive

	mu     sync.Mutex
	tokens []*token // live ones, in order of landing
	values map[string]*service
	undo   []kept // of what it registered
}

// kept is the undo of a registration, and the listener or the resources that it
// is about.
type kept struct {
	undo   seams.Undo
	l      *hearer
	tokens []*token
}

// token is one entry of the ledger.
type token struct {
	a      *act
	manual atomic.Bool // somebody asked for it ahead of time
	given  atomic.Int32
}

// service is what scripts provide.
type service struct {
	a    *act
	name string
	n    int
}

func serviceKey(name string) seams.Key[*service] { return seams.Key[*service]{Name: name} }

func newHost(exec executor, mut mutation) *host {
	h := &host{plugins: map[*model.Script]*Plugin{}, scripts: map[*Plugin]*model.Script{}, acts: map[*Fiber]*act{}, faults: map[error]int{}, pause: func() {}, quit: make(chan struct{})}
	h.c = newContainer(Options{Report: h.report}, exec, mut)
	h.mon = newMonitor(h)
	return h
}

// abandon gives up a container in which something went wrong.
func (h *host) abandon() {
	close(h.quit)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.acts {
		if run := a.ctx.ep.run; run != nil {
			go func() { _ = contain(func() error { run.stop(); return nil }) }()
		}
	}
}

// errRefused is how an observer refuses a mount.
var errRefused = errors.New("refused")

// watch observes mounts and states from the root. It refuses a mount at a place
// now and then, as next says. Each change of a state is told once, in order, and
// is one that can be (Q10).
func (h *host) watch(next func(int) int) {
	h.states = map[*Fiber]State{}
	_, err := h.c.Root().On(PluginEvent.Name, func(_ context.Context, payload any, _ seams.Next) (any, error) {
		h.pause()
		f := payload.(*Fiber)
		if f.State() == Pending && f.Entry() != "" && !h.closing.Load() && next(8) == 7 {
			h.mon.ask(f)
			return nil, errRefused
		}
		return nil, nil
	})
	if err == nil {
		_, err = h.c.Root().On(StatusEvent.Name, func(_ context.Context, payload any, _ seams.Next) (any, error) {
			h.changed(payload.(StatusChange))
			return nil, nil
		})
	}
	if err != nil {
		h.violate("HARNESS: %v", err)
	}
}

func (h *host) changed(s StatusChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	edge := [2]State{s.Old, s.New}
	legal := s.New == Disposed && s.Old != Disposed || slices.Contains([][2]State{
		{Pending, Loading}, {Loading, Active}, {Loading, Unloading}, {Active, Unloading}, {Unloading, Pending}, {Unloading, Failed},
	}, edge)
	if h.states[s.Fiber] != s.Old || !legal {
		h.violate("STATUS: %v goes from %v to %v and was %v", s.Fiber, s.Old, s.New, h.states[s.Fiber])
	}
	h.states[s.Fiber] = s.New
}

// rested checks what must be when nothing is on its way.
func (h *host) rested() {
	h.mon.rest()
	h.told()
	h.mu.Lock()
	defer h.mu.Unlock()
	for err, n := range h.faults {
		if n != 1 {
			h.violate("REPORT: %q is reported %d times", err, n)
		}
	}
	clear(h.faults)
}

// told checks at rest that every state has been announced.
func (h *host) told() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f, s := range h.states {
		if f.State() != s {
			h.violate("STATUS: %v is %v, the last that was told is %v", f, f.State(), s)
		}
	}
}

func (h *host) violate(format string, args ...any) { h.mon.violate(format, args...) }

// fault makes an error that must be reported once.
func (h *host) fault(f *Fiber, phase string) error {
	err := fmt.Errorf("injected in %s of %s", phase, f.label())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[err] = 0
	return err
}

func (h *host) report(r Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for err := range h.faults {
		if errors.Is(r.Err, err) {
			h.faults[err]++
			return
		}
	}
	switch seams.CodeOf(r.Err) {
	case seams.Clash, seams.InactiveEffect, seams.Panicked, seams.ModeConflict:
	default:
		h.violate("REPORT: nobody injected %q", r.Err)
	}
}

// plugin is the plugin of a script; the same script is the same plugin.
func (h *host) plugin(s *model.Script) *Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.plugins[s]
	if p == nil {
		p = &Plugin{Name: s.Name, Provide: s.Provides, Exclusive: s.Exclusive}
		p.Inject = Inject(s.Needs...)
		for _, w := range s.Wants {
			p.Inject = append(p.Inject, Need{Name: w, Optional: true})
		}
		if s.Plain {
			p.Apply = func(ctx *Context, cfg any) error {
				for undo, err := range h.steps(s, ctx) {
					if undo != nil {
						panic("a plain script yields no undo")
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
		} else {
			p.Steps = func(ctx *Context, cfg any) iter.Seq2[seams.Undo, error] { return h.steps(s, ctx) }
		}
		h.plugins[s], h.scripts[p] = p, s
	}
	return p
}

func (h *host) script(p *Plugin) *model.Script {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scripts[p]
}

func (h *host) act(f *Fiber) *act {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acts[f]
}

// callsIn, close and inactive are called by the monitor, inside a step.
func (h *host) callsIn(f *model.Fiber) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for g, a := range h.acts {
		if int(g.id) == f.ID {
			return int(a.frames.Load())
		}
	}
	return 0
}

func (h *host) close(f *Fiber) {
	if a := h.act(f); a != nil {
		a.closed.Store(true)
	}
}

func (h *host) inactive(f *Fiber) {
	a := h.act(f)
	if a == nil {
		return
	}
	a.over.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	for range a.tokens {
		h.mon.note("TERMINAL: %v is inactive and holds %d resources", f, len(a.tokens))
		break
	}
}

func (h *host) mayFail(f *Fiber) bool {
	// A script without a failure fails only where what it asks for is refused.
	return h.script(f.p).Fails() || len(h.script(f.p).Provides) < bindings(h.script(f.p))
}

func bindings(s *model.Script) (n int) {
	for _, p := range s.Steps {
		if p.Kind == model.Bind {
			n++
		}
	}
	return
}

// steps plays a script.
func (h *host) steps(s *model.Script, ctx *Context) iter.Seq2[seams.Undo, error] {
	return func(yield func(seams.Undo, error) bool) {
		a := &act{h: h, s: s, ctx: ctx, f: ctx.ep.f, life: ctx.ep.f.Begins(), values: map[string]*service{}}
		h.mu.Lock()
		h.acts[a.f] = a
		h.mu.Unlock()
		if s.Takes {
			_ = ctx.OnUpdate(func(any) (bool, error) { return true, nil })
		}
		for _, p := range s.Steps {
			h.pause()
			a.check("a stage")
			undo, err := a.step(p)
			if !yield(undo, err) {
				return
			}
		}
	}
}

func (a *act) step(p model.Step) (seams.Undo, error) {
	h := a.h
	switch p.Kind {
	case model.Take:
		if !a.s.Plain && p.How == model.Fine {
			_, undo := a.take(p.How)
			return undo, nil // recorded by the container when it is yielded
		}
		var t *token
		undo, err := a.ctx.Effect("take", func(context.Context) (seams.Undo, error) {
			h.pause()
			var undo seams.Undo
			t, undo = a.take(p.How)
			return undo, nil
		})
		a.keep(kept{undo: undo, tokens: []*token{t}}, err)
		return nil, err
	case model.Seq:
		var ts []*token
		undo, err := a.ctx.EffectSeq("seq", func(yield func(seams.Undo, error) bool) {
			for range p.N {
				h.pause()
				t, undo := a.take(model.Fine)
				ts = append(ts, t)
				if !yield(undo, nil) {
					return
				}
			}
		})
		a.keep(kept{undo: undo, tokens: ts}, err)
		return nil, err
	case model.Bind:
		v := &service{a: a, name: p.Name}
		a.mu.Lock()
		a.values[p.Name] = v
		a.mu.Unlock()
		undo, err := Provide(a.ctx, serviceKey(p.Name), v)
		a.keep(kept{undo: undo}, err)
		return nil, err
	case model.Listen:
		var opts []ListenOption
		if p.Front {
			opts = append(opts, Prepend())
		}
		if p.Once {
			opts = append(opts, Once())
		}
		l := &hearer{a: a, p: p}
		undo, err := a.ctx.Listen(p.Name, l.hear, opts...)
		l.undo.Store(&undo)
		if h.exact && err == nil {
			es := a.ctx.ep.effects
			h.mon.find(func(*model.World) { l.e = h.mon.effects[es[len(es)-1]] })
		}
		a.keep(kept{undo: undo, l: l}, err)
		return nil, err
	case model.Go:
		t := &token{a: a}
		a.hold(t)
		undo, err := a.ctx.Go("go", func(c context.Context) error {
			select {
			case <-c.Done():
			case <-h.quit:
				return nil
			}
			h.pause()
			if !a.closed.Load() && !t.manual.Load() {
				h.violate("OWNED: a goroutine of %v is told to end before it is undone", a.f)
			}
			a.release(t)
			return nil
		})
		if err != nil {
			a.release(t)
		} else {
			a.keep(kept{undo: undo, tokens: []*token{t}}, nil)
		}
		return nil, err
	case model.Child:
		ctx := a.ctx
		for _, n := range slices.Sorted(maps.Keys(p.Realms)) {
			ctx = ctx.Isolate(n, p.Realms[n])
		}
		_, err := ctx.Plugin(h.plugin(p.Script), nil)
		return nil, err
	case model.Emit:
		h.emit(a.ctx, a.ctx.Context(), p.Name)
	case model.Leave:
		h.mon.ask(a.f)
		a.f.Dispose()
	case model.Fail:
		err := h.fault(a.f, "apply")
		switch p.How {
		case model.Panics:
			panic(err)
		case model.Exits:
			h.mu.Lock()
			delete(h.faults, err)
			h.mu.Unlock()
			runtime.Goexit()
		}
		return nil, err
	}
	return nil, nil
}

func (a *act) keep(k kept, err error) {
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.undo = append(a.undo, k)
	}
}

func (a *act) hold(t *token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = append(a.tokens, t)
}

// release gives a token back; whoever holds a younger one had to go first.
func (a *act) release(t *token) {
	if t.given.Add(1) != 1 {
		a.h.violate("ONCE: an undo of %v ran twice", a.f)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.tokens) - 1; i >= 0 && a.tokens[i] != t; i-- {
		if !t.manual.Load() && !a.tokens[i].manual.Load() {
			a.h.violate("LIFO: an undo of %v ran before that of a younger effect", a.f)
			break
		}
	}
	a.tokens = slices.DeleteFunc(a.tokens, func(o *token) bool { return o == t })
}

// lateScript is what undos try to mount.
var lateScript = &model.Script{Name: "late"}

// take takes a resource and answers its undo.
func (a *act) take(how model.Manner) (*token, seams.Undo) {
	h := a.h
	t := &token{a: a}
	a.hold(t)
	return t, func(c context.Context) error {
		if n := a.undos.Add(1); n != 1 {
			h.violate("SERIAL: %d undos of %v run at once", n, a.f)
		}
		defer a.undos.Add(-1)
		if !t.manual.Load() {
			if !a.closed.Load() {
				h.violate("GUARD: an undo of %v runs and it may not be undone", a.f)
			}
			if a.ctx.Context().Err() == nil {
				h.violate("CONTEXT: %v is undone and its context is not over", a.f)
			}
			if n := a.frames.Load(); n > 0 {
				h.violate("CALLS: %v is undone under %d calls", a.f, n)
			}
		}
		if _, ok := c.Deadline(); !ok || c.Err() != nil {
			h.violate("CONTEXT: an undo of %v has no live context with a deadline", a.f)
		}
		a.check("an undo")
		if !t.manual.Load() {
			if _, err := a.ctx.Plugin(h.plugin(lateScript), nil); !errors.Is(err, seams.InactiveEffect) {
				h.violate("CLOSED: an undo of %v mounts: %v", a.f, err)
			}
		}
		h.pause()
		a.check("an undo")
		a.release(t)
		switch how {
		case model.Errs:
			return h.fault(a.f, "undo")
		case model.Panics:
			panic(h.fault(a.f, "undo"))
		case model.Exits:
			runtime.Goexit()
		}
		return nil
	}
}

// check reads every need: it is what the activation is committed to, and works.
func (a *act) check(where string) {
	for _, n := range a.s.Needs {
		v, err := Get(a.ctx, serviceKey(n))
		if err != nil {
			a.h.violate("VIEW: in %s of %v, reading %s: %v", where, a.f, n, err)
			continue
		}
		p := v.a
		if p.closed.Load() {
			a.h.violate("VIEW: in %s of %v, %s is of %v, which is being undone", where, a.f, n, p.f)
		}
		if p.ctx.Context().Err() != nil {
			a.h.violate("CONTEXT: in %s of %v the context of its provider %v is over", where, a.f, p.f)
		}
		a.h.mon.find(func(*model.World) {
			i := slices.Index(a.s.Needs, n)
			g := a.h.mon.twins[a.f]
			if g == nil || len(g.View) <= i || g.View[i].To != a.h.mon.twins[p.f] || g.View[i].Life != int(p.life) {
				a.h.mon.note("VIEW: in %s of %v, %s is of %v", where, a.f, n, p.f)
			}
		})
		p.mu.Lock()
		if a.h.exact && p.values[n] != v {
			a.h.violate("SET: in %s of %v, %s is an old value", where, a.f, n)
		}
		p.mu.Unlock()
	}
	if !a.h.exact {
		return
	}
	for _, n := range a.s.Wants {
		v, ok := Lookup(a.ctx, serviceKey(n))
		a.h.mon.find(func(w *model.World) {
			want := w.Seen(a.h.mon.twins[a.f], n)
			if ok != (want != nil) || ok && a.h.mon.twins[v.a.f] != want {
				a.h.mon.note("OPTIONAL: in %s of %v, %s is there: %v, should be of %v", where, a.f, n, ok, want)
			}
		})
	}
}

// hearer is one listener.
type hearer struct {
	a    *act
	p    model.Step
	e    *model.Effect // in the world, where things happen one at a time
	undo atomic.Pointer[seams.Undo]
	used atomic.Int32
	in   atomic.Int32
	off  atomic.Bool // somebody was told that it is
}

// emission is the payload of an event: who has heard it.
type emission struct {
	mu    sync.Mutex
	heard []*hearer
	depth int
}

func (l *hearer) hear(c context.Context, payload any, next seams.Next) (any, error) {
	a, h := l.a, l.a.h
	a.frames.Add(1)
	defer a.frames.Add(-1)
	l.in.Add(1)
	defer l.in.Add(-1)
	if a.closed.Load() || a.over.Load() || l.off.Load() {
		h.violate("LISTENER: one of %v is called after its undoing began", a.f)
	}
	if l.p.Once && l.used.Add(1) > 1 {
		h.violate("ONCE: a listener of %v is called twice", a.f)
	}
	m := payload.(*emission)
	m.mu.Lock()
	m.heard = append(m.heard, l)
	depth := m.depth
	m.mu.Unlock()
	h.pause()
	a.check("a listener")
	defer a.check("a listener")
	if next != nil {
		defer func() { _, _ = next(c) }()
	}
	switch l.p.How {
	case model.Errs:
		return nil, errors.New("listener")
	case model.Panics:
		panic("listener")
	case model.Off:
		if undo := l.undo.Load(); undo != nil {
			if h.exact { // do not wait for calls that are parked
				ctx, cancel := context.WithCancel(c)
				cancel()
				_ = (*undo)(ctx)
				return nil, nil
			}
			_ = (*undo)(c) // the emitter may end meanwhile
		}
	case model.Ends:
		h.mon.ask(a.f)
		a.f.Dispose()
		if h.meddle != nil {
			h.meddle(c)
		}
	case model.Nests:
		if depth < 2 {
			h.emitAt(a.ctx, c, map[string]string{"ping": "pong", "pong": "ping"}[l.p.Name], depth+1)
		}
	}
	return nil, nil
}

func (h *host) emit(ctx *Context, c context.Context, event string) { h.emitAt(ctx, c, event, 0) }

// emitAt dispatches event; where things happen one at a time, those listeners
// hear it that were audible when it began, in order, but for those that ended
// during it.
func (h *host) emitAt(ctx *Context, c context.Context, event string, depth int) {
	m := &emission{depth: depth}
	var want []*model.Effect
	h.mon.find(func(w *model.World) { want = w.Audible(event) })
	mode := seams.Emit
	if !h.exact {
		mode = h.mode()
	}
	_, err := ctx.Dispatch(c, seams.Dispatch{Event: event, Mode: mode, Payload: m})
	fails := 0
	for _, l := range m.heard {
		if l.p.How == model.Errs || l.p.How == model.Panics {
			fails++
		}
	}
	if mode <= seams.Parallel && (err != nil) != (fails > 0) {
		h.violate("CONTAIN: %d listeners failed and the dispatch answered %v", fails, err)
	}
	if !h.exact {
		return
	}
	h.mon.find(func(w *model.World) {
		at := 0
		for _, e := range want {
			if at < len(m.heard) && m.heard[at].e == e {
				at++
				continue
			}
			if slices.Contains(w.Audible(event), e) && (e.Owner.Phase == model.Active || e.Owner.Phase == model.Loading) {
				h.mon.note("DISPATCH: %s did not reach the listener of %v", event, e.Owner)
			}
		}
		if at != len(m.heard) {
			h.mon.note("DISPATCH: %s reached %d listeners that were not audible or out of order", event, len(m.heard)-at)
		}
	})
}

// attach registers a resource while the activation may be ending. If that is
// refused, what was set up is undone already (R10).
func (a *act) attach() {
	if a.f.State() != Active || a.h.act(a.f) != a { // while it loads, its script registers
		return
	}
	var t *token
	undo, err := a.ctx.Effect("late", func(context.Context) (seams.Undo, error) {
		a.h.pause()
		var undo seams.Undo
		t, undo = a.take(model.Fine)
		t.manual.Store(true) // it may be undone at once, by this call
		return undo, nil
	})
	if err == nil {
		t.manual.Store(false)
	}
	if err != nil && t != nil && t.given.Load() == 0 {
		a.h.violate("CLOSED: %v refuses an effect and has not undone it: %v", a.f, err)
	}
	a.keep(kept{undo: undo, tokens: []*token{t}}, err)
}

// revoke undoes what the activation registered as its n-th, ahead of time; ctx
// says for how long to wait. A listener that is undone is not called again; it
// is not inside, unless the caller is in plugin code too.
func (a *act) revoke(n int, ctx context.Context) {
	a.mu.Lock()
	if len(a.undo) == 0 {
		a.mu.Unlock()
		return
	}
	k := a.undo[n%len(a.undo)]
	a.mu.Unlock()
	for _, t := range k.tokens {
		t.manual.Store(true)
	}
	err := k.undo(ctx)
	for _, t := range k.tokens {
		if err == nil && t.given.Load() == 0 {
			a.h.violate("ONCE: an undo of %v has returned and did not run", a.f)
		}
	}
	if err == nil && k.l != nil {
		k.l.off.Store(true)
		inside := false
		framesOf(ctx, func(*frame) { inside = true }) // some call may wait for the caller's
		if !inside && k.l.in.Load() > 0 {
			a.h.violate("LISTENER: one of %v runs after its undo has returned", a.f)
		}
	}
}
