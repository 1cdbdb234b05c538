package flow

import (
	"math"
	"math/bits"
)

// minHeap is a heap of numbers by their keys, then by number.
type minHeap struct {
	entries []entry // from top on
	places  []int32 // by number: index in entries; 0: not there
}

// top is the index of the first entry. With it, the four entries below one are in one cache line.
const top = 3

// above returns the index of the entry above one, below that of the first entry below it.
func above(i int) int { return i/4 + 2 }
func below(i int) int { return 4 * (i - 2) }

// entry is a number with its key.
type entry struct {
	bits   uint64 // of the key, which is at least 0: they have the order of keys
	number uint32
}

func (e entry) key() float64 { return math.Float64frombits(e.bits) }

// before returns 1 if an entry precedes another one, or 0. Its borrows need no branches, which nothing predicts.
func (e entry) before(o entry) int {
	_, borrow := bits.Sub64(uint64(e.number), uint64(o.number), 0)
	_, borrow = bits.Sub64(e.bits, o.bits, borrow)
	return int(borrow)
}

func (h *minHeap) empty() bool { return len(h.entries) <= top }

// first returns the entry with the lowest key.
func (h *minHeap) first() entry { return h.entries[top] }

// has reports whether a number is in the heap.
func (h *minHeap) has(number uint32) bool { return int(number) < len(h.places) && h.places[number] > 0 }

// set adds a number, or changes its key.
func (h *minHeap) set(number uint32, key float64) {
	e := entry{math.Float64bits(key), number}
	if !h.has(number) {
		h.add(e)
		return
	}
	i := int(h.places[number])
	if e.before(h.entries[i]) > 0 {
		h.up(e, i)
	} else {
		h.down(e, i)
	}
}

// lower adds a number, or lowers its key to at most the given one.
func (h *minHeap) lower(number uint32, key float64) {
	e := entry{math.Float64bits(key), number}
	if !h.has(number) {
		h.add(e)
	} else if i := int(h.places[number]); e.bits < h.entries[i].bits {
		h.up(e, i)
	}
}

func (h *minHeap) add(e entry) {
	for len(h.places) <= int(e.number) {
		h.places = append(h.places, 0)
	}
	if h.entries == nil {
		h.entries = make([]entry, top, 16)
	}
	h.entries = append(h.entries, e)
	h.up(e, len(h.entries)-1)
}

// remove removes a number. It does nothing if the number is not there.
func (h *minHeap) remove(number uint32) {
	if !h.has(number) {
		return
	}
	i, last := int(h.places[number]), len(h.entries)-1
	h.places[number] = 0
	moved := h.entries[last]
	h.entries = h.entries[:last]
	switch {
	case i == last:
	case i > top && moved.before(h.entries[above(i)]) > 0:
		h.up(moved, i)
	default:
		h.down(moved, i)
	}
}

// clear removes all numbers.
func (h *minHeap) clear() {
	if h.empty() {
		return
	}
	for _, e := range h.entries[top:] {
		h.places[e.number] = 0
	}
	h.entries = h.entries[:top]
}

// up places an entry at an index, or above it.
func (h *minHeap) up(e entry, i int) {
	for i > top {
		parent := above(i)
		if e.before(h.entries[parent]) == 0 {
			break
		}
		h.put(i, h.entries[parent])
		i = parent
	}
	h.put(i, e)
}

// down places an entry at an index, or below it.
func (h *minHeap) down(e entry, i int) {
	for below(i) < len(h.entries) {
		first := below(i)
		children := h.entries[first:min(first+4, len(h.entries))]
		least := 0
		for c := 1; c < len(children); c++ {
			least += (c - least) * children[c].before(children[least])
		}
		if children[least].before(e) == 0 {
			break
		}
		h.put(i, children[least])
		i = first + least
	}
	h.put(i, e)
}

func (h *minHeap) put(i int, e entry) {
	h.entries[i] = e
	h.places[e.number] = int32(i)
}
