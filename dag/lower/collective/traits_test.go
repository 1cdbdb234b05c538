package collective

import (
	"context"
	"slices"
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

// TestWholeElements checks that reductions are divided into parts of whole elements of the size that the trace states.
func TestWholeElements(t *testing.T) {
	for _, test := range []struct {
		choice         string
		kind           dag.Subkind
		bytes, element int64   // element 0: not stated
		want           []int64 // bytes that member 0 of 4 sends
	}{
		{"rabenseifnernear", dag.Allreduce, 40, 0, []int64{24, 8, 8, 16}},
		{"rabenseifnernear", dag.Allreduce, 40, 4, []int64{24, 8, 8, 16}},
		{"rabenseifnernear", dag.Allreduce, 44, 4, []int64{28, 8, 8, 16}},
		{"rabenseifnernear", dag.Allreduce, 48, 8, []int64{32, 8, 8, 16}},
		{"rabenseifnernear", dag.Allreduce, 48, 4, []int64{24, 12, 12, 24}},
		{"rabenseifnernear", dag.Allreduce, 48, 16, []int64{48, 0, 0, 0}},
		{"rabenseifnernear", dag.Reduce, 48, 4, []int64{24, 12}},
		{"rabenseifnernear", dag.Reduce, 50, 4, []int64{26, 12}}, // no multiple of 4
		{"ringremainder,recdoubling", dag.Allreduce, 48, 4, []int64{12, 12, 12, 12, 12, 12}},
		{"ringremainder:>16,recdoubling", dag.Allreduce, 48, 8, []int64{8, 8, 8, 8, 8, 8, 16, 16}},
		{"ringremainder:>16,recdoubling", dag.Allreduce, 144, 16, []int64{32, 32, 32, 32, 32, 32, 16, 16}},
		{"halvingthenallgather;allgather=ring", dag.Allreduce, 48, 4, []int64{24, 12, 12, 12, 12}},
		{"halvingthenallgather;allgather=ring", dag.Allreduce, 52, 4, []int64{32, 16, 16, 16, 16}},
		{"halvingthenallgather;allgather=ring", dag.Allreduce, 48, 0, []int64{32, 16, 16, 16, 16}},
		{"reducethenbcast;reduce=rabenseifnernear", dag.Allreduce, 48, 4, []int64{24, 12, 48, 48}},
	} {
		b := dag.NewBuilder(4)
		op := dag.Op{Kind: dag.Coll, Subkind: test.kind, Bytes: test.bytes}
		if test.element > 0 {
			op.Attrs = attr.WithElement("", test.element)
		}
		for i := range 4 {
			b.Rank(i).Add(op)
		}
		choice, err := ParseChoice(test.kind.String() + "=" + test.choice)
		if err != nil {
			t.Fatal(err)
		}
		lowered, err := Lower(context.Background(), b.Trace(), choice)
		if err != nil {
			t.Fatal(err)
		}
		var sent []int64
		r := lowered.Ranks[0]
		for i, kind := range r.Kind {
			if kind == dag.Send {
				sent = append(sent, r.Bytes.At(i))
			}
		}
		if !slices.Equal(sent, test.want) {
			t.Errorf("%s: %v of %d bytes, elements of %d bytes: member 0 sends %v, expected %v", test.choice, test.kind,
				test.bytes, test.element, sent, test.want)
		}
	}
}
