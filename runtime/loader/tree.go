package loader

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// tree is what the file asks for and what became of it. It belongs to the
// owner, but for node.specs.
type tree struct {
	l       *Loader
	file    *config.File
	order   []*node // of the file's entries, the implicit ones first
	nodes   map[string]*node
	modules map[string]*module
}

// node is one entry through all its versions.
type node struct {
	id    string
	entry *config.Entry // as last read
	off   bool          // disabled
	gone  bool          // not in the file any more

	want  *spec   // what the file asks for; nil when off, gone or at fault
	tried *spec   // what was last asked of the container
	good  *spec   // the last one that was active
	fault []Fault // why tried, or the file's version, does not run
	said  bool    // the faults were reported
	lost  bool    // the container refused the mount
	busy  bool    // an update is being offered to the plugin
	freed bool    // a version that ran is gone: what it held is free

	fibers map[*cordis.Fiber]*spec // installed versions
	specs  atomic.Pointer[[]*spec] // theirs, and the newest, for door
}

// written finds the entry a raw configuration stands in.
func (n *node) written(raw any) *config.Entry {
	if specs := n.specs.Load(); specs != nil {
		for _, s := range *specs {
			if reflect.DeepEqual(s.raw, raw) {
				return s.entry
			}
		}
	}
	return nil
}

// remember makes the configurations that may be asked for known to door.
func (n *node) remember(newest *spec) {
	specs := []*spec{newest}
	for _, s := range n.fibers {
		specs = append(specs, s)
	}
	n.specs.Store(&specs)
}

// stands is the version that counts for n: the wanted one, or the last good one
// when the file's is at fault. It may be nil.
func (n *node) stands() *spec {
	if n.want == nil && !n.off {
		return n.good
	}
	return n.want
}

// refer notes that f is a version made to s.
func (n *node) refer(f *cordis.Fiber, s *spec) {
	n.fibers[f] = s
	n.remember(s)
}

func (t *tree) node(e *config.Entry) *node {
	n := t.nodes[e.ID]
	if n == nil {
		n = &node{id: e.ID, fibers: map[*cordis.Fiber]*spec{}}
		t.nodes[e.ID] = n
	}
	n.entry, n.gone = e, false
	return n
}

// place is where versions of n stand, for a version that is to be s.
func (t *tree) place(n *node, s *spec) *cordis.Entry {
	ctx := t.l.ctx
	if s != nil {
		ctx = s.context(ctx)
	}
	return ctx.Entry(n.id)
}

// spec makes the version that e asks for.
func (t *tree) spec(n *node, e *config.Entry) (*spec, []Fault) {
	layers, faults := t.l.layers(e)
	base, err := t.plugin(e.Name)
	if err != nil {
		faults = append(faults, Fault{Pos: t.l.pos(e, "name"), Entry: e.ID, Err: err})
	}
	if len(faults) > 0 {
		return nil, faults
	}
	s := &spec{entry: e, base: base, raw: unplaced(e.Config), layers: layers}
	needs, faults := t.l.needs(e, base.Inject)
	if len(faults) > 0 {
		return nil, faults
	}
	for _, o := range append(slices.Collect(maps.Values(n.fibers)), n.tried) {
		if o != nil && o.base == base && reflect.DeepEqual(o.plugin.Inject, needs) {
			s.plugin = o.plugin
			return s, nil
		}
	}
	p := *base
	p.Inject, p.Config = needs, &door{t.l, n, base.Config}
	s.plugin = &p
	return s, nil
}

// pos is e.Pos, also for entries that stand in no file.
func (l *Loader) pos(e *config.Entry, path ...any) config.Pos {
	if isDefault(e) {
		return config.Pos{File: l.opts.File}
	}
	return e.Pos(path...)
}

func isDefault(e *config.Entry) bool { return e.ID == "default:"+e.Name }

// rows are the enabled-or-not leaf entries of a file, in order.
func rows(file *config.File) []*config.Entry {
	var out []*config.Entry
	for e := range file.All() {
		if !e.Group {
			out = append(out, e)
		}
	}
	return out
}

// set makes the tree equal to a file: entry by entry, in its order, and what is
// gone or disabled last.
func (t *tree) set(ctx context.Context, file *config.File) {
	seen := map[string]bool{}
	faults := map[*node][]Fault{}
	t.order = nil
	for _, e := range rows(file) {
		n := t.node(e)
		seen[e.ID] = true
		t.order = append(t.order, n)
		n.off, faults[n] = t.l.disabled(e)
	}
	t.load(ctx)
	for _, n := range t.order {
		t.read(n, faults[n])
	}
	t.order = append(t.implicit(seen), t.order...)
	for id, n := range t.nodes {
		if !seen[id] {
			n.gone, n.off, n.want = true, false, nil
		}
	}
	t.carryOut()
	if t.file != file {
		known := map[string]int{}
		if t.file != nil {
			for _, f := range t.file.Faults {
				known[f.Entry]++
			}
		}
		for _, f := range fileFaults(file) {
			if known[f.Entry]--; known[f.Entry] < 0 {
				t.l.report(f)
			}
		}
		t.file = file
	}
}

