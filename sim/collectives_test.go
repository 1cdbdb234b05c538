package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// collectiveTrace returns a trace with collectives of communicators that are ranges, lists, or one rank, among other
// ops.
func collectiveTrace(random *rand.Rand) *dag.Trace {
	ranks := 1 + random.IntN(12)
	b := dag.NewBuilder(ranks)
	for range random.IntN(6) {
		var members []int32
		for _, rank := range random.Perm(ranks)[:1+random.IntN(ranks)] {
			members = append(members, int32(rank))
		}
		b.AddComm(dag.NewComm("", members))
	}
	b.AddComm(dag.Comm{Ranges: []dag.Range{{First: int32(ranks) - 1, Stride: -1, Count: int32(ranks)}}})
	comms := b.Trace().Comms
	b = dag.NewBuilder(ranks)
	for _, c := range comms[1:] {
		b.AddComm(c)
	}
	others := []dag.Op{
		{Duration: 5}, {Kind: dag.Mem, Subkind: dag.Store, Bytes: 9, Duration: 6},
		{Kind: dag.IO, Subkind: dag.Read, Duration: 7},
		{Kind: dag.Send, Tag: 1 << 40, Bytes: 3}, {Kind: dag.Recv, Tag: dag.AnyTag, Peer: dag.AnySource, Comm: 1},
	}
	for range random.IntN(3 * tile) {
		rank := b.Rank(random.IntN(ranks))
		if random.IntN(3) > 0 {
			rank.Add(others[random.IntN(len(others))])
			continue
		}
		comm := random.IntN(len(comms))
		members := comms[comm].Members()
		op := dag.Op{Kind: dag.Coll, Subkind: dag.Barrier + dag.Subkind(random.IntN(int(dag.Exscan-dag.Barrier)+1)),
			Comm: int32(comm), Bytes: random.Int64N(100), Tag: random.Int64N(1 << 40), Peer: members[random.IntN(len(members))],
			Duration: 8, Stream: random.Int32N(3)}
		if !op.Subkind.Rooted() {
			op.Peer = random.Int32N(100) - 50
		}
		for _, member := range members {
			b.Rank(int(member)).Add(op)
		}
	}
	return b.Trace()
}

// TestCollectives compares the collectives of programs with their random traces.
func TestCollectives(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		trace := collectiveTrace(random)
		for k, source := range []dag.Source{dag.FromTrace(trace), inBatchesOf(trace, 1+random.IntN(4), 0)} {
			p, err := Compile(source, CompileOptions{HighLevel: true, DenseStreams: k > 0})
			if err != nil {
				t.Fatalf("seed %d, source %d: %v", seed, k, err)
			}
			if problem := compareCollectives(p, trace); problem != "" {
				t.Fatalf("seed %d, source %d: %s", seed, k, problem)
			}
		}
	}
}

// compareCollectives returns the first difference between the high-level ops of a program and those of its trace.
func compareCollectives(p *Program, trace *dag.Trace) string {
	first, total := make([]int, len(trace.Comms)), 0 // of the instances of each communicator
	for c := range trace.Comms {
		first[c] = total
		rank := trace.Ranks[trace.Comms[c].Members()[0]]
		for i, kind := range rank.Kind {
			if kind == dag.Coll && int(rank.Comm.At(i)) == c {
				total++
			}
		}
	}
	if len(p.Instances) != total {
		return fmt.Sprintf("%d instances, expected %d", len(p.Instances), total)
	}
	for r := range trace.Ranks {
		seen := make(map[int32]int)
		for i := range trace.Ranks[r].Len() {
			at, was := p.Start[r]+uint32(i), trace.Ranks[r].Op(i)
			op := &p.Ops[at]
			where := fmt.Sprintf("rank %d op %d, %+v, is %+v: ", r, i, was, *op)
			switch {
			case p.Kind(at) != was.Kind || p.Stream(op) != was.Stream:
				return where + "what it is"
			case was.Kind == dag.Mem || was.Kind == dag.IO:
				if op.Flags != 0 || op.Size != uint64(was.Duration) {
					return where + "length"
				}
			case was.Kind != dag.Coll:
				if op.IsMessage() != (was.Kind != dag.Calc) || op.IsMessage() && (p.Tag(op) != was.Tag || p.Comm(op) != was.Comm) {
					return where + "message"
				}
			default:
				members := trace.Comms[was.Comm].Members()
				want := Instance{Kind: was.Subkind, Comm: was.Comm, Size: int32(len(members))}
				for position, member := range members {
					if was.Subkind.Rooted() && member == was.Peer {
						want.Root = int32(position)
					}
				}
				if k := first[was.Comm] + seen[was.Comm]; int(op.Match) != k || p.Instances[k] != want {
					return where + fmt.Sprintf("expected instance %d, %+v", k, want)
				}
				seen[was.Comm]++
				if op.Collective() != was.Subkind || int(members[op.Peer]) != r || op.Size != uint64(was.Bytes) ||
					p.Comm(op) != was.Comm || op.IsMessage() {
					return where + "part"
				}
			}
		}
	}
	return ""
}

// TestNotHighLevel checks that high-level ops are refused without the option HighLevel.
func TestNotHighLevel(t *testing.T) {
	for _, kind := range []dag.Kind{dag.Coll, dag.Mem, dag.IO, 99} {
		b := dag.NewBuilder(1)
		b.Rank(0).Add(dag.Op{Kind: kind, Subkind: dag.Barrier})
		_, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), "which this backend does not run") {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// TestMemberMissing checks which rank an error names if some ranks lack collectives.
func TestMemberMissing(t *testing.T) {
	for _, c := range []struct {
		counts [3]int
		want   string
	}{
		{[3]int{0, 1, 1}, "rank 0 has no collective of communicator 0, expected 1 as rank 1 has"},
		{[3]int{2, 2, 1}, "rank 2 has 1 collectives of communicator 0, expected 2 as rank 0 has"},
		{[3]int{2, 3, 2}, "rank 1 has 3 collectives of communicator 0, expected 2 as rank 0 has"},
	} {
		b := dag.NewBuilder(3)
		for rank, n := range c.counts {
			for range n {
				b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
			}
		}
		if _, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{HighLevel: true}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, expected %q", err, c.want)
		}
	}
	trace := dag.NewBuilder(2).Trace()
	trace.Comms = append(trace.Comms, dag.Comm{Ranges: []dag.Range{{First: 0, Stride: 1, Count: 1 << 30}}})
	b := dag.NewBuilder(2)
	b.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: 1})
	trace.Ranks = b.Trace().Ranks
	if _, err := Compile(dag.FromTrace(trace), CompileOptions{HighLevel: true}); err == nil ||
		!strings.Contains(err.Error(), "communicator 1: range of 1073741824 ranks") {
		t.Errorf("got %v", err)
	}
}
