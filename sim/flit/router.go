// This file models a router in a cycle: allocation, which moves packets out of input buffers, and sending from output
// buffers.

package flit

// stall is the reason why the first packet of an input buffer did not move in a cycle.
type stall uint8

// Reasons for stalls.
const (
	stallNone        stall = iota
	stallInput             // another packet was leaving the same input port
	stallOutput            // another packet was arriving at the output port, or its host was busy
	stallBuffer            // the output buffer was full
	stallCredits           // the next input buffer was full
	stallArbitration       // another packet was served
	stalls
)

var stallNames = [stalls]string{"none", "input", "output", "buffer", "credits", "arbitration"}

// router runs a router in cycle t. Then the router sleeps until an event that it may wait for. Only after a refused
// request, which changes the arbiters' turns, it runs again in the next cycle.
func (n *worker) router(r uint32, t uint64) {
	first, last := n.base[r], n.base[r+1]
	again := false
	for range n.p.Iterations {
		refused := n.request(r, t)
		again = refused
		if len(n.requested) == 0 {
			break
		}
		for _, out := range n.requested {
			input := n.bestInput[out]
			n.bestInput[out] = none
			n.grant(input, first, first+out, t)
		}
	}
	if again {
		n.wakeRouter(r, t+1)
	}
	if n.p.OutputBuffer == 0 {
		return
	}
	for i, at := range n.sendAt[first:last] {
		if at <= t {
			n.send(first+uint32(i), t)
		}
	}
}

// request is the first stage of the allocator: every input port requests an output for one of its virtual channels, and
// the best request for each output is found. It reports whether some requests must be repeated.
func (n *worker) request(r uint32, t uint64) (refused bool) {
	first, last := n.base[r], n.base[r+1]
	radix := last - first
	n.requested = n.requested[:0]
	for i, at := range n.next[first:last] {
		if at > t {
			continue
		}
		q := first + uint32(i)
		input, alone := n.choose(q, t)
		if input == none {
			continue
		}
		c, pt := &n.inputs[input], &n.ports[q]
		n.clock++
		c.served = n.clock
		pt.servedVC = uint8(input - q*n.vcs)
		out := c.out - first
		o := &n.ports[c.out]
		if o.kind == hostPort && o.accepts > t {
			c.cause = stallOutput
			if alone { // repeating the request has no effect
				n.park(q, pt, min(o.accepts, n.until))
			} else {
				refused = true
			}
			continue
		}
		best := n.bestInput[out]
		if best == none { // the usual case
			n.requested = append(n.requested, out)
			n.bestInput[out] = input
			continue
		}
		refused = true
		if n.turn(r, out, uint32(i), radix) < n.turn(r, out, best/n.vcs-first, radix) {
			n.bestInput[out] = input
		}
	}
	return refused
}

// turn returns the priority of an input at an output; the lowest number is served first. Inputs that have been served
// have different numbers.
func (n *worker) turn(r, out, in, radix uint32) (turn uint64) {
	if n.stamps != nil {
		turn = n.stamps[n.stampAt[r]+int(out*radix+in)]
	} else {
		turn = turnAfter(uint32(n.ports[n.base[r]+out].servedIn), in, radix)
	}
	if n.p.TransitFirst && n.ports[n.base[r]+in].kind == hostPort {
		turn |= 1 << 63
	}
	return turn
}

// turnAfter returns the position of number i of n in round-robin order after last.
func turnAfter(last, i, of uint32) uint64 {
	if i > last {
		return uint64(i - last - 1)
	}
	return uint64(i + of - last - 1)
}

// choose returns the input buffer of a port whose first packet may request an output, or none, and whether it is the
// only one.
func (n *worker) choose(q uint32, t uint64) (input uint32, alone bool) {
	base, pt := q*n.vcs, &n.ports[q]
	count := uint32(n.count[pt.kind])
	best, bestKey := uint32(none), uint64(never)
	n.until = never
	for v := range count {
		c := &n.inputs[base+v]
		if c.ready > t {
			n.until = min(n.until, c.ready)
			continue
		}
		if !n.admissible(c, pt.router, t) {
			continue
		}
		alone = best == none
		key := c.served
		if n.p.InputArbiter == RoundRobin {
			key = turnAfter(uint32(pt.servedVC), v, count)
		}
		if key < bestKey {
			best, bestKey = base+v, key
		}
	}
	if best == none {
		n.park(q, pt, n.until)
	}
	return best, alone
}

