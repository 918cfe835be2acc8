package cordis

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// FuzzPlans is TestPlans for the fuzzer. Its seeds are long enough for whole
// programs.
func FuzzPlans(f *testing.F) {
	for i := range uint64(8) {
		seed := make([]byte, 32<<10)
		r := rand.NewPCG(i, 0)
		for j := range seed {
			seed[j] = byte(r.Uint64())
		}
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(planHolds))
}
