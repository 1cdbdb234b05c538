package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// naive follows the rules literally: two lists per rank, searched from the front.
type naive struct {
	t       *dag.Trace
	p       *Program
	arrived [][]uint32
	posted  [][]uint32
}

// fits compares the trace's values, not those of the program.
func (m *naive) fits(recv, send uint32) bool {
	r, s := &m.p.Ops[recv], &m.p.Ops[send]
	ro, so := m.t.Ranks[r.Rank].Op(m.p.Index(recv)), m.t.Ranks[s.Rank].Op(m.p.Index(send))
	switch {
	case ro.Comm != so.Comm:
		return false
	case ro.Peer != dag.AnySource && uint32(ro.Peer) != s.Rank:
		return false
	case ro.Tag == dag.AnyTag:
		return so.Tag >= dag.AnyTag
	}
	return ro.Tag == so.Tag
}

func (m *naive) post(i uint32) uint32 {
	rank := m.p.Ops[i].Rank
	for k, s := range m.arrived[rank] {
		if m.fits(i, s) {
			m.arrived[rank] = slices.Delete(m.arrived[rank], k, k+1)
			return s
		}
	}
	m.posted[rank] = append(m.posted[rank], i)
	return NoOp
}

func (m *naive) arrive(s uint32) uint32 {
	rank := uint32(m.p.Ops[s].Peer)
	for k, i := range m.posted[rank] {
		if m.fits(i, s) {
			m.posted[rank] = slices.Delete(m.posted[rank], k, k+1)
			return i
		}
	}
	m.arrived[rank] = append(m.arrived[rank], s)
	return NoOp
}

// TestMatcher compares the Matcher with the naive one, on random ops in random order, with and without wildcards.
func TestMatcher(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		ranks, wild := 1+random.IntN(4), seed%3 > 0
		b := dag.NewBuilder(ranks)
		tags := []int64{0, 1, 2, 1 << 40, dag.CollectiveTag, dag.CollectiveTag - 1}
		for rank := range ranks {
			for range 60 {
				op := dag.Op{Kind: dag.Send, Peer: int32(random.IntN(ranks)), Tag: tags[random.IntN(len(tags))],
					Comm: int32(random.IntN(2))}
				if random.IntN(2) == 0 {
					op.Kind = dag.Recv
					if wild && random.IntN(4) == 0 {
						op.Peer = dag.AnySource
					}
					if wild && random.IntN(4) == 0 {
						op.Tag = dag.AnyTag
					}
				}
				b.Rank(rank).Add(op)
			}
		}
		b.AddComm(dag.World(ranks))
		trace := b.Trace()
		p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		compareMatcher(t, seed, trace, p, random.Perm(p.NumOps()))
	}
}

// compareMatcher posts receives and delivers messages in some order, and compares the Matcher with the naive one.
func compareMatcher(t *testing.T, seed uint64, trace *dag.Trace, p *Program, order []int) {
	t.Helper()
	ranks := p.Ranks()
	matchers := make([]Matcher, ranks)
	for rank := range matchers {
		matchers[rank] = NewMatcher(p)
	}
	naive := &naive{t: trace, p: p, arrived: make([][]uint32, ranks), posted: make([][]uint32, ranks)}
	for _, k := range order {
		i := uint32(k)
		op := &p.Ops[i]
		var got, want uint32
		if op.Flags&IsSend != 0 {
			got, want = matchers[op.Peer].Arrive(i, op), naive.arrive(i)
		} else {
			got, want = matchers[op.Rank].Post(i, op), naive.post(i)
		}
		if got != want {
			t.Fatalf("seed %d: op %d meets %d, expected %d", seed, i, got, want)
		}
	}
	for rank := range ranks {
		unexpected, posted := matchers[rank].Unmatched()
		if !slices.Equal(unexpected, naive.arrived[rank]) || !slices.Equal(posted, naive.posted[rank]) {
			t.Fatalf("seed %d: unmatched %v and %v, expected %v and %v in this order", seed, unexpected, posted,
				naive.arrived[rank], naive.posted[rank])
		}
	}
}

// TestMatcherTurnsToTable adds as many waiters as the short list holds, one more and one less, then lets them match: in
// every mix of receives, with and without wildcards, and messages that do not match each other.
func TestMatcherTurnsToTable(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 3))
		b := dag.NewBuilder(3)
		wild := seed%4 == 0
		var first, last []int // ops of ranks 0 and 1, by program position: rank 0 receives from ranks 1 and 2
		var recvs, sends []int
		for k := range maxFew - 2 + random.IntN(5) {
			from, tag := 1+random.IntN(2), int64(k/3)
			recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Tag: tag}
			if wild && random.IntN(3) == 0 {
				recv.Peer = dag.AnySource
			}
			recvs = append(recvs, b.Rank(0).Add(recv))
			sends = append(sends, b.Rank(1).Add(dag.Op{Kind: dag.Send, Tag: tag}))
			if from == 2 {
				b.Rank(2).Add(dag.Op{Kind: dag.Send, Tag: tag})
			}
		}
		trace := b.Trace()
		p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		for k, recv := range recvs { // of each tag, receives first or messages first
			send := int(p.Start[1]) + sends[k]
			if tag := k / 3; (seed>>(tag%3))&1 == 0 {
				first, last = append(first, recv), append(last, send)
			} else {
				first, last = append(first, send), append(last, recv)
			}
		}
		random.Shuffle(len(last), func(i, j int) { last[i], last[j] = last[j], last[i] })
		order := append(first, last...)
		for i := p.Start[2]; i < p.Start[3]; i++ {
			order = slices.Insert(order, random.IntN(len(order)+1), int(i))
		}
		compareMatcher(t, seed, trace, p, order)
	}
}

// TestChannelsGrow fills the table of channels far beyond its first size, and empties it.
func TestChannelsGrow(t *testing.T) {
	var table channels
	const n = 20000
	for i := range uint32(n) {
		table.put(table.at(i%7, i), i)
	}
	if table.used != n {
		t.Errorf("%d channels, expected %d", table.used, n)
	}
	for k := range uint32(n) {
		i := k * 7919 % n // in another order
		c := table.at(i%7, i)
		if !table.holds(c, 0) {
			t.Fatalf("channel %d is empty", i)
		}
		if got := table.take(c); got != i {
			t.Fatalf("channel %d holds %d", i, got)
		}
		if table.holds(table.at(i%7, i), 0) {
			t.Fatalf("channel %d still holds an op", i)
		}
	}
	if table.used != 0 || len(table.nodes) != n {
		t.Errorf("%d channels and %d nodes, expected none and %d", table.used, len(table.nodes), n)
	}
}
