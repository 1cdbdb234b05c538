package nodes

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// four is four ranks on two nodes: ranks 0 and 2 on node 0, ranks 1 and 3 on node 2.
func four() *dag.Trace {
	b := dag.NewBuilder(4)
	b.Meta().Nodes = []int32{0, 2, 0, 2}
	pair := b.AddComm(dag.NewComm("pair", []int32{0, 2}))
	c := b.Rank(0).Add(dag.Op{Duration: 5, Stream: 1, Name: "c"})
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 2, Bytes: 3000, Tag: 7, Comm: pair, Stream: 1}, c)
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 10, Tag: 7, Stream: 2, NIC: 1}, c)
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 3, Bytes: 11, Tag: 7, Stream: 2}, c)
	b.Rank(2).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 3000, Tag: 7, Comm: pair, Stream: 1})
	b.Rank(2).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 12, Tag: 100, Stream: 1}, 0)
	b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 10, Tag: 7})
	b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 2, Bytes: 12, Tag: 100})
	b.Rank(3).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 11, Tag: 7, Release: 9})
	return b.Trace()
}

func mustJoin(t *testing.T, trace *dag.Trace, o Options) *dag.Trace {
	t.Helper()
	joined, err := Join(context.Background(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range dag.Validate(joined) {
		t.Error(problem)
	}
	return joined
}

func deps(r *dag.Rank, i int) []int {
	on := []int{}
	for _, off := range r.Deps.Of(i) {
		on = append(on, i-int(off))
	}
	return on
}

func TestJoin(t *testing.T) {
	joined := mustJoin(t, four(), Options{Bandwidth: 150e9})
	type op struct {
		dag.Op
		deps []int
	}
	want := [][]op{
		{
			{dag.Op{}, []int{}},
			{dag.Op{Duration: 5, Stream: 1, Name: "c"}, []int{0}},
			{dag.Op{Duration: 10 * dag.Nanosecond, Stream: 1}, []int{1}},
			{dag.Op{Kind: dag.Send, Peer: 2, Bytes: 10, Tag: 0, Stream: 2, NIC: 1}, []int{1}},
			{dag.Op{Kind: dag.Send, Peer: 2, Bytes: 11, Tag: 1, Stream: 2}, []int{1}},
			{dag.Op{Duration: 10 * dag.Nanosecond, Stream: 3}, []int{0, 2}},
			{dag.Op{Kind: dag.Send, Peer: 2, Bytes: 12, Tag: 2, Stream: 3}, []int{5}},
			{dag.Op{}, []int{3, 4, 6}},
		},
		{},
		{
			{dag.Op{}, []int{}},
			{dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 10, Tag: 0}, []int{0}},
			{dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 12, Tag: 2}, []int{0}},
			{dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 11, Tag: 1, Stream: 1, Release: 9}, []int{0}},
			{dag.Op{}, []int{1, 2, 3}},
		},
	}
	if len(joined.Ranks) != len(want) {
		t.Fatalf("%d ranks, expected %d", len(joined.Ranks), len(want))
	}
	for rank := range want {
		r := joined.Ranks[rank]
		if r.Len() != len(want[rank]) {
			t.Fatalf("rank %d has %d ops, expected %d", rank, r.Len(), len(want[rank]))
		}
		for i, w := range want[rank] {
			if got := r.Op(i); got != w.Op || !slices.Equal(deps(r, i), w.deps) {
				t.Errorf("rank %d op %d: %+v after %v, expected %+v after %v", rank, i, got, deps(r, i), w.Op, w.deps)
			}
		}
	}
	if joined.Nodes != nil {
		t.Errorf("nodes %v", joined.Nodes)
	}
}

func TestOptions(t *testing.T) {
	joined := mustJoin(t, four(), Options{OwnNICs: true, SharedStreams: true})
	send, calc := joined.Ranks[0].Op(6), joined.Ranks[0].Op(5)
	if send.NIC != 2 || send.Stream != 1 || calc.Duration != 0 {
		t.Errorf("%+v, %+v", send, calc)
	}
}

func TestDenseTags(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1, 3_000_000_000_000)
	b.Rank(0).Send(1, 1, dag.CollectiveTag)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Tag: 77})
	b.Rank(1).Recv(0, 1, 3_000_000_000_000)
	b.Rank(1).Recv(0, 1, 500)
	b.Rank(1).Recv(0, 1, dag.AnyTag)
	got := denseTags(b.Trace())
	want := []dag.Column[int64]{{2, 0, 77}, {2, 1, dag.AnyTag}}
	if !reflect.DeepEqual([]dag.Column[int64]{got.Ranks[0].Tag, got.Ranks[1].Tag}, want) {
		t.Errorf("tags %v and %v, expected %v", got.Ranks[0].Tag, got.Ranks[1].Tag, want)
	}
}