// fileFaults are those of entries that are left out of the tree: the second
// ones of an id.
func fileFaults(file *config.File) []Fault {
	out := make([]Fault, len(file.Faults))
	for i, f := range file.Faults {
		out[i] = Fault{Pos: f.Pos, Entry: f.Entry, Err: seams.Errorf(seams.InvalidConfig, "", "%s", f.Msg)}
	}
	return out
}

// read finds out what the file asks of n. Its files have been loaded.
func (t *tree) read(n *node, faults []Fault) {
	n.want = nil
	if n.off {
		return
	}
	if len(faults) == 0 {
		n.want, faults = t.spec(n, n.entry)
	}
	if len(faults) > 0 {
		n.blame(faults)
	}
}

// blame notes why the file's version of n does not run.
func (n *node) blame(faults []Fault) {
	if !slices.EqualFunc(n.fault, faults, func(a, b Fault) bool { return a.Pos == b.Pos && a.Err.Error() == b.Err.Error() }) {
		n.said = false
	}
	n.fault = faults
}

// implicit returns the nodes of the defaults that no entry of the file makes
// superfluous.
func (t *tree) implicit(seen map[string]bool) []*node {
	given := map[string]bool{}
	for _, n := range t.order {
		for at := range n.stands().provides() {
			if at.realm == "" {
				given[at.service] = true
			}
		}
	}
	var out []*node
	for _, name := range t.l.opts.Defaults {
		if slices.ContainsFunc(t.l.opts.Builtins[name].Provide, func(s string) bool { return given[s] }) {
			continue
		}
		e := &config.Entry{ID: "default:" + name, Name: name}
		seen[e.ID] = true
		n := t.node(e)
		t.read(n, nil)
		out = append(out, n)
	}
	return out
}

// carryOut asks the container for what is wanted and was not asked for yet.
func (t *tree) carryOut() {
	for _, n := range t.order {
		switch {
		case n.busy:
		case n.want == nil:
			if !n.off {
				t.withdraw(n)
				n.tried = nil
			}
		case n.want.equal(n.tried):
			t.moved(n)
		default:
			n.fault, n.said = nil, false
			t.attempt(n)
		}
	}
	for _, n := range t.nodes {
		if (n.gone || n.off) && !n.busy {
			n.tried, n.good, n.fault, n.lost = nil, nil, nil, false
			if len(n.fibers) > 0 {
				t.l.changes++
				t.place(n, nil).Unmount()
			}
		}
	}
}

// moved takes over the new places of a version that is the same.
func (t *tree) moved(n *node) {
	for f, s := range n.fibers {
		if s.equal(n.want) {
			n.fibers[f] = n.want
		}
	}
	if n.good.equal(n.want) {
		n.good = n.want
	}
	for i := range n.fault {
		if n.fault[i].Pos == t.l.pos(n.tried.entry, "name") {
			n.fault[i].Pos = t.l.pos(n.want.entry, "name")
		}
	}
	n.tried = n.want
	n.remember(n.want)
}

// withdraw gives up a successor that is still undecided.
func (t *tree) withdraw(n *node) {
	if hold, next := t.place(n, nil).Versions(); hold != nil && next != nil {
		t.l.changes++
		t.place(n, nil).Withdraw()
	}
}

// attempt asks the container for what n wants.
func (t *tree) attempt(n *node) {
	s := n.want
	n.tried = s
	t.l.changes++
	t.l.ids.Store(n.id, nil)
	hold, next := t.place(n, s).Versions()
	if next != nil && n.fibers[next].equal(s) && next.State() != cordis.Failed {
		t.mounted(n, next, s, nil)
		return
	}
	t.withdraw(n)
	n.remember(s)
	set := func() (*cordis.Fiber, error) { return t.place(n, s).Set(s.plugin, s.raw, nil) }
	if now := n.fibers[hold]; now != nil && now.plugin == s.plugin && hold.State() == cordis.Active && !reflect.DeepEqual(now.raw, s.raw) {
		// It may take the configuration in place, which is plugin code.
		n.busy = true
		t.l.wg.Go(func() {
			f, err := set()
			select {
			case t.l.calls <- func() { t.offered(n, f, s, err) }:
			case <-t.l.run.Done():
			}
		})
		return
	}
	f, err := set()
	t.mounted(n, f, s, err)
}

// mounted notes what the container answered.
func (t *tree) mounted(n *node, f *cordis.Fiber, s *spec, err error) {
	if err != nil {
		n.lost = errors.Is(err, seams.Clash)
		n.blame(faultsOf(s.entry, t.l.pos(s.entry, "name"), err))
		return
	}
	if n.lost { // the refusal is over, and with it its fault
		n.fault, n.said, n.lost = nil, false, false
	}
	n.refer(f, s)
}

func (t *tree) offered(n *node, f *cordis.Fiber, s *spec, err error) {
	n.busy = false
	t.l.changes++
	t.mounted(n, f, s, err)
	t.carryOut()
	t.audit()
}

