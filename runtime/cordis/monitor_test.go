package cordis

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ouro-run/ouro/runtime/cordis/model"
)

// monitor drives a model.World beside a container: it hears every step of the
// scheduler, inside that step, makes the same move in the world, which says when
// it is illegal, and compares the two when a batch ends.
type monitor struct {
	mu      sync.Mutex
	c       *Container
	w       *model.World
	h       *host
	fibers  map[*Fiber]*model.Fiber // installed ones
	twins   map[*Fiber]*model.Fiber // all
	effects map[*effect]*model.Effect
	entries map[*entry]int
	keys    map[slotKey]bool
	last    uint64       // the highest id seen
	heard   int          // steps of the scheduler
	asked   map[spot]int // who asks for all versions at it to be retired
}

func newMonitor(h *host) *monitor {
	m := &monitor{w: model.New(), h: h, c: h.c, fibers: map[*Fiber]*model.Fiber{}, twins: map[*Fiber]*model.Fiber{}, effects: map[*effect]*model.Effect{}, entries: map[*entry]int{},
		keys: map[slotKey]bool{}, asked: map[spot]int{}}
	m.fibers[h.c.st.root], m.twins[h.c.st.root] = m.w.Root, m.w.Root
	m.w.Calls = func(f *model.Fiber) int { return h.callsIn(f) }
	h.c.traces = m.hear
	return m
}

func (m *monitor) violate(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(format, args...)
}

// note is violate under the lock.
func (m *monitor) note(format string, args ...any) {
	if len(m.w.Violations) < 20 {
		m.w.Violations = append(m.w.Violations, fmt.Sprintf(format, args...))
	}
}

// ask permits f to be retired from outside.
func (m *monitor) ask(f *Fiber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g := m.fibers[f]; g != nil {
		m.w.Ask(g)
	}
}

// spot is a named place.
type spot struct {
	ep   *episode
	name string
}

func (e *Entry) spot() spot { return spot{e.ctx.ep, e.name} }

// during permits all versions at a place to be retired from outside while fn
// runs.
func (m *monitor) during(fn func(), places ...spot) {
	add := func(n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, p := range places {
			m.asked[p] += n
		}
	}
	add(1)
	defer add(-1)
	fn()
}

func (m *monitor) hear(what string, f *Fiber, e *effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard++
	switch what {
	case "event":
		m.w.Settle()
		return
	case "batch":
		m.w.Batch()
		m.compare()
		return
	case "mount":
		m.mount(f)
		return
	}
	g := m.fibers[f]
	switch what {
	case "release":
		m.w.Release(g)
	case "retire":
		if m.asked[spot{f.entry.parent, f.entry.name}] > 0 {
			m.w.Ask(g)
		}
		m.w.Retire(g)
	case "begin":
		m.w.Begin(g)
	case "stage":
		m.w.Stage(g)
	case "fault":
		m.w.Fault(g, m.h.mayFail(f))
	case "finish":
		m.w.Finish(g)
	case "leave":
		m.w.Depart(g)
	case "undoing":
		m.w.Close(g)
		m.h.close(f)
	case "inactive":
		m.w.Inactive(g)
		m.h.inactive(f)
	case "removed":
		m.w.Remove(g)
	case "own":
		m.own(g, e)
	case "early":
		m.w.Early(m.effects[e])
	case "undo":
		m.w.Undo(m.effects[e])
	case "undone":
		m.w.Undone(m.effects[e])
		delete(m.effects, e)
	default:
		m.note("HARNESS: unknown trace %s", what)
	}
}

func (m *monitor) mount(f *Fiber) {
	if f.id <= m.last {
		m.note("IDENTITY: fiber id %d after %d", f.id, m.last)
	}
	m.last = f.id
	id, ok := m.entries[f.entry]
	if !ok {
		id = len(m.entries) + 1
		m.entries[f.entry] = id
	}
	m.twins[f] = m.w.Mount(int(f.id), m.fibers[f.parent], id, m.h.script(f.p), realmsOf(f.base.Load()), f.held)
	m.fibers[f] = m.twins[f]
}

func realmsOf(l *layer) model.Realms {
	out := model.Realms{}
	for ; l != nil; l = l.next {
		if _, ok := out[l.name]; l.set && !ok {
			out[l.name] = l.realm.String()
		}
	}
	return out
}

