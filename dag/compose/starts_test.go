package compose

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestWithClocks checks on random ranks that clocks start all ops at the same times as release times do, and that the
// calcs of a clock belong to the job of its rank.
func TestWithClocks(t *testing.T) {
	clocks := 0
	for seed := range uint64(1000) {
		one, _ := rankWithGone(rand.New(rand.NewPCG(seed, 1)))
		two, _ := rankWithGone(rand.New(rand.NewPCG(seed, 2)))
		merged := mustMerge(t, Job{Name: "one", Trace: one}, Job{Name: "two", Trace: two, Start: 1000})
		clocked, err := withClocks(context.Background(), merged)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(clocked); len(problems) > 0 {
			t.Fatalf("seed %d: problems: %v", seed, problems)
		}
		want, got := run(t, merged), run(t, clocked)
		for rank := range merged.Ranks {
			ticks := clocked.Ranks[rank].Len() - merged.Ranks[rank].Len()
			for i := range ticks {
				if op := clocked.Ranks[rank].Op(i); op.Kind != dag.Calc || op.Job != int32(rank) {
					t.Fatalf("seed %d, rank %d: calc %d of the clock is %+v", seed, rank, i, op)
				}
			}
			for i := range merged.Ranks[rank].Len() {
				if got.Start(rank, ticks+i) != want.Start(rank, i) || clocked.Ranks[rank].Release.At(ticks+i) != 0 {
					t.Fatalf("seed %d, rank %d: op %d starts at %v, expected %v", seed, rank, i,
						got.Start(rank, ticks+i), want.Start(rank, i))
				}
			}
			clocks += min(ticks, 1)
		}
	}
	if clocks < 1000 {
		t.Errorf("%d ranks with clocks, too few to tell", clocks)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := withClocks(ctx, first()); err == nil {
		t.Error("an ended context has no effect")
	}
}
