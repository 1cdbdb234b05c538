package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/memory"
)

// TestTally compares a tally in memory, in runs and in merged runs with the summary of a list.
func TestTally(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 8))
		tally := NewTally(0)
		tally.most, tally.mostRuns = 2+random.IntN(40), 2+random.IntN(5)
		different := []float64{1, 5, 300, 1e18}[random.IntN(4)]
		var values []float64
		for range random.IntN(3000) {
			v := math.Floor(random.Float64()*different) / 7
			values = append(values, v)
			if err := tally.Add(v); err != nil {
				t.Fatal(err)
			}
		}
		got, err := tally.Interpolate()
		if want := Interpolate(values); err != nil || got != want {
			t.Fatalf("seed %d: %+v, expected %+v, %v", seed, got, want, err)
		}
		numbers, counts, err := tally.Counts(context.Background())
		var all []float64
		for i, v := range numbers {
			all = append(all, slices.Repeat([]float64{v}, int(counts[i]))...)
		}
		if err != nil || !slices.Equal(all, values) || !slices.IsSorted(numbers) ||
			len(slices.Compact(slices.Clone(numbers))) != len(counts) {
			t.Fatalf("seed %d: counts of %v, %v", seed, numbers, err)
		}
		if _, _, err = tally.Counts(memory.WithLimit(context.Background(), 31)); len(values) > 0 && err == nil {
			t.Errorf("seed %d: no error about memory", seed)
		}
		if err := tally.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files remain: %v", left)
	}
}
