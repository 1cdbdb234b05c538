package packet

import "github.com/tracedag/tracedag/internal/cpu"

// packet is a packet on its way, 64 bytes so that it takes one cache line.
type packet struct {
	flow uint32 // slot of its flow
	next uint32 // the packet behind it in a queue, or in the list of free ones
	dst  uint32 // host
	path uint32 // a hash of what it is spread by, or with source routes what is left of its path's number
	size uint32 // bytes on the wire
	port uint32 // the port that it left last

	seq  uint64 // data: the transport's number of the packet or its first byte
	ack  uint64 // control: what the receiver has
	sent uint64 // when the data packet was sent, echoed by acks, in picoseconds

	// due is where the packet is on its way to: twice the number of a switch, or of a host and one more. While it waits in
	// a queue it is the packet before it, and on a wire or in a switch of an exact network when it leaves that.
	due uint64

	pull     uint32 // the transport's own
	kind     kind
	flags    flags
	priority priority
	// atEdge says of a trimmed packet that it was trimmed at the port to its destination, not within the network.
	trimmedAtLastHop bool
}

// kind is what a packet is to its transport.
type kind uint8

const (
	data kind = iota
	ack
	nack
	pull
	syn           // of a transport with a handshake: it comes before the data
	creditRequest // to send: of a transport whose receivers grant credit
	cnp           // of congestion, from the receiver
)

type flags uint8

const (
	marked      flags = 1 << iota // congestion experienced
	trimmed                       // of a data packet only the header is left
	retransmit                    // the data was sent before
	lastPacket                    // of a data packet: it has the last byte of the flow, for the first time
	carriesPull                   // of an ack or nack: it is a pull, too
	ecnEcho                       // of an ack or nack: the data packet was marked
	flagA                         // the transport's own
	flagB
)

// class is the priority of a packet at network interfaces, where the lower goes first.
type priority uint8

const (
	highPriority priority = iota
	middlePriority
	lowPriority
	priorities
)

// none is no packet, no port, and so on.
const none = ^uint32(0)

// fifo is a list of packets in order.
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

// take removes the first packet; there must be one.
func (n *network) popPacket(q *fifo) uint32 {
	p := q.head
	q.head = n.packets[p].next
	if q.head == none {
		q.tail = none
	}
	return p
}

// takeLast removes the last packet; there must be one.
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

// newPacket returns a packet of a flow. Data, syn and request go to the flow's destination, in the low class, the others
// to its source, in the high class.
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

// free ends a packet.
func (n *network) free(p uint32) {
	pk := &n.packets[p]
	pk.next = n.freePacket
	n.freePacket = p
	n.release(pk.flow)
}
