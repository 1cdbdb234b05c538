package sim

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestFind finds the ops of folded programs whose ranks have many, few or no ops.
func TestFind(t *testing.T) {
	mixed, blocks := 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		shortest := []int{0, 1, foldedBlock / 2, 2 * foldedBlock, 3 * foldedBlock}[random.IntN(5)]
		ranks := fewestFolded + random.IntN(9)
		b := dag.NewBuilder(ranks)
		for rank := range ranks {
			ops := 3*foldedBlock + 5
			if random.IntN(6) == 0 {
				ops = shortest
			}
			for i := range ops {
				b.Rank(rank).Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(i)})
			}
		}
		p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{Fold: true})
		if err != nil {
			t.Fatal(err)
		}
		f := p.Folded()
		if f == nil {
			t.Fatalf("seed %d: the program is not folded", seed)
		}
		if f.mixed {
			mixed++
		} else {
			blocks++
		}
		for want := range uint32(ranks) {
			for i := p.Start[want]; i < p.Start[want+1]; i++ {
				op, rank := f.Find(i)
				if length := uint64(i - p.Start[want]); rank != want || f.Length(rank, op) != length {
					t.Fatalf("seed %d, op %d: got rank %d, length %d, expected rank %d, length %d", seed, i, rank,
						f.Length(rank, op), want, length)
				}
			}
		}
	}
	if mixed == 0 || blocks == 0 {
		t.Errorf("%d programs with blocks of more than two ranks and %d without, expected some of each", mixed, blocks)
	}
}

// TestFoldPeers checks that ranks which differ from others in their partners only may not have invalid ones.
func TestFoldPeers(t *testing.T) {
	for _, peer := range []int32{unknownPeer - 1, unknownPeer, dag.AnySource, fewestFolded} {
		b := dag.NewBuilder(fewestFolded)
		for rank := range fewestFolded {
			to := int32(0)
			if rank == fewestFolded/2 {
				to = peer
			}
			for range foldedBlock {
				b.Rank(rank).Send(to, 8, 0)
			}
		}
		_, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{Fold: true})
		var failed *NotCompiledError
		if !errors.As(err, &failed) || failed.Rank != fewestFolded/2 || failed.Op != 0 {
			t.Errorf("peer %d: error %v, expected one about rank %d op 0", peer, err, fewestFolded/2)
		}
	}
}
