package nccl

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// BenchmarkLower lowers allreduces of 1 MiB on two channels of four GPUs on two nodes and joins the ranks of each.
func BenchmarkLower(b *testing.B) {
	const calls = 5000
	j := newJob(4, 0, 0, 1, 1)
	world := j.AddComm(dag.World(4))
	for range calls {
		for rank := range int32(4) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: world, Bytes: 1 << 20}, `{"algo":"ring","proto":"simple",`+
				`"type":4,"chunk_steps":4,"slice_steps":2,"step_size":524288,"channels":[[0,131072,524288,32768],[1,131072,524288,32768]]}`)
		}
		j.gap()
	}
	trace := j.Trace()
	simple, ll, err := MachineTables("clariden")
	if err != nil {
		b.Fatal(err)
	}
	o := Options{Simple: simple, LL: ll}
	ops := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		l, err := Lower(context.Background(), trace, o)
		if err != nil {
			b.Fatal(err)
		}
		h, err := l.Header()
		if err != nil {
			b.Fatal(err)
		}
		read := l.NewReader(dag.All)
		for _, batch := range h.Batches {
			ranks, err := read(batch)
			if err != nil {
				b.Fatal(err)
			}
			ops += int64(ranks[0].Len())
		}
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
