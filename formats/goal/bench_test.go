package goal

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// stencil is an application-like schedule: every rank computes, exchanges halos with its neighbours on a ring by
// non-blocking messages, waits for them, and so on. Each step has six ops and seven dependencies.
func stencil(ranks, steps int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		rank := b.Rank(r)
		left, right := int32((r+ranks-1)%ranks), int32((r+1)%ranks)
		wait := -1
		for step := range steps {
			calc := rank.Calc(dag.Time(100_000+13*(step*r%977)) * dag.Nanosecond)
			if wait >= 0 {
				rank.Requires(calc, wait)
			}
			tag := int64(step % 64)
			messages := []int{
				rank.Recv(left, 8192, tag), rank.Recv(right, 8192, tag), rank.Send(left, 8192, tag),
				rank.Send(right, 8192, tag),
			}
			wait = rank.Len()
			rank.Calc(0)
			for i, m := range messages {
				if i < 2 {
					rank.RequiresStart(m, calc)
				} else {
					rank.Requires(m, calc)
				}
				rank.Requires(wait, m)
			}
		}
	}
	return b.Trace()
}

// random is a schedule of an application with random computation, as the texts of third parties have it: attributes
// only where they are not 0, and dependencies below the op that waits.
func random(ranks, steps int) *dag.Trace {
	r := rand.New(rand.NewPCG(1, 2))
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		to, wait := b.Rank(rank), -1
		for step := range steps {
			var ops []int
			for range 4 {
				peer, tag := int32(r.IntN(ranks)), int64(8*step+r.IntN(8))
				ops = append(ops, to.Recv(peer, 2048+int64(r.IntN(8)), tag), to.Send(peer, 2048+int64(r.IntN(8)), tag))
			}
			calc := to.Calc(dag.Time(r.IntN(50_000)) * dag.Nanosecond)
			if wait >= 0 {
				for _, op := range append(ops, calc) {
					to.Requires(op, wait)
				}
			}
			wait = to.Add(dag.Op{Kind: dag.Calc, Stream: int32(r.IntN(4))}, append(ops, calc)...)
		}
	}
	return b.Trace()
}

const benchRanks, benchSteps = 16, 20_000 // 1.92 million ops

func reportRates(b *testing.B, ops int64, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func benchmarkRead(b *testing.B, f format.Format, data []byte, inputs func(string, []byte) []*format.Input) {
	var ops int64
	b.ReportAllocs()
	for b.Loop() {
		trace, err := f.Read(inputs("bench", data), options(false))
		if err != nil {
			b.Fatal(err)
		}
		ops = trace.Ops()
	}
	reportRates(b, ops, len(data))
}

func benchmarkWrite(b *testing.B, f format.Format, trace *dag.Trace) {
	size := len(encode(b, f, trace))
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Write(io.Discard, trace, format.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	reportRates(b, trace.Ops(), size)
}

func BenchmarkReadText(b *testing.B) {
	text := encode(b, Text, stencil(benchRanks, benchSteps))
	b.Run("canonical", func(b *testing.B) { benchmarkRead(b, Text, text, stream) })
	named := bytes.ReplaceAll(text, []byte("l"), []byte("op_l"))
	named = bytes.ReplaceAll(named, []byte("caop_lc"), []byte("calc"))
	app := encode(b, Text, random(256, 800))
	b.Run("random", func(b *testing.B) { benchmarkRead(b, Text, app, stream) })
	b.Run("named", func(b *testing.B) { benchmarkRead(b, Text, named, stream) })
}

func BenchmarkReadBinary(b *testing.B) {
	data := encode(b, Binary, stencil(benchRanks, benchSteps))
	b.Run("file", func(b *testing.B) { benchmarkRead(b, Binary, data, plainFile) })
	b.Run("stream", func(b *testing.B) { benchmarkRead(b, Binary, data, stream) })
}

func benchmarkWrites(b *testing.B, f format.Format) {
	b.Run("ranks", func(b *testing.B) { benchmarkWrite(b, f, stencil(benchRanks, benchSteps)) })
	b.Run("rank", func(b *testing.B) { benchmarkWrite(b, f, stencil(1, benchRanks*benchSteps)) })
}

func BenchmarkWriteText(b *testing.B)   { benchmarkWrites(b, Text) }
func BenchmarkWriteBinary(b *testing.B) { benchmarkWrites(b, Binary) }

func BenchmarkLosses(b *testing.B) {
	trace := stencil(benchRanks, benchSteps)
	for b.Loop() {
		if l := Binary.Losses(trace); len(l) > 0 {
			b.Fatal(l)
		}
	}
	reportRates(b, trace.Ops(), 0)
}
