package packet

import "github.com/tracedag/tracedag/dag"

// flow is a flow in progress.
type flow struct {
	id         uint32 // unique number; NICs order flows by it
	src, dst   uint32 // hosts
	message    uint32 // message number of the driver
	record     uint32
	references int32 // number of packets in the network and of retains
	started    bool
	complete   bool // the sender knows that the receiver has all data
	delivered  bool
	bytes      uint64
	start      uint64

	// Load-balancing state of the source and of the destination.
	labels [2]flowLabels
	next   uint32 // the next free slot
	behind uint32 // next flow in a flowList
}

// Flow is the record of a message or flow.
type Flow struct {
	Source, Target uint32 // hosts
	ID             uint32
	message        uint32 // number of the driver
	Bytes          uint64
	Start          dag.Time // handover to the transport
	Delivered      dag.Time // arrival of the last byte at the receiver; 0: not delivered
	Acknowledged   dag.Time // arrival of the last ACK at the sender; 0: not complete
	Retransmits    uint32   // retransmitted packets
	Nacks          uint32   // NACKs and other loss indications at the sender
}

// openFlow creates a flow. The transport does not start it before startFlow.
func (n *network) openFlow(src, dst, message, id uint32, bytes uint64) uint32 {
	f := n.freeFlow
	if f != none {
		n.freeFlow = n.flows[f].next
	} else {
		f = uint32(len(n.flows))
		n.flows = append(n.flows, flow{})
	}
	n.flows[f] = flow{id: id, src: src, dst: dst, message: message, bytes: bytes, record: uint32(len(n.records))}
	n.records = append(n.records, Flow{Source: src, Target: dst, ID: id, message: message, Bytes: bytes})
	n.balance.open(n, f)
	n.transport.open(f)
	return f
}

// startFlow makes the transport start a flow.
func (n *network) startFlow(f uint32) {
	fl := &n.flows[f]
	fl.start, fl.started = n.now, true
	n.records[fl.record].Start = dag.Time(n.now)
	if n.sampler != nil {
		n.sampler.flows++
		n.sampler.wake(n)
	}
	n.transport.start(f)
}

// record returns the record of a flow.
func (n *network) record(f uint32) *Flow {
	return &n.records[n.flows[f].record]
}

// deliverFlow records that the receiver of a flow has all data.
func (n *network) deliverFlow(f uint32) {
	fl := &n.flows[f]
	if fl.delivered {
		return
	}
	fl.delivered = true
	n.records[fl.record].Delivered = dag.Time(n.now)
	n.driver.delivered(f)
}

// completeFlow records that the sender of a flow knows that the receiver has all data. Later packets of the flow have
// no effect.
func (n *network) completeFlow(f uint32) {
	fl := &n.flows[f]
	if fl.complete {
		return
	}
	fl.complete = true
	if n.sampler != nil {
		n.sampler.flows--
	}
	n.records[fl.record].Acknowledged = dag.Time(n.now)
	n.driver.acknowledged(f)
	if n.flows[f].references == 0 {
		n.freeSlot(f)
	}
}

// retain keeps the slot of a flow until release, like a packet in the network.
func (n *network) retain(f uint32) {
	n.flows[f].references++
}

// release ends a retain, or the lifetime of a packet.
func (n *network) release(f uint32) {
	fl := &n.flows[f]
	fl.references--
	if fl.references == 0 && fl.complete {
		n.freeSlot(f)
	}
}

// freeSlot makes the slot of a flow available.
func (n *network) freeSlot(f uint32) {
	n.flows[f].next = n.freeFlow
	n.freeFlow = f
}

// recordDeparture records that the NIC of a host starts to send a packet.
func (n *network) recordDeparture(pt *port, pk *packet) {
	if pt.discipline == fairFlows && pk.kind == data {
		pk.sent = n.now
	}
	if pk.flags&lastPacket != 0 {
		pk.flags &^= lastPacket
		n.at(pt.busyUntil, lastByteSent, pk.flow)
	}
}

// payload returns the data bytes of a packet of a flow; with pad, the last packet has mss bytes.
func (n *network) payload(f uint32, seq, mss uint64, pad bool) uint64 {
	if pad {
		return mss
	}
	return min(mss, n.flows[f].bytes-seq*mss)
}

// meanPacket returns the mean wire bytes of the packets of a flow.
func (n *network) meanPacket(f uint32, mss uint64, header uint32, pad bool) float64 {
	bytes := n.flows[f].bytes
	packets := packetCount(bytes, mss)
	if pad {
		bytes = packets * mss
	}
	return float64(bytes)/float64(packets) + float64(header)
}

// newData returns a new data packet of a flow with the given wire size in bytes.
func (n *network) newData(f uint32, seq uint64, size uint32, marks flags) uint32 {
	if marks&retransmit != 0 {
		n.record(f).Retransmits++
	}
	p := n.newPacket(f, data, size)
	pk := &n.packets[p]
	pk.seq, pk.flags, pk.sent = seq, marks, n.now
	return p
}

// sendData sends a new data packet from the source of a flow.
func (n *network) sendData(f uint32, seq uint64, size uint32, marks flags) {
	n.send(n.flows[f].src, n.newData(f, seq, size, marks))
}