// TestSparseTags joins a trace whose tags span too large a range.
func TestSparseTags(t *testing.T) {
	trace := four()
	trace.Ranks[0].Tag[2], trace.Ranks[1].Tag[0] = 1<<40, 1<<40
	joined := mustJoin(t, trace, Options{})
	if tag := joined.Ranks[0].Tag[3]; tag < 0 || tag > 10 {
		t.Errorf("tag %d", tag)
	}
}

func TestErrors(t *testing.T) {
	changed := func(change func(t *dag.Trace)) *dag.Trace {
		trace := four()
		change(trace)
		return trace
	}
	for _, c := range []struct {
		trace *dag.Trace
		want  string
	}{
		{changed(func(t *dag.Trace) { t.Ranks[1].Peer[0] = dag.AnySource }), "rank 1, op 0: receive from any source"},
		{changed(func(t *dag.Trace) { t.Ranks[1].Tag[0] = dag.AnyTag }), "rank 1, op 0: receive from any source"},
		{changed(func(t *dag.Trace) { t.Ranks[0].Kind[0] = dag.Coll }), "the trace has collectives"},
		{changed(func(t *dag.Trace) { t.Ranks[0].Peer[2] = 4 }), "rank 0, op 2: send with rank 4, expected 0..3"},
		{changed(func(t *dag.Trace) { t.Nodes = t.Nodes[:3] }), "the nodes of 3 ranks, expected 4"},
		{changed(func(t *dag.Trace) { t.Nodes = []int32{0, 0, 0, 1 << 24} }), "rank 3: node 16777216"},
		{changed(func(t *dag.Trace) { t.Ranks[2].Tag[0] = 8 }), "a send of a message from rank 0 to rank 2 on the same node"},
	} {
		if _, err := Join(context.Background(), c.trace, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}

// randomTrace returns a trace whose messages all match, on random nodes.
func randomTrace(draw *rand.Rand) *dag.Trace {
	n := 1 + draw.IntN(7)
	b := dag.NewBuilder(n)
	group := b.AddComm(dag.World(n))
	for range n {
		b.Meta().Nodes = append(b.Meta().Nodes, int32(draw.IntN(4)))
	}
	b.Meta().Jobs = []string{"a", "b"}
	add := func(rank int, op dag.Op) {
		r := b.Rank(rank)
		op.Stream, op.Job = int32(draw.IntN(3)), int32(rank%2)
		i := r.Add(op)
		for range draw.IntN(3) {
			if i > 0 {
				r.Requires(i, draw.IntN(i))
			}
		}
		if i > 0 && draw.IntN(8) == 0 {
			r.RequiresStart(i, draw.IntN(i))
		}
	}
	for range draw.IntN(60) {
		from, to := draw.IntN(n), draw.IntN(n)
		m := dag.Op{Bytes: int64(draw.IntN(9)), Tag: int64(draw.IntN(3)) - 5, Comm: int32(draw.IntN(2)) * group}
		m.Kind, m.Peer = dag.Send, int32(to)
		add(from, m)
		m.Kind, m.Peer = dag.Recv, int32(from)
		add(to, m)
		add(draw.IntN(n), dag.Op{Duration: dag.Time(draw.IntN(5))})
	}
	return b.Trace()
}

// TestProperties checks on random traces that joining changes only the documented fields, that a source equals the
// trace, and that the result is deterministic.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		trace := randomTrace(rand.New(rand.NewPCG(seed, 0)))
		joined := mustJoin(t, trace, Options{Bandwidth: 1})
		if again := mustJoin(t, trace, Options{Bandwidth: 1}); !reflect.DeepEqual(joined, again) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		ops, jobs := int64(0), [2]int64{}
		for rank := range trace.Ranks {
			ops += int64(trace.Ranks[rank].Len())
		}
		for node := range joined.Ranks {
			r := joined.Ranks[node]
			if r.Len() > 0 {
				ops += 2
			}
			for i := range r.Kind {
				jobs[r.Job.At(i)]++
			}
		}
		if joined.Ops() != ops {
			t.Errorf("seed %d: %d ops, expected %d", seed, joined.Ops(), ops)
		}
		c, err := newCopier(trace)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Joined(context.Background(), c, Options{Bandwidth: 1})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		read := s.NewReader(dag.All)
		for _, b := range h.Batches {
			ranks, err := read(b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range ranks {
				if n := int64(len(ranks[i].Deps.Off)); int64(ranks[i].Len()) != b.Ops || n != b.Deps {
					t.Errorf("seed %d: %d ops and %d dependencies, expected %+v", seed, ranks[i].Len(), n, b)
				}
				for k := range ranks[i].Kind {
					if ranks[i].Op(k) != joined.Ranks[b.First].Op(k) {
						t.Fatalf("seed %d: the reader gives %+v, expected %+v", seed, ranks[i].Op(k), joined.Ranks[b.First].Op(k))
					}
				}
			}
		}
	}
}
