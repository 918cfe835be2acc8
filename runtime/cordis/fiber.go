package cordis

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/ouro-run/ouro/seams"
)

// State is what a fiber shows of itself. The order follows the reference (§1.5).
type State uint8

const (
	// Pending: registered, waiting for a service it injects.
	Pending State = iota
	// Loading: Apply runs.
	Loading
	// Active: Apply has returned; what it registered is visible.
	Active
	// Failed: Apply failed; it begins again only when it is asked to.
	Failed
	// Disposed: gone for good.
	Disposed
	// Unloading: what it registered is being undone, or still in use.
	Unloading
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"pending", "loading", "active", "failed", "disposed", "unloading"}[s]
}

// Fiber is one version of one mounted plugin. Its id is never used again; a
// handle to a removed fiber answers INACTIVE_EFFECT for ever.
type Fiber struct {
	id     uint64
	c      *Container
	p      *Plugin
	entry  *entry
	place  entry // the entry of an anonymous mount
	parent *Fiber
	eff    *effect // its place among its parent's effects
	scope  *seams.Scope

	raw     any
	resolve func(*Context) (any, error)
	base    atomic.Pointer[layer] // realms and metadata given at its mount
	status  atomic.Uint32
	begins  atomic.Uint64
	last    atomic.Pointer[episode] // the newest episode, over or not

	// What follows belongs to the scheduler.
	phase   phase
	retired bool
	failed  bool
	held    bool // not yet announced to internal/plugin
	dirty   bool
	err     error
	acts    int
	taint   uint64
	ep      *episode
	needs   []need
	claims  []*slot
	kids    family
	sib     sibling
	waiters []*waiter
}

// ID returns the fiber's number, unique in its container. The root is 0.
func (f *Fiber) ID() uint64 { return f.id }

// Name returns the plugin's name, or that of the nearest named ancestor, or
// "root" (C-34).
func (f *Fiber) Name() string {
	for a := f; a != nil; a = a.parent {
		if a.p.Name != "" {
			return a.p.Name
		}
	}
	return "root"
}

// Entry returns the name of its entry, "" for an anonymous mount.
func (f *Fiber) Entry() string {
	if f.entry == nil {
		return ""
	}
	return f.entry.name
}

// Config returns the raw configuration of this version.
func (f *Fiber) Config() any {
	raw, _ := f.settings()
	return raw
}

func (f *Fiber) settings() (raw any, resolve func(*Context) (any, error)) {
	f.c.do(func(*state) { raw, resolve = f.raw, f.resolve })
	return
}

// State returns where the fiber stands. It does not wait.
func (f *Fiber) State() State { return State(f.status.Load()) }

// Begins returns how often the fiber has begun to load.
func (f *Fiber) Begins() uint64 { return f.begins.Load() }

// String names the fiber for people: its name, its entry and its number.
func (f *Fiber) String() string { return f.label() }

func (f *Fiber) label() string {
	if f.Entry() != "" {
		return fmt.Sprintf("%s (entry %s, #%d)", f.Name(), f.Entry(), f.id)
	}
	return fmt.Sprintf("%s (#%d)", f.Name(), f.id)
}

func (f *Fiber) state() State {
	switch f.phase {
	case pending:
		if f.failed {
			return Failed
		}
		return Pending
	case loading:
		return Loading
	case active:
		return Active
	case removed:
		return Disposed
	default:
		return Unloading
	}
}

// waitsForOlder: an exclusive version begins when the older ones are gone.
func (f *Fiber) waitsForOlder() bool {
	e := f.entry
	if e == nil || len(e.versions) < 2 || e.versions[0] == f {
		return false
	}
	for _, g := range e.versions {
		if g.id < f.id && (f.p.Exclusive || g.p.Exclusive) {
			return true
		}
	}
	return false
}

// Err returns the error of the last Apply, nil unless the fiber has failed.
func (f *Fiber) Err() error {
	var err error
	f.c.do(func(*state) { err = f.err })
	return err
}

