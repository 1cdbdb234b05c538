package store

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
)

// likeTrace returns a trace of ranks most of which have some columns in common with the rank before.
func likeTrace(rng *rand.Rand, ranks, ops int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	distinct := int64([]int{1, 3, 300}[rng.IntN(3)])
	var base []dag.Op
	var deps [][]int
	for rank := range ranks {
		if rank == 0 || rng.IntN(4) == 0 {
			base, deps = nil, nil
			for i := range rng.IntN(ops + 1) {
				op := dag.Op{Kind: dag.Kind(rng.IntN(3)), Bytes: rng.Int64N(distinct), Tag: rng.Int64N(distinct),
					Stream: rng.Int32N(2), Duration: dag.Time(rng.Int64N(distinct))}
				if op.Kind == dag.Calc && rng.IntN(9) == 0 {
					op.Subkind = dag.Marker
				}
				base = append(base, op)
				var on []int
				for k := range min(i, rng.IntN(4)) {
					on = append(on, i-1-k)
				}
				deps = append(deps, on)
			}
		}
		differs := -1 // an op that differs from that of the rank before
		if len(base) > 0 && rng.IntN(3) == 0 {
			differs = rng.IntN(len(base))
		}
		for i, op := range base {
			op.Peer = int32((rank + 1 + i%3) % ranks)
			on := deps[i]
			if i == differs {
				switch rng.IntN(5) {
				case 0:
					op.Bytes++
				case 1:
					op.Stream = 300 - op.Stream
				case 2:
					op.Kind = (op.Kind + 1) % 3
					op.Subkind = dag.NoSubkind
				default:
					on = on[:len(on)/2]
				}
			}
			b.Rank(rank).Add(op, on...)
		}
	}
	return b.Trace()
}

// TestLikeRanks reads ranks of which many equal the rank before, in row groups that end within ranks or between them.
func TestLikeRanks(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 17))
		trace := likeTrace(rng, 1+rng.IntN(20), 1+rng.IntN(150))
		for _, rows := range []int{1 + rng.IntN(200), 1 << 20} {
			file := encodeGroups(t, trace, rows, rng.IntN(2) == 0)
			if rng.IntN(2) == 0 {
				file = withoutChecksums(t, file)
			}
			f, err := openBytes(file)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			sameBatches(t, f, trace.Ranks, rng)
		}
	}
}

// TestLikeRanksShare checks that ranks with the same values share them, but those with others do not, and that a trace
// which is read as a whole shares none, since its owner may change it.
func TestLikeRanksShare(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 3 {
		for i := range 100 {
			op := dag.Op{Kind: dag.Kind(i % 3), Bytes: int64(i / 3), Peer: int32(rank + 1), Tag: 7}
			if rank == 2 && i == 50 {
				op.Bytes++
			}
			b.Rank(rank).Add(op, max(0, i-2))
		}
	}
	trace := b.Trace()
	f, err := openBytes(encode(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := f.NewReader(dag.Replay)(f.batches()[0])
	if err != nil {
		t.Fatal(err)
	}
	sameRanks(t, ranks, replayed(trace.Ranks[:len(ranks)]))
	whole, err := f.ReadRanks(0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		at     func(r *dag.Rank) unsafe.Pointer
		shared [2]bool // by ranks 1 and 2 with the rank before
	}{
		{"kinds", func(r *dag.Rank) unsafe.Pointer { return unsafe.Pointer(&r.Kind[0]) }, [2]bool{true, true}},
		{"bytes", func(r *dag.Rank) unsafe.Pointer { return unsafe.Pointer(&r.Bytes[0]) }, [2]bool{true, false}},
		{"peers", func(r *dag.Rank) unsafe.Pointer { return unsafe.Pointer(&r.Peer[99]) }, [2]bool{false, false}},
		{"tags", func(r *dag.Rank) unsafe.Pointer { return unsafe.Pointer(&r.Tag[0]) }, [2]bool{true, true}},
		{"dependencies", func(r *dag.Rank) unsafe.Pointer { return unsafe.Pointer(&r.Deps.Off[0]) }, [2]bool{true, true}},
	} {
		got := [2]bool{c.at(ranks[0]) == c.at(ranks[1]), c.at(ranks[1]) == c.at(ranks[2])}
		if got != c.shared {
			t.Errorf("%s: ranks 1 and 2 share them: %v, expected %v", c.what, got, c.shared)
		}
		if c.at(whole[0]) == c.at(whole[1]) {
			t.Errorf("%s: ranks of a whole trace share memory", c.what)
		}
	}
}
