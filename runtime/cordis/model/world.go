package model

import (
	"fmt"
	"slices"
)

// Phase is where a fiber stands.
type Phase uint8

const (
	Pending Phase = iota // has no episode
	Loading              // its script runs
	Active               // its bindings are published
	Leaving              // serves those committed to it, and nobody else
	Undoing              // what it registered is undone
	Removed              // out of the registry
)

func (p Phase) String() string {
	return [...]string{"pending", "loading", "active", "leaving", "undoing", "removed"}[p]
}

// Commit is one need of a view: which fiber, in which of its episodes.
type Commit struct {
	Need string
	To   *Fiber
	Life int
}

// Effect is one registration of an episode.
type Effect struct {
	Kind  Kind
	Name  string
	Key   Key // Bind
	Front bool
	Once  bool
	Child *Fiber
	Owner *Fiber
	Early bool // it is being undone ahead of its owner's end
}

// Fiber is one version of an entry.
type Fiber struct {
	ID     int
	Script *Script
	Parent *Fiber // nil for the root
	Entry  int    // the place it is a version of
	Realms Realms

	Phase   Phase
	Held    bool // not announced yet
	Retired bool
	Failed  bool
	Acts    int
	Begins  int
	Stamp   int // the clock at its latest begin
	View    []Commit
	Stack   []*Effect // live ones, oldest first
	At      int       // effects of the script that have landed
	Heard   bool
	Mute    bool

	diverted bool   // a stage landed when the target was not the view
	cause    string // of its retirement or leaving
	due      string // why it must be retired in this event
	asked    bool   // somebody outside asked for its retirement
	undoing  *Effect

	steps, turns int // lifecycle steps; changes of the target
	target       []Commit
	reachable    bool
	known        bool
}

func (f *Fiber) String() string {
	if f == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s#%d", f.Script.Name, f.ID)
}

// World is a registry of fibers. Fibers is in order of mounting and excludes
// the root.
type World struct {
	Root       *Fiber
	Fibers     []*Fiber
	Listeners  map[string][]*Effect
	Violations []string
	// Calls tells how many calls are in flight in a fiber.
	Calls func(*Fiber) int

	clock int
	shown map[Key]*Fiber
	took  map[Key]*Fiber // what is bound by those that finished in this event
}

// New makes a world with an active root.
func New() *World {
	return &World{
		Root:      &Fiber{Script: &Script{Name: "root"}, Phase: Active, Heard: true},
		Listeners: map[string][]*Effect{},
		took:      map[Key]*Fiber{},
		Calls:     func(*Fiber) int { return 0 },
	}
}

func (w *World) violate(format string, args ...any) {
	if len(w.Violations) < 20 {
		w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
	}
}

func (w *World) need(ok bool, format string, args ...any) {
	if !ok {
		w.violate(format, args...)
	}
}

// all is the root and the fibers.
func (w *World) all() []*Fiber { return append([]*Fiber{w.Root}, w.Fibers...) }

// Versions returns the holder of an entry and its undecided successor.
func (w *World) Versions(entry int) (hold, next *Fiber) {
	for _, f := range w.Fibers {
		if f.Entry == entry && !f.Retired {
			if hold == nil {
				hold = f
			} else {
				next = f
			}
		}
	}
	return
}

// Open reports whether children may be mounted below f.
func (f *Fiber) Open() bool {
	return (f.Phase == Active || f.Phase == Loading) && !f.Retired
}

// Mount is O-Insert, and N1 where the entry has versions.
func (w *World) Mount(id int, parent *Fiber, entry int, s *Script, realms Realms, held bool) *Fiber {
	w.need(parent.Open(), "ADMISSION: %s is mounted below %v, which is %v", s.Name, parent, parent.Phase)
	if o := w.Clash(parent, entry, s, realms); o != nil {
		w.violate("CLASH: %s is mounted though %v provides what it declares", s.Name, o)
	}
	for _, f := range w.Fibers {
		w.need(f.ID < id, "IDENTITY: id %d after %d", id, f.ID)
	}
	f := &Fiber{ID: id, Script: s, Parent: parent, Entry: entry, Realms: realms, Held: held}
	w.Fibers = append(w.Fibers, f)
	if !held {
		w.succeed(f)
	}
	return f
}

