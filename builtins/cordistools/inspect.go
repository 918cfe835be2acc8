package cordistools

import (
	"fmt"
	"slices"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// view is the container at one instant, as one agent sees it.
type view struct {
	snapshot cordis.Snapshot
	states   map[uint64]string
	live     map[string]cordis.ServiceInfo // shared realm, by name
	tools    []string
	mounts   []report
}

func (t *toolset) view(scope *seams.Scope) view {
	v := view{snapshot: t.ctx.Container().Inspect(), states: map[uint64]string{}, live: map[string]cordis.ServiceInfo{}}
	for _, f := range v.snapshot.Fibers {
		v.states[f.ID] = f.State
	}
	for _, s := range v.snapshot.Services {
		if s.Visible && s.Realm == "" {
			v.live[s.Name] = s
		}
	}
	if registry, err := cordis.Get(t.ctx, tools.Key); err == nil {
		for _, s := range registry.Schemas(scope) {
			v.tools = append(v.tools, s.Name)
		}
	}
	for _, m := range t.running() {
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
		return v.api(name)
	default:
		return v.events(name)
	}
}

func (v view) services() []string {
	var out []string
	for _, s := range v.snapshot.Services {
		state, realm := "", ""
		if st := v.states[s.Provider]; st != cordis.Active.String() {
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
	return sorted(out)
}

func (v view) temporary() []string {
	var out []string
	for _, r := range v.mounts {
		state := r.state
		if state == cordis.Active.String() {
			state = "running"
		}
		out = append(out, fmt.Sprintf("- Temporary Plugin %s: %s [%s] — provides: %s; waiting for: %s; lifetime: %s", r.id, r.name, state, orNone(r.provides), orNone(r.waiting), lifetime))
	}
	if len(out) == 0 {
		return []string{"No temporary plugin is running. Those that are mounted end with the process."}
	}
	return out
}

// api is the part of the table whose services are live, and what else is.
func (v view) api(name string) ([]string, error) {
	if name != "" {
		return v.oneService(name)
	}
	var out, absent, signatures []string
	known := map[string]bool{}
	for _, s := range script.Services() {
		known[s.Name] = true
		if _, ok := v.live[s.Name]; !ok {
			absent = append(absent, s.Name)
			continue
		}
		out = append(out, fmt.Sprintf("- %s — %s", s.Name, s.Summary))
		for _, m := range s.Methods {
			out = append(out, indent(m.Signature)...)
			signatures = append(signatures, m.Signature)
		}
	}
	var others []string
	for n, s := range v.live {
		if !known[n] {
			others = append(others, fmt.Sprintf("- %s (provided by %s, no catalog entry)", n, s.Owner))
		}
	}
	out = append(out, sorted(others)...)
	if len(absent) > 0 {
		out = append(out, "Not running here, but known: "+orNone(sorted(absent)))
	}
	if shapes := script.Shapes(signatures...); len(shapes) > 0 {
		out = append(out, "Types:")
		for _, s := range shapes {
			out = append(out, indent(s.Text)...)
		}
	}
	out = append(out, "On every ctx:")
	for _, m := range script.Verbs() {
		out = append(out, fmt.Sprintf("- %s — %s", m.Name, firstSentence(m.Doc)))
	}
	return out, nil
}

func (v view) oneService(name string) ([]string, error) {
	for _, s := range script.Services() {
		if s.Name != name {
			continue
		}
		if _, ok := v.live[name]; !ok {
			return nil, seams.Errorf(seams.NotProvided, "cordis_inspect", "the service %q is known but not running; nothing provides it here", name)
		}
		out := []string{fmt.Sprintf("- %s — %s", s.Name, s.Summary)}
		var signatures []string
		for _, m := range s.Methods {
			out = append(append(out, indent("// "+m.Doc)...), indent(m.Signature)...)
			signatures = append(signatures, m.Signature)
		}
		if shapes := script.Shapes(signatures...); len(shapes) > 0 {
			out = append(out, "Types:")
			for _, sh := range shapes {
				out = append(out, indent(sh.Text)...)
			}
		}
		return out, nil
	}
	return nil, seams.Errorf(seams.NotFound, "cordis_inspect", "there is no service %q in the catalog; without name, the api section lists those there are", name)
}

const waterfallCaution = "A listener of a waterfall must call and return next(): one that does not cuts the chain for everybody inside it."

func (v view) events(name string) ([]string, error) {
	var out []string
	for _, e := range script.Events() {
		if name != "" && e.Name != name {
			continue
		}
		out = append(out, fmt.Sprintf("- %s [%s] — %s", e.Name, e.Mode, e.Summary))
		if name != "" {
			out = append(out, indent("// "+e.Doc)...)
		}
		out = append(out, indent(e.Signature)...)
	}
	if name != "" && len(out) == 0 {
		return nil, seams.Errorf(seams.NotFound, "cordis_inspect", "there is no event %q in the catalog; without name, the events section lists those there are", name)
	}
	return append(out, waterfallCaution), nil
}

func firstSentence(s string) string {
	if i := slices.Index([]byte(s), '.'); i >= 0 {
		return s[:i+1]
	}
	return s
}
