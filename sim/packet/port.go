// This file is the ports: what waits at them, and how they send it.

package packet

import "github.com/tracedag/tracedag/sim"

// discipline is how a port treats packets that it cannot send at once.
type discipline uint8

const (
	dropTail        discipline = iota // first in, first out; what does not fit is dropped
	markingDropTail                   // the same, and what leaves a queue above a threshold is marked
	trimming                          // control before data; data that does not fit loses its payload
	randomDrop                        // first in, first out; drops some of what comes when it is nearly full
	controlFirst                      // control before data, each drop tail
	markingFirst                      // the same, with marks
	aeolus                            // control before data; data sent on speculation has less room
	lossless                          // first in, first out; the ports that feed it are paused
	fairClasses                       // of a host: strict classes, and round robin of flows in each
	fairFlows                         // of a host: round robin of flows, whatever the class
	scheduled                         // of a host: the transport is asked for each packet
)

// port sends packets over one direction of a link. Its fields are in the order of how often they are needed, for the ports
// of a large network do not fit into the cache.
type port struct {
	busyUntil    uint64 // when the packet in service has left
	latency      uint64 // from then until it is at the other end; of direct ports, the latency of a switch there included
	psPerByte    uint32
	to           uint32 // switch or host at the other end
	serving      uint32 // the packet in service; of a direct port, that may have left
	servingSize  uint32
	servingQueue uint8
	discipline   discipline
	twoQueues    bool // control packets have a queue of their own
	direct       bool // its packets are scheduled to arrive when their service begins
	pending      bool // there is an event for the end of the service
	paused       bool
	toHost       bool      // the other end is a host
	bytes        [2]uint64 // queued, with the packet in service
	host         uint32    // whose interface it is; none of a switch's
	servingFrom  uint32    // lossless: the port by which the packet in service came

	queues   [2]fifo   // of data and control; those without classes use data
	capacity [2]uint64 // bytes that fit
	peak     [2]uint64 // most bytes queued
	packets  uint64
	sent     uint64 // bytes

	kmin, kmax   uint64 // bytes in the queue above which marks begin and are certain
	markChance   uint64 // of a mark at most, of certain
	markHeaders  bool   // trimming: those of trimmed packets are marked, too
	random       sim.Random
	controlRun   uint32 // how often control went first although data waited
	controlTurns uint32 // after how many of these data goes first once
	trims, trimsTail, drops, marks,
	controlDrops uint64

	wireLatency uint64
	wire        fifo // packets on the wire; where a run is exact

	pausedAt, pausedTime uint64 // since when, and how long before that
	pausesSent           uint32 // by this way, because of what came by the other of the link
	pausesReceived       uint32
}

// certain is the chance of what always happens.
const alwaysMark = 0x7fffffff

// Queues of a port.
const (
	dataQueue = iota
	controlQueue
)

// settle takes note of a service that has ended without an event.
func (pt *port) finishService(now uint64) {
	if !pt.pending && pt.busyUntil <= now {
		pt.bytes[pt.servingQueue] -= uint64(pt.servingSize)
		pt.serving = none
	}
}

// enqueue has a packet wait at a port or be sent at once.
func (n *network) enqueue(i, p uint32) {
	pt := &n.ports[i]
	if pt.serving != none {
		pt.finishService(n.now)
	}
	if !n.admit(pt, p) {
		return
	}
	pk := &n.packets[p]
	queue := pt.queueOf(pk)
	pt.bytes[queue] += uint64(pk.size)
	pt.peak[queue] = max(pt.peak[queue], pt.bytes[queue])
	if pt.serving == none && !pt.paused {
		if pt.discipline >= fairClasses {
			n.nics[pt.host].passThrough(n, pt.discipline, p)
		}
		n.serve(i, pt, p, queue)
		return
	}
	if pt.discipline >= fairClasses {
		n.nics[pt.host].push(n, pt.discipline, p)
	} else {
		n.pushPacket(&pt.queues[queue], p)
	}
	n.scheduleServiceEnd(i, pt)
}

// queueOf returns which queue of the port is for a packet.
func (pt *port) queueOf(pk *packet) int {
	if pt.twoQueues && (pk.kind != data || pk.flags&trimmed != 0) {
		return controlQueue
	}
	return dataQueue
}

// await makes sure that there is an event when the service at hand ends, if there is one.
func (n *network) scheduleServiceEnd(i uint32, pt *port) {
	if !pt.pending && pt.serving != none {
		pt.pending = true
		n.at(pt.busyUntil, serviceEnd, i)
	}
}

// serve begins to send a packet.
func (n *network) serve(i uint32, pt *port, p uint32, queue int) {
	pk := &n.packets[p]
	pt.serving, pt.servingSize, pt.servingQueue = p, pk.size, uint8(queue)
	pt.busyUntil = n.now + uint64(pk.size)*uint64(pt.psPerByte)
	if n.telemetry != nil && !n.quirks.telemetryAtServiceEnd {
		n.telemetry.record(n, i, p, pt.bytes[queue]-uint64(pk.size))
	}
	pt.packets++
	pt.sent += uint64(pk.size)
	if pt.discipline >= fairClasses {
		n.noteDeparture(pt, pk)
	}
	if pt.discipline == lossless {
		pt.servingFrom = pk.port
	}
	if !pt.direct {
		pt.pending = true
		n.at(pt.busyUntil, serviceEnd, i)
		return
	}
	pk.port = i
	pk.due = uint64(pt.to) << 1
	if pt.toHost {
		pk.due |= 1
	}
	n.at(pt.busyUntil+pt.latency, arrival, p)
	if pt.needsServiceEnd() {
		n.scheduleServiceEnd(i, pt)
	}
}

