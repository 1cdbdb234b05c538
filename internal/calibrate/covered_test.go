package calibrate

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// TestUncovered: each collective and range that no measurement covers has one text.
func TestUncovered(t *testing.T) {
	const ranks = 16
	b := dag.NewBuilder(ranks)
	half := b.AddComm(dag.World(8))
	for r := range ranks {
		add := func(kind dag.Subkind, comm int32, bytes ...int64) {
			for _, n := range bytes {
				if kind == dag.Scatter && r > 0 {
					n = 0
				}
				b.Rank(r).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: n, Comm: comm})
			}
		}
		add(dag.Barrier, 0, 0)
		add(dag.Bcast, 0, 8, 1000, 5000, 9000, 4)
		add(dag.Allreduce, 0, 8, 64)
		add(dag.Alltoall, 0, 16*100, 16*200)
		add(dag.Scatter, 0, 16*100)
		add(dag.Reduce, 0, 100, 2000)
		add(dag.Allgather, 0, 100)
		if r < 8 {
			add(dag.Allreduce, half, 8)
		}
	}
	choice, err := collective.ParseChoice("bcast=binomial;allreduce=recdoubling;alltoall=pairwise;scatter=binomial;" +
		"reduce=binomial;allgather=ring")
	if err != nil {
		t.Fatal(err)
	}
	measured := func(kind string, ranks int, from, to int64, none bool) fit.Choice {
		return fit.Choice{Collective: kind, Ranks: ranks, From: from, To: to, Algorithm: "linear", Error: 0.25, None: none}
	}
	f := &fit.File{Choices: []fit.Choice{measured("barrier", 16, 0, 0, false), measured("bcast", 16, 8, 4096, false),
		measured("allreduce", 16, 8, 64, false), measured("allreduce", 32, 8, 64, true),
		measured("alltoall", 16, 100, 100, false), measured("scatter", 16, 100, 100, false),
		measured("reduce", 16, 8, 512, false), measured("reduce", 16, 1024, 4096, true)}}
	got := Uncovered(f, b.Trace(), choice, func(k dag.Subkind) bool { return k != dag.Barrier })
	want := []string{
		"bcast of 4 bytes, measured from 8 to 4096; the algorithm is binomial",
		"bcast of 5000 to 9000 bytes, measured from 8 to 4096; the algorithm is binomial",
		"allreduce on 8 ranks, measured on 16 to 32; the algorithm is recdoubling",
		"alltoall of 200 bytes, measured from 100 to 100; the algorithm is pairwise",
		"no algorithm explains the times of reduce of 1024 to 4096 bytes on 16 ranks (linear: +25%); the algorithm is " +
			"binomial",
		"no measurement of allgather; the algorithm is ring",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, expected %q", got, want)
	}
}
