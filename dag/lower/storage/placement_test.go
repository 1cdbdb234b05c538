package storage

import (
	"math"
	"slices"
	"testing"
)

// TestArrange compares the placement with a literal implementation of the rule: component i of n of a kind gets the
// free rank nearest to (i+1) total / (n+1).
func TestArrange(t *testing.T) {
	for _, n := range [][]int64{
		{1, 1, 1, 1, 1, 1}, {21, 1, 1, 1, 8, 64}, {4, 1, 1, 1, 8, 64}, {3, 2, 2, 2, 5, 7}, {100, 1, 1, 1, 1, 1},
		{1, 1, 1, 1, 8, 200}, {7, 7, 7, 7, 7, 7}, {0, 1, 2, 3, 4, 5},
	} {
		total := int64(0)
		for _, count := range n {
			total += count
		}
		taken := make([]bool, total)
		spread, grouped := arrange(true, n), arrange(false, n)
		next := int32(0)
		for kind, count := range n {
			for i := range count {
				want := int64(math.RoundToEven(float64((i+1)*total) / float64(count+1)))
				for distance := int64(0); ; distance++ {
					left, right := (want-distance+total)%total, (want+distance)%total
					if !taken[left] {
						want = left
						break
					}
					if !taken[right] {
						want = right
						break
					}
				}
				taken[want] = true
				if got := int64(spread[kind][i]); got != want {
					t.Fatalf("%v: component %d of kind %d is at %d, expected %d", n, i, kind, got, want)
				}
				if grouped[kind][i] != next {
					t.Fatalf("%v: grouped: component %d of kind %d is at %d, expected %d", n, i, kind, grouped[kind][i], next)
				}
				next++
			}
		}
		if slices.Contains(taken, false) {
			t.Errorf("%v: not all ranks are taken", n)
		}
	}
}