// Dispose asks the fiber to go, for good. The handle may be waited for; any
// number of callers share one completion (C-01, C2). Disposing the root unloads
// everything below it and leaves the root usable (C-37).
func (f *Fiber) Dispose() *Done {
	f.c.do(func(st *state) {
		if f == st.root {
			for ch := f.kids.first; ch != nil; ch = ch.sib.next {
				st.retire(ch)
			}
			return
		}
		st.retire(f)
	})
	return &Done{c: f.c, f: f, what: gone}
}

// Ready resolves when the fiber has become active, and with its error when it
// fails or goes before that. A pending fiber is not ready.
func (f *Fiber) Ready() *Done { return &Done{c: f.c, f: f, what: ready} }

// Gone resolves when the fiber is removed. It does not ask for it.
func (f *Fiber) Gone() *Done { return &Done{c: f.c, f: f, what: gone} }

// Settle waits until the fiber is at rest: active, failed, pending on a need,
// or gone. It returns the fiber's error if it has failed.
func (f *Fiber) Settle(ctx context.Context) error {
	return (&Done{c: f.c, f: f, what: settled}).Wait(ctx)
}

// Restart begins the fiber's plugin again with the same configuration: a new
// version, which takes over without a gap (N1). It answers the new version.
func (f *Fiber) Restart() (*Fiber, error) {
	cfg, resolve := f.settings()
	return f.replace(cfg, resolve)
}

// Update gives the plugin another configuration: the newest version of f's entry
// counts. A configuration equal to that changes nothing and answers it. Otherwise the configuration is validated; a plugin that takes
// it in place (see [Context.OnUpdate]) keeps running; else a new version is
// mounted, which takes over when it becomes active (A12). The error of the
// validation is returned and changes nothing.
func (f *Fiber) Update(cfg any) (*Fiber, error) {
	f = f.newest()
	if old, resolve := f.settings(); resolve == nil && reflect.DeepEqual(cfg, old) && f.State() != Failed {
		return f, nil
	}
	if took, err := f.offer(cfg, nil); took || err != nil {
		return f, err
	}
	return f.replace(cfg, nil)
}

// newest is the undecided successor of f or else f's holder; f itself when that
// is gone.
func (f *Fiber) newest() *Fiber {
	out := f
	f.c.do(func(*state) {
		if f.retired || f.parent == nil {
			return
		}
		hold, next := f.entry.undecided()
		if out = next; next == nil {
			out = hold
		}
	})
	return out
}

func (f *Fiber) replace(cfg any, resolve func(*Context) (any, error)) (*Fiber, error) {
	if f.parent == nil {
		return nil, seams.Errorf(seams.InvalidArgument, "cordis.Fiber", "the root has no other version")
	}
	parent := f.entry.parent
	ctx := &Context{ep: parent, lay: f.base.Load(), scope: f.scope}
	return ctx.mount(mount{p: f.p, cfg: cfg, resolve: resolve, from: f})
}

// offer validates cfg, made by resolve if there is one, and offers it to the
// running activation.
func (f *Fiber) offer(cfg any, resolve func(*Context) (any, error)) (took bool, err error) {
	var takers []func(any) (bool, error)
	var ep *episode
	f.c.do(func(*state) {
		if f.phase == active {
			ep = f.ep
			takers = append(takers, ep.updates...)
		}
	})
	if ep == nil {
		return false, nil
	}
	t, ok := ep.gate.call()
	if !ok {
		return false, nil
	}
	defer ep.gate.exit(t)
	err = contain(func() error {
		val, err := f.config(&Context{ep: ep, scope: f.scope}, cfg, resolve)
		for i := 0; err == nil && !took && i < len(takers); i++ {
			took, err = takers[i](val)
		}
		return err
	})
	if took && err == nil {
		f.c.do(func(*state) { f.raw, f.resolve = cfg, resolve })
	}
	return took, err
}
