// This file models the NICs of hosts: waiting messages, their packets, sending and receiving.

package flit

import "github.com/tracedag/tracedag/sim"

// nic is a host's NIC.
type nic struct {
	firstMessage, lastMessage uint32 // messages that wait or are being divided into packets
	firstPacket, lastPacket   uint32 // packets of the source queue
	queued                    uint32 // flits of the source queue
	blocked                   bool   // the NIC waits for credits
	sendsReply                bool   // the packet that leaves is not from the source queue
	linkFree                  uint64 // a packet leaves until this cycle
	generates                 uint64 // cycle of the next packet of synthetic traffic
	random                    sim.Random
}

// message is a message that is not completely received.
type message struct {
	op     uint32
	to     uint32 // target host
	next   uint32 // next message in the queue of a NIC
	began  uint64 // cycle of its first packet
	left   uint64 // flits not in packets yet
	coming uint64 // flits not received yet
	last   uint64 // latest reception of one of its packets
}

// post queues a message at a NIC, which runs in cycle t, the current one or a later one.
func (n *worker) post(op, from, to uint32, bytes, t uint64) {
	flits := n.flitsOf(bytes)
	id := n.freeMess
	if id != none {
		n.freeMess = n.messages[id].next
	} else {
		n.messages = append(n.messages, message{})
		id = uint32(len(n.messages) - 1)
	}
	n.messages[id] = message{op: op, to: to, next: none, left: flits, coming: flits, began: never}
	c := &n.nics[from]
	if c.firstMessage == none {
		c.firstMessage = id
	} else {
		n.messages[c.lastMessage].next = id
	}
	c.lastMessage = id
	n.ofHost(from).wakeNIC(from, t)
}

// runNIC runs a NIC in cycle t.
func (n *worker) runNIC(h uint32, t uint64) {
	n.serve(h, t)
	if n.routing.late {
		n.routing.choosePaths(n, h, t)
	}
}

// serve moves the messages and packets of a NIC in cycle t.
func (n *worker) serve(h uint32, t uint64) {
	c := &n.nics[h]
	if n.reactive {
		n.settle(h, t)
	}
	if n.traffic != nil && c.generates != never {
		if c.generates == t {
			n.generate(h, t)
		}
		n.wakeGenerator(h, t)
	}
	if n.reactive && n.serveReplies(h, c, t) {
		return
	}
	if n.p.SourceQueue == 0 {
		n.insert(h, c, t)
		return
	}
	n.packetise(h, c, t)
	if c.firstPacket != none && c.linkFree <= t {
		n.inject(h, c, t)
	}
	if c.firstPacket != none && c.linkFree > t {
		n.wakeNIC(h, c.linkFree)
	}
	if c.firstMessage != none { // fill the source queue when there is room
		fits := uint64(c.queued) + c.linkFree + uint64(n.nextFlits(c)) - uint64(n.p.SourceQueue)
		if fits <= c.linkFree {
			n.wakeNIC(h, max(fits, t+1))
		}
	}
}

// nextFlits returns the length of the next packet of the first message.
func (n *worker) nextFlits(c *nic) uint32 {
	return uint32(min(n.messages[c.firstMessage].left, uint64(n.p.PacketFlits)))
}

// packetise moves packets from the messages to the source queue while there is room.
func (n *worker) packetise(h uint32, c *nic, t uint64) {
	for c.firstMessage != none {
		flits := n.nextFlits(c)
		leaving := c.linkFree - min(t, c.linkFree)
		if uint64(c.queued)+leaving+uint64(flits) > uint64(n.p.SourceQueue) {
			return
		}
		to := n.messages[c.firstMessage].to
		n.queue(c, n.makePacket(h, to, c.firstMessage, flits, t))
		n.cut(c, flits, t)
	}
}

// queue adds a packet to the source queue.
func (n *worker) queue(c *nic, id uint32) {
	if c.firstPacket == none {
		c.firstPacket = id
	} else {
		n.packets[c.lastPacket].next = id
	}
	c.lastPacket = id
	c.queued += n.packets[id].flits
}

// cut removes the flits of a packet from the first message, and advances to the next message after its last packet.
func (n *worker) cut(c *nic, flits uint32, t uint64) {
	m := &n.messages[c.firstMessage]
	m.left -= uint64(flits)
	m.began = min(m.began, t)
	if m.left == 0 {
		c.firstMessage = m.next
		n.taken(m.op, m.began, t)
	}
}

// makePacket makes a packet of a message, or with none a packet of synthetic traffic.
func (n *worker) makePacket(from, to, message, flits uint32, t uint64) uint32 {
	id := n.newPacket()
	n.packets[id] = packet{message: message}
	n.begin(id, from, to, flits, t)
	return id
}