// succeed is what N1 ends at once: an earlier undecided successor, and a holder
// that there is no point in keeping.
func (w *World) succeed(f *Fiber) {
	hold, _ := w.Versions(f.Entry)
	for _, g := range w.Fibers {
		if g.Entry == f.Entry && g.ID < f.ID && !g.Retired && (g != hold || g.Acts == 0 || g.Failed || w.gap(g, f)) {
			g.due = "replaced"
		}
	}
}

// gap: the replacement of hold by f has one. One of them is exclusive, or f
// needs what, outside of f's and hold's entry, nobody provides but hold.
func (w *World) gap(hold, f *Fiber) bool {
	return hold.Script.Exclusive || f.Script.Exclusive || slices.ContainsFunc(f.Script.Needs, func(n string) bool {
		k := f.key(n)
		return hold.claims(k) && !slices.ContainsFunc(w.all(), func(o *Fiber) bool {
			return o != hold && o.claims(k) && !kin(o, hold)
		})
	})
}

// Release lets a held fiber begin.
func (w *World) Release(f *Fiber) {
	f.Held = false
	w.succeed(f)
}

// Ask permits f to be retired from outside.
func (w *World) Ask(f *Fiber) { f.asked = true }

// Retire is O-Retire: a request, asked for from outside or due by a rule.
func (w *World) Retire(f *Fiber) {
	switch {
	case f.due != "":
		f.cause, f.due = f.due, ""
	case f.Parent.undoing != nil && f.Parent.undoing.Child == f:
		f.cause = "parent"
	case f.asked:
		f.cause = "asked"
	default:
		w.violate("UNTOUCHED: %v is retired and nobody asked", f)
	}
	f.Retired = true
}

// Begin is L-Begin: commits f to its target.
func (w *World) Begin(f *Fiber) {
	t, ok := w.Target(f)
	w.need(f.Phase == Pending && ok, "GATE: %v begins, which is %v and lacks a need", f, f.Phase)
	w.need(len(f.Stack) == 0, "TERMINAL: %v begins with %d effects left", f, len(f.Stack))
	w.need(w.child(f) == nil, "STAMP: %v begins while its child %v of an earlier life is there", f, w.child(f))
	w.clock++
	f.Phase, f.View, f.Stamp = Loading, t, w.clock
	f.Begins++
	f.At, f.Heard, f.Mute, f.diverted, f.cause = 0, false, false, false, ""
	f.steps++
}

func (w *World) child(f *Fiber) *Fiber {
	for _, g := range w.Fibers {
		if g.Parent == f {
			return g
		}
	}
	return nil
}

// Own records a registration of f, in the order of its script while it loads.
func (w *World) Own(f *Fiber, s Step, child *Fiber) *Effect {
	w.need(f.Phase == Loading || f.Phase == Active, "CLOSED: %v registers while %v", f, f.Phase)
	if f.Phase == Loading {
		w.need(!f.diverted, "DIVERT: %v goes on after its target changed", f)
		want := f.Script.effects()
		ok := f.At < len(want) && want[f.At].Kind == s.Kind && want[f.At].Name == s.Name
		w.need(ok, "SCRIPT: effect %d of %v is %v %s", f.At, f, s.Kind, s.Name)
		f.At++
	}
	e := &Effect{Kind: s.Kind, Name: s.Name, Key: f.key(s.Name), Front: s.Front, Once: s.Once, Child: child, Owner: f}
	if s.Kind == Bind {
		if o := w.Taken(f, s.Name); o != nil {
			w.violate("CLASH: %v binds %s, which %v provides", f, s.Name, o)
		}
	}
	f.Stack = append(f.Stack, e)
	if s.Kind == Listen {
		if e.Front {
			w.Listeners[e.Name] = append([]*Effect{e}, w.Listeners[e.Name]...)
		} else {
			w.Listeners[e.Name] = append(w.Listeners[e.Name], e)
		}
	}
	return e
}

// Stage is L-Iter: a stage of f has landed.
func (w *World) Stage(f *Fiber) {
	w.need(f.Phase == Loading, "STAGE: a stage of %v lands while %v", f, f.Phase)
	f.steps++
	f.diverted = f.diverted || !w.same(f)
}

