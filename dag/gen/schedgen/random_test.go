package schedgen

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAdditive compares with the output of a C program that calls rand without srand, linked with the GNU C library.
func TestAdditive(t *testing.T) {
	a := newAdditive()
	for i, want := range []uint32{1804289383, 846930886, 1681692777, 1714636915, 1957747793, 424238335, 719885386} {
		if got := a.next(); got != want {
			t.Errorf("number %d is %d, expected %d", i, got, want)
		}
	}
}

func TestUniform(t *testing.T) {
	for _, most := range []uint32{0, 1, 2, 3, 4, 100, 1<<32 - 1} {
		m, raw := newMersenneTwister(7), newMersenneTwister(7)
		mask := uint32(1)
		for mask < most {
			mask = mask<<1 | 1
		}
		if most == 0 {
			mask = 0
		}
		for range 1000 {
			want := raw.Uint32() & mask
			for want > most {
				want = raw.Uint32() & mask
			}
			if got := m.uniform(most); got != want {
				t.Fatalf("up to %d: %d, expected %d", most, got, want)
			}
		}
	}
}

// TestPermutation compares with a list from which the numbers are taken one by one.
func TestPermutation(t *testing.T) {
	for n := range 70 {
		draws, again := rand.New(rand.NewPCG(1, uint64(n))), rand.New(rand.NewPCG(1, uint64(n)))
		got := permutation(n, func(most uint32) uint32 { return draws.Uint32N(most + 1) })
		var left, want []int32
		for i := range n {
			left = append(left, int32(i))
		}
		for len(left) > 0 {
			u := int(again.Uint32N(uint32(len(left))))
			want = append(want, left[u])
			left = slices.Delete(left, u, u+1)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, expected %v", got, want)
		}
	}
}

func BenchmarkPermutation(b *testing.B) {
	for b.Loop() {
		permutation(1<<20, newMersenneTwister(1).fraction)
	}
}