// park makes an input port sleep until the given cycle, or until an output of one of its packets has room or credits,
// whichever is first.
func (n *worker) park(q uint32, pt *port, until uint64) {
	pt.parked = true
	n.next[q] = until
	if until != never {
		n.wakeRouter(pt.router, until)
	}
}

// unpark wakes the parked ports of a router in cycle t.
func (n *worker) unpark(r uint32, t uint64) {
	for q := n.base[r]; q < n.base[r+1]; q++ {
		if pt := &n.ports[q]; pt.parked {
			pt.parked = false
			n.next[q] = t
		}
	}
	n.wakeRouter(r, t)
}

// admissible reports whether the first packet of a buffer may move. If not, the port's wake-up cycle becomes until,
// unless it waits for a blocked output.
func (n *worker) admissible(c *inputVC, router uint32, t uint64) bool {
	n.account(c, t)
	if n.routing.free {
		n.routing.adapt(n, c, router, t)
	}
	o := &n.ports[c.out]
	if c.cause = n.hindrance(o, c.channel, c.flits, t); c.cause == stallNone {
		c.cause = stallArbitration
		return true
	}
	n.await(o, c.channel, c.cause, t)
	return false
}

// creditsFor returns the credits of a channel if a packet may enter it, and -1 otherwise.
func (n *worker) creditsFor(out, channel, flits uint32, t uint64) int32 {
	o := &n.ports[out]
	if cause := n.hindrance(o, channel, flits, t); cause != stallNone {
		n.await(o, channel, cause, t)
		return -1
	}
	return n.channels[channel].available(t, uint64(n.p.Speedup))
}

// await records when a packet's obstacle may end: in a cycle, or when an output has room or credits.
func (n *worker) await(o *port, channel uint32, cause stall, t uint64) {
	if cause == stallOutput {
		n.until = min(n.until, o.written)
		return
	}
	o.blocked = true
	if n.channels[channel].coming(t, uint64(n.p.Speedup)) {
		n.until = t + 1
	}
}

// hindrance returns the reason why a packet cannot move to an output and a virtual channel of its link.
func (n *worker) hindrance(o *port, channel, flits uint32, t uint64) stall {
	toHost := o.kind == hostPort
	switch {
	case o.written > t && !(toHost && n.p.SourceQueue == 0 && n.p.OutputBuffer > 0):
		return stallOutput
	case n.p.OutputBuffer > 0 && o.room < int32(flits):
		return stallBuffer
	case (!toHost || n.reactive) && n.channels[channel].available(t, uint64(n.p.Speedup)) < int32(flits):
		return stallCredits
	}
	return stallNone
}

// account adds the waiting time of a buffer's first packet to its reason.
func (n *worker) account(c *inputVC, t uint64) {
	if c.since < t {
		if t >= n.from {
			n.counters.stalls[c.cause] += t - max(c.since, n.from)
		}
		c.since = t
	}
}

// grant moves the first packet of a buffer towards its output in cycle t.
func (n *worker) grant(input, first, out uint32, t uint64) {
	n.events++
	c, q := &n.inputs[input], input/n.vcs
	pt, o := &n.ports[q], &n.ports[out]
	id := c.first
	pk := &n.packets[id]
	flits := uint64(pk.flits)
	in := q - first
	if n.stamps != nil {
		r := o.router
		n.clock++
		n.stamps[n.stampAt[r]+int((out-first)*(n.base[r+1]-first)+in)] = n.clock
	}
	o.servedIn = uint16(in)
	n.account(c, t)
	if t >= n.from {
		use := &n.channelUse[int(pt.kind)*maxVCs+int(input-q*n.vcs)]
		use.packets++
		use.residence += flits * (t - pk.head + 1)
	}

	through := (flits + uint64(n.p.Speedup) - 1) / uint64(n.p.Speedup)
	pt.busy = t + max(through, pk.head+flits-min(t, pk.head+flits))
	o.written = t + through
	if o.kind != hostPort {
		n.channels[c.channel].credits -= int32(flits)
		n.touch(o)
	} else if n.reactive && pk.flags&isReply == 0 {
		n.channels[c.channel].credits -= int32(flits) // room for the reply
	}
	n.returnCredits(pt, input-q*n.vcs, int32(flits), t)
	pk.vc = uint8(c.channel - out*n.vcs)
	if n.routing.free {
		n.routing.granted(n, pk, out)
	}

	n.pop(c, t)
	n.schedule(q, pt, t)
	if n.routing.late && pt.kind == hostPort {
		n.wakeNIC(pt.peer-uint32(len(n.ports)), t)
	}
	if n.p.OutputBuffer == 0 {
		n.forward(id, out, t+uint64(n.p.Pipeline))
		return
	}
	o.room -= int32(flits)
	pk.head = t + uint64(n.p.Pipeline)
	pk.next = none
	if o.first == none {
		o.first = id
		n.scheduleSend(out, o)
	} else {
		n.packets[o.last].next = id
	}
	o.last = id
}

