package cordis

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis/model"
	"pgregory.net/rapid"
)

// D3 runs plans in real time: pauses are yields of the processor and now and
// then a short sleep. Its worth is under the race detector.

// TestReal: the properties, with goroutines in real time.
func TestReal(t *testing.T) {
	check(t, max(*plans/4, 10), func(rt *rapid.T) {
		plan := model.Plans().Draw(rt, "plan")
		seed := rapid.Uint64().Draw(rt, "seed")
		if bad := playReal(plan, seed, 0); len(bad) > 0 {
			rt.Fatalf("%s", strings.Join(bad, "\n"))
		}
	})
}

func playReal(plan model.Plan, seed uint64, mut mutation) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	list := make([]int, 4096)
	for i := range list {
		list[i] = r.IntN(60)
	}
	nap := func(n int) {
		if n == 3 {
			time.Sleep(time.Duration(n) * time.Microsecond)
			return
		}
		for range n {
			runtime.Gosched()
		}
	}
	return newCrowd(plan, choices(list), nap, mut).play()
}
