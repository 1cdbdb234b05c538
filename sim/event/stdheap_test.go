package event

import (
	"slices"
	"testing"
)

// TestStdHeap compares the order of random pushes and pops with the one recorded from std::priority_queue of GCC's
// libstdc++, comparing times only.
func TestStdHeap(t *testing.T) {
	want := []uint32{2, 0, 8, 10, 12, 13, 14, 18, 16, 29, 30, 39, 40, 41, 37, 38, 31, 27, 42, 46, 21, 45, 19, 20, 32, 36, 33,
		6, 25, 28, 9, 1, 43, 7, 23, 15, 3, 22, 34, 5, 47, 44, 24, 35, 11, 4, 17, 26}
	var h StdHeap
	var got []uint32
	random := uint32(1)
	for i := range uint32(len(want)) {
		random = random*1103515245 + 12345
		h.Push(StdEvent{Time: uint64(random >> 16 % 4), Payload: i})
		if random>>20%3 == 0 {
			got = append(got, h.Pop().Payload)
		}
	}
	for len(h) > 0 {
		got = append(got, h.Pop().Payload)
	}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, expected %v", got, want)
	}
}
