package cordistools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// policy is what an entry grants its mounts. Either list may be "*".
type policy struct {
	Allow any `json:"allow"`
	Wrap  any `json:"wrap"`
}

var policySchema = schema.Object(schema.Fields{
	"allow": names("services a mount may inject beside tools, timer, logger, events, memory and llm; '*' is everything there is, which is as much as a shell"),
	"wrap":  names("waterfall events a mount may wrap"),
})

func names(description string) *schema.Schema {
	return schema.Union(schema.Const("*"), schema.Array(schema.String())).Description(description)
}

// always may be injected without a grant.
var always = []string{"tools", "timer", "logger", "events", "memory", "llm"}

// grants reports whether the entry permits something by its name.
func (p policy) grants(want script.Permission) bool {
	listed := func(v any) bool {
		list, _ := v.([]any)
		return v == "*" || slices.Contains(list, any(want.Name))
	}
	switch want.Kind {
	case script.Inject:
		return slices.Contains(always, want.Name) || listed(p.Allow)
	case script.Wrap:
		return p.Allow == "*" || listed(p.Wrap)
	}
	return false
}

// refusal shows the line that would grant it.
func (p policy) refusal(want script.Permission) error {
	what := "inject the service"
	if want.Kind == script.Wrap {
		what, p.Wrap = "wrap the waterfall", with(p.Wrap, want.Name)
	} else {
		p.Allow = with(p.Allow, want.Name)
	}
	return seams.Errorf(seams.NotPermitted, "cordis_mount", "a mount may not %s %q here; the entry cordis-tools in cordis.yml would permit it with\n  policy: %s", what, want.Name, p)
}

func with(list any, name string) any {
	names, _ := list.([]any)
	return append(slices.Clone(names), name)
}

// String renders the policy as it stands in cordis.yml.
func (p policy) String() string {
	var parts []string
	for _, line := range []struct {
		key  string
		list any
	}{{"allow", p.Allow}, {"wrap", p.Wrap}} {
		switch v := line.list.(type) {
		case string:
			parts = append(parts, line.key+": '"+v+"'")
		case []any:
			names := make([]string, len(v))
			for i, n := range v {
				names[i] = fmt.Sprint(n)
			}
			parts = append(parts, line.key+": ["+strings.Join(names, ", ")+"]")
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// permit answers nil for what a mount may do. Beside what the entry grants, the
// mounts' own services are theirs.
func (t *toolset) permit(want script.Permission) error {
	if t.cfg.Policy.grants(want) || want.Kind == script.Inject && t.ours(want.Name) {
		return nil
	}
	return t.cfg.Policy.refusal(want)
}

// ours reports whether a service is one that only mounts provide: who waits for
// it is asked again when it starts.
func (t *toolset) ours(service string) bool {
	s := t.ctx.Container().Inspect()
	below := subtree(s, t.group.Fiber().ID())
	provided := false
	for _, sv := range s.Services {
		if sv.Name != service || !sv.Visible {
			continue
		}
		if !below[sv.Provider] {
			return false
		}
		provided = true
	}
	return provided || !slices.ContainsFunc(script.Services(), func(c script.Service) bool { return c.Name == service })
}
