package analytical

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func pairOptions(npus int) Options {
	o := oneDim(Dim{Ring, npus, 50, 500}, RingAlgorithm, 1, 10, 50)
	o.ExactSizes = true
	return o
}

// TestStuck checks the result's description of incomplete traces.
func TestStuck(t *testing.T) {
	coll := func(s dag.Subkind, bytes int64) dag.Op { return dag.Op{Kind: dag.Coll, Subkind: s, Bytes: bytes} }
	for _, c := range []struct {
		name  string
		build func(b *dag.Builder)
		want  []string
	}{
		{"receive without a message", func(b *dag.Builder) {
			b.Rank(1).Recv(0, 100, 5)
			b.Rank(1).Calc(1000, 0)
		}, []string{
			"1 0 recv: a message of 100 bytes from rank 0, tag 5",
			"1 1 calc: the end of op 0 (recv)"}},
		{"another size", func(b *dag.Builder) {
			b.Rank(0).Send(1, 200, 5)
			b.Rank(1).Recv(0, 100, 5)
		}, []string{"1 0 recv: a message of 100 bytes from rank 0, tag 5; rank 0 sent one of 200 bytes, which does not match",
			"0 0 send: a receive of 200 bytes on rank 1, tag 5"}},
		{"message without a receive", func(b *dag.Builder) { b.Rank(0).Send(1, 200, 5) },
			[]string{"0 0 send: a receive of 200 bytes on rank 1, tag 5"}},
		{"cycle", func(b *dag.Builder) {
			r := b.Rank(0)
			r.Calc(1000)
			r.Calc(1000)
			r.Requires(0, 1)
			r.Requires(1, 0)
		}, []string{"0 0 calc: the end of op 1 (calc)", "0 1 calc: the end of op 0 (calc)"}},
		{"absent member", func(b *dag.Builder) { b.Rank(1).Add(coll(dag.Allreduce, 1000)) },
			[]string{"1 0 coll: rank 0 and 2 more to come to an all-reduce of communicator 0"}},
		{"absent from the second", func(b *dag.Builder) {
			for r := range 4 {
				b.Rank(r).Add(coll(dag.Allreduce, 1000))
				if r != 2 {
					b.Rank(r).Add(coll(dag.Alltoall, 1000))
				}
			}
		}, []string{
			"0 1 coll: rank 2 to come to an all-to-all of communicator 0",
			"1 1 coll: rank 2 to come to an all-to-all of communicator 0",
			"3 1 coll: rank 2 to come to an all-to-all of communicator 0"}},
		{"message behind a collective", func(b *dag.Builder) {
			b.Rank(0).Add(coll(dag.Allgather, 1000))
			b.Rank(0).Send(1, 10, 0)
			for r := 1; r < 4; r++ {
				b.Rank(r).Recv(0, 10, 0)
				b.Rank(r).Add(coll(dag.Allgather, 1000), 0)
			}
		}, []string{
			"0 0 coll: rank 1 and 2 more to come to an all-gather of communicator 0",
			"1 0 recv: a message of 10 bytes from rank 0, tag 0",
			"2 0 recv: a message of 10 bytes from rank 0, tag 0",
			"3 0 recv: a message of 10 bytes from rank 0, tag 0",
			"0 1 send: the end of an op of its own rank that uses the same resource",
			"1 1 coll: the end of op 0 (recv)", "2 1 coll: the end of op 0 (recv)", "3 1 coll: the end of op 0 (recv)"}},
	} {
		b := dag.NewBuilder(4)
		c.build(b)
		r := run(t, b.Trace(), pairOptions(4))
		if r.Complete {
			t.Errorf("%s: complete", c.name)
		}
		var got []string
		for _, s := range r.Stuck {
			got = append(got, fmt.Sprintf("%d %d %s: %s", s.Rank, s.Op, s.Kind, s.Waits))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestDisagreement checks collectives on which the ranks disagree.
func TestDisagreement(t *testing.T) {
	for _, c := range []struct {
		a, b dag.Op
		want string
	}{
		{dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 10}, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 20},
			"rank 1 node 100 (all-reduce of 20 bytes) is a collective of communicator 0, but rank 0 has node 0 " +
				"(all-reduce of 10 bytes) there; expected the same order on all ranks"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 10}, dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Bytes: 10},
			"rank 1 node 100 (all-to-all of 10 bytes) is a collective of communicator 0, but rank 0 has node 0 " +
				"(all-reduce of 10 bytes) there; expected the same order on all ranks"},
		{dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 10}, dag.Op{Kind: dag.Calc},
			"rank 0 node 0 accesses remote memory, which the memory configuration lacks; set it with --memory"},
	} {
		b := dag.NewBuilder(2)
		b.Rank(0).Add(c.a)
		b.Rank(1).Add(c.b)
		p, err := Compile(dag.FromTrace(b.Trace()))
		if err != nil {
			t.Fatal(err)
		}
		o := pairOptions(2)
		o.Node = func(rank, op int) uint64 { return uint64(100*rank + op) }
		if _, err := p.Run(o); err == nil || err.Error() != c.want {
			t.Errorf("error %v, expected %s", err, c.want)
		}
	}
}