// mustEnd reports whether something depends on the end of a service even where nothing waits for it.
func (pt *port) needsServiceEnd() bool {
	switch pt.discipline {
	case lossless, fairFlows, scheduled:
		return true
	case markingDropTail, markingFirst:
		return pt.kmin < uint64(pt.servingSize)
	}
	return false
}

// endService handles the end of a service: the packet goes on, then the next is served.
func (n *network) endService(i uint32) {
	pt := &n.ports[i]
	p, queue := pt.serving, pt.servingQueue
	pt.pending, pt.serving = false, none
	queued := pt.bytes[queue]
	pt.bytes[queue] -= uint64(pt.servingSize)
	leaves := none // a flow that is to hear of it
	// The packet is not looked at if that can be helped: it has gone on, and is no longer in the cache.
	switch pt.discipline {
	case trimming: // by what is left behind
		if left := pt.bytes[dataQueue]; left > pt.kmin {
			if pk := &n.packets[p]; queue == dataQueue || pk.kind == data && pt.markHeaders {
				pt.mark(pk, left)
			}
		}
	case markingDropTail, markingFirst: // with the packet itself
		if queued > pt.kmin {
			pt.mark(&n.packets[p], queued)
		}
	case lossless:
		if pk := &n.packets[p]; pk.kind == data {
			pt.mark(pk, queued)
		}
		n.pfc.leave(n, pt.servingFrom, pt.servingSize)
	case fairFlows:
		if pk := &n.packets[p]; pk.kind == data {
			leaves = pk.flow
		}
	}
	if n.telemetry != nil && n.quirks.telemetryAtServiceEnd {
		n.telemetry.record(n, i, p, queued)
	}
	if !pt.direct {
		n.startWire(i, pt, p)
	}
	if !pt.paused && pt.serving == none {
		n.serveNext(i, pt)
	}
	if leaves != none {
		n.transport.packetSent(leaves)
	}
}

// serveNext serves the packet whose turn it is, if any waits.
func (n *network) serveNext(i uint32, pt *port) {
	switch {
	case pt.discipline == scheduled:
		p := n.transport.next(pt.host)
		if p == none {
			return
		}
		pt.bytes[dataQueue] += uint64(n.packets[p].size)
		pt.peak[dataQueue] = max(pt.peak[dataQueue], pt.bytes[dataQueue])
		n.serve(i, pt, p, dataQueue)
		return
	case pt.discipline >= fairClasses:
		p := n.nics[pt.host].pop(n)
		if p == none {
			return
		}
		n.serve(i, pt, p, dataQueue)
	default:
		queue := pt.nextQueue()
		if queue < 0 {
			return
		}
		n.serve(i, pt, n.popPacket(&pt.queues[queue]), queue)
	}
	if pt.direct && (pt.queues[dataQueue].head != none || pt.queues[controlQueue].head != none ||
		pt.discipline >= fairClasses && n.nics[pt.host].waiting > 0) {
		n.scheduleServiceEnd(i, pt)
	}
}

// turn returns which queue is served next, -1 if both are empty: control, but now and then data.
func (pt *port) nextQueue() int {
	control, data := pt.queues[controlQueue].head != none, pt.queues[dataQueue].head != none
	switch {
	case control && data:
		if pt.controlRun++; pt.controlRun > pt.controlTurns {
			pt.controlRun = 0
		}
		if pt.controlRun < pt.controlTurns {
			return controlQueue
		}
		return dataQueue
	case control:
		return controlQueue
	case data:
		return dataQueue
	}
	return -1
}

// mark marks a packet with the probability that the bytes in the queue call for: none up to least, one above most, in
// between growing linearly to chance.
func (pt *port) mark(pk *packet, queued uint64) {
	if queued <= pt.kmin {
		return
	}
	if queued <= pt.kmax {
		chance := pt.markChance * (queued - pt.kmin) / (pt.kmax - pt.kmin)
		if pt.random.Next()>>33 >= chance {
			return
		}
	}
	pk.flags |= marked
	pt.marks++
}

// handOn puts a packet that was served on the wire; of ports that are not direct.
func (n *network) startWire(i uint32, pt *port, p uint32) {
	n.packets[p].port = i
	if !n.quirks.stagedEvents {
		n.arrive(p)
		return
	}
	if n.pushDelayed(&pt.wire, p, n.now+pt.wireLatency) {
		n.at(n.now+pt.wireLatency, wireEnd, i)
	}
}

// line puts a packet at the end of a line, where each leaves at a time of its own, and reports whether it is the first.
func (n *network) pushDelayed(q *fifo, p uint32, due uint64) (first bool) {
	pk := &n.packets[p]
	pk.next, pk.due = none, due
	first = q.head == none
	if first {
		q.head = p
	} else {
		n.packets[q.tail].next = p
	}
	q.tail = p
	return first
}

// leaveLine takes the first of a line, and has an event come for the next once what is to be done with the first is done.
func (n *network) popDelayed(q *fifo) (p uint32) {
	p = q.head
	q.head = n.packets[p].next
	if q.head == none {
		q.tail = none
	}
	return p
}

// endWire delivers the first packet on a wire.
func (n *network) endWire(i uint32) {
	pt := &n.ports[i]
	n.arrive(n.popDelayed(&pt.wire))
	if pt.wire.head != none {
		n.at(n.packets[pt.wire.head].due, wireEnd, i)
	}
}
