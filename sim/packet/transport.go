package packet

// transport moves flows between hosts. One transport runs all flows, and indexes its state by flow slot.
type transport interface {
	// open initializes the state of a flow, in a slot that another flow may have used.
	open(f uint32)
	// start starts the sender of a flow.
	start(f uint32)
	// receive handles a packet at its destination and frees it.
	receive(p uint32)
	// timer handles an event of the transport.
	timer(e event, i uint32)
	// next returns the next packet of a host's NIC, or none. Only NICs with the discipline scheduled call it.
	next(host uint32) uint32
	// packetSent is called when a data packet of a flow has left its host, after the next one is served. Only NICs with
	// the discipline fairFlows call it; they also stamp data packets when their service starts.
	packetSent(f uint32)
	// prefetch prefetches the state of the flow that receive will access for a packet.
	prefetch(pk *packet)
}

// pushTransport is embedded in transports that push packets into NICs.
type pushTransport struct{}

func (pushTransport) next(uint32) uint32 { return none }
func (pushTransport) packetSent(uint32)  {}

// driver uses the network to run flows.
type driver interface {
	// lastByteSent is called when the last byte of a flow has left its host.
	lastByteSent(f uint32)
	// delivered is called when the receiver of a flow has all data.
	delivered(f uint32)
	// acknowledged is called when the sender of a flow knows that the receiver has all data.
	acknowledged(f uint32)
	// event handles an event of the driver.
	event(e event, i uint32)
}
