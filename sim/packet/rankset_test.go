package packet

import "testing"

// TestRankSetOrder compares the iteration order with that of std::unordered_set<int> of libstdc++, recorded as FNV-1a
// hashes.
func TestRankSetOrder(t *testing.T) {
	s := newRankSet(1000)
	for _, test := range []struct {
		n, size int
		hash    uint64
	}{
		{5, 6, 0x8424d5089451c6f},
		{13, 16, 0xe0df05cd7f0bc07c},
		{14, 16, 0x8bd6de19abe48fe1},
		{20, 22, 0x8d00012f718aaafd},
		{40, 58, 0x1501a92f433ec21d},
		{100, 129, 0x8716e8c80277778e},
		{300, 368, 0xc7575b65f9318891},
	} {
		s.clear()
		y := uint32(test.n)
		for range 2 * test.n {
			y = y*1103515245 + 12345
			s.add((y >> 8) % uint32(2*test.n))
		}
		hash, size := uint64(1469598103934665603), 0
		for r := s.first; r != noRank; r = s.next[r] {
			hash = (hash ^ uint64(r)) * 1099511628211
			size++
		}
		if hash != test.hash || size != test.size || s.size != test.size {
			t.Errorf("of %d: %d ranks in the order %#x, want %d in %#x", test.n, size, hash, test.size, test.hash)
		}
	}
}
