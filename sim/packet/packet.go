package packet

import "github.com/tracedag/tracedag/internal/cpu"

// packet is a packet in the network. Its size is 64 bytes, one cache line.
type packet struct {
	flow uint32 // slot of its flow
	next uint32 // next packet in a queue or in the list of free packets
	dst  uint32 // destination host
	path uint32 // hash by which switches select the path; with source routing, the rest of the path number
	size uint32 // wire size in bytes
	port uint32 // last port that it left

	seq  uint64 // data: packet number, defined by the transport
	ack  uint64 // control: cumulative ACK, defined by the transport
	sent uint64 // send time of the data packet in picoseconds; ACKs echo it

	// due is the next node: twice the number of a switch, or twice the number of a host plus one. In a queue it is the
	// previous packet; on a wire or in a switch with staged events it is the departure time.
	due uint64

	pull     uint32 // defined by the transport
	kind     kind
	flags    flags
	priority priority
	// trimmedAtLastHop is set if the packet was trimmed at the port to its destination.
	trimmedAtLastHop bool
}

// kind is the role of a packet in its transport.
type kind uint8

const (
	data kind = iota
	ack
	nack
	pull
	syn           // precedes the data, in transports with a handshake
	creditRequest // requests credit, in transports with receiver credit
	cnp           // congestion notification from the receiver
)

type flags uint8

const (
	marked      flags = 1 << iota // congestion experienced
	trimmed                       // data: only the header remains
	retransmit                    // data: a retransmission
	lastPacket                    // data: the last packet of the flow, first transmission
	carriesPull                   // ack, nack: also a pull
	ecnEcho                       // ack, nack: the data packet was marked
	flagA                         // defined by the transport
	flagB
)

// priority is the priority of a packet at NICs; the lowest value is served first.
type priority uint8

const (
	highPriority priority = iota
	middlePriority
	lowPriority
	priorities
)

// none identifies no packet, port or flow.
const none = ^uint32(0)

// fifo is a queue of packets.
type fifo struct {
	head, tail uint32
}

func newFIFO() fifo {
	return fifo{none, none}
}

func (n *network) pushPacket(q *fifo, p uint32) {
	pk := &n.packets[p]
	pk.next = none
	pk.due = uint64(q.tail)
	if q.tail == none {
		q.head = p
	} else {
		n.packets[q.tail].next = p
	}
	q.tail = p
}

// popPacket removes and returns the first packet; there must be one.
func (n *network) popPacket(q *fifo) uint32 {
	p := q.head
	q.head = n.packets[p].next
	if q.head == none {
		q.tail = none
	}
	return p
}

// popLastPacket removes and returns the last packet; there must be one.
func (n *network) popLastPacket(q *fifo) uint32 {
	p := q.tail
	if p == q.head {
		q.head, q.tail = none, none
		return p
	}
	q.tail = uint32(n.packets[p].due)
	n.packets[q.tail].next = none
	return p
}

// newPacket returns a packet of a flow. Data, SYNs and credit requests go to the flow's destination at low priority,
// all other packets to its source at high priority.
func (n *network) newPacket(f uint32, k kind, size uint32) uint32 {
	p := n.freePacket
	if p != none {
		n.freePacket = n.packets[p].next
	} else {
		p = uint32(len(n.packets))
		if len(n.packets) == cap(n.packets) {
			n.packets = append(cpu.InHugePages(make([]packet, 0, max(1024, 2*cap(n.packets)))), n.packets...)
		}
		n.packets = append(n.packets, packet{})
	}
	fl := &n.flows[f]
	fl.references++
	pk := &n.packets[p]
	*pk = packet{flow: f, dst: fl.dst, size: size, kind: k, next: none, port: none, priority: lowPriority}
	if k == ack || k == nack || k == pull || k == cnp {
		pk.dst, pk.priority = fl.src, highPriority
	}
	return p
}

// free returns a packet to the list of free packets.
func (n *network) free(p uint32) {
	pk := &n.packets[p]
	pk.next = n.freePacket
	n.freePacket = p
	n.release(pk.flow)
}
