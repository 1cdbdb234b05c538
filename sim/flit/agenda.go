// This file has the agenda of a run: which routers and interfaces have something to do in which of the next cycles, and the
// credits that arrive then. Cycles in which nobody has are skipped.

package flit

import "math/bits"

// agenda is a ring of cycles. What is entered must lie ahead of the cycle at hand by less than the length of the ring.
type agenda struct {
	mask             uint64   // length - 1, a power of two less one
	routerBits       []uint64 // of each cycle of the ring
	nicBits          []uint64
	routerW, nicW    int // words of a cycle
	credits          [][]creditEvent
	used             []uint64 // a bit for each cycle of the ring that has anything
	now              uint64   // the cycle at hand; never before the first
	waiting, lengths int      // cycles that have anything; words of used
}

// creditEvent is credits that arrive at an output.
type creditEvent struct {
	channel uint32
	flits   int32
}

func newAgenda(horizon uint64, routers, nics int) agenda {
	length := uint64(64)
	for length <= horizon {
		length *= 2
	}
	a := agenda{now: never, mask: length - 1, routerW: (routers + 63) / 64, nicW: (nics + 63) / 64, lengths: int(length / 64)}
	a.routerBits = make([]uint64, int(length)*a.routerW)
	a.nicBits = make([]uint64, int(length)*a.nicW)
	a.credits = make([][]creditEvent, length)
	a.used = make([]uint64, a.lengths)
	return a
}

// mark notes that a cycle has something.
func (a *agenda) mark(slot uint64) {
	if bit := uint64(1) << (slot % 64); a.used[slot/64]&bit == 0 {
		a.used[slot/64] |= bit
		a.waiting++
	}
}

func (a *agenda) wakeRouter(r uint32, t uint64) {
	slot := t & a.mask
	a.mark(slot)
	a.routerBits[int(slot)*a.routerW+int(r/64)] |= 1 << (r % 64)
}

func (a *agenda) wakeNIC(h uint32, t uint64) {
	slot := t & a.mask
	a.mark(slot)
	a.nicBits[int(slot)*a.nicW+int(h/64)] |= 1 << (h % 64)
}

func (a *agenda) credit(channel uint32, flits int32, t uint64) {
	slot := t & a.mask
	a.mark(slot)
	a.credits[slot] = append(a.credits[slot], creditEvent{channel, flits})
}

// nextUsed returns the first cycle after the one at hand that has anything, never if there is none.
func (a *agenda) nextUsed() uint64 {
	if a.waiting == 0 {
		return never
	}
	from := a.now + 1
	slot := from & a.mask
	word := int(slot / 64)
	if rest := a.used[word] >> (slot % 64); rest != 0 {
		return from + uint64(bits.TrailingZeros64(rest))
	}
	ahead := 64 - slot%64
	for {
		if word++; word == a.lengths {
			word = 0
		}
		if a.used[word] != 0 {
			return from + ahead + uint64(bits.TrailingZeros64(a.used[word]))
		}
		ahead += 64
	}
}

// done notes that the cycle at hand has nothing more.
func (a *agenda) done() {
	slot := a.now & a.mask
	if bit := uint64(1) << (slot % 64); a.used[slot/64]&bit != 0 {
		a.used[slot/64] &^= bit
		a.waiting--
	}
}
