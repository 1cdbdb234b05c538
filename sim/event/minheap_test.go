package event

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMinHeap compares the heap with a sorted slice.
func TestMinHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var h MinHeap
	var want []uint32
	for range 3000 {
		if len(want) == 0 || random.IntN(2) == 0 {
			x := random.Uint32N(50)
			h.Push(x)
			want = append(want, x)
			slices.Sort(want)
			continue
		}
		if got := h.Pop(); got != want[0] {
			t.Fatalf("got %d, want %d", got, want[0])
		}
		want = want[1:]
	}
}
