// This file prefetches ports and packets. Those of large networks do not fit into the cache, and events access them in
// an order that the processor cannot predict.

package packet

import (
	"unsafe"

	"github.com/tracedag/tracedag/internal/cpu"
)

const (
	largeNetwork = 4096 // smallest number of ports that benefits

	// Prefetch distances in events, found by measurement. Each stage uses what the one before has loaded.
	packetDistance = 10
	routeDistance  = 6
	portDistance   = 3
)

// prefetch prefetches the packets, routes, ports and flows of upcoming events.
func (n *network) prefetch() {
	payload, ok := n.queue.Peek(packetDistance)
	if !ok {
		return
	}
	switch i := payload & indexMask; event(payload >> indexBits) {
	case arrival:
		cpu.Prefetch(n.packets, i)
	case serviceEnd:
		n.prefetchPort(i)
	}
	payload, _ = n.queue.Peek(routeDistance)
	switch i := payload & indexMask; event(payload >> indexBits) {
	case arrival:
		if pk := &n.packets[i]; pk.due&1 == 0 {
			n.routes.Prefetch(uint32(pk.due>>1), n.routes.Edge(pk.dst))
		} else {
			cpu.Prefetch(n.flows, pk.flow)
			cpu.Prefetch(n.nics, pk.dst)
			n.transport.prefetch(pk)
		}
	case serviceEnd:
		if pt := &n.ports[i]; pt.discipline >= fairClasses {
			cpu.Prefetch(n.nics, pt.host)
		}
	}
	payload, _ = n.queue.Peek(portDistance)
	switch i := payload & indexMask; event(payload >> indexBits) {
	case arrival:
		pk := &n.packets[i]
		if pk.due&1 != 0 {
			n.prefetchHost(pk)
		} else if out := n.predictPort(pk); out != none {
			n.prefetchPort(out)
		}
	case serviceEnd:
		if next := n.predictPacket(&n.ports[i]); next != none {
			cpu.Prefetch(n.packets, next)
		}
	}
}

// prefetchPort prefetches the fields of a port that every packet uses.
func (n *network) prefetchPort(i uint32) {
	const line = 64
	at := uintptr(unsafe.Pointer(unsafe.SliceData(n.ports))) + uintptr(i)*unsafe.Sizeof(port{})
	cpu.PrefetchLines(at, at+line)
	cpu.PrefetchLines(at+2*line, at+2*line)
}

// prefetchEnd prefetches the state of the sender or the receiver of a flow to which a packet goes.
func prefetchEnd[S, R any](senders []S, receivers []R, pk *packet) {
	if pk.kind == data {
		cpu.Prefetch(receivers, pk.flow)
	} else {
		cpu.Prefetch(senders, pk.flow)
	}
}

// prefetchHost prefetches the port and the queue of the NIC at the destination of a packet, which will probably send an
// answer or more data.
func (n *network) prefetchHost(pk *packet) {
	if nic := n.routes.NIC(pk.dst); nic != none {
		n.prefetchPort(nic)
	}
	if waiting := n.nics[pk.dst].priorities[highPriority].flows; len(waiting) > 0 {
		cpu.Prefetch(waiting, 0)
	}
}

// predictPacket returns the packet that a port will probably serve next, or none.
func (n *network) predictPacket(pt *port) uint32 {
	if pt.discipline < fairClasses {
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
	sw, edge := uint32(pk.due>>1), n.routes.Edge(pk.dst)
	if sw == edge {
		return n.routes.HostPort(pk.dst)
	}
	if port, ok := n.routes.Only(sw, edge); ok {
		return port
	}
	return n.balance.hashedPort(n.routes.Next(sw, edge), sw, pk)
}
