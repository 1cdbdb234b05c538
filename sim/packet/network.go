// This file implements the event loop of the network and the forwarding of packets.

package packet

import (
	"context"
	"math"

	"github.com/tracedag/tracedag/sim"
	simevent "github.com/tracedag/tracedag/sim/event"
	"github.com/tracedag/tracedag/sim/topology"
)

// network is the network of a run.
//
// By default, a packet that leaves an idle port is scheduled to arrive at the other end immediately, and the end of its
// service is an event only if something depends on it. With the quirk stagedEvents there is an event for each end of
// service, end of a wire and switch crossing, as in htsim. Events of equal time are handled in scheduling order, so the
// number of events affects ties.
type network struct {
	queue    *simevent.Wheel
	now      uint64
	sequence uint32
	events   int64
	stop     bool            // run returns after the current event
	ctx      context.Context // nil: no limit
	err      error           // reason for an early end of the run, such as the end of the context; nil: none
	large    bool            // the ports and packets do not fit into the cache
	quirks   quirks

	packets    []packet
	freePacket uint32
	// sizes of a full data packet, a trimmed packet and a control packet in bytes
	fullSize, headerSize, controlSize uint32

	ports   []port
	buffers []sharedBuffer // by switch; nil: each port has a buffer of its own
	// bufferShare is the multiple of the free part of a shared buffer that the packets waiting at a port may take.
	bufferShare float64

	nics      []nic // by host
	ends      *topology.Ends
	switches  []switchDelay
	topology  *topology.Network
	given     *topology.Given  // nil: switches select among shortest paths
	routes    *topology.Routes // current routes
	intact    *topology.Routes // routes without failures
	hosts     uint32
	firstPath []uint32 // memory of pathOver
	reference pathInfo // path that determines the defaults of the network; see findReference
	// referenceEnds are the hosts of the reference path.
	referenceEnds [2]uint32
	balance       loadBalancer
	pfc           *pfc         // nil: no flow control
	telemetry     *telemetry   // nil: packets carry no telemetry
	sampler       *sampler     // nil: queues are not sampled
	observed      *observation // nil: no timeline

	failures *failures // nil: links do not fail

	flows     []flow
	freeFlow  uint32
	transport transport
	driver    driver
	records   []Flow
	seed      int64
}

// event is the type of an event, in the top bits of the low half of its key. The other bits of that half are an index.
type event uint32

const (
	arrival      event = iota // index: packet
	serviceEnd                // port
	wireEnd                   // port
	switchEnd                 // switch
	pauseArrival              // port at which a pause or resume frame has arrived
	lastByteSent              // flow whose last byte has left its host
	flowStart                 // flow
	sampling                  // unused
	failing                   // failure
	timerA                    // defined by the transport
	timerB
	timerC
	timerD
	driverEvent
)

const (
	indexBits = 28
	indexMask = 1<<indexBits - 1
)

// at schedules an event.
func (n *network) at(t uint64, e event, i uint32) {
	if n.sequence == math.MaxUint32 {
		n.renumber()
	}
	n.queue.Push(simevent.Event{Time: t, Key: uint64(n.sequence)<<32 | uint64(e)<<indexBits | uint64(i)})
	n.sequence++
}

// renumber renumbers all scheduled events from 0, keeping their order.
func (n *network) renumber() {
	events := make([]simevent.Event, 0, n.queue.Len())
	for n.queue.Len() > 0 {
		events = append(events, n.queue.Pop())
	}
	n.queue.Rewind()
	for i, e := range events {
		n.queue.Push(simevent.Event{Time: e.Time, Key: uint64(i)<<32 | uint64(e.Payload())})
	}
	n.sequence = uint32(len(events))
}

// checkEvents is the number of events between two checks of the context. It must be a power of two.
const checkEvents = 1 << 16

