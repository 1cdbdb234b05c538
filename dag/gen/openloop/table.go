package openloop

import (
	"math/bits"
	"sort"
)

// tableUnit is the resolution of probabilities in a table: multiples of 1/tableUnit.
const tableUnit = 1 << 62

// table is a distribution over the indices 0, 1, ...: index i owns the numbers ends[i-1] to ends[i]-1 of
// 0..tableUnit-1.
type table struct {
	ends  []uint64
	guide []int32 // guide[b] is the index that owns number b<<shift; the last entry is for the last number
	shift int
}

// newTable returns the distribution with the given cumulative probabilities, ascending from 0 to 1.
func newTable(cumulative []float64) *table {
	t := &table{ends: make([]uint64, len(cumulative))}
	for i, p := range cumulative {
		t.ends[i] = uint64(p * tableUnit)
	}
	t.shift = 62 - max(6, bits.Len(uint(len(cumulative)-1)))
	t.guide = make([]int32, tableUnit>>t.shift+1)
	index := int32(0)
	for b := range t.guide {
		number := min(uint64(b)<<t.shift, tableUnit-1)
		for t.ends[index] <= number {
			index++
		}
		t.guide[b] = index
	}
	return t
}

// find returns the index that owns the number.
func (t *table) find(number uint64) int {
	b := number >> t.shift
	low, high := int(t.guide[b]), int(t.guide[b+1])
	if low == high {
		return low
	}
	return low + sort.Search(high-low, func(i int) bool { return number < t.ends[low+i] })
}

// numbers returns the numbers of an index: the first and their count.
func (t *table) numbers(index int) (first, count uint64) {
	if index > 0 {
		first = t.ends[index-1]
	}
	return first, t.ends[index] - first
}

// Scale maps uniform bits to a number in 0..n-1.
func Scale(uniform, n uint64) uint64 {
	number, _ := bits.Mul64(uniform, n)
	return number
}
