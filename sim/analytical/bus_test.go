package analytical

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func BenchmarkSharedBus(b *testing.B) {
	o := torus(2, 16)
	o.System.Splits, o.System.ActiveChunks = 16, 4
	o.System.SharedBus = &SharedBus{L: 5, O: 1, G: 4, GPerByte: 0.0038, ReductionDelay: 1}
	p, err := Compile(dag.FromTrace(allreduce(o.Network.NPUs(), 1<<24)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var events int64
	for b.Loop() {
		r, err := p.Run(o)
		if err != nil || !r.Complete {
			b.Fatal(err, r)
		}
		events += r.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
