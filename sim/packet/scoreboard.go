// This file implements the scoreboard of selective ACKs at a sender.

package packet

import simevent "github.com/tracedag/tracedag/sim/event"

// scoreboard contains the packets of a flow by number, below 1<<32. New packets are sent in order.
type scoreboard struct {
	first uint64 // first unacknowledged packet
	next  uint64 // first packet never sent
	total uint64

	sentPackets    []sentPacket     // packets from first to next, indexed modulo the length, a power of two
	oldest, newest uint32           // ends of the list of packets in flight by send time; none: empty
	retransmits    simevent.MinHeap // packets to retransmit; some may have arrived since
	lostCount      int              // number of packets in retransmits that have not arrived
}

// sentPacket is the state of a sent packet.
type sentPacket struct {
	sentAt       uint64 // time of the last transmission
	older, newer uint32 // neighbors in the list of packets in flight
	state        packetState
	repeats      uint8 // number of retransmissions, at most 255
}

// packetState is the state of a packet as known to the sender.
type packetState uint8

const (
	arrived packetState = iota
	inFlight
	lost // to be retransmitted
)

const minScoreboard = 64

// reset initializes the scoreboard of a new flow.
func (l *scoreboard) reset(total uint64) {
	*l = scoreboard{total: total, sentPackets: l.sentPackets, oldest: none, newest: none,
		retransmits: l.retransmits[:0]}
}

func (l *scoreboard) packet(seq uint64) *sentPacket {
	return &l.sentPackets[seq&uint64(len(l.sentPackets)-1)]
}

// has reports whether a packet was sent and is in the given state.
func (l *scoreboard) has(seq uint64, state packetState) bool {
	return seq >= l.first && seq < l.next && l.packet(seq).state == state
}

// send records the transmission of the packet returned by popLost, or of the next new one.
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

// unlink removes a packet from the list of packets in flight.
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

// markLost schedules a packet in flight for retransmission.
func (l *scoreboard) markLost(seq uint64) {
	r := l.packet(seq)
	l.unlink(r)
	r.state = lost
	l.retransmits.Push(uint32(seq))
	l.lostCount++
}

// markArrived records that the receiver has a packet, and returns its previous state.
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

// lowestLost returns the first packet to retransmit; there must be one.
func (l *scoreboard) lowestLost() uint64 {
	for !l.has(uint64(l.retransmits[0]), lost) {
		l.retransmits.Pop()
	}
	return uint64(l.retransmits[0])
}

// popLost removes and returns the first packet to retransmit; there must be one.
func (l *scoreboard) popLost() uint64 {
	seq := l.lowestLost()
	l.retransmits.Pop()
	l.lostCount--
	return seq
}