// TestNotCompiled checks the errors of ops that this backend does not run.
func TestNotCompiled(t *testing.T) {
	for _, c := range []struct {
		op   dag.Op
		want string
	}{
		{dag.Op{Kind: dag.IO, Subkind: dag.Read}, "rank 0 op 0 is of kind io, which the analytical backend does not run; lower storage accesses first (--lower directdrive)"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Barrier}, "rank 0 op 0 is a barrier; lower it first (--lower collectives)"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: 1},
			"rank 0 op 0 is the allreduce of communicator 1, which does not contain the rank"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: 2}, "rank 0 op 0 has communicator 2, expected 0..1"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Host: 1}, "rank 0 op 0 is the allreduce on the host"},
		{dag.Op{Kind: dag.Send, Peer: 2}, "rank 0 op 0 is a send with rank 2, expected 0..1"},
	} {
		b := dag.NewBuilder(2)
		b.AddComm(dag.NewComm("1", []int32{1}))
		b.Rank(0).Add(c.op)
		if _, err := Compile(dag.FromTrace(b.Trace())); err == nil || err.Error() != c.want {
			t.Errorf("error %v, expected %s", err, c.want)
		}
	}
}

// TestWildcards has receives from any source, and messages of which the later one is faster.
func TestWildcards(t *testing.T) {
	b := dag.NewBuilder(4)
	b.Rank(0).Send(1, 1<<30, 5)
	b.Rank(2).Send(1, 10, 6)
	b.Rank(2).Send(1, 20, 7, 0)
	r := b.Rank(1)
	first := r.Recv(dag.AnySource, 0, dag.AnyTag)
	r.Calc(1*dag.Microsecond, first)
	r.Recv(0, 0, 5)
	r.Recv(2, 0, 7)
	o := pairOptions(4)
	o.ExactSizes = false
	res := run(t, b.Trace(), o)
	// The first receive takes the first arrival, from rank 2 at 500 ns: the calc ends at 1500 ns.
	if !res.Complete || res.NPUs.GPUTime[1] != 1000 {
		t.Errorf("complete %v, stuck %v", res.Complete, res.Stuck)
	}
	if want := uint64(500 + (1<<30)/(50*(1<<30)/1e9)); res.Finish[1].Ticks != want {
		t.Errorf("rank 1 finishes at %v, expected %d ns", res.Finish[1], want)
	}
}

// TestRows has collectives of rows of a network, which are none of the other rows' business.
func TestRows(t *testing.T) {
	o := oneDim(Dim{Ring, 2, 50, 500}, RingAlgorithm, 1, 10, 50)
	o.Network.Dims = append(o.Network.Dims, Dim{Ring, 2, 50, 500})
	for c := range o.System.Implementations {
		o.System.Implementations[c] = []Algorithm{{Name: RingAlgorithm}, {Name: RingAlgorithm}}
	}
	b := dag.NewBuilder(4)
	add := func(rank int, s dag.Subkind, bytes int64, dims int32) {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: s, Bytes: bytes, Dims: dims})
	}
	for rank := range 4 {
		if rank < 2 {
			add(rank, dag.Allreduce, 1000, 1)
		} else {
			add(rank, dag.Allgather, 77, 1)
		}
	}
	if r := run(t, b.Trace(), o); !r.Complete || r.Finish[0] == r.Finish[2] {
		t.Errorf("complete %v, finish %v", r.Complete, r.Finish)
	}
	b = dag.NewBuilder(4)
	add(0, dag.Allreduce, 1000, 1)
	if r := run(t, b.Trace(), o); len(r.Stuck) != 1 ||
		r.Stuck[0].Waits != "rank 1 to come to an all-reduce of communicator 0" {
		t.Errorf("stuck %v", r.Stuck)
	}
}
