// This file has the random numbers that the reference draws.

package schedgen

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"
)

// additive is the generator behind rand of the GNU C library in its default state: r[i] = r[i-31] + r[i-3], of which
// the upper 31 bits come out.
type additive struct {
	r [31]uint32 // the last 31 numbers, r[i] at i mod 31
	i int
}

// newAdditive returns the generator with seed 1, as a program that never calls srand has it.
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

// uniform returns a number in 0..most: the first whose lower bits, as many as most has, are such a number.
func (m mersenneTwister) uniform(most uint32) uint32 {
	mask := uint32(1)<<bits.Len32(most) - 1
	for {
		if x := m.Uint32() & mask; x <= most {
			return x
		}
	}
}

// fraction returns a number in 0..most as C++ makes one of a part of the range of the generator.
func (m mersenneTwister) fraction(most uint32) uint32 {
	return uint32(float64(m.Uint32()) / (1<<32 - 1) * float64(most))
}

// permutation returns a random order of 0..n-1: each is the u-th of those that are left, where u is drawn from 0 to how
// many are left less one.
func permutation(n int, draw func(most uint32) uint32) []int32 {
	order := make([]int32, n)
	left := newCountTree(n)
	for i := range order {
		order[i] = int32(left.take(int(draw(uint32(n - i - 1)))))
	}
	return order
}

// countTree holds a subset of 0..n-1. It is a Fenwick tree (Fenwick: A new data structure for cumulative frequency
// tables, Software 24(3), 1994): count[i] is how many of the i&-i numbers up to i-1 it has.
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

// take removes the number that u smaller ones are left of, and returns it.
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