// Fault records that f's apply raised; legal says it had a reason to.
func (w *World) Fault(f *Fiber, legal bool) {
	w.need(legal || f.Script.Fails(), "FAULT: %v fails without a reason", f)
	f.Failed = true
}

// Finish is L-Finish and N5. It is one step with the landing of the last stage.
func (w *World) Finish(f *Fiber) {
	w.need(f.Phase == Loading && w.same(f) && !f.diverted, "COHERENT: %v finishes against a view that is not its target", f)
	w.need(!f.Failed && !f.Script.Fails() && f.At == len(f.Script.effects()), "SCRIPT: %v finishes after %d effects", f, f.At)
	f.Phase = Active
	f.Acts++
	for _, e := range f.Stack {
		if e.Kind == Bind && !e.Early {
			w.took[e.Key] = f
		}
	}
	for _, g := range w.Fibers {
		if g.Entry == f.Entry && g.ID < f.ID {
			w.silence(g)
			if !g.Retired {
				g.due = "superseded"
			}
		}
	}
	w.expose(f)
}

func (w *World) silence(f *Fiber) {
	f.Mute = true
	for _, g := range w.Fibers {
		if g.Parent == f {
			w.silence(g)
		}
	}
}

func (w *World) expose(f *Fiber) {
	if f.Phase != Active || f.shadow() != nil {
		return
	}
	f.Heard = true
	for _, g := range w.Fibers {
		if g.Parent == f {
			w.expose(g)
		}
	}
}

// Depart is L-Leave and L-Divert: f stops publishing.
func (w *World) Depart(f *Fiber) {
	w.need(f.Phase == Active && !w.same(f) || f.Phase == Loading && (f.Failed || f.diverted),
		"UNTOUCHED: %v leaves while %v though its target is its view", f, f.Phase)
	if !f.Retired {
		f.cause = "needs"
	}
	f.Phase = Leaving
	f.steps++
}

// Early records that e is being undone ahead of its owner's end; a binding is
// withdrawn from this moment.
func (w *World) Early(e *Effect) {
	e.Early = true
	if e.Kind == Listen {
		w.unlist(e)
	}
}

func (w *World) unlist(e *Effect) {
	w.Listeners[e.Name] = slices.DeleteFunc(w.Listeners[e.Name], func(o *Effect) bool { return o == e })
	if len(w.Listeners[e.Name]) == 0 {
		delete(w.Listeners, e.Name)
	}
}

// Close passes the unload guard: f may be undone.
func (w *World) Close(f *Fiber) {
	w.need(f.Phase == Leaving, "CLOSE: %v is undone while %v", f, f.Phase)
	if c := w.relied(f); c != nil {
		w.violate("GUARD: %v is undone while %v is committed to it", f, c)
	}
	if n := w.Calls(f); n > 0 {
		w.violate("CALLS: %v is undone under %d calls", f, n)
	}
	f.Phase, f.Mute = Undoing, true
	f.steps++
}

// Undo says that the undo of e, in its order, begins; for a child, that it is
// waited for from now on.
func (w *World) Undo(e *Effect) {
	f := e.Owner
	w.need(f.Phase == Undoing, "UNDO: %v is undone while %v", f, f.Phase)
	w.need(f.undoing == nil || f.undoing == e, "SERIAL: two undos of %v overlap", f)
	if n := len(f.Stack); n == 0 || f.Stack[n-1] != e {
		w.violate("LIFO: %v %s of %v is undone before a younger one", e.Kind, e.Name, f)
	}
	f.undoing = e
}

// Undone says that e is undone.
func (w *World) Undone(e *Effect) {
	f := e.Owner
	i := slices.Index(f.Stack, e)
	if i < 0 {
		w.violate("ONCE: %v %s of %v is undone twice", e.Kind, e.Name, f)
		return
	}
	gone := e.Child != nil && e.Child.Phase == Removed
	w.need(e == f.undoing || e.Early || e.Once || gone || e.Kind == Seq, "UNDO: %v %s of %v is undone out of turn", e.Kind, e.Name, f)
	w.need(e.Child == nil || gone, "CHILD: %v goes on while its child %v is there", f, e.Child)
	if e.Kind == Bind {
		for _, g := range w.Fibers {
			w.need(!slices.ContainsFunc(g.View, func(c Commit) bool { return c.To == f && g.key(c.Need) == e.Key }),
				"VIEW: %s of %v is taken from %v", e.Name, f, g)
		}
	}
	f.Stack = slices.Delete(f.Stack, i, i+1)
	if e.Kind == Listen && !e.Early {
		w.unlist(e)
	}
	if f.undoing == e {
		f.undoing = nil
	}
}

