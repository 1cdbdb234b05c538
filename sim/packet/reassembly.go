package packet

import "math/bits"

// reassembly is which of the packets of a flow have come: all before next, and some after.
type reassembly struct {
	next uint64   // the first that has not
	bits []uint64 // of those after, a bit each at its number modulo their number, a power of two
}

// reset makes it empty.
func (r *reassembly) reset() {
	r.next = 0
	clear(r.bits)
}

// has reports whether packet i has come.
func (r *reassembly) has(i uint64) bool {
	if i < r.next || len(r.bits) == 0 || i-r.next >= uint64(len(r.bits))*64 {
		return i < r.next
	}
	return r.bits[i/64%uint64(len(r.bits))]>>(i%64)&1 != 0
}

// add notes that packet i has come, and returns false if it had before.
func (r *reassembly) add(i uint64) bool {
	if i < r.next {
		return false
	}
	if i == r.next && (len(r.bits) == 0 || r.bits[(i+1)/64%uint64(len(r.bits))]>>((i+1)%64)&1 == 0) { // as mostly
		r.next++
		return true
	}
	for i-r.next >= uint64(len(r.bits))*64 {
		r.grow()
	}
	size := uint64(len(r.bits))
	word := &r.bits[i/64%size]
	if *word>>(i%64)&1 != 0 {
		return false
	}
	*word |= 1 << (i % 64)
	for {
		word := &r.bits[r.next/64%size]
		run := uint64(bits.TrailingZeros64(^(*word >> (r.next % 64))))
		run = min(run, 64-r.next%64)
		if run == 0 {
			return true
		}
		*word &^= (1<<run - 1) << (r.next % 64)
		r.next += run
		if r.next%64 != 0 {
			return true
		}
	}
}

func (r *reassembly) grow() {
	old := r.bits
	r.bits = make([]uint64, max(2, 2*len(old)))
	size := uint64(len(r.bits))
	for k := range uint64(len(old)) * 64 {
		if i := r.next + k; old[i/64%uint64(len(old))]>>(i%64)&1 != 0 {
			r.bits[i/64%size] |= 1 << (i % 64)
		}
	}
}
