// This file asks for memory before it is needed: the ports and packets of large networks do not fit into the cache, and
// events touch them in no order that the processor could find out by itself.

package packet

import "github.com/tracedag/tracedag/sim"

const (
	largeNetwork = 4096 // ports of a network from which on it is worth it

	// How many events ahead packets and ports are asked for. Found by measuring.
	packetsAhead = 8
	portsAhead   = 3
)

// lookAhead asks for what events to come will touch.
func (n *network) lookAhead() {
	what, ok := n.queue.Coming(packetsAhead)
	if !ok {
		return
	}
	switch i := what & indexMask; event(what >> indexBits) {
	case arrival:
		sim.Fetch(n.packets, i)
	case serviceEnd:
		sim.Fetch(n.ports, i)
	}
	what, _ = n.queue.Coming(portsAhead)
	switch i := what & indexMask; event(what >> indexBits) {
	case arrival:
		if out := n.guess(&n.packets[i]); out != none {
			sim.Fetch(n.ports, out)
		}
	case serviceEnd:
		if next := n.waits(&n.ports[i]); next != none {
			sim.Fetch(n.packets, next)
		}
	}
}

// waits returns a packet that waits at a port and will likely be served next, none if it is not at hand.
func (n *network) waits(pt *port) uint32 {
	if pt.host == none {
		if p := pt.queues[controlQueue].head; p != none {
			return p
		}
		return pt.queues[dataQueue].head
	}
	for k := range n.nics[pt.host].classes {
		if flows := n.nics[pt.host].classes[k].flows; len(flows) > 0 {
			return flows[0].fifo.head
		}
	}
	return none
}

// guess returns the port by which a packet will leave the switch that it comes to, if the flow's hash decides that.
func (n *network) guess(pk *packet) uint32 {
	if pk.due&1 != 0 { // it comes to a host
		return none
	}
	sw, edge := uint32(pk.due>>1), n.routes.Edge(pk.dst)
	if sw == edge {
		return n.routes.HostPort(pk.dst)
	}
	return n.balance.hashed(n.routes.Next(sw, edge), sw, pk)
}