// Inactive ends f's episode.
func (w *World) Inactive(f *Fiber) {
	w.need(f.Phase == Undoing, "INACTIVE: %v becomes inactive while %v", f, f.Phase)
	w.need(len(f.Stack) == 0, "TERMINAL: %v is inactive with %d effects left", f, len(f.Stack))
	f.Phase, f.View = Pending, nil
}

// Remove is O-Remove.
func (w *World) Remove(f *Fiber) {
	w.need(f.Retired && f.Phase == Pending && w.child(f) == nil, "REMOVE: %v is removed while %v", f, f.Phase)
	f.Phase = Removed
	w.Fibers = slices.DeleteFunc(w.Fibers, func(g *Fiber) bool { return g == f })
}

// Audible returns the listeners that a dispatch of event begun now invokes, in
// order.
func (w *World) Audible(event string) (out []*Effect) {
	for _, e := range w.Listeners[event] {
		if e.Owner.Heard && !e.Owner.Mute {
			out = append(out, e)
		}
	}
	return
}

// Settle ends an event: what had to be done in it must be done.
func (w *World) Settle() {
	shown := w.Shown()
	holds := map[int]*Fiber{}
	for _, f := range w.Fibers {
		w.need(f.due == "", "TAKEOVER: %v was to be retired in this step (%s)", f, f.due)
		f.due = ""
		if f.Phase == Active {
			w.need(w.same(f), "EAGER: %v is active and its target is not its view", f)
			o := holds[f.Entry]
			w.need(o == nil, "ONE-VERSION: %v and %v are both active", o, f)
			holds[f.Entry] = f
		}
		w.stamps(f)
		w.watch(f)
	}
	for k, old := range w.shown {
		if shown[k] == nil {
			w.gone(k, old)
		}
	}
	w.shown = shown
	clear(w.took)
}

// stamps: whoever may be waited for began later than who waits (Q8).
func (w *World) stamps(f *Fiber) {
	if f.Phase == Pending {
		return
	}
	for _, c := range f.View {
		w.need(c.To.Begins == c.Life && c.To.Phase != Pending && c.To.Phase != Removed,
			"VIEW: %v is committed to %v, which is %v", f, c.To, c.To.Phase)
		w.need(c.To.Stamp < f.Stamp, "STAMP: provider %v is not older than %v", c.To, f)
	}
	w.need(f.Parent == w.Root || f.Parent.Stamp < f.Stamp, "STAMP: parent %v is not older than %v", f.Parent, f)
}

// watch counts the changes of f's target and checks that it goes from one
// provider to another without ⊥ only between versions of one entry (A8).
func (w *World) watch(f *Fiber) {
	t, ok := w.Target(f)
	if f.known && (ok != f.reachable || !slices.Equal(t, f.target)) {
		f.turns++
		if ok && f.reachable {
			f.turns++ // a direct switch stands for two changes
		}
		if ok && f.reachable && f.Phase != Pending {
			for i, c := range t {
				p := f.target[i]
				w.need(p == c || p.To != c.To && kin(p.To, c.To), "SWITCH: %v goes from %v to the stranger %v", f, p.To, c.To)
			}
		}
	}
	f.target, f.reachable, f.known = t, ok, true
}

// gone: a name may vanish in a takeover only if the successor does not bind it.
func (w *World) gone(k Key, old *Fiber) {
	if old.Phase == Active || old.cause != "superseded" {
		return
	}
	if q := w.took[k]; q != nil && q.Entry == old.Entry {
		w.violate("GAP: %s vanishes when %v takes over from %v", k.Name, q, old)
	}
}

