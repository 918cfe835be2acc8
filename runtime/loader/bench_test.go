package loader

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// From the rename of a file to the new version being active.
func BenchmarkReload(b *testing.B) {
	for _, tc := range []struct {
		name string
		file func(i int) (name, text, line string)
	}{
		{"plugin", func(i int) (string, string, string) {
			return "a.js", fmt.Sprintf("version %d", i), fmt.Sprintf("up a a%d", i)
		}},
		{"config", func(i int) (string, string, string) {
			return "cordis.yml", fmt.Sprintf("- {id: a, name: ./a.js, config: {v: %d}}\n", i), fmt.Sprintf(`up a a {"v":%d}`, i)
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			w := newWorld(b, Options{Watch: true})
			w.write("a.js", "")
			w.start(one)
			var took []time.Duration
			for i := 1; b.Loop(); i++ {
				name, text, line := tc.file(i)
				w.took()
				start := time.Now()
				w.put(name, text)
				for {
					w.mu.Lock()
					up := slices.Contains(w.log, line)
					w.mu.Unlock()
					if up {
						break
					}
					time.Sleep(20 * time.Microsecond)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// A reload of cordis.yml that changes one of n entries.
func BenchmarkEdit(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b, Options{})
			w.write("a.js", "")
			yml := func(v int) string {
				out := fmt.Sprintf("- {id: e, name: ./a.js, config: {v: %d}}\n", v)
				for i := range n - 1 {
					out += fmt.Sprintf("- {id: e%d, name: ./a.js}\n", i)
				}
				return out
			}
			w.start(yml(0))
			for i := 1; b.Loop(); i++ {
				w.edit(yml(i))
			}
		})
	}
}
