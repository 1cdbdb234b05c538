package packet

import "math/bits"

// reassembly is the set of arrived packets of a flow.
type reassembly struct {
	next uint64   // first missing packet
	bits []uint64 // bitmap of the later packets, indexed modulo its size, a power of two
}

// reset empties the set.
func (r *reassembly) reset() {
	r.next = 0
	clear(r.bits)
}

// has reports whether packet i has arrived.
func (r *reassembly) has(i uint64) bool {
	if i < r.next || len(r.bits) == 0 || i-r.next >= uint64(len(r.bits))*64 {
		return i < r.next
	}
	return r.bits[i/64%uint64(len(r.bits))]>>(i%64)&1 != 0
}

// add adds packet i. It returns false if the packet was already in the set.
func (r *reassembly) add(i uint64) bool {
	if i < r.next {
		return false
	}
	if i == r.next && (len(r.bits) == 0 || r.bits[(i+1)/64%uint64(len(r.bits))]>>((i+1)%64)&1 == 0) { // the common case
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