func (m *monitor) own(g *model.Fiber, e *effect) {
	s := model.Step{Name: e.name}
	var child *model.Fiber
	switch e.kind {
	case bindEffect:
		s.Kind = model.Bind
		m.keys[e.bind.slot.key] = true
	case listenEffect:
		s.Kind, s.Front, s.Once = model.Listen, e.hook.front, e.hook.once
	case childEffect:
		child = m.fibers[e.child]
		s.Kind, s.Name = model.Child, child.Script.Name
	case groupEffect:
		s.Kind, s.Name = model.Seq, ""
	default:
		s.Kind, s.Name = model.Take, ""
	}
	m.effects[e] = m.w.Own(g, s, child)
}

func phaseIn(p phase) model.Phase {
	return [...]model.Phase{model.Pending, model.Loading, model.Active, model.Leaving, model.Leaving, model.Undoing, model.Removed}[p]
}

// compare checks that the container is where the world is.
func (m *monitor) compare() {
	st := &m.c.st
	transit := 0
	for f, g := range m.fibers {
		if f == st.root {
			continue
		}
		if g.Phase == model.Removed {
			delete(m.fibers, f)
		}
		if phaseIn(f.phase) != g.Phase || f.retired != g.Retired || f.failed != g.Failed || f.begins.Load() != uint64(g.Begins) || f.held && !g.Held {
			m.note("STATE: %v is %v, the container has it in phase %d, retired %v, failed %v", g, g.Phase, f.phase, f.retired, f.failed)
		}
		if State(f.status.Load()) != f.state() {
			m.note("STATE: %v shows %v and is %v", g, f.State(), f.state())
		}
		if f.held || g.Phase == model.Loading || g.Phase == model.Leaving || g.Phase == model.Undoing {
			transit++
		}
		if f.ep == nil {
			continue
		}
		if f.ep.visible.Load() != (g.Phase == model.Active && g.Exposed()) {
			m.note("VISIBLE: %v is visible: %v", g, f.ep.visible.Load())
		}
		var view []model.Commit
		for i := range f.ep.view {
			b := f.ep.view[i].Load()
			if b.ep.f.ep != b.ep {
				m.note("VIEW: %v names an episode of %v that is over", g, b.ep.f)
			}
			view = append(view, model.Commit{Need: b.slot.key.name, To: m.fibers[b.ep.f], Life: int(b.ep.f.begins.Load())})
		}
		if !slices.Equal(view, g.View) {
			m.note("VIEW: %v is committed to %v, should be %v", g, view, g.View)
		}
		if n := m.w.Reliance(g); f.ep.relied != n {
			m.note("RELIED: %v is relied on %d times, counted %d", g, n, f.ep.relied)
		}
	}
	if st.transit != transit {
		m.note("TRANSIT: %d fibers in transit, counted %d", transit, st.transit)
	}
	shown := m.w.Shown()
	for k := range m.keys {
		var got *model.Fiber
		if s := m.c.slots.get(k); s != nil {
			if b := s.shown.Load(); b != nil {
				got = m.fibers[b.ep.f]
			}
		}
		if want := shown[model.Key{Name: k.name, Realm: k.realm.String()}]; got != want {
			m.note("SHOWN: %s in realm %q is provided by %v, should be %v", k.name, k.realm.String(), got, want)
		}
	}
	for _, name := range []string{"ping", "pong"} {
		var got []*model.Effect
		if l := m.c.events.get(slotKey{name: name}); l != nil {
			for _, h := range *l.items.Load() {
				if !h.once { // one that is being used up may or may not be there
					got = append(got, m.hookOf(h))
				}
			}
		}
		want := slices.DeleteFunc(m.w.Audible(name), func(e *model.Effect) bool { return e.Once })
		if !slices.Equal(got, want) {
			m.note("HEARD: listeners of %s are %v, should be %v", name, owners(got), owners(want))
		}
	}
	if m.c.stamp.Load()&1 != 0 {
		m.note("STAMP: the publication stamp is odd between batches")
	}
}

func owners(es []*model.Effect) (out []string) {
	for _, e := range es {
		if e == nil {
			out = append(out, "one that is undone")
		} else {
			out = append(out, e.Owner.String())
		}
	}
	return
}

func (m *monitor) hookOf(l *listener) *model.Effect {
	for e, x := range m.effects {
		if e.hook == l {
			return x
		}
	}
	return nil
}

// find looks something up in the world.
func (m *monitor) find(fn func(*model.World)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn(m.w)
}

// twin is the fiber in the world.
func (m *monitor) twin(f *Fiber) *model.Fiber {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.twins[f]
}

func (m *monitor) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.w.Rest()
}

func (m *monitor) violations() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.w.Violations)
}
