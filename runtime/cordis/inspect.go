package cordis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Snapshot is the whole graph at one instant, as data.
type Snapshot struct {
	Fibers   []FiberInfo   `json:"fibers"`
	Services []ServiceInfo `json:"services"`
	Events   []EventInfo   `json:"events"`
}

// FiberInfo describes one fiber.
type FiberInfo struct {
	ID       uint64       `json:"id"`
	Parent   uint64       `json:"parent"`
	Name     string       `json:"name"`
	Entry    string       `json:"entry,omitempty"`
	State    string       `json:"state"`
	Begins   uint64       `json:"begins"`
	Retired  bool         `json:"retired,omitempty"`
	Error    string       `json:"error,omitempty"`
	Inject   []NeedInfo   `json:"inject,omitempty"`
	Provides []string     `json:"provides,omitempty"`
	Effects  []EffectInfo `json:"effects,omitempty"`
	Waiting  []string     `json:"waiting,omitempty"` // why it is not active, or not gone
}

// NeedInfo is one injected service and who fills it now.
type NeedInfo struct {
	Service  string `json:"service"`
	Realm    string `json:"realm,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	Provider uint64 `json:"provider,omitempty"` // fiber id, 0 when absent
}

// EffectInfo is a node of a fiber's effect tree (C-04).
type EffectInfo struct {
	Label    string       `json:"label"`
	Children []EffectInfo `json:"children,omitempty"`
}

// ServiceInfo is one provided service.
type ServiceInfo struct {
	Name     string `json:"name"`
	Realm    string `json:"realm,omitempty"`
	Provider uint64 `json:"provider"`
	Owner    string `json:"owner"`
	Visible  bool   `json:"visible"`
}

// EventInfo is one event with listeners.
type EventInfo struct {
	Name      string `json:"name"`
	Listeners int    `json:"listeners"`
}

// Inspect returns the graph. Its cost is that of the graph's size; no plugin
// code runs.
func (c *Container) Inspect() Snapshot {
	var s Snapshot
	c.do(func(st *state) {
		st.walk(st.root, func(f *Fiber) { s.Fibers = append(s.Fibers, st.info(f)) })
		c.slots.all(func(sl *slot) {
			for _, b := range sl.bindings {
				s.Services = append(s.Services, ServiceInfo{sl.key.name, sl.key.realm.String(), b.ep.f.id, b.ep.f.Name(), sl.shown.Load() == b})
			}
		})
		c.events.all(func(l *events) {
			if n := len(*l.items.Load()); n > 0 {
				s.Events = append(s.Events, EventInfo{l.name, n})
			}
		})
	})
	slices.SortFunc(s.Services, func(a, b ServiceInfo) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Realm, b.Realm), cmp.Compare(a.Provider, b.Provider))
	})
	slices.SortFunc(s.Events, func(a, b EventInfo) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (st *state) walk(f *Fiber, visit func(*Fiber)) {
	visit(f)
	for ch := f.kids.first; ch != nil; ch = ch.sib.next {
		st.walk(ch, visit)
	}
}

func (st *state) info(f *Fiber) FiberInfo {
	i := FiberInfo{ID: f.id, Name: f.Name(), Entry: f.Entry(), State: f.state().String(), Begins: f.begins.Load(), Retired: f.retired, Waiting: st.explain(f)}
	if f.parent != nil {
		i.Parent = f.parent.id
	}
	if f.err != nil {
		i.Error = f.err.Error()
	}
	required := 0
	for k := range f.needs {
		n := &f.needs[k]
		ni := NeedInfo{Service: n.Name, Realm: n.slot.key.realm.String(), Optional: n.Optional}
		var b *binding
		switch {
		case n.Optional: // its slot may have been dropped and made again
			if s := st.c.slots.get(n.slot.key); s != nil {
				b = s.shown.Load()
			}
		case f.ep != nil: // what it is committed to, whatever has come since
			b = f.ep.view[required].Load()
		default:
			b = n.slot.shown.Load()
		}
		if !n.Optional {
			required++
		}
		if b != nil {
			ni.Provider = b.ep.f.id
		}
		i.Inject = append(i.Inject, ni)
	}
	if f.ep == nil {
		return i
	}
	for _, b := range f.ep.bindings {
		i.Provides = append(i.Provides, b.slot.key.name)
	}
	slices.Sort(i.Provides)
	at := map[*effect]int{}
	for _, e := range f.ep.effects {
		if e.state == finished {
			continue
		}
		if e.group != nil {
			if k, ok := at[e.group]; ok {
				i.Effects[k].Children = append(i.Effects[k].Children, EffectInfo{Label: e.label()})
				continue
			}
		}
		at[e] = len(i.Effects)
		i.Effects = append(i.Effects, EffectInfo{Label: e.label()})
	}
	return i
}

// Explain says, one reason a line, why f is not active, or not yet gone: which
// service it waits for, in which realm, and what became of who would provide it;
// or which consumers, calls or undos its end waits for. It is empty for a fiber
// at rest that is active.
func (c *Container) Explain(f *Fiber) []string {
	var out []string
	c.do(func(st *state) { out = st.explain(f) })
	return out
}

func (st *state) explain(f *Fiber) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch f.phase {
	case pending:
		if f.failed {
			say("failed: %v", f.err)
			return out
		}
		if f.waitsForOlder() {
			say("waits until its older version has ended: one of them is exclusive")
		}
		if cycle := st.cycle(f); cycle != nil {
			say("waits in a cycle: %s", strings.Join(cycle, " → "))
		}
		for i := range f.needs {
			if why := st.lacks(f, &f.needs[i]); why != "" {
				say("%s", why)
			}
		}
	case loading:
		say("apply has not returned")
		if !st.target(f) {
			say("what it relies on has left; it will be undone when apply returns")
		}
	case leaving:
		for _, g := range st.consumersOf(f.ep) {
			say("%s still uses it (%s)", g.label(), g.state())
		}
	case closing:
		say("calls inside it have not returned")
	case undoing:
		if e := f.ep.current; e != nil {
			say("undoing %s has not returned", e.label())
		} else if e := f.ep.waiting; e != nil && e.kind == childEffect {
			say("waits for its child %s to end", e.child.label())
		}
	}
	return out
}

// lacks says why a need of a pending fiber is not met, "" if it is.
func (st *state) lacks(f *Fiber, n *need) string {
	if n.Optional {
		return ""
	}
	in := ""
	if r := n.slot.key.realm.String(); r != "" {
		in = " in realm " + r
	}
	tainted := st.markTaint(f)
	for _, b := range n.slot.bindings {
		g := b.ep.f
		sh := st.shadow(g)
		if b.withdrawn || g.phase != active || sh != nil && !f.within(sh) {
			continue
		}
		if tainted && g.taint == st.taint {
			return fmt.Sprintf("needs %s%s, which only its own older version, or what relies on it, provides (%s)", n.Name, in, g.label())
		}
		return ""
	}
	for _, g := range n.slot.claims {
		return fmt.Sprintf("needs %s%s: its provider %s is %s", n.Name, in, g.label(), g.state())
	}
	return fmt.Sprintf("needs %s%s: nothing provides it", n.Name, in)
}

// cycle is a path of needs from f back to itself through pending providers.
func (st *state) cycle(f *Fiber) []string {
	seen := map[*Fiber]bool{}
	var path []string
	var visit func(g *Fiber) bool
	visit = func(g *Fiber) bool {
		if seen[g] {
			return false
		}
		seen[g] = true
		path = append(path, g.Name())
		for i := range g.needs {
			n := &g.needs[i]
			if n.Optional {
				continue
			}
			for _, p := range n.slot.claims {
				if p == f {
					path = append(path, f.Name())
					return true
				}
				if p.phase == pending && !p.failed && visit(p) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if visit(f) {
		return path
	}
	return nil
}

// consumersOf returns the fibers whose view names ep.
func (st *state) consumersOf(ep *episode) []*Fiber {
	var out []*Fiber
	for _, b := range ep.bindings {
		for n := b.slot.first; n != nil; n = n.next {
			if n.f.ep != nil && n.f.ep.commits(ep) && !slices.Contains(out, n.f) {
				out = append(out, n.f)
			}
		}
	}
	return out
}

// commits reports whether ep's view names p.
func (ep *episode) commits(p *episode) bool {
	for i := range ep.view {
		if ep.view[i].Load().ep == p {
			return true
		}
	}
	return false
}
