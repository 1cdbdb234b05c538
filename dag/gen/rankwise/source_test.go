package rankwise

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestSourceErrors(t *testing.T) {
	m := Model{
		Ranks: 40,
		Count: func(int) (int64, int64) { return 1, 1 },
		Fill: func(rank int, b *dag.RankBuilder) {
			b.Calc(1)
			if rank >= 17 {
				b.Requires(5, 0)
			}
		},
	}
	s, err := NewSource(m)
	if err != nil {
		t.Fatal(err)
	}
	const want = "rank 17: dependency of an op that was not added, or on an index outside 0..2147483646"
	if _, err := dag.ReadAll(s); err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
	read := s.NewReader(dag.All)
	if _, err := read(dag.Batch{First: 10, Last: 30}); err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
	if _, err := read(dag.Batch{First: 10, Last: 41}); err == nil || err.Error() != "no batch of ranks 10 to 40 in a trace of 40 ranks" {
		t.Errorf("error %v, expected the ranks", err)
	}
	m.Count = func(rank int) (int64, int64) { return 0, int64(rank) << 30 }
	if _, err := NewSource(m); err == nil || !strings.Contains(err.Error(), "rank 4 has 0 ops and 4294967296 dep") {
		t.Errorf("error %v, expected that rank 4 is too long", err)
	}
}

// TestReserved: ranks are those of a builder that did not know their sizes.
func TestReserved(t *testing.T) {
	fill := func(rank int, b *dag.RankBuilder) {
		for i := range rank {
			switch (rank + i) % 3 {
			case 0:
				b.Calc(7)
			case 1:
				b.Send(int32(i), int64(rank%2), 0)
			case 2:
				b.Requires(b.Recv(0, 0, 5), 0)
			}
		}
	}
	s, err := NewSource(Model{Ranks: 20, Count: func(rank int) (int64, int64) { return int64(rank), 9 }, Fill: fill})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range tr.Ranks {
		var b dag.RankBuilder
		fill(rank, &b)
		if want := b.Rank(); !reflect.DeepEqual(*tr.Ranks[rank], want) {
			t.Errorf("rank %d is %+v, expected %+v", rank, tr.Ranks[rank], want)
		}
	}
}

// TestReplayColumns: ranks for a replay lack names and attributes only, also behind ranks of the same and of another
// size.
func TestReplayColumns(t *testing.T) {
	ops := func(rank int) int { return 3 - rank%4/2 }
	fill := func(rank int, b *dag.RankBuilder) {
		for i := range ops(rank) {
			op := dag.Op{Kind: dag.Calc, Duration: dag.Time(i), Stream: int32(rank * 100 * i), Name: "n", Attrs: "{}"}
			if i == 1 {
				op.Timed, op.MeasuredStart, op.MeasuredEnd = true, 1, dag.Time(rank)
			}
			b.RequiresStart(b.Add(op), i/2)
		}
	}
	s, err := NewSource(Model{Ranks: 8, Count: func(rank int) (int64, int64) { return int64(ops(rank)), 1 }, Fill: fill})
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range []dag.Columns{dag.Replay, dag.Stepped, dag.All} {
		ranks, err := s.NewReader(columns).Ranks(s.header.Batches[0])
		if err != nil {
			t.Fatal(err)
		}
		for rank, got := range ranks {
			var b dag.RankBuilder
			fill(rank, &b)
			want := b.Rank()
			if columns != dag.All {
				want.Name, want.Attrs = dag.Text{}, dag.Text{}
			}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("columns %d, rank %d is %+v, expected %+v", columns, rank, *got, want)
			}
		}
	}
}

// TestBatches: batches hold no more than their limit, or one rank, and all ranks once.
func TestBatches(t *testing.T) {
	sizes := []int64{1, batchOps, 0, 0, batchOps + 1, 5, batchOps - 6, 1, 1}
	s, err := NewSource(Model{
		Ranks: len(sizes),
		Count: func(rank int) (int64, int64) { return sizes[rank], 2 * sizes[rank] },
	})
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, b := range s.header.Batches {
		ops := int64(0)
		for _, n := range sizes[b.First:b.Last] {
			ops += n
		}
		if b.First != next || b.Ops != ops || b.Deps != 2*ops || ops > batchOps && b.Last > b.First+1 {
			t.Errorf("batch %+v, expected one from rank %d with %d ops", b, next, ops)
		}
		next = b.Last
	}
	if next != len(sizes) || len(s.header.Batches) != 5 {
		t.Errorf("%d batches up to rank %d of %d", len(s.header.Batches), next, len(sizes))
	}
}