// Batch ends a batch of events: what can begin has begun, what can go is gone.
func (w *World) Batch() {
	for _, f := range w.Fibers {
		if f.Phase != Pending {
			continue
		}
		_, ok := w.Target(f)
		w.need(!ok, "PROGRESS: %v could begin", f)
		w.need(!f.Retired || w.child(f) != nil, "PROGRESS: %v could be removed", f)
	}
}

// Nodes describes the root and the fibers as declared, with the bindings they have now or
// will have when they begin. Undecided successors are not counted.
func (w *World) Nodes() []Node {
	at := map[*Fiber]int{}
	var out []Node
	for _, f := range w.all() {
		n := Node{Parent: -1, Script: f.Script, Realms: f.Realms, Never: f.Retired || f.Failed}
		if f != w.Root {
			n.Path, n.Parent = f.Path(), at[f.Parent]
		}
		if _, next := w.Versions(f.Entry); next == f {
			n.Never = true
		}
		if f.Phase == Active {
			for _, e := range f.Stack {
				if e.Kind == Bind && !e.Early {
					n.Binds = append(n.Binds, e.Name)
				}
			}
		} else {
			for _, p := range f.Script.Steps {
				if p.Kind == Bind {
					n.Binds = append(n.Binds, p.Name)
				}
			}
		}
		at[f] = len(out)
		out = append(out, n)
	}
	return out
}

// Path names f by scripts.
func (f *Fiber) Path() string {
	if f.Parent.Parent == nil {
		return f.Script.Name
	}
	return f.Parent.Path() + "/" + f.Script.Name
}

// Observe is what an observer sees now; at rest it must be [Observation] of the
// nodes.
func (w *World) Observe() []string {
	var out []string
	for _, f := range w.Fibers {
		if f.Phase != Active {
			continue
		}
		var view, binds []string
		for _, c := range f.View {
			view = append(view, c.Need+"="+c.To.Path())
		}
		for _, e := range f.Stack {
			if e.Kind == Bind {
				binds = append(binds, e.Name)
			}
		}
		out = append(out, Line(f.Path(), view, binds))
	}
	slices.Sort(out)
	return out
}

// Rest checks a world in which nothing moves any more.
func (w *World) Rest() {
	nodes := w.Nodes()
	in := Fixpoint(nodes)
	for i, f := range w.Fibers {
		w.need(f.Phase == Pending || f.Phase == Active, "QUIET: %v is %v at rest", f, f.Phase)
		w.need((f.Phase == Active) == in[i+1], "FIXPOINT: %v is %v at rest, in the fixpoint: %v", f, f.Phase, in[i+1])
		bound := (len(f.Script.Steps) + f.extra() + 3) * (f.turns + 1)
		w.need(f.steps <= bound, "BOUND: %v took %d steps, its target changed %d times", f, f.steps, f.turns)
		if hold, next := w.Versions(f.Entry); next == f && !f.Held {
			w.need(f.Failed || w.blocked(hold, f, nodes, in), "BLOCKED: nothing keeps the successor %v from loading", f)
		}
	}
	if got, want := w.Observe(), Observation(nodes); !slices.Equal(got, want) {
		w.violate("CONFLUENCE: at rest %q, declared %q", got, want)
	}
}

func (f *Fiber) extra() (n int) {
	for _, p := range f.Script.Steps {
		n += p.N
	}
	return
}

// blocked: q lacks a need that nothing provides which would outlive its
// predecessor p, or stands below what does not run (N-5).
func (w *World) blocked(p, q *Fiber, nodes []Node, in []bool) bool {
	index := map[*Fiber]int{}
	for i, f := range w.all() {
		index[f] = i
	}
	if !in[index[q.Parent]] {
		return true
	}
	ends := make([]bool, len(nodes))
	ends[index[p]] = true
	for changed := true; changed; {
		changed = false
		for i, n := range nodes {
			hit := n.Parent >= 0 && ends[n.Parent]
			for _, k := range n.Script.Needs {
				for _, j := range providers(nodes, in, i, k) {
					hit = hit || ends[j]
				}
			}
			if hit && !ends[i] {
				ends[i], changed = true, true
			}
		}
	}
	return slices.ContainsFunc(q.Script.Needs, func(k string) bool {
		return !slices.ContainsFunc(providers(nodes, in, index[q], k), func(j int) bool { return !ends[j] })
	})
}