// begin initializes a new packet, which has its message and its flags, and counts it.
func (n *worker) begin(id, from, to, flits uint32, t uint64) {
	pk := &n.packets[id]
	*pk = packet{created: t, left: never, next: none, to: to, message: pk.message, flits: flits, via: none,
		vc: n.injectionVC(to), flags: pk.flags}
	pk.vc += n.classOffset(pk, hostPort)
	n.routing.begin(n, from, pk)
	if n.measures(t) {
		n.counters.created += uint64(flits)
		if n.batch > 0 {
			n.counters.batches[(t-n.from)/n.batch].offered += uint64(flits)
		}
	}
}

// injectionVC returns the virtual channel of the link to the router for packets to a host, within their class.
func (n *worker) injectionVC(to uint32) uint8 {
	return uint8(uint64(to) * uint64(n.lanes[hostPort]) / uint64(n.hosts))
}

// inject starts sending the first packet of the source queue if there are credits for all of it.
func (n *worker) inject(h uint32, c *nic, t uint64) {
	id := c.firstPacket
	pk := &n.packets[id]
	ch := &n.channels[(uint32(len(n.ports))+h)*n.vcs+uint32(pk.vc)]
	if !n.accepts(h, c, ch, pk.flits, t) {
		return
	}
	c.firstPacket = pk.next
	c.queued -= pk.flits
	c.sendsReply = false
	n.transmit(h, c, id, ch, t)
}

// accepts reports whether a channel to the router has credits for a packet. If not, the NIC wakes up with more.
func (n *worker) accepts(h uint32, c *nic, ch *channel, flits uint32, t uint64) bool {
	if ch.available(t, uint64(n.p.Speedup)) >= int32(flits) {
		return true
	}
	if ch.coming(t, uint64(n.p.Speedup)) {
		n.wakeNIC(h, t+1)
	}
	c.blocked = true
	return false
}

// transmit sends a packet on the link to the router.
func (n *worker) transmit(h uint32, c *nic, id uint32, ch *channel, t uint64) {
	pk := &n.packets[id]
	ch.credits -= int32(pk.flits)
	c.linkFree = t + uint64(pk.flits)
	pk.injected = t
	at := n.hostPorts[h]
	n.enqueue(id, at, t+uint64(n.ports[at].latency), t)
}

// insert adds the next packet to the router's buffer if there is room. NICs without a source queue use it.
func (n *worker) insert(h uint32, c *nic, t uint64) {
	if c.firstMessage == none {
		return
	}
	to := n.messages[c.firstMessage].to
	flits := n.nextFlits(c)
	ch := n.injectionChannel(h, to)
	if !n.accepts(h, c, ch, flits, t) {
		return
	}
	n.put(h, n.makePacket(h, to, c.firstMessage, flits, t), ch, t)
	n.cut(c, flits, t)
	if c.firstMessage != none {
		n.wakeNIC(h, t+1)
	}
}

// injectionChannel returns the first channel of packets from one host to another.
func (n *worker) injectionChannel(from, to uint32) *channel {
	return &n.channels[(uint32(len(n.ports))+from)*n.vcs+uint32(n.injectionVC(to))]
}

// put adds a packet to the router's buffer.
func (n *worker) put(h, id uint32, ch *channel, t uint64) {
	pk := &n.packets[id]
	ch.credits -= int32(pk.flits)
	pk.injected = t
	n.enqueue(id, n.hostPorts[h], t+uint64(n.p.InjectionDelay), t)
}

// receive takes a packet whose head reaches its host in cycle t, which may be in the future. Its last flit arrives
// flits-1 cycles later.
func (n *worker) receive(id uint32, t uint64) {
	pk := &n.packets[id]
	last := t + uint64(pk.flits) - 1
	end := last
	if n.p.SourceQueue == 0 {
		end++ // a host without a link consumes the packet for as many cycles as it has flits
	}
	if n.measures(t) {
		n.counters.receive(pk, t, end)
		if n.batch > 0 {
			b := &n.counters.batches[(t-n.from)/n.batch]
			b.packets++
			b.total += end - pk.created
			b.flits += uint64(pk.flits)
		}
		if n.traffic != nil && n.traffic.Window > 0 {
			b := n.window(t)
			b.packets++
			b.total += end - pk.created
			b.flits += uint64(pk.flits)
		}
	}
	if n.traffic != nil && n.traffic.quota != nil && n.traffic.quota.arrived != nil {
		n.arrive(pk, max(t, n.now))
	}
	if n.reactive {
		n.consume(pk, last+1)
	} else if pk.message != none {
		m := &n.messages[pk.message]
		m.coming -= uint64(pk.flits)
		if n.p.Coupling.Head {
			m.last = max(m.last, t)
		} else {
			m.last = max(m.last, last)
		}
		if m.coming == 0 {
			n.received(pk.message)
		}
	}
	n.release(id)
}

// measures reports whether a cycle is measured.
func (n *worker) measures(t uint64) bool {
	return t >= n.from && t < n.to
}
