package loader

import (
	"slices"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
)

// Status is where an entry stands.
type Status struct {
	ID   string
	Name string
	Pos  config.Pos
	// State is disabled, failed, or that of the version that holds the place:
	// pending, loading, active, unloading.
	State string
	// Faults say why the file's version does not run. An older one may: then
	// State is its state.
	Faults []Fault
	// Waiting says why a pending version waits: for each service that is missing
	// why it is not there, and which builtin provides it.
	Waiting []string
	// Fiber is the version that holds the place, nil if there is none.
	Fiber *cordis.Fiber
}

// shown is what Entries knows of a node without the owner.
type shown struct {
	id, name string
	pos      config.Pos
	off      bool
	second   bool // of its id: not mounted
	faults   []Fault
	spec     *spec // the newest, nil if the file's is at fault
}

// publish makes the tree visible to Entries.
func (t *tree) publish() {
	out := make([]shown, 0, len(t.order)+len(t.file.Faults))
	for _, n := range t.order {
		s := shown{id: n.id, name: n.entry.Name, pos: t.l.pos(n.entry), off: n.off, spec: n.tried}
		for _, f := range n.fault {
			f.Kept = t.keeps(n)
			s.faults = append(s.faults, f)
		}
		out = append(out, s)
	}
	for _, f := range fileFaults(t.file) {
		out = append(out, shown{id: f.Entry, pos: f.Pos, faults: []Fault{f}, second: true})
	}
	t.l.shown.Store(&out)
}

// Entries tells where each entry of the file stands, in its order, the implicit
// ones first; at the end those that are left out for being the second of an id.
func (l *Loader) Entries() []Status {
	list := l.shown.Load()
	if list == nil {
		return nil
	}
	out := make([]Status, len(*list))
	for i, s := range *list {
		out[i] = Status{ID: s.id, Name: s.name, Pos: s.pos, Faults: slices.Clone(s.faults), State: "failed"}
		if s.off {
			out[i].State = "disabled"
		}
		if !s.second {
			l.observe(&out[i], s)
		}
	}
	return out
}

// observe fills in what the container knows.
func (l *Loader) observe(out *Status, s shown) {
	hold, next := l.ctx.Entry(s.id).Versions()
	if hold == nil {
		return
	}
	out.Fiber = hold
	out.State = hold.State().String()
	waits := hold
	if next != nil {
		waits = next
	}
	if waits.State() != cordis.Pending || s.spec == nil {
		return
	}
	there := s.spec.context(l.ctx).Services()
	out.Waiting = l.ctx.Container().Explain(waits)
	for _, n := range s.spec.plugin.Inject {
		if n.Optional || slices.Contains(there, n.Name) {
			continue
		}
		if b := l.provider(n.Name); b != "" {
			out.Waiting = append(out.Waiting, "the builtin "+b+" provides "+n.Name)
		}
	}
}

// provider is the builtin that declares to provide a service, "" if none does.
func (l *Loader) provider(service string) string {
	for _, name := range l.builtinNames() {
		if slices.Contains(l.opts.Builtins[name].Provide, service) {
			return name
		}
	}
	return ""
}
