package compose

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestStartMeasured checks the starts of ranks with, without and with earlier recorded times, and that ops that wait
// for others have no release.
func TestStartMeasured(t *testing.T) {
	b := dag.NewBuilder(3)
	timed := func(rank int, start dag.Time, deps ...int) int {
		return b.Rank(rank).Add(dag.Op{Duration: 5, Timed: true, MeasuredStart: start, MeasuredEnd: start + 5}, deps...)
	}
	first := timed(0, 40)
	timed(0, 50, first)
	b.Rank(1).Calc(7)
	timed(2, -10)
	trace := b.Trace()
	moved, starts, err := StartMeasured(trace)
	if err != nil || !slices.Equal(starts, []dag.Time{50, 0, 0}) {
		t.Fatalf("starts %v, error %v", starts, err)
	}
	for rank, want := range [][]dag.Time{{50, 0}, {0}, {0}} {
		for op, release := range want {
			if got := moved.Ranks[rank].Release.At(op); got != release {
				t.Errorf("rank %d, op %d: release %v, expected %v", rank, op, got, release)
			}
		}
	}
	if trace.Ranks[0].Release.At(0) != 0 {
		t.Error("the trace was changed")
	}
	if _, _, err := StartMeasured(&dag.Trace{Ranks: dag.NewRanks(2)}); err == nil {
		t.Error("no error without measured times")
	}
	b = dag.NewBuilder(2)
	timed(0, dag.Unmeasured+1)
	timed(1, dag.MaxTime-5)
	if _, _, err := StartMeasured(b.Trace()); err == nil {
		t.Error("no error for times too far apart")
	}
}
