package packet

import "math/bits"

// reassembly is the set of arrived packets of a flow. Its size is a power of two, in words of 64 packets: two that are
// part of it, so that most flows access no other cache line, or those of a larger bitmap.
type reassembly struct {
	next uint64    // first missing packet
	few  [2]uint64 // bitmap of the later packets, indexed modulo its size, unless bits is not nil
	bits []uint64  // the bitmap if two words are too few
}

// words returns the bitmap.
func (r *reassembly) words() []uint64 {
	if r.bits != nil {
		return r.bits
	}
	return r.few[:]
}

// wordOf returns the word of a bitmap that has packet i.
func wordOf(words []uint64, i uint64) *uint64 { return &words[i/64&uint64(len(words)-1)] }

// reset empties the set.
func (r *reassembly) reset() {
	r.next = 0
	clear(r.words())
}

// has reports whether packet i has arrived.
func (r *reassembly) has(i uint64) bool {
	words := r.words()
	if i < r.next || i-r.next >= uint64(len(words))*64 {
		return i < r.next
	}
	return *wordOf(words, i)>>(i%64)&1 != 0
}

// add adds packet i. It returns false if the packet was already in the set.
func (r *reassembly) add(i uint64) bool {
	if i < r.next {
		return false
	}
	words := r.words()
	if i == r.next && *wordOf(words, i+1)>>((i+1)%64)&1 == 0 { // the common case
		r.next++
		return true
	}
	for i-r.next >= uint64(len(words))*64 {
		words = r.grow()
	}
	word := wordOf(words, i)
	if *word>>(i%64)&1 != 0 {
		return false
	}
	*word |= 1 << (i % 64)
	for {
		word := wordOf(words, r.next)
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

// grow doubles the bitmap, and returns it.
func (r *reassembly) grow() []uint64 {
	old := r.words()
	grown := make([]uint64, 2*len(old))
	for k := range uint64(len(old)) * 64 {
		if i := r.next + k; *wordOf(old, i)>>(i%64)&1 != 0 {
			*wordOf(grown, i) |= 1 << (i % 64)
		}
	}
	r.bits = grown
	return grown
}