// busy reports whether an update is under way.
func (t *tree) busy() bool {
	for _, n := range t.nodes {
		if n.busy {
			return true
		}
	}
	return false
}

// audit draws the consequences of what has become of the versions: it notes
// failures, tries again what something stood in the way of, and reports.
func (t *tree) audit() {
	moving, again := t.step()
	for again {
		moving, again = t.step()
	}
	t.tell(moving)
	t.publish()
}

// step looks at all nodes once. It reports whether something is on its way, and
// whether it did something that makes another look worthwhile.
func (t *tree) step() (moving, again bool) {
	left := false
	for _, n := range t.nodes {
		l, m := t.look(n)
		left, moving = left || l, moving || m
	}
	if left && t.again(func(n *node) bool { return n.lost }) {
		return moving, true
	}
	if moving {
		return true, false
	}
	freed := false
	for id, n := range t.nodes {
		freed = freed || n.freed && len(n.fault) == 0
		n.freed = false
		if n.gone && len(n.fibers) == 0 {
			delete(t.nodes, id)
		}
	}
	if freed && t.again(func(n *node) bool { return len(n.fault) > 0 }) {
		return false, true
	}
	return false, t.yield()
}

// look notes what has become of n's versions. It reports whether one is gone
// and whether one is on its way.
func (t *tree) look(n *node) (left, moving bool) {
	for f := range n.fibers {
		switch f.State() {
		case cordis.Disposed:
			delete(n.fibers, f)
			left = true
			n.freed = n.freed || f.Err() == nil
		case cordis.Loading, cordis.Unloading:
			moving = true
		}
	}
	if n.busy {
		return left, true
	}
	hold, next := t.place(n, nil).Versions()
	newest := next
	if newest == nil {
		newest = hold
	}
	s := n.fibers[newest]
	if newest == nil || s == nil {
		return left, moving
	}
	switch newest.State() {
	case cordis.Active:
		n.good = s
		if s == n.tried {
			n.fault, n.said = nil, false
		}
	case cordis.Failed:
		if s == n.tried && !n.lost {
			n.blame(faultsOf(s.entry, t.l.pos(s.entry, "name"), newest.Err()))
		}
		if next == nil && n.good != nil && !n.good.equal(s) {
			// It was replaced with a gap: the last good version is mounted again.
			good := n.good
			n.good = nil
			t.l.changes++
			if f, err := t.place(n, good).Set(good.plugin, good.raw, nil); err == nil {
				n.refer(f, good)
				moving = true
			}
		}
	}
	return left, moving
}

// again tries those entries again that were asked for in vain.
func (t *tree) again(in func(*node) bool) (any bool) {
	for _, n := range t.order {
		if n.want != nil && !n.busy && in(n) {
			t.attempt(n)
			any = true
		}
	}
	return any
}

// yield ends a stalemate: an entry that a fresh start would mount is refused a
// name by an old version of another entry, whose new one does not have that
// name and cannot take over. The old version goes.
func (t *tree) yield() (any bool) {
	claimed := map[slot]*node{}
	for _, n := range t.order {
		for at := range n.stands().provides() {
			if claimed[at] == nil {
				claimed[at] = n
			}
		}
	}
	for _, n := range t.order {
		if !n.lost || n.want == nil {
			continue
		}
		wants := n.want.provides()
		for at := range wants {
			if claimed[at] != n {
				wants = nil
			}
		}
		for _, o := range t.order {
			hold, _ := t.place(o, nil).Versions()
			old := o.fibers[hold]
			if o == n || old == nil || old.equal(o.want) {
				continue
			}
			for at := range old.provides() {
				if wants[at] && claimed[at] == n {
					o.good = nil
					t.l.changes++
					hold.Dispose()
					any = true
					break
				}
			}
		}
	}
	return any
}

// tell reports the faults that were not reported yet. That a name is taken is
// nothing to report while its holder may be leaving.
func (t *tree) tell(moving bool) {
	for _, n := range t.order {
		if n.said || moving && (len(n.fault) == 0 || taken(n.fault[0].Err)) {
			continue
		}
		if len(n.fault) == 0 {
			t.tellPending(n)
			continue
		}
		n.said = true
		for _, f := range n.fault {
			f.Kept = t.keeps(n)
			t.l.report(f)
		}
	}
}

// tellPending reports a new version that waits for a service while the old one
// goes on.
func (t *tree) tellPending(n *node) {
	hold, next := t.place(n, nil).Versions()
	if next == nil || next.State() != cordis.Pending {
		return
	}
	n.said = true
	why := strings.Join(t.l.ctx.Container().Explain(next), "; ")
	t.l.report(Fault{Pos: t.l.pos(n.entry, "name"), Entry: n.id, Warning: true, Kept: hold.State() == cordis.Active,
		Err: seams.Errorf(seams.NotProvided, "", "its new version waits: %s", why)})
}

// keeps reports whether an older version of n serves.
func (t *tree) keeps(n *node) bool {
	hold, _ := t.place(n, nil).Versions()
	s := n.fibers[hold]
	return s != nil && (n.tried == nil || !s.equal(n.tried)) && hold.State() != cordis.Failed
}
