// This file implements the event queue of a worker: the active routers and NICs of each future cycle, and the credits
// that arrive then. Idle cycles are skipped.

package flit

import "math/bits"

// eventQueue is a ring of cycles. An event must be less than the length of the ring ahead of the current cycle.
type eventQueue struct {
	mask             uint64   // ring length - 1; the length is a power of two
	routerBits       []uint64 // one bit per cycle of the ring and router
	nicBits          []uint64 // one bit per cycle of the ring and NIC
	routerW, nicW    int      // words per cycle
	credits          [][]creditEvent
	used             []uint64 // one bit per cycle of the ring with events
	now              uint64   // current cycle; never before the first
	waiting, lengths int      // number of cycles with events; words of used
}

// creditEvent returns credits to a virtual channel of an output.
type creditEvent struct {
	channel uint32
	flits   int32
}

func newEventQueue(horizon uint64, routers, nics int) eventQueue {
	length := uint64(64)
	for length <= horizon {
		length *= 2
	}
	q := eventQueue{now: never, mask: length - 1, routerW: (routers + 63) / 64, nicW: (nics + 63) / 64,
		lengths: int(length / 64)}
	q.routerBits = make([]uint64, int(length)*q.routerW)
	q.nicBits = make([]uint64, int(length)*q.nicW)
	q.credits = make([][]creditEvent, length)
	q.used = make([]uint64, q.lengths)
	return q
}

// mark records that a cycle has events.
func (q *eventQueue) mark(slot uint64) {
	if bit := uint64(1) << (slot % 64); q.used[slot/64]&bit == 0 {
		q.used[slot/64] |= bit
		q.waiting++
	}
}

// wakeRouter activates router r in cycle t.
func (q *eventQueue) wakeRouter(r uint32, t uint64) {
	slot := t & q.mask
	q.mark(slot)
	q.routerBits[int(slot)*q.routerW+int(r/64)] |= 1 << (r % 64)
}

// wakeNIC activates NIC h in cycle t.
func (q *eventQueue) wakeNIC(h uint32, t uint64) {
	slot := t & q.mask
	q.mark(slot)
	q.nicBits[int(slot)*q.nicW+int(h/64)] |= 1 << (h % 64)
}

// credit returns credits in cycle t.
func (q *eventQueue) credit(channel uint32, flits int32, t uint64) {
	slot := t & q.mask
	q.mark(slot)
	q.credits[slot] = append(q.credits[slot], creditEvent{channel, flits})
}

// nextUsed returns the first cycle with events after the current one, or never.
func (q *eventQueue) nextUsed() uint64 {
	if q.waiting == 0 {
		return never
	}
	from := q.now + 1
	slot := from & q.mask
	word := int(slot / 64)
	if rest := q.used[word] >> (slot % 64); rest != 0 {
		return from + uint64(bits.TrailingZeros64(rest))
	}
	ahead := 64 - slot%64
	for {
		if word++; word == q.lengths {
			word = 0
		}
		if q.used[word] != 0 {
			return from + ahead + uint64(bits.TrailingZeros64(q.used[word]))
		}
		ahead += 64
	}
}

// done marks the current cycle as processed.
func (q *eventQueue) done() {
	slot := q.now & q.mask
	if bit := uint64(1) << (slot % 64); q.used[slot/64]&bit != 0 {
		q.used[slot/64] &^= bit
		q.waiting--
	}
}
