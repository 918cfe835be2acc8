package cordis

import (
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis/model"
)

// mutants are the known faults, each with the properties that must find it: one
// of them does, in named plans or in the first of a fixed row of random ones.
var mutants = []struct {
	name string
	mut  mutation
	by   string
}{
	{"no guard", mutNoGuard, "GUARD VIEW"},
	{"guard only at the inverse of provide", mutGuardAtProvide, "GUARD"},
	{"retiring consumers missed", mutRetiringMissed, "GUARD VIEW RELIED"},
	{"first in, first out", mutFIFO, "LIFO"},
	{"leaving provider still published", mutLateUnpublish, "EAGER GATE"},
	{"failed retried", mutFailRetry, "GATE"},
	{"finish without comparing", mutNoRecheck, "COHERENT DIVERT"},
	{"no prefix recovery", mutSkipPrefix, "TERMINAL"},
	{"an undo runs twice", mutDoubleUndo, "ONCE"},
	{"child under an inactive parent", mutExtUnderInactive, "ADMISSION CLOSED"},
	{"child not waited for", mutChildNotWaited, "CHILD"},
	{"listener called after dispose", mutLateListener, "LISTENER HEARD"},
	{"boolean target", mutBoolTarget, "COHERENT EAGER"},
	{"N1: holder kept only if active", mutLoseAtInsert, "UNTOUCHED"},
	{"N2: one predecessor exempt", mutOneExempt, "ANSWER"},
	{"N3: children visible early", mutNoShadow, "SHOWN VISIBLE GATE"},
	{"N4: may rely on its predecessor", mutNoExclude, "GATE OPTIONAL"},
	{"N4: may rely on its predecessor's dependants", mutDirectOnly, "GATE OPTIONAL"},
	{"N5: takeover in two steps", mutLateRetire, "TAKEOVER ONE-VERSION"},
	{"N5: takeover at begin", mutLeaveAtBegin, "UNTOUCHED"},
	{"N5: failing takes the old version along", mutFailKills, "UNTOUCHED"},
	{"N6: dependants leave later", mutLazyLeave, "EAGER"},
	{"N7: calls in flight not waited for", mutCallsMissed, "CALLS"},
}

// TestMutants: the properties find every known fault.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			by := strings.Fields(m.by)
			found := func(bad []string) bool {
				return slices.ContainsFunc(bad, func(b string) bool {
					p, _, _ := strings.Cut(b, ":")
					return slices.Contains(by, p)
				})
			}
			for _, s := range scenarios {
				if found(play(s.plan, s.schedule, s.adv, m.mut)) {
					return
				}
			}
			for i := range 2000 {
				if found(play(model.Plans().Example(i), schedules().Example(i), adversaries[i%len(adversaries)], m.mut)) {
					return
				}
			}
			t.Fatal("nothing finds it")
		})
	}
}
