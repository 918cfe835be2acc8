package loader

import (
	"cmp"
	"context"
	"slices"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/seams"
)

// Check finds everything that is wrong with the file and with what it names,
// without mounting anything, in the order of the file. What may be right (an
// expression without a value, a service that no entry declares to provide, two
// that provide the same one) is a warning. A loader that was not started may be
// asked, and one that runs.
func (l *Loader) Check(ctx context.Context) []Fault {
	text, err := l.text()
	var file *config.File
	if err == nil {
		file, err = config.Parse(l.opts.File, text)
	}
	if err != nil {
		return faultsOf(&config.Entry{}, config.Pos{File: l.opts.File}, err)
	}
	if file.Empty {
		return []Fault{{Pos: config.Pos{File: l.opts.File}, Warning: true, Err: seams.Errorf(seams.InvalidConfig, "", "the config is empty: no entries")}}
	}
	t := tree{l: l, nodes: map[string]*node{}, modules: map[string]*module{}}
	faults := fileFaults(file)
	for _, e := range rows(file) {
		n := t.node(e)
		off, bad := l.disabled(e)
		n.off = off
		faults = append(faults, bad...)
		if len(bad) == 0 {
			t.order = append(t.order, n)
		}
	}
	t.load(ctx)
	for _, n := range t.order {
		t.read(n, nil)
		faults = append(faults, n.fault...)
		if n.want != nil {
			faults = append(faults, l.checkConfig(n.want)...)
		}
	}
	t.order = append(t.implicit(map[string]bool{}), t.order...)
	faults = append(faults, t.checkServices()...)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return faults
}

// checkConfig validates an entry's configuration as an activation would, and
// warns of expressions without a value.
func (l *Loader) checkConfig(s *spec) []Fault {
	var out []Fault
	expressions(s.entry.Config, func(x config.Expr) {
		if v, err := l.eval(x); err == nil && v == nil {
			out = append(out, Fault{Pos: x.Pos, Entry: s.entry.ID, Warning: true, Err: seams.Errorf(seams.InvalidConfig, "", "%s has no value", x.Source)})
		}
	})
	if _, err := l.settle(s.entry, s.entry.Config, s.base.Config); err != nil {
		out = append(out, faultsOf(s.entry, l.pos(s.entry, "config"), err)...)
	}
	return out
}

func expressions(v any, each func(config.Expr)) {
	switch v := v.(type) {
	case config.Expr:
		each(v)
	case map[string]any:
		for _, k := range sorted(v) {
			expressions(v[k], each)
		}
	case []any:
		for _, e := range v {
			expressions(e, each)
		}
	}
}

// checkServices warns of declared services that clash and of needs that nobody
// declares to fill.
func (t *tree) checkServices() []Fault {
	var out []Fault
	warn := func(n *node, format string, args ...any) {
		out = append(out, Fault{Pos: t.l.pos(n.entry, "name"), Entry: n.id, Warning: true, Err: seams.Errorf(seams.NotProvided, "", format, args...)})
	}
	owner := map[slot]*node{}
	for _, n := range t.order {
		for _, name := range declared(n.want) {
			at := slot{name, realmOf(n.want.layers, name)}
			if o := owner[at]; o != nil {
				warn(n, "it provides %q, and so does entry %s: the second one fails", name, o.id)
				out[len(out)-1].Err.(*seams.Error).Code = seams.Clash
				continue
			}
			owner[at] = n
		}
	}
	outside := t.l.ctx.Services()
	for _, n := range t.order {
		if n.want == nil {
			continue
		}
		for _, need := range n.want.plugin.Inject {
			realm := realmOf(n.want.layers, need.Name)
			if need.Optional || owner[slot{need.Name, realm}] != nil || realm == "" && slices.Contains(outside, need.Name) {
				continue
			}
			where := ""
			if realm != "" {
				where = " in realm " + realm
			}
			hint := "an entry may all the same; else add one that does"
			if b := t.l.provider(need.Name); b != "" {
				hint = "the builtin " + b + " does: add an entry `name: " + b + "`"
			}
			warn(n, "it waits for the service %q%s, which no entry declares to provide; %s", need.Name, where, hint)
		}
	}
	return out
}

func declared(s *spec) []string {
	if s == nil {
		return nil
	}
	return s.plugin.Provide
}
