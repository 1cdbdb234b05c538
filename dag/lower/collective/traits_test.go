package collective

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// TestTraits checks that the size of an element and different blocks select the algorithm.
func TestTraits(t *testing.T) {
	for _, test := range []struct {
		table   string
		kind    dag.Subkind
		blocks  []int64
		element int64 // 0: not stated
		want    string
	}{
		{"smpi-mpich", dag.Allgatherv, []int64{27304, 27304, 27312}, 1, "bruck"}, // 81920 elements
		{"smpi-mpich", dag.Allgatherv, []int64{27304, 27304, 27313}, 1, "ring"},
		{"smpi-mpich", dag.Allgatherv, []int64{218448, 218448, 218464}, 0, "bruck"}, // 81920 elements of 8 bytes
		{"smpi-mpich", dag.Allgatherv, []int64{218448, 218448, 218472}, 0, "ring"},
		{"smpi-mpich", dag.Allgatherv, []int64{109224, 109224, 109232}, 4, "bruck"},
		{"smpi-mpich", dag.Allgatherv, []int64{109224, 109224, 109236}, 4, "ring"},
		{"smpi-mpich", dag.Allgatherv, []int64{131072, 131072, 131072, 131071}, 1, "recdoubling"},
		{"smpi-mpich", dag.Allgatherv, []int64{131072, 131072, 131072, 131072}, 1, "ring"},
		{"smpi-mpich", dag.ReduceScatter, []int64{174763, 174763, 174762}, 1, "recdoubling"}, // 524288 elements
		{"smpi-mpich", dag.ReduceScatter, []int64{174763, 174763, 174763}, 1, "pairwise"},
		{"smpi-mpich", dag.ReduceScatter, []int64{699052, 699052, 699048}, 4, "recdoubling"},
		{"smpi-mpich", dag.ReduceScatter, []int64{699052, 699052, 699052}, 4, "pairwise"},
		{"smpi-default", dag.ReduceScatter, []int64{699052, 699052, 699052}, 4, "linear"},
		{"smpi-default", dag.ReduceScatter, []int64{0, 0, 0}, 4, "linear"},
		{"smpi-default", dag.ReduceScatter, []int64{8, 8, 16}, 0, "recdoubling"},
		{"smpi-default", dag.ReduceScatter, []int64{16, 8, 8}, 0, "recdoubling"},
		{"smpi-default", dag.ReduceScatter, []int64{174763, 174763, 174764}, 1, "pairwise"},
	} {
		b, sum := dag.NewBuilder(len(test.blocks)), int64(0)
		for _, size := range test.blocks {
			sum += size
		}
		for i, size := range test.blocks {
			op := dag.Op{Kind: dag.Coll, Subkind: test.kind, Bytes: size, RecvBytes: sum}
			if test.kind == dag.ReduceScatter {
				op.Bytes, op.RecvBytes = sum, size
			}
			if test.element > 0 {
				op.Attrs = attr.WithElement("", test.element)
			}
			b.Rank(i).Add(op)
		}
		trace := b.Trace()
		lower := func(text string) *dag.Trace {
			choice, err := ParseChoice(text)
			if err != nil {
				t.Fatal(err)
			}
			lowered, err := Lower(context.Background(), trace, choice)
			if err != nil {
				t.Fatal(err)
			}
			return lowered
		}
		got, want := dump(lower(test.table)), dump(lower(test.kind.String()+"="+test.want))
		if got != want {
			t.Errorf("%s: %v of %v bytes, elements of %d bytes: got\n%sexpected %s:\n%s", test.table, test.kind,
				test.blocks, test.element, got, test.want, want)
		}
	}
}
