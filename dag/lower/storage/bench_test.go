package storage

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// manyRecords returns a trace of n records of 4 KiB on 21 units, three quarters of them writes.
func manyRecords(n int) *dag.Trace {
	rng := rand.New(rand.NewPCG(1, 2))
	records := make([]record, n)
	for i := range records {
		records[i] = record{
			unit: rng.Int32N(21), address: rng.Int64N(1<<22) * 512, bytes: 4096, write: rng.IntN(4) > 0,
			time: dag.Time(i) * 30 * dag.Microsecond,
		}
	}
	return traceOf(records...)
}

// BenchmarkLower lowers a million records on one processor.
func BenchmarkLower(b *testing.B) {
	const records = 1_000_000
	tr := manyRecords(records)
	for _, choice := range []string{"directdrive", "directdrive:lookup=none,order=timed", "directdrive:compat"} {
		b.Run(choice, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			b.ReportAllocs()
			ops := int64(0)
			for b.Loop() {
				lowered, _ := mustLower(b, tr, choice)
				ops = lowered.Ops()
			}
			b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(ops), "ops")
		})
	}
}
