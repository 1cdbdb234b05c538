// This file is what a sender knows of the packets of a flow that are acknowledged selectively.

package packet

import simevent "github.com/tracedag/tracedag/sim/event"

// ledger is the packets of a flow at its sender, by their numbers, of which there are less than 1<<32. They are sent for
// the first time in their order.
type scoreboard struct {
	first uint64 // the lowest that the receiver is not known to have
	next  uint64 // the lowest that was never sent
	total uint64

	sentPackets    []sentPacket     // those from first to next, each at its number modulo the length, a power of two
	oldest, newest uint32           // of those under way, by when they were sent; none
	retransmits    simevent.MinHeap // those to be sent again; some of them may have arrived since
	lostCount      int              // how many of again have not
}

// sentPacket is a packet that was sent.
type sentPacket struct {
	sentAt       uint64 // when, for the last time
	older, newer uint32 // the packets under way that were sent before and after it
	state        packetState
	repeats      uint8 // how often it was sent again, 255 at most
}

// fate is what has become of a packet as far as the sender knows.
type packetState uint8

const (
	arrived packetState = iota
	inFlight
	lost // to be sent again
)

const minScoreboard = 64

// reset makes it that of another flow.
func (l *scoreboard) reset(total uint64) {
	*l = scoreboard{total: total, sentPackets: l.sentPackets, oldest: none, newest: none, retransmits: l.retransmits[:0]}
}

func (l *scoreboard) packet(seq uint64) *sentPacket {
	return &l.sentPackets[seq&uint64(len(l.sentPackets)-1)]
}

// has reports whether a packet was sent and is not known to be there.
func (l *scoreboard) has(seq uint64, state packetState) bool {
	return seq >= l.first && seq < l.next && l.packet(seq).state == state
}

// send notes that a packet is sent: the one that takeAgain has returned, or the next new one.
func (l *scoreboard) send(seq, now uint64) {
	if seq == l.next {
		if l.next-l.first == uint64(len(l.sentPackets)) {
			l.grow()
		}
		l.next++
		*l.packet(seq) = sentPacket{}
	} else if r := l.packet(seq); r.repeats < 255 {
		r.repeats++
	}
	r := l.packet(seq)
	r.sentAt, r.state, r.older, r.newer = now, inFlight, l.newest, none
	if l.newest == none {
		l.oldest = uint32(seq)
	} else {
		l.packet(uint64(l.newest)).newer = uint32(seq)
	}
	l.newest = uint32(seq)
}

func (l *scoreboard) grow() {
	old := l.sentPackets
	l.sentPackets = make([]sentPacket, max(minScoreboard, 2*len(old)))
	for seq := l.first; seq < l.next; seq++ {
		*l.packet(seq) = old[seq&uint64(len(old)-1)]
	}
}

// forget takes a packet out of those under way.
func (l *scoreboard) unlink(r *sentPacket) {
	if r.older == none {
		l.oldest = r.newer
	} else {
		l.packet(uint64(r.older)).newer = r.newer
	}
	if r.newer == none {
		l.newest = r.older
	} else {
		l.packet(uint64(r.newer)).older = r.older
	}
}

// lose has a packet that is under way be sent again.
func (l *scoreboard) markLost(seq uint64) {
	r := l.packet(seq)
	l.unlink(r)
	r.state = lost
	l.retransmits.Push(uint32(seq))
	l.lostCount++
}

// arrived notes that the receiver has a packet, and returns what was known of it before.
func (l *scoreboard) markArrived(seq uint64) packetState {
	r := l.packet(seq)
	was := r.state
	switch was {
	case inFlight:
		l.unlink(r)
	case lost:
		l.lostCount--
	}
	r.state = arrived
	return was
}

// lowestLost returns the packet that is to be sent again first; there must be one.
func (l *scoreboard) lowestLost() uint64 {
	for !l.has(uint64(l.retransmits[0]), lost) {
		l.retransmits.Pop()
	}
	return uint64(l.retransmits[0])
}

// takeLost removes the packet that is to be sent again first from those.
func (l *scoreboard) popLost() uint64 {
	seq := l.lowestLost()
	l.retransmits.Pop()
	l.lostCount--
	return seq
}
