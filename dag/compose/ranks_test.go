package compose

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestKeepRanks(t *testing.T) {
	b := dag.NewBuilder(4)
	*b.Meta() = dag.Meta{Title: "x", Nodes: []int32{3, 7, 7, 9}, Attrs: "{}"}
	odd := b.AddComm(dag.NewComm("odd", []int32{3, 1}))
	b.AddComm(dag.NewComm("gone", []int32{2, 0}))
	all := b.AddComm(dag.NewComm("all", []int32{2, 3, 0, 1}))
	for rank := range 4 {
		r := b.Rank(rank)
		c := r.Calc(dag.Time(rank))
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 2, RecvBytes: 8, Comm: all}, c)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 2, Peer: 2}, 1)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 2, Peer: 3}, 2)
	}
	one, three := b.Rank(1), b.Rank(3)
	one.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Bytes: 4, RecvBytes: 4, Comm: odd}, 3)
	three.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Bytes: 4, RecvBytes: 4, Comm: odd}, 3)
	s := one.Send(0, 8, 1, 4)
	one.Send(3, 9, 2, s)
	b.Rank(0).Recv(1, 8, 1)
	three.Recv(1, 9, 2, 0)
	trace := b.Trace()

	kept, removed, err := KeepRanks(context.Background(), trace, []int32{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Removed{Ranks: 2, Ops: 9, Messages: 1, Collectives: 2, Smaller: 4}); removed != want {
		t.Errorf("removed %+v, expected %+v", removed, want)
	}
	if problems := dag.Validate(kept); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}

	b = dag.NewBuilder(2)
	*b.Meta() = dag.Meta{Title: "x", Nodes: []int32{0, 1}, Attrs: "{}"}
	odd = b.AddComm(dag.NewComm("odd", []int32{1, 0}))
	all = b.AddComm(dag.NewComm("all", []int32{1, 0}))
	for rank, old := range []dag.Time{1, 3} {
		r := b.Rank(rank)
		r.Calc(old)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 2, Comm: all}, 0)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 2, Peer: 1}, 1)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Bytes: 4, RecvBytes: 4, Comm: odd}, 2)
	}
	b.Rank(0).Send(1, 9, 2, 3)
	b.Rank(1).Recv(0, 9, 2, 0)
	want := b.Trace()
	if !reflect.DeepEqual(kept.Meta, want.Meta) || !slices.EqualFunc(kept.Comms, want.Comms,
		func(c, d dag.Comm) bool { return c.Equal(&d) }) {
		t.Errorf("metadata %+v, communicators %v, expected %+v, %v", kept.Meta, kept.Comms, want.Meta, want.Comms)
	}
	for rank := range want.Ranks {
		got, want := kept.Ranks[rank], want.Ranks[rank]
		if got.Len() != want.Len() || !reflect.DeepEqual(got.Deps, want.Deps) {
			t.Fatalf("rank %d: %d ops, dependencies %v, expected %d, %v", rank, got.Len(), got.Deps, want.Len(), want.Deps)
		}
		for i := range want.Len() {
			if got.Op(i) != want.Op(i) {
				t.Errorf("rank %d op %d: %+v, expected %+v", rank, i, got.Op(i), want.Op(i))
			}
		}
	}
	if same, removed, err := KeepRanks(context.Background(), trace, []int32{0, 1, 2, 3}); same != trace || err != nil || removed != (Removed{}) {
		t.Errorf("of all ranks: %v, %+v, error %v", same, removed, err)
	}
}

func TestKeepRanksErrors(t *testing.T) {
	with := func(op dag.Op) *dag.Trace {
		b := dag.NewBuilder(3)
		b.Rank(0).Add(op)
		b.Rank(2).Send(1, 1, 1)
		return b.Trace()
	}
	wild := dag.NewBuilder(3)
	wild.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource})
	wild.Rank(2).Send(1, 1, 1)
	wildTrace := wild.Trace()
	if _, _, err := KeepRanks(context.Background(), wildTrace, []int32{1, 2}); err != nil {
		t.Errorf("of the ranks that a receive from any source can have a message from: %v", err)
	}
	for _, c := range []struct {
		trace *dag.Trace
		ranks []int32
		want  string
	}{
		{first(), []int32{0, 3}, "rank 3 to keep, expected ascending ranks of 0..2"},
		{first(), []int32{1, 1}, "rank 1 to keep, expected ascending"},
		{with(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall}), []int32{0}, "rank 0: op 0: alltoall with removed ranks"},
		{with(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Attrs: `{"nccl":{}}`}), []int32{0},
			"rank 0: op 0: NCCL collective with removed ranks"},
		{with(dag.Op{Kind: dag.Send, Peer: 3}), []int32{0}, "rank 0: op 0: send with rank 3, expected 0..2"},
		{with(dag.Op{Kind: dag.Recv, Comm: 1}), []int32{0}, "rank 0: op 0: communicator 1, which does not exist"},
		{wildTrace, []int32{0, 1}, "rank 1: op 0: receive from any source, on a rank to which removed ranks send"},
	} {
		if got, _, err := KeepRanks(context.Background(), c.trace, c.ranks); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}
