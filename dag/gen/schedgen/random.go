// The random numbers of the reference.

package schedgen

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"
)

// additive is the generator of rand in the GNU C library in its default state: r[i] = r[i-31] + r[i-3]; it returns the
// upper 31 bits.
type additive struct {
	r [31]uint32 // the last 31 numbers, r[i] at i mod 31
	i int
}

// newAdditive returns the generator with seed 1, the seed of a program that never calls srand.
func newAdditive() *additive {
	a := &additive{}
	x := uint64(1)
	for i := range a.r {
		a.r[i] = uint32(x)
		x = 16807 * x % (1<<31 - 1)
	}
	a.i = 34 // the numbers 31 to 33 repeat 0 to 2
	for range 310 {
		a.next()
	}
	return a
}

func (a *additive) next() uint32 {
	n := len(a.r)
	a.r[a.i%n] += a.r[(a.i+n-3)%n]
	a.i++
	return a.r[(a.i-1)%n] >> 1
}

// mersenneTwister is the generator MT19937.
type mersenneTwister struct{ *prng.MT19937 }

func newMersenneTwister(seed uint32) mersenneTwister {
	m := prng.NewMT19937()
	m.Seed(uint64(seed))
	return mersenneTwister{m}
}

// uniform returns a number in 0..most: the low bits, as many as most has, of the first draw for which they are in
// range.
func (m mersenneTwister) uniform(most uint32) uint32 {
	mask := uint32(1)<<bits.Len32(most) - 1
	for {
		if x := m.Uint32() & mask; x <= most {
			return x
		}
	}
}

// fraction returns a number in 0..most by C++'s scaling of the generator's range.
func (m mersenneTwister) fraction(most uint32) uint32 {
	return uint32(float64(m.Uint32()) / (1<<32 - 1) * float64(most))
}

// permutation returns a random order of 0..n-1: each element is the u-th of the remaining k numbers, with u drawn from
// 0..k-1.
func permutation(n int, draw func(most uint32) uint32) []int32 {
	order := make([]int32, n)
	left := newCountTree(n)
	for i := range order {
		order[i] = int32(left.take(int(draw(uint32(n - i - 1)))))
	}
	return order
}

// countTree holds a subset of 0..n-1. It is a Fenwick tree (Fenwick: A new data structure for cumulative frequency
// tables, Software 24(3), 1994): count[i] is the number of elements among the i&-i numbers up to i-1.
type countTree struct {
	count []int32
}

// newCountTree returns the set of all numbers.
func newCountTree(n int) countTree {
	t := countTree{make([]int32, n+1)}
	for i := range t.count {
		t.count[i] = int32(i & -i)
	}
	return t
}

// take removes and returns the element with u smaller elements.
func (t *countTree) take(u int) int {
	at, n := 0, len(t.count)-1
	for step := 1 << bits.Len(uint(n)) >> 1; step > 0; step >>= 1 {
		if next := at + step; next <= n && int(t.count[next]) <= u {
			at = next
			u -= int(t.count[next])
		}
	}
	for i := at + 1; i <= n; i += i & -i {
		t.count[i]--
	}
	return at
}
