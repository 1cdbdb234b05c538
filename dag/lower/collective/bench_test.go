package collective

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// BenchmarkCollectives lowers traces of collectives, each after a computation.
func BenchmarkCollectives(b *testing.B) {
	for _, bench := range []struct {
		kind        dag.Subkind
		algorithm   string
		bytes       int64
		ranks, each int
	}{
		{dag.Barrier, "dissemination", 0, 16, 20000},
		{dag.Bcast, "binomial", 8, 16, 20000},
		{dag.Bcast, "chain(segment=64KiB)", 8 << 20, 64, 100},
		{dag.Bcast, "doublebinarytree(segment=64KiB)", 8 << 20, 64, 100},
		{dag.Reduce, "rabenseifner", 8 << 20, 128, 2000},
		{dag.Allreduce, "recdoubling", 8, 16, 20000},
		{dag.Allreduce, "ring", 8 << 20, 128, 100},
		{dag.Allreduce, "rabenseifner", 8 << 20, 128, 2000},
		{dag.Allreduce, "doublebinarytree", 8 << 20, 128, 2000},
		{dag.Allreduce, "hierarchical", 8, 128, 2000},
		{dag.Gatherv, "linear", 8, 16, 20000},
		{dag.Allgather, "bruck", 8, 128, 2000},
		{dag.Allgatherv, "ring", 8, 128, 100},
		{dag.Alltoall, "pairwise", 1 << 20, 512, 4},
		{dag.Alltoall, "bruck", 1 << 20, 512, 100},
		{dag.Alltoall, "bruck", 1<<20 + 100, 512, 100}, // blocks of different sizes
	} {
		b.Run(name(bench.kind, "/", bench.algorithm, "/", bench.ranks), func(b *testing.B) {
			builder := dag.NewBuilder(bench.ranks)
			for rank := range bench.ranks {
				builder.Meta().Nodes = append(builder.Meta().Nodes, int32(rank/8))
				r := builder.Rank(rank)
				r.Calc(1)
				for range bench.each {
					i := r.Add(dag.Op{Kind: dag.Coll, Subkind: bench.kind, Bytes: bench.bytes}, r.Len()-1)
					r.Calc(1, i)
				}
			}
			choice, err := ParseChoice(bench.kind.String() + "=" + bench.algorithm)
			if err != nil {
				b.Fatal(err)
			}
			tr := builder.Trace()
			b.ReportAllocs()
			ops := int64(0)
			for b.Loop() {
				out, err := Lower(context.Background(), tr, choice)
				if err != nil {
					b.Fatal(err)
				}
				ops += out.Ops()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(bench.ranks*bench.each*b.N)/b.Elapsed().Seconds(), "collectives/s")
		})
	}
}
