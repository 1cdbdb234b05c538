// This file prefetches ports and packets. Those of large networks do not fit into the cache, and events access them in
// an order that the processor cannot predict.

package packet

import "github.com/tracedag/tracedag/internal/cpu"

const (
	largeNetwork = 4096 // smallest number of ports that benefits

	// Prefetch distances in events, found by measurement.
	packetDistance = 8
	portDistance   = 3
)

// prefetch prefetches the packet or port of an upcoming event.
func (n *network) prefetch() {
	payload, ok := n.queue.Peek(packetDistance)
	if !ok {
		return
	}
	switch i := payload & indexMask; event(payload >> indexBits) {
	case arrival:
		cpu.Prefetch(n.packets, i)
	case serviceEnd:
		cpu.Prefetch(n.ports, i)
	}
	payload, _ = n.queue.Peek(portDistance)
	switch i := payload & indexMask; event(payload >> indexBits) {
	case arrival:
		if out := n.predictPort(&n.packets[i]); out != none {
			cpu.Prefetch(n.ports, out)
		}
	case serviceEnd:
		if next := n.predictPacket(&n.ports[i]); next != none {
			cpu.Prefetch(n.packets, next)
		}
	}
}

// predictPacket returns the packet that a port will probably serve next, or none.
func (n *network) predictPacket(pt *port) uint32 {
	if pt.host == none {
		if p := pt.queues[controlQueue].head; p != none {
			return p
		}
		return pt.queues[dataQueue].head
	}
	for k := range n.nics[pt.host].priorities {
		if flows := n.nics[pt.host].priorities[k].flows; len(flows) > 0 {
			return flows[0].fifo.head
		}
	}
	return none
}

// predictPort returns the output port of a packet at its next switch, if the flow's hash determines it.
func (n *network) predictPort(pk *packet) uint32 {
	if pk.due&1 != 0 { // the next node is a host
		return none
	}
	sw, edge := uint32(pk.due>>1), n.routes.Edge(pk.dst)
	if sw == edge {
		return n.routes.HostPort(pk.dst)
	}
	return n.balance.hashedPort(n.routes.Next(sw, edge), sw, pk)
}
