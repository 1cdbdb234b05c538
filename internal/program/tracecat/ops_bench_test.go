package tracecat

import (
	"io"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

// BenchmarkListOps lists a ring of sends, receives and computations.
func BenchmarkListOps(b *testing.B) {
	t, err := pattern.Generate("ring", pattern.Params{Ranks: 64, Bytes: 1 << 20, Iterations: 64, Compute: 123_456_789})
	if err != nil {
		b.Fatal(err)
	}
	r := &cli.Read{Trace: t, Format: &format.Format{Name: "test"}}
	list := func(v view) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := v.listOps(io.Discard, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(t.Ops())*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		}
	}
	b.Run("text", list(view{ops: true, head: -1}))
	b.Run("json", list(view{ops: true, head: -1, json: true}))
}
