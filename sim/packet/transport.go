package packet

// transport is what hosts do to bring flows from one to the other. One runs all flows; what it keeps for them it keeps by
// their slots.
type transport interface {
	// open makes a flow's state, for a slot that may have had another flow before.
	open(f uint32)
	// start has the sender of a flow begin.
	start(f uint32)
	// receive takes a packet at its destination. The transport frees it.
	receive(p uint32)
	// timer handles an event of the transport's own.
	timer(e event, i uint32)
	// next returns the packet that the interface of a host is to send, none if there is none, where the transport
	// schedules interfaces itself.
	next(host uint32) uint32
	// left says that a data packet of a flow has left its host, and the next is served. Only where flows take turns at
	// interfaces whatever the class; there data packets are stamped when the interface begins to send them, too.
	packetSent(f uint32)
}

// pushing is a transport that gives packets to the interface when it likes.
type pushTransport struct{}

func (pushTransport) next(uint32) uint32 { return none }
func (pushTransport) packetSent(uint32)  {}

// driver is whoever wants flows to run.
type driver interface {
	// left says that the last byte of a flow has left the sender's host.
	lastByteSent(f uint32)
	// delivered says that the receiver of a flow has all of it.
	delivered(f uint32)
	// acknowledged says that the sender of a flow knows that.
	acknowledged(f uint32)
	// event handles an event of the driver's own.
	event(e event, i uint32)
}