// returnCredits returns the credits of a packet that leaves a port's buffer to the sender.
func (n *worker) returnCredits(pt *port, vc uint32, flits int32, t uint64) {
	delay := uint64(pt.latency)
	switch {
	case pt.kind == hostPort && n.p.SourceQueue == 0:
		delay = 1
	case !n.p.WholeCredits:
		delay++ // the first flit leaves in the cycle after the grant
	}
	e := creditEvent{pt.peer*n.vcs + vc, flits}
	if n.others(pt.beyond) {
		l := &n.letters[pt.beyond/n.each]
		l.credits = append(l.credits, creditLetter{e, t + delay})
		return
	}
	n.credit(e.channel, e.flits, t+delay)
}

// pop removes the first packet of a buffer.
func (n *worker) pop(c *inputVC, t uint64) {
	c.first = n.packets[c.first].next
	if c.first == none {
		c.ready, c.last = never, none
		return
	}
	n.present(c, t)
}

// present updates the request of a buffer for its first packet.
func (n *worker) present(c *inputVC, t uint64) {
	pk := &n.packets[c.first]
	c.ready, c.out, c.flits = pk.head, pk.out, pk.flits
	c.channel = pk.out*n.vcs + uint32(pk.vc)
	c.since, c.cause = max(pk.head, t), stallInput
}

// schedule wakes the router when an input port has something to request.
func (n *worker) schedule(q uint32, pt *port, t uint64) {
	ready := uint64(never)
	for _, c := range n.inputs[q*n.vcs:][:n.count[pt.kind]] {
		ready = min(ready, c.ready)
	}
	pt.parked = false
	if ready == never {
		n.next[q] = never
		return
	}
	n.next[q] = max(ready, pt.busy)
	n.wakeRouter(pt.router, max(n.next[q], t+1))
}

// enqueue adds a packet to the buffer of an input port. Its head arrives in cycle head.
func (n *worker) enqueue(id, q uint32, head, t uint64) {
	pk := &n.packets[id]
	pt := &n.ports[q]
	pk.head, pk.next = head, none
	c := &n.inputs[q*n.vcs+uint32(pk.vc)]
	n.routing.route(n, pt.router, pk)
	if c.first != none {
		n.packets[c.last].next = id
		c.last = id
		return
	}
	c.first, c.last = id, id
	n.present(c, t)
	n.next[q] = min(n.next[q], max(head, pt.busy))
	n.wakeRouter(pt.router, max(head, pt.busy))
}

// send sends the first packet of an output buffer in cycle t.
func (n *worker) send(out uint32, t uint64) {
	o := &n.ports[out]
	id := o.first
	pk := &n.packets[id]
	o.room += int32(pk.flits)
	if o.blocked { // the room is free in the next cycle
		o.blocked = false
		n.unpark(o.router, t+1)
	}
	o.linkFree = t + uint64(pk.flits)
	if o.first = pk.next; o.first == none {
		n.sendAt[out] = never
	} else {
		n.scheduleSend(out, o)
	}
	n.forward(id, out, t)
}

// scheduleSend wakes the router when it can send the first packet of an output buffer.
func (n *worker) scheduleSend(out uint32, o *port) {
	at := max(n.packets[o.first].head, o.linkFree)
	n.sendAt[out] = at
	n.wakeRouter(o.router, at)
}

// forward puts a packet on a link from cycle t, which may be in the future.
func (n *worker) forward(id, out uint32, t uint64) {
	n.events++
	o, pk := &n.ports[out], &n.packets[id]
	if t >= n.from && t < n.to {
		n.sent[out] += uint64(pk.flits)
	}
	if o.kind != hostPort {
		if pk.left == never {
			pk.left = t
		}
		pk.hops++
		head := t + uint64(o.latency)
		if n.others(o.beyond) {
			l := &n.letters[o.beyond/n.each]
			l.packets = append(l.packets, letter{id, o.peer, head})
			return
		}
		n.enqueue(id, o.peer, head, n.now)
		return
	}
	switch {
	case n.p.SourceQueue > 0:
		n.receive(id, t+uint64(o.latency))
	case n.p.OutputBuffer > 0:
		o.accepts = t + uint64(pk.flits)
		fallthrough
	default:
		n.receive(id, t)
	}
}
