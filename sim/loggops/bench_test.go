package loggops_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/sim/loggops"
)

// benchmarkTrace returns a pattern of two to five million ops, with messages of 4 KiB.
func benchmarkTrace(b *testing.B, name string, ranks, iterations int) *dag.Trace {
	b.Helper()
	p := pattern.Default()
	p.Ranks, p.Iterations, p.Bytes = ranks, iterations, 4096
	if name == "ring" { // of which each message has a part
		p.Bytes *= int64(ranks)
	}
	if testing.Short() {
		p.Iterations = 1
	}
	trace, err := pattern.Generate(name, p)
	if err != nil {
		b.Fatal(err)
	}
	return trace
}

func reportOps(b *testing.B, trace *dag.Trace) {
	b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}

// BenchmarkCompile measures how fast a trace in memory is made ready for replay.
func BenchmarkCompile(b *testing.B) {
	trace := benchmarkTrace(b, "stencil2d", 1024, 220)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loggops.Compile(dag.FromTrace(trace), loggops.Strict, b.Logf); err != nil {
			b.Fatal(err)
		}
	}
	reportOps(b, trace)
}

// BenchmarkReplay measures the replay alone of schedules of BENCHMARKS.md, by the number of threads. Besides the wall
// time, cpu-ns/op is the user and system time of all threads per op of the trace.
func BenchmarkReplay(b *testing.B) {
	params, err := loggops.Preset("default")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		pattern           string
		ranks, iterations int
	}{
		{"ring", 256, 16}, {"recdoubling", 1024, 200}, {"stencil2d", 1024, 450}, {"dissemination", 16384, 10},
	} {
		for _, model := range loggops.Models {
			for threads := 1; threads <= min(2, runtime.GOMAXPROCS(0)); threads++ {
				if threads > 1 && model == loggops.ATLAHS {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/threads=%d", c.pattern, model, threads), func(b *testing.B) {
					trace := benchmarkTrace(b, c.pattern, c.ranks, c.iterations)
					compiled, err := loggops.Compile(dag.FromTrace(trace), model, b.Logf)
					if err != nil {
						b.Fatal(err)
					}
					used := time.Duration(0)
					for b.Loop() {
						b.StopTimer()
						replay := compiled.Clone()
						b.StartTimer()
						before := processorTime()
						if r, err := replay.Run(loggops.Options{Params: params, Threads: threads}); err != nil || !r.Complete {
							b.Fatalf("complete: %v, %v", r != nil && r.Complete, err)
						}
						used += processorTime() - before
					}
					b.ReportMetric(float64(used)/float64(b.N)/float64(trace.Ops()), "cpu-ns/op")
					reportOps(b, trace)
				})
			}
		}
	}
}
