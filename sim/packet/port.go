// This file implements the ports: their queues and the service of packets.

package packet

import "github.com/tracedag/tracedag/sim"

// discipline is the queueing discipline of a port.
type discipline uint8

const (
	dropTail        discipline = iota // FIFO, drops packets that do not fit
	markingDropTail                   // the same, and marks packets that leave a queue above a threshold
	trimming                          // control before data; data packets that do not fit lose their payload
	randomDrop                        // FIFO, drops at random when nearly full
	controlFirst                      // control before data, each with tail drop
	markingFirst                      // the same, with ECN marks
	aeolus                            // control before data; less capacity for speculative data
	lossless                          // FIFO, pauses the ports that send to the switch
	fairClasses                       // NIC: strict priorities, each with round robin of flows
	fairFlows                         // NIC: round robin of flows, regardless of priority
	scheduled                         // NIC: requests each packet from the transport
)

// port sends packets over one direction of a link. The ports of a large network do not fit into the cache: the first
// three cache lines, which prefetch loads, have the fields of every packet, and the size is a multiple of a line.
type port struct {
	busyUntil    uint64 // end of the current service
	latency      uint64 // from the end of service to the arrival; for direct ports including the next switch
	psPerByte    uint32 // with partPerByte the time of a byte; see [byteTime]
	to           uint32 // switch or host at the other end
	serving      uint32 // packet in service; for a direct port, it may have left
	servingSize  uint32
	servingQueue uint8
	discipline   discipline
	twoQueues    bool // control packets have their own queue
	direct       bool // packets are scheduled to arrive when their service starts
	pending      bool // an event for the end of service is scheduled
	paused       bool
	toHost       bool // the other end is a host
	partPerByte  uint8
	bytes        [2]uint64 // queued bytes, including the packet in service
	// 1 + the switch whose shared buffer holds the waiting data; 0: the port has a buffer of its own
	buffer     uint32
	contenders uint32 // trimming: data packets that arrived for the last place in the queue

	queues   [2]fifo   // data and control; disciplines without control queue use only data
	capacity [2]uint64 // bytes
	peak     [2]uint64 // largest queue so far in bytes
	packets  uint64
	sent     uint64 // bytes sent

	kmin, kmax   uint64 // ECN thresholds in bytes; randomDrop and aeolus use them for their own limits
	markChance   uint64 // marking probability at kmax, in units of 1/alwaysMark
	random       sim.Random
	host         uint32 // host of a NIC; none for a switch
	servingFrom  uint32 // lossless: port over which the packet in service arrived
	controlRun   uint32 // consecutive control packets served while data waited
	controlTurns uint32 // limit of controlRun; then data is served
	dataTurn     int64  // bytes of data to serve in a row after controlTurns control packets, at least a packet
	dataLeft     int64  // rest of the current turn of data

	loadCapacity uint64 // capacity in whose shares load balancing measures the queue
	trims, trimsTail, drops, marks,
	controlDrops uint64
	headerMarks uint64 // those of marks that are headers of trimmed packets

	wireLatency uint64
	wire        fifo // packets on the wire, with staged events

	pausedAt, pausedTime uint64 // start of the current pause, and total pause time before it
	pausesSent           uint32 // pauses sent over this port for traffic over the opposite one
	pausesReceived       uint32
	markHeaders          bool   // trimming: mark headers of trimmed packets too
	virtual              bool   // NIC: the first link of the route sends the packet at the same time
	handed               uint32 // virtual, with fairFlows: flow of the data packet in service, or none
	_                    [24]byte
}

// alwaysMark is the marking probability 1.
const alwaysMark = 0x7fffffff

// Queues of a port.
const (
	dataQueue = iota
	controlQueue
)

// finishService accounts for a service that ended without an event.
func (pt *port) finishService(now uint64) {
	if !pt.pending && pt.busyUntil <= now {
		pt.bytes[pt.servingQueue] -= uint64(pt.servingSize)
		pt.serving = none
	}
}

// enqueue sends or queues a packet.
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
		if pt.buffer != 0 && queue == dataQueue {
			n.buffers[pt.buffer-1].used += uint64(pk.size)
		}
		n.pushPacket(&pt.queues[queue], p)
	}
	n.scheduleServiceEnd(i, pt)
}

// queueOf returns the queue of a packet.
func (pt *port) queueOf(pk *packet) int {
	if pt.twoQueues && (pk.kind != data || pk.flags&trimmed != 0) {
		return controlQueue
	}
	return dataQueue
}

// scheduleServiceEnd schedules the end of the current service, if any, unless it is scheduled.
func (n *network) scheduleServiceEnd(i uint32, pt *port) {
	if !pt.pending && pt.serving != none {
		pt.pending = true
		n.at(pt.busyUntil, serviceEnd, i)
	}
}