// run handles the events before a time, until an event sets stop or the context ends.
func (n *network) run(until uint64) {
	n.stop = false
	for !n.stop {
		ev, ok := n.queue.PopBefore(until)
		if !ok {
			return
		}
		if n.large {
			n.prefetch()
		}
		n.now = ev.Time
		if n.events++; n.events&(checkEvents-1) == 0 && n.interrupted() {
			return
		}
		i := ev.Payload() & indexMask
		switch e := event(ev.Payload() >> indexBits); e {
		case arrival:
			to := n.packets[i].due
			if to&1 != 0 {
				n.transport.receive(i)
			} else {
				n.forward(uint32(to>>1), i)
			}
		case serviceEnd:
			n.endService(i)
		case wireEnd:
			n.endWire(i)
		case switchEnd:
			n.leaveSwitch(i)
		case pauseArrival:
			n.pfc.takeEffect(n, i)
		case lastByteSent:
			n.driver.lastByteSent(i)
		case flowStart:
			n.startFlow(i)
		case sampling:
			n.sample()
		case failing:
			n.failures.apply(n, i)
		case timerA, timerB, timerC, timerD:
			n.transport.timer(e, i)
		default:
			n.driver.event(e, i)
		}
	}
}

// interrupted reports whether the context has ended, and then sets n.err.
func (n *network) interrupted() bool {
	n.err = sim.Interrupted(n.ctx)
	return n.err != nil
}

// send hands a packet to the NIC of its host.
func (n *network) send(host, p uint32) {
	n.balance.label(n, &n.packets[p])
	if out := n.routes.NIC(host); out != none {
		n.enqueue(out, p)
		return
	}
	n.dropUnroutable(p)
}

// arrive handles the arrival of a packet at the other end of its last port, for ports without a scheduled arrival.
func (n *network) arrive(p uint32) {
	i := n.packets[p].port
	pt := &n.ports[i]
	if n.quirks.pfcCountsAtArrival && n.pfc != nil && !pt.toHost {
		n.pfc.enter(n, i, n.packets[p].size)
	}
	switch {
	case pt.toHost:
		n.transport.receive(p)
	case n.quirks.stagedEvents && !n.balance.sourceRouted():
		n.enterSwitch(pt.to, p)
	default:
		n.forward(pt.to, p)
	}
}

// forward queues a packet at an output port of a switch.
func (n *network) forward(sw, p uint32) {
	if n.given != nil {
		n.follow(p)
		return
	}
	pk := &n.packets[p]
	if n.pfc != nil && !n.quirks.pfcCountsAtArrival {
		n.pfc.enter(n, pk.port, pk.size)
	}
	if n.quirks.stampAtFirstSwitch && pk.sent == 0 && pk.kind == data && pk.flags&trimmed == 0 {
		pk.sent = n.now
	}
	if out := n.balance.choosePort(n, sw, pk); out != none {
		n.enqueue(out, p)
		return
	}
	n.dropUnroutable(p)
}

// dropUnroutable drops a packet without a path.
func (n *network) dropUnroutable(p uint32) {
	if n.failures != nil {
		n.failures.unroutable++
	}
	if n.pfc != nil {
		n.pfc.lose(n, p)
	}
	n.free(p)
}

// switchDelay is the latency of a switch with staged events. Packets leave in order, with one event each.
type switchDelay struct {
	latency uint64
	queue   fifo
}

func (n *network) enterSwitch(sw, p uint32) {
	c := &n.switches[sw]
	if n.pushDelayed(&c.queue, p, n.now+c.latency) {
		n.at(n.now+c.latency, switchEnd, sw)
	}
}

func (n *network) leaveSwitch(sw uint32) {
	c := &n.switches[sw]
	n.forward(sw, n.popDelayed(&c.queue))
	if c.queue.head != none {
		n.at(n.packets[c.queue.head].due, switchEnd, sw)
	}
}

// unloadedLatency returns the time of a packet from one host to another in an idle network, in picoseconds.
func (n *network) unloadedLatency(from, to, size uint32) uint64 {
	t := uint64(0)
	for i := range n.topology.FirstPath(n.routes, from, to) {
		t += n.ports[i].byteTime().of(uint64(size)) + n.ports[i].latency
	}
	return t
}

// hopCount returns the number of links from one host to another.
func (n *network) hopCount(from, to uint32) (links int) {
	for range n.topology.FirstPath(n.routes, from, to) {
		links++
	}
	return links
}
