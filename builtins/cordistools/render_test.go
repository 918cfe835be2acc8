package cordistools

import (
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
)

// what a whole composition does not show.
func TestRenderers(t *testing.T) {
	var empty view
	if got := empty.services(); !slices.Equal(got, []string{"(no service is provided)"}) {
		t.Errorf("%q", got)
	}
	if got := empty.api(); !slices.Equal(got, []string{"On every ctx:"}) {
		t.Errorf("%q", got)
	}
	if got, err := empty.eventsNamed(""); !slices.Equal(got, []string{waterfallCaution}) || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if got := (view{catalog: []script.Service{{Name: "b"}, {Name: "a"}}}).api(); !slices.Equal(got, []string{"Not running here, but can be loaded: a, b", "On every ctx:"}) {
		t.Errorf("%q", got)
	}
	v := view{snapshot: cordis.Snapshot{
		Fibers: []cordis.FiberInfo{
			{ID: 1, Name: "twin", State: "active"}, {ID: 2, Name: "leaver", State: "unloading"}, {ID: 3, Name: "twin", State: "pending"}, {ID: 4, Name: "alpha", State: "failed"},
		},
		Services: []cordis.ServiceInfo{
			{Name: "x", Provider: 1, Owner: "twin", Visible: true}, {Name: "x", Realm: "lab", Provider: 1, Owner: "twin", Visible: true}, {Name: "y", Provider: 2, Owner: "leaver"},
		},
	}}
	if got := v.services(); !slices.Equal(got, []string{"- x (provided by twin)", "- x (provided by twin in realm lab)", "- y (provided by leaver, unloading)"}) {
		t.Errorf("%q", got)
	}
	if got := v.plugins(); !slices.Equal(got, []string{"- alpha [failed]", "- leaver [unloading]", "- twin [active]", "- twin [pending]"}) {
		t.Errorf("%q", got)
	}
	// What is not visible, or in another realm, is not live.
	if got := v.api(); !slices.Equal(got, []string{"- x (provided by twin, no catalog entry)", "On every ctx:"}) {
		t.Errorf("%q", got)
	}
}

func TestReportTexts(t *testing.T) {
	r := report{id: "dyn-7", name: `a "b"`, state: "active"}
	if got := r.text(); got != `Temporary Plugin dyn-7 is running (plugin "a \"b\""; in memory only, until it is unmounted or the process ends)` {
		t.Error(got)
	}
	r.waiting = []string{"y", "x"}
	if got := r.text(); !strings.HasPrefix(got, `Temporary Plugin dyn-7 is pending (plugin "a \"b\""; missing services: y, x; in memory only`) {
		t.Error(got)
	}
	for in, want := range map[string]string{"": anonymous, " \n ": anonymous, "a\n- forged [active]": "a - forged [active]", strings.Repeat("ä", 65): strings.Repeat("ä", 64) + "…"} {
		if got := pluginName(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestPolicyLine(t *testing.T) {
	want := script.Permission{Kind: script.Wrap, Name: "tools/execute"}
	for _, c := range []struct {
		p    policy
		want string
	}{
		{policy{}, "policy: {wrap: [tools/execute]}"},
		{policy{Allow: []any{"fs"}}, "policy: {allow: [fs], wrap: [tools/execute]}"},
		{policy{Allow: []any{"fs"}, Wrap: []any{"a/b"}}, "policy: {allow: [fs], wrap: [a/b, tools/execute]}"},
	} {
		if err := c.p.refusal(want); !strings.Contains(err.Error(), c.want+" [") {
			t.Errorf("%v", err)
		}
	}
	if err := (policy{Wrap: "*"}).refusal(script.Permission{Kind: script.Inject, Name: "fs"}); !strings.Contains(err.Error(), "policy: {allow: [fs], wrap: '*'} [") {
		t.Errorf("%v", err)
	}
	all := policy{Allow: "*"}
	if !all.grants(want) || !all.grants(script.Permission{Kind: script.Inject, Name: "fs"}) {
		t.Error("'*' does not grant all")
	}
}
