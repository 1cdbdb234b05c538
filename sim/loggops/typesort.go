package loggops

import (
	"math/bits"

	"github.com/tracedag/tracedag/sim"
)

// sortByType sorts ops that became ready by type, send before receive before calc, exactly like the reference
// simulator: with the introsort of libstdc++, which is not stable for more than sixteen ops. Op i is ops[i+delta].
func sortByType(list []uint32, ops []sim.Op, delta uint32) {
	switch {
	case len(list) < 2:
		return
	case len(list) == 2:
		if typeOf(&ops[list[1]+delta]) < typeOf(&ops[list[0]+delta]) {
			list[0], list[1] = list[1], list[0]
		}
		return
	case len(list) <= sortThreshold:
		partitionByType(list, ops, delta)
		return
	}
	s := typeSort{list: list, ops: ops, delta: delta}
	s.partition(0, len(list), 2*(bits.Len(uint(len(list)))-1))
	s.insertionSort(sortThreshold)
	for i := sortThreshold; i < len(list); i++ {
		s.insert(i)
	}
}

// partitionByType sorts a short list, for which the reference's sort is stable.
func partitionByType(list []uint32, ops []sim.Op, delta uint32) {
	var receives, calcs [sortThreshold]uint32
	sends, r, c := 0, 0, 0
	for _, i := range list {
		switch ops[i+delta].Flags & (sim.IsSend | sim.IsRecv) {
		case sim.IsSend:
			list[sends] = i
			sends++
		case sim.IsRecv:
			receives[r] = i
			r++
		default:
			calcs[c] = i
			c++
		}
	}
	copy(list[sends:], receives[:r])
	copy(list[sends+r:], calcs[:c])
}

const sortThreshold = 16

type typeSort struct {
	list  []uint32
	ops   []sim.Op
	delta uint32
}

// typeOf returns the position of an op's type in the order.
func typeOf(op *sim.Op) uint8 {
	return op.Flags&(sim.IsSend|sim.IsRecv) - 1 // wraps around to the highest value for a calc
}

func (s *typeSort) less(a, b uint32) bool {
	return typeOf(&s.ops[a+s.delta]) < typeOf(&s.ops[b+s.delta])
}

// partition runs a median-of-three quicksort down to parts of at most sixteen ops. It sorts parts beyond the depth
// limit with heapSort.
func (s *typeSort) partition(first, last, depth int) {
	l := s.list
	for last-first > sortThreshold {
		if depth == 0 {
			s.heapSort(first, last)
			return
		}
		depth--
		pivot := s.median(first+1, first+(last-first)/2, last-1)
		l[first], l[pivot] = l[pivot], l[first]
		i, j := first+1, last
		for {
			for s.less(l[i], l[first]) {
				i++
			}
			j--
			for s.less(l[first], l[j]) {
				j--
			}
			if i >= j {
				break
			}
			l[i], l[j] = l[j], l[i]
			i++
		}
		s.partition(i, last, depth)
		last = i
	}
}

// median returns the position, a, b or c, of the median. The choice between equals affects the result.
func (s *typeSort) median(a, b, c int) int {
	x, y, z := s.list[a], s.list[b], s.list[c]
	if s.less(x, y) {
		switch {
		case s.less(y, z):
			return b
		case s.less(x, z):
			return c
		}
		return a
	}
	switch {
	case s.less(x, z):
		return a
	case s.less(y, z):
		return c
	}
	return b
}

// heapSort sorts a part with a binary max-heap.
func (s *typeSort) heapSort(first, last int) {
	part := s.list[first:last]
	for root := (len(part) - 2) / 2; root >= 0; root-- {
		s.adjust(part, root, part[root])
	}
	for n := len(part); n > 1; {
		n--
		e := part[n]
		part[n] = part[0]
		s.adjust(part[:n], 0, e)
	}
}

// adjust sinks a hole from the given position while the larger child moves up (the right one on ties); then e rises
// from there.
func (s *typeSort) adjust(heap []uint32, hole int, e uint32) {
	top := hole
	child := 2*hole + 2
	for ; child < len(heap); child = 2*hole + 2 {
		if s.less(heap[child], heap[child-1]) {
			child--
		}
		heap[hole] = heap[child]
		hole = child
	}
	if child == len(heap) {
		heap[hole] = heap[child-1]
		hole = child - 1
	}
	for hole > top {
		parent := (hole - 1) / 2
		if !s.less(heap[parent], e) {
			break
		}
		heap[hole] = heap[parent]
		hole = parent
	}
	heap[hole] = e
}

// insertionSort sorts the first n entries.
func (s *typeSort) insertionSort(n int) {
	for i := 1; i < n; i++ {
		if e := s.list[i]; s.less(e, s.list[0]) {
			copy(s.list[1:i+1], s.list[:i])
			s.list[0] = e
			continue
		}
		s.insert(i)
	}
}

// insert moves entry i left while it is less than its left neighbor. An entry to the left must be less or equal.
func (s *typeSort) insert(i int) {
	e := s.list[i]
	for ; s.less(e, s.list[i-1]); i-- {
		s.list[i] = s.list[i-1]
	}
	s.list[i] = e
}
