package storage

import (
	"math/bits"
	"slices"
	"sort"
)

// distribution is an empirical distribution of whole numbers: a histogram. The zero value is that of 0 alone.
type distribution struct {
	step int64 // numbers of a bin are low, low + step and so on; 1 or more
	bins []bin // ascending
}

// bin is the numbers from low to high, all equally likely, of which weight were seen.
type bin struct{ low, high, weight int64 }

// measure returns the distribution of some values, which it sorts, of about n bins. Values that are seen more often
// than the n-th part of all have a bin of their own. Others share one with their neighbours, but none is wider than
// half of its distance from 0: in a bin, values are taken to be equally likely, which in wide ones would change the
// mean.
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
	alone := true // the last bin is of a value that needs one of its own
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

// different returns how many different ones there are of values that ascend.
func different(values []int64) int {
	n := 1
	for i := 1; i < len(values); i++ {
		if values[i] != values[i-1] {
			n++
		}
	}
	return n
}

// near reports whether a bin from low to high, which is higher, is narrow enough.
func near(low, high int64) bool {
	return low > 0 && high-low <= low/2 || high < 0 && high-low <= -high/2
}

// commonStep returns the largest number of which all differences of the values, which ascend, are multiples; 1 if they
// have none.
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
	ends []uint64 // by bin: the weight of it and of those before it
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

// draw returns the number that uniform bits choose.
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
