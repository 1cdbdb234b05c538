package tracecat

import (
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/pattern"
)

// BenchmarkListOps lists a ring of sends, receives and computations.
func BenchmarkListOps(b *testing.B) {
	t, err := pattern.Generate("ring", pattern.Params{Ranks: 64, Bytes: 1 << 20, Iterations: 64, Compute: 123_456_789})
	if err != nil {
		b.Fatal(err)
	}
	s := session(t)
	s.Stdout = io.Discard
	list := func(args ...string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Stdin = strings.NewReader("something")
				if got := s.Run(New, args...); got.Status != 0 {
					b.Fatal(got.Stderr)
				}
			}
			b.ReportMetric(float64(t.Ops())*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		}
	}
	b.Run("text", list("--ops"))
	b.Run("json", list("--ops", "--json"))
}
