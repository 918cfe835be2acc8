package cordis

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"pgregory.net/rapid"
)

var plans = flag.Int("cordis.plans", usual(), "random programs that the container's properties are checked with")

// usual is how many programs a run checks.
func usual() int {
	if os.Getenv("OURO_LONG") != "" {
		return 2000
	}
	return 400
}

// check runs prop for n draws.
func check(t *testing.T, n int, prop func(*rapid.T)) {
	t.Helper()
	old := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", old) }()
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, prop)
}

// schedules draws the choices of a schedule.
func schedules() *rapid.Generator[[]int] {
	return rapid.SliceOfN(rapid.IntRange(0, 59), 40, 160)
}

// planHolds: every property, on a random program, one thing at a time.
func planHolds(t *rapid.T) {
	plan := model.Plans().Draw(t, "plan")
	list := schedules().Draw(t, "schedule")
	adv := rapid.SampledFrom(adversaries).Draw(t, "adversary")
	if bad := play(plan, list, adv, 0); len(bad) > 0 {
		t.Fatalf("%s", strings.Join(bad, "\n"))
	}
}

func TestPlans(t *testing.T) { check(t, *plans, planHolds) }
