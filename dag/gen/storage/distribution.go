package storage

import (
	"math/bits"
	"slices"
	"sort"
)

// distribution is an empirical distribution of whole numbers: a histogram. The zero value has the number 0 only.
type distribution struct {
	step int64 // numbers of a bin are low, low + step and so on; 1 or more
	bins []bin // ascending
}

// bin is the numbers from low to high, all equally likely, with weight observations.
type bin struct{ low, high, weight int64 }

// measure returns the distribution of values in about n bins. It sorts the values. A value with more than the n-th
// part of all observations has its own bin. Others share bins with their neighbours. No bin is wider than half of its
// distance from 0: values in a bin count as equally likely, which in wide bins would change the mean.
func measure(values []int64, n int) distribution {
	if len(values) == 0 {
		return distribution{}
	}
	slices.Sort(values)
	d := distribution{step: commonStep(values)}
	full := int64(1)
	if different(values) > n {
		full += int64(len(values) / n)
	}
	alone := true // the last bin holds a value that needs its own bin
	for len(values) > 0 {
		v := values[0]
		weight := int64(sort.Search(len(values), func(i int) bool { return values[i] > v }))
		values = values[weight:]
		last := len(d.bins) - 1
		if alone || weight >= full || d.bins[last].weight+weight > full || !near(d.bins[last].low, v) {
			d.bins = append(d.bins, bin{v, v, weight})
			alone = weight >= full
			continue
		}
		d.bins[last].high = v
		d.bins[last].weight += weight
	}
	return d
}

// different returns the number of distinct values in an ascending list.
func different(values []int64) int {
	n := 1
	for i := 1; i < len(values); i++ {
		if values[i] != values[i-1] {
			n++
		}
	}
	return n
}

// near reports whether a bin from low to high > low is narrow enough.
func near(low, high int64) bool {
	return low > 0 && high-low <= low/2 || high < 0 && high-low <= -high/2
}

// commonStep returns the greatest common divisor of the differences of ascending values; 1 if there are no differences.
func commonStep(values []int64) int64 {
	step := uint64(0)
	for i := 1; i < len(values); i++ {
		for a := uint64(values[i]) - uint64(values[i-1]); a != 0; {
			step, a = a, step%a
		}
	}
	if step == 0 || step > 1<<62 {
		return 1
	}
	return int64(step)
}

// sampler draws from a distribution.
type sampler struct {
	distribution
	ends []uint64 // by bin: cumulative weight
}

func newSampler(d distribution) sampler {
	s := sampler{d, make([]uint64, len(d.bins))}
	sum := uint64(0)
	for i, b := range d.bins {
		sum += uint64(b.weight)
		s.ends[i] = sum
	}
	return s
}

// draw returns the number that uniform bits select.
func (s *sampler) draw(uniform uint64) int64 {
	if len(s.ends) == 0 {
		return 0
	}
	number, rest := bits.Mul64(uniform, s.ends[len(s.ends)-1])
	b := &s.bins[sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > number })]
	if b.low == b.high {
		return b.low
	}
	k, _ := bits.Mul64(rest, (uint64(b.high)-uint64(b.low))/uint64(s.step)+1)
	return b.low + int64(k*uint64(s.step))
}
