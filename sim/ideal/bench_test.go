package ideal

import (
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/pattern"
)

// BenchmarkReplay measures the replay alone, of traces of one to three million ops.
func BenchmarkReplay(b *testing.B) {
	patternOf := func(name string, ranks, iterations int) func() (*dag.Trace, error) {
		return func() (*dag.Trace, error) {
			p := pattern.Default()
			p.Ranks, p.Iterations = ranks, iterations
			if testing.Short() {
				p.Iterations = 1
			}
			return pattern.Generate(name, p)
		}
	}
	for _, c := range []struct {
		name string
		make func() (*dag.Trace, error)
	}{
		{"chains", chains},
		{"ring", patternOf("ring", 256, 8)},
		{"alltoall", patternOf("alltoall", 256, 16)},
		{"recdoubling", patternOf("recdoubling", 1024, 100)},
		{"stencil2d", patternOf("stencil2d", 1024, 220)},
		{"dissemination", patternOf("dissemination", 16384, 4)},
		{"horovod", func() (*dag.Trace, error) {
			p := horovod.Listing()
			p.Batches, p.Workers = 1, 32
			return readAll(horovod.NewSource(p, 1))
		}},
		{"messages", messages},
		{"arrivals", arrivals},
	} {
		b.Run(c.name, func(b *testing.B) {
			trace, err := c.make()
			if err != nil {
				b.Fatal(err)
			}
			compiled, err := Compile(dag.FromTrace(trace))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				replay := &Replay{program: compiled.program.Clone()}
				b.StartTimer()
				if r, err := replay.Run(Options{}); err != nil || !r.Complete {
					b.Fatalf("complete: %v, %v", r != nil && r.Complete, err)
				}
			}
			b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}

// chains returns a trace in which ranks only compute.
func chains() (*dag.Trace, error) {
	b := dag.NewBuilder(100)
	for rank := range 100 {
		r := b.Rank(rank)
		for i := range 20000 {
			op := r.Calc(dag.Time(1000 + i%7))
			if i > 0 {
				r.Requires(op, i-1)
			}
		}
	}
	return b.Trace(), nil
}

// messages returns a trace like those read from VEF files: receives wait for nothing, tags are unique, sends wait for
// the previous message with a delay.
func messages() (*dag.Trace, error) {
	const ranks = 128
	b := dag.NewBuilder(ranks)
	random := rand.New(rand.NewPCG(1, 1))
	last := make([]int, ranks)
	for rank := range ranks {
		last[rank] = b.Rank(rank).Calc(1000)
	}
	for n := range int64(500_000) {
		from, to := random.IntN(ranks), random.IntN(ranks)
		delay := b.Rank(from).Calc(dag.Time(1+random.IntN(1000))*dag.Nanosecond, last[from])
		last[from] = b.Rank(from).Send(int32(to), 1000, n, delay)
		if recv := b.Rank(to).Recv(int32(from), 1000, n); random.IntN(2) == 0 {
			last[to] = recv
		}
	}
	return b.Trace(), nil
}

// arrivals returns a trace of messages that are sent at given times.
func arrivals() (*dag.Trace, error) {
	const ranks = 128
	b := dag.NewBuilder(ranks)
	random := rand.New(rand.NewPCG(1, 2))
	at := dag.Time(0)
	for n := range int64(500_000) {
		from, to := random.IntN(ranks), random.IntN(ranks)
		at += dag.Time(random.IntN(1000)) * dag.Nanosecond
		b.Rank(from).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 1000, Tag: n, Release: at})
		b.Rank(to).Recv(int32(from), 1000, n)
	}
	return b.Trace(), nil
}

// BenchmarkCompile measures the compilation of collectives in memory.
func BenchmarkCompile(b *testing.B) {
	p := horovod.Listing()
	p.Batches, p.Workers = 1, 32
	trace, err := readAll(horovod.NewSource(p, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(dag.FromTrace(trace)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
