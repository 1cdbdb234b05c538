package kineto

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestMergeKeptHost merges the calcs of threads and devices: the replay with starts of launches has the same end.
func TestMergeKeptHost(t *testing.T) {
	read := func(merge bool) *dag.Trace {
		own := newOptions()
		own.KeepHost, own.MergeCalcs = true, merge
		trace, err := sample(t, own, nil)
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	whole, merged := read(false), read(true)
	for i, r := range merged.Ranks {
		_, want := replayStarts(whole.Ranks[i])
		if _, got := replayStarts(r); slices.Max(got) != slices.Max(want) || r.Len() >= whole.Ranks[i].Len() ||
			len(r.StartDeps.Off) != len(whole.Ranks[i].StartDeps.Off) {
			t.Errorf("rank %d ends at %v with %d ops, expected %v, %d", i, slices.Max(got), r.Len(), slices.Max(want),
				whole.Ranks[i].Len())
		}
	}
}

// TestMergeCalcs merges calcs: each other op ends when it ended before, and sums stay.
func TestMergeCalcs(t *testing.T) {
	whole, err := sample(t, newOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own := newOptions()
	own.MergeCalcs = true
	merged, err := sample(t, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(merged); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for i, r := range merged.Ranks {
		all := whole.Ranks[i]
		if r.Len() >= all.Len() {
			t.Errorf("rank %d: %d ops of %d", i, r.Len(), all.Len())
		}
		calcs := func(r *dag.Rank) (sum dag.Time) {
			for k, kind := range r.Kind {
				if kind == dag.Calc {
					sum += r.Duration.At(k)
				}
			}
			return sum
		}
		if calcs(r) != calcs(all) {
			t.Errorf("rank %d: calcs of %v, expected %v", i, calcs(r), calcs(all))
		}
		ends := func(r *dag.Rank) (others []dag.Time) {
			for k, end := range replay(r) {
				if r.Kind[k] != dag.Calc {
					others = append(others, end)
				}
			}
			return append(others, slices.Max(replay(r)))
		}
		if !slices.Equal(ends(r), ends(all)) {
			t.Errorf("rank %d: ends %v, expected %v", i, ends(r), ends(all))
		}
	}
}
