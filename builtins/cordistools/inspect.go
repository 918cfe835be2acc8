package cordistools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// sections of cordis_inspect, in the order in which they are shown.
var sections = []string{"services", "plugins", "tools", "temporary", "api", "events"}

// inspect renders one section, or all.
func (t *toolset) inspect(scope *seams.Scope, what, name string) (string, error) {
	if name != "" && what != "api" && what != "events" {
		return "", seams.Errorf(seams.InvalidArgument, "cordis_inspect", "name %q goes with what: 'api' or what: 'events' only", name)
	}
	v := t.view(scope)
	var out []string
	for _, s := range sections {
		if what != "" && what != s {
			continue
		}
		lines, err := v.section(s, name)
		if err != nil {
			return "", err
		}
		title := s
		if s == "temporary" {
			title = "Temporary Plugins"
		}
		out = append(out, "## "+title+"\n"+strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n\n"), nil
}

// view is the container at one instant, as one agent sees it, beside what
// JavaScript can know of.
type view struct {
	snapshot cordis.Snapshot
	tools    []string
	mounts   []report
	catalog  []script.Service
	events   []script.Event
	verbs    []script.Method
	methods  func(service string) []string // of one without a catalog entry
}

func (t *toolset) view(scope *seams.Scope) view {
	v := view{
		snapshot: t.ctx.Container().Inspect(),
		catalog:  script.Services(), events: script.Events(), verbs: script.Verbs(),
		methods: func(service string) []string {
			if v, ok := cordis.Lookup(t.ctx, seams.Key[any]{Name: service}); ok {
				if o, ok := v.(*sandbox.Object); ok {
					return o.Methods()
				}
			}
			return nil
		},
	}
	if registry, err := cordis.Get(t.ctx, tools.Key); err == nil {
		for _, s := range registry.Schemas(scope) {
			v.tools = append(v.tools, s.Name)
		}
	}
	for _, m := range t.rows() {
		v.mounts = append(v.mounts, t.describe(v.snapshot, m))
	}
	return v
}

func (v view) section(what, name string) ([]string, error) {
	switch what {
	case "services":
		return v.services(), nil
	case "plugins":
		return v.plugins(), nil
	case "tools":
		var out []string
		for _, n := range v.tools {
			out = append(out, "- "+n)
		}
		return out, nil
	case "temporary":
		return v.temporary(), nil
	case "api":
		if name != "" {
			return v.oneService(name)
		}
		return v.api(), nil
	default:
		return v.eventsNamed(name)
	}
}

func (v view) services() []string {
	states := map[uint64]string{}
	for _, f := range v.snapshot.Fibers {
		states[f.ID] = f.State
	}
	var out []string
	for _, s := range v.snapshot.Services {
		state, realm := "", ""
		if st := states[s.Provider]; st != cordis.Active.String() {
			state = ", " + st
		}
		if s.Realm != "" {
			realm = " in realm " + s.Realm
		}
		out = append(out, fmt.Sprintf("- %s (provided by %s%s%s)", s.Name, s.Owner, realm, state))
	}
	if len(out) == 0 {
		return []string{"(no service is provided)"}
	}
	return out
}

func (v view) plugins() []string {
	var out []string
	for _, f := range v.snapshot.Fibers {
		out = append(out, fmt.Sprintf("- %s [%s]", f.Name, f.State))
	}
	slices.Sort(out)
	return out
}

func (v view) temporary() []string {
	var out []string
	for _, r := range v.mounts {
		out = append(out, r.line())
	}
	if len(out) == 0 {
		return []string{"No temporary plugin is running; such plugins live in memory only and vanish on restart."}
	}
	return out
}

// live is the services that a plugin without a realm of its own reads.
func (v view) live() map[string]cordis.ServiceInfo {
	out := map[string]cordis.ServiceInfo{}
	for _, s := range v.snapshot.Services {
		if s.Visible && s.Realm == "" {
			out[s.Name] = s
		}
	}
	return out
}

// api is the part of the catalog whose services are live, and what else is.
func (v view) api() []string {
	var out, absent, signatures []string
	live := v.live()
	for _, s := range v.catalog {
		if _, ok := live[s.Name]; !ok {
			absent = append(absent, s.Name)
			continue
		}
		delete(live, s.Name)
		out = append(out, fmt.Sprintf("- %s — %s", s.Name, s.Summary))
		for _, m := range s.Methods {
			out = append(out, indent(m.Signature)...)
			signatures = append(signatures, m.Signature)
		}
	}
	var others []string
	for n, s := range live {
		others = append(others, fmt.Sprintf("- %s (provided by %s, no catalog entry)", n, s.Owner))
	}
	slices.Sort(others)
	out = append(out, others...)
	if len(absent) > 0 {
		slices.Sort(absent)
		out = append(out, "Not running here, but can be loaded: "+strings.Join(absent, ", "))
	}
	out = append(out, types(signatures)...)
	out = append(out, "On every ctx:")
	for _, m := range v.verbs {
		out = append(out, fmt.Sprintf("- %s — %s", m.Name, firstSentence(m.Doc)))
	}
	return out
}

// types are the shapes that signatures mention, below their label; none without.
func types(signatures []string) []string {
	shapes := script.Shapes(signatures...)
	if len(shapes) == 0 {
		return nil
	}
	out := []string{"Types:"}
	for _, s := range shapes {
		out = append(out, indent(s.Text)...)
	}
	return out
}

func (v view) oneService(name string) ([]string, error) {
	provider, running := v.live()[name]
	i := slices.IndexFunc(v.catalog, func(s script.Service) bool { return s.Name == name })
	switch {
	case i < 0 && running:
		methods := ""
		if names := v.methods(name); len(names) > 0 {
			methods = "; its methods, each of which answers a promise, are " + strings.Join(names, ", ")
		}
		return nil, seams.Errorf(seams.NotFound, "cordis_inspect", "the service %q, provided by %s, has no catalog entry%s", name, provider.Owner, methods)
	case i < 0:
		return nil, seams.Errorf(seams.NotFound, "cordis_inspect", "there is no service %q in the catalog; without name, the api section lists those there are", name)
	case !running:
		return nil, seams.Errorf(seams.NotProvided, "cordis_inspect", "the service %q is in the catalog but is not running: nothing provides it here", name)
	}
	s := v.catalog[i]
	out := []string{fmt.Sprintf("- %s — %s", s.Name, s.Summary)}
	var signatures []string
	for _, m := range s.Methods {
		out = append(append(out, comment(m.Doc)...), indent(m.Signature)...)
		signatures = append(signatures, m.Signature)
	}
	return append(out, types(signatures)...), nil
}

const waterfallCaution = "A listener of a waterfall must call and return next(): one that does not cuts the chain for everybody inside it."

// eventsNamed lists the events of a name, all for "".
func (v view) eventsNamed(name string) ([]string, error) {
	var out []string
	for _, e := range v.events {
		if name != "" && e.Name != name {
			continue
		}
		out = append(out, fmt.Sprintf("- %s [%s] — %s", e.Name, e.Mode, e.Summary))
		if name != "" {
			out = append(out, comment(e.Doc)...)
		}
		out = append(out, indent(e.Signature)...)
	}
	if name != "" && len(out) == 0 {
		return nil, seams.Errorf(seams.NotFound, "cordis_inspect", "there is no event %q in the catalog; without name, the events section lists those there are", name)
	}
	return append(out, waterfallCaution), nil
}

// indent puts four spaces before each line of a text.
func indent(s string) []string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = "    " + l
	}
	return lines
}

// comment is a documentation text above what it documents; none for "".
func comment(doc string) []string {
	if doc == "" {
		return nil
	}
	return indent("// " + strings.ReplaceAll(doc, "\n", "\n// "))
}

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
