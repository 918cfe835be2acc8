package seams

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Registry is the one layered registry: tools, adapters, prompt sections,
// commands, skills and agents are kept in one each. An entry has a name, an
// owner and a scope. A lookup sees the entries whose owner is visible, the
// nearest scope first; in one scope a name belongs to one entry of the
// composition, whose versions may overlap while one replaces the other.
type Registry[T any] struct {
	kind  string
	stamp func() uint64

	mu   sync.RWMutex
	regs []*Registration[T] // in order of registration
}

// Registration is one registered value under one or more names.
type Registration[T any] struct {
	r     *Registry[T]
	claim Claim
	scope *Scope
	names []string
	value T
	undo  Undo
}

// Entry is what a lookup sees of a registration.
type Entry[T any] struct {
	Name  string
	Value T
	Scope *Scope
	Claim Claim
}

// NewRegistry makes a registry. kind is the word for an entry in messages
// ("tool"). stamp is the container's publication stamp: it is odd while a
// publication is under way and grows with each, so that a snapshot never shows
// half a takeover. It may be nil where nothing is ever replaced.
func NewRegistry[T any](kind string, stamp func() uint64) *Registry[T] {
	if stamp == nil {
		stamp = func() uint64 { return 0 }
	}
	return &Registry[T]{kind: kind, stamp: stamp}
}

// Register records v under all names, or under none: as an effect of o, in o's
// scope. DUPLICATE names the owner of the older entry, INVALID_ARGUMENT an
// empty or repeated name.
func (r *Registry[T]) Register(o Owner, label string, v T, names ...string) (*Registration[T], error) {
	g := &Registration[T]{r: r, claim: o.Claim(), scope: o.Scope(), value: v}
	undo, err := o.Effect(label, func(context.Context) (Undo, error) {
		if err := r.set(g, names); err != nil {
			return nil, err
		}
		return func(context.Context) error { r.remove(g); return nil }, nil
	})
	if err != nil {
		return nil, err
	}
	g.undo = undo
	return g, nil
}

// Undo removes the registration ahead of its owner's end. Idempotent.
func (g *Registration[T]) Undo(ctx context.Context) error { return g.undo(ctx) }

// Rename replaces the names in one step. It fails as Register does and then
// changes nothing; INACTIVE_EFFECT when the registration is already undone.
func (g *Registration[T]) Rename(names ...string) error { return g.r.set(g, names) }

func (r *Registry[T]) set(g *Registration[T], names []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.Contains(r.regs, g)
	if g.undo != nil && !known {
		return Errorf(InactiveEffect, r.kind, "the registration of %s is already undone", strings.Join(g.names, ", "))
	}
	for i, n := range names {
		if n == "" || slices.Contains(names[:i], n) {
			return Errorf(InvalidArgument, r.kind, "%s name %q is empty or given twice", r.kind, n)
		}
		for _, o := range r.regs {
			if o != g && o.scope == g.scope && slices.Contains(o.names, n) && !o.claim.Kin(g.claim) {
				return Errorf(Duplicate, r.kind, "%s %q is already registered by %s", r.kind, n, o.claim)
			}
		}
	}
	g.names = slices.Clone(names)
	if !known {
		r.regs = append(r.regs, g)
	}
	return nil
}

func (r *Registry[T]) remove(g *Registration[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.regs, g); i >= 0 {
		r.regs = slices.Delete(r.regs, i, i+1)
	}
}

// Get returns the visible entry of a name that is nearest to scope.
func (r *Registry[T]) Get(scope *Scope, name string) (Entry[T], bool) {
	var best *Registration[T]
	r.read(func() {
		best = nil
		for _, g := range r.regs {
			if scope.Within(g.scope) && (best == nil || g.scope.Within(best.scope)) &&
				slices.Contains(g.names, name) && g.claim.Visible() {
				best = g
			}
		}
	})
	if best == nil {
		return Entry[T]{}, false
	}
	return Entry[T]{name, best.value, best.scope, best.claim}, true
}

// All returns the visible entries, one for each name, in order of
// registration. The slice belongs to the caller.
func (r *Registry[T]) All(scope *Scope) []Entry[T] {
	var out []Entry[T]
	r.read(func() {
		out = out[:0]
		at := map[string]int{}
		for _, g := range r.regs {
			if !scope.Within(g.scope) || !g.claim.Visible() {
				continue
			}
			for _, n := range g.names {
				e := Entry[T]{n, g.value, g.scope, g.claim}
				if i, ok := at[n]; !ok {
					at[n] = len(out)
					out = append(out, e)
				} else if g.scope.Within(out[i].Scope) {
					out[i] = e
				}
			}
		}
	})
	return out
}

// read runs f under one publication stamp.
func (r *Registry[T]) read(f func()) {
	for {
		before := r.stamp()
		if before&1 == 0 {
			r.mu.RLock()
			f()
			r.mu.RUnlock()
			if r.stamp() == before {
				return
			}
		}
		runtime.Gosched()
	}
}