// serve starts the transmission of a packet.
func (n *network) serve(i uint32, pt *port, p uint32, queue int) {
	pk := &n.packets[p]
	pt.serving, pt.servingSize, pt.servingQueue = p, pk.size, uint8(queue)
	pt.busyUntil = n.now + pt.byteTime().of(uint64(pk.size))
	if n.telemetry != nil && !n.quirks.telemetryAtServiceEnd {
		n.telemetry.record(n, i, p, pt.bytes[queue]-uint64(pk.size))
	}
	pt.packets++
	pt.sent += uint64(pk.size)
	if pt.discipline >= fairClasses {
		n.recordDeparture(pt, pk)
	}
	if pt.discipline == lossless {
		pt.servingFrom = pk.port
	}
	if !pt.direct {
		pt.pending = true
		n.at(pt.busyUntil, serviceEnd, i)
		if pt.virtual {
			n.handOver(i, pt, p)
		}
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

// needsServiceEnd reports whether the end of service is an event even if no packet waits.
func (pt *port) needsServiceEnd() bool {
	switch pt.discipline {
	case lossless, fairFlows, scheduled:
		return true
	case markingDropTail, markingFirst:
		return pt.kmin < uint64(pt.servingSize)
	}
	return false
}

// endService handles the end of a service, and serves the next packet.
func (n *network) endService(i uint32) {
	pt := &n.ports[i]
	p, queue := pt.serving, pt.servingQueue
	pt.pending, pt.serving = false, none
	queued := pt.bytes[queue]
	pt.bytes[queue] -= uint64(pt.servingSize)
	leaves := none // the flow to notify
	// Avoid accesses to the packet: it has left and is no longer in the cache.
	switch pt.discipline {
	case trimming: // mark by the queue left behind
		if left := pt.bytes[dataQueue]; left > pt.kmin {
			if pk := &n.packets[p]; queue == dataQueue || pk.kind == data && pt.markHeaders {
				pt.mark(pk, left)
			}
		}
	case markingDropTail, markingFirst: // mark by the queue including the packet
		if queued > pt.kmin {
			pt.mark(&n.packets[p], queued)
		}
	case lossless:
		if pk := &n.packets[p]; pk.kind == data {
			pt.mark(pk, queued)
		}
		n.pfc.leave(n, pt.servingFrom, pt.servingSize)
	case fairFlows:
		if pt.virtual {
			leaves = pt.handed
		} else if pk := &n.packets[p]; pk.kind == data {
			leaves = pk.flow
		}
	}
	if n.telemetry != nil && n.quirks.telemetryAtServiceEnd {
		n.telemetry.record(n, i, p, queued)
	}
	if !pt.direct && !pt.virtual {
		n.startWire(i, pt, p)
	}
	if !pt.paused && pt.serving == none {
		n.serveNext(i, pt)
	}
	if leaves != none {
		n.transport.packetSent(leaves)
		if pt.virtual {
			n.release(leaves)
		}
	}
}

// serveNext serves the next waiting packet, if any.
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
		queue := n.nextQueue(pt)
		if queue < 0 {
			return
		}
		p := n.popPacket(&pt.queues[queue])
		if pt.buffer != 0 && queue == dataQueue {
			n.buffers[pt.buffer-1].used -= uint64(n.packets[p].size)
		}
		n.serve(i, pt, p, queue)
	}
	if pt.direct && (pt.queues[dataQueue].head != none || pt.queues[controlQueue].head != none ||
		pt.discipline >= fairClasses && n.nics[pt.host].waiting > 0) {
		n.scheduleServiceEnd(i, pt)
	}
}

// nextQueue returns the queue to serve next, or -1 if both are empty. Control goes first, except after controlTurns
// packets: then data has a turn. While both wait, the share of data on the link does not depend on the size of data
// packets, since a turn has the bytes of a full one.
func (n *network) nextQueue(pt *port) int {
	control, data := pt.queues[controlQueue].head != none, pt.queues[dataQueue].head != none
	switch {
	case control && data:
		if pt.dataLeft <= 0 {
			if pt.controlRun++; pt.controlRun > pt.controlTurns {
				pt.controlRun = 0
			}
			if pt.controlRun < pt.controlTurns {
				return controlQueue
			}
			pt.dataLeft = pt.dataTurn
		}
		pt.dataLeft -= int64(n.packets[pt.queues[dataQueue].head].size)
		return dataQueue
	case control:
		return controlQueue
	case data:
		return dataQueue
	}
	return -1
}

// mark marks a packet at random. The probability is 0 up to kmin queued bytes, grows linearly to markChance at kmax,
// and is 1 above.
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
	if pk.flags&trimmed != 0 {
		pt.headerMarks++
	}
}

// startWire puts a served packet on the wire, for ports that are not direct.
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

// pushDelayed appends a packet that leaves the queue at a given time, and reports whether it is the first.
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

// popDelayed removes and returns the first packet. The caller schedules the event of the next one after handling it.
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
