// This file implements the common part of EQDS (Olteanu et al., An edge-queued datagram service for all datacenter
// traffic, NSDI 2022) and of the transport of the Ultra Ethernet Specification 1.0, which derives from EQDS. NICs
// request packets from flows, so that no queue builds up in a host. Packets use all paths and are acknowledged
// selectively, several per ACK. Trimmed packets are retransmitted. A window (nscc.go), the credit of the receiver
// (credit.go), or both limit a sender.
//
// Packets dropped without trimming are retransmitted after a timeout. The specification's loss inference from the order
// of arrivals, for switches that do not trim, is not implemented.

package packet

import "math"

// uet is the transport. Sizes and windows include headers, as in the reference.
type uet struct {
	n           *network
	mss, header uint64
	control     uint32   // size of an ACK, NACK or pull in bytes
	padLast     bool     // pad the last packet of a flow to full size
	ackEvery    uint64   // bytes received after which an ACK is sent
	ackExceeds  bool     // more than ackEvery bytes are required
	base        pathInfo // rate and base round trip of the network
	fixedBase   bool     // base.roundTrip was specified
	timeoutBase uint64   // if rto is automatic: part of it that does not depend on the path, in picoseconds
	// constantTimeout disables the backoff of timeouts.
	constantTimeout bool
	rto             uint64 // age at which a packet in flight is retransmitted, in picoseconds; 0: never
	sprayer         sprayer

	detachedNIC   bool // see eqdsQuirks
	waitForCredit bool // see quirks

	hosts        []uetHost
	controlTurns uint32 // control packets served in a row while flows wait

	window *nscc          // nil: senders have no window
	credit *creditManager // nil: receivers grant no credit

	sources []uetSource
	sinks   []uetSink
	live    int // number of flows that have started and are neither complete nor given up
}

// uetHost is the sending side of a host.
type uetHost struct {
	nicQueue
	controlRun uint32 // control packets sent in a row while flows waited

	turnScheduled bool // with detachedNIC: an event for the next turn is scheduled
	inTurn        bool // with detachedNIC: the turn is now
}

// uetSource is the sender of a flow.
type uetSource struct {
	scoreboard
	unsent        int64  // bytes of packets never sent
	lostBytes     int64  // bytes of packets to retransmit
	heard         uint64 // time of the receiver's last packet, or of the last check for credit
	answered      uint64 // time of the receiver's last packet
	requested     uint64 // time of the last credit request; 0: none
	queued        bool   // waits for the NIC
	timerSet      bool   // a timer is set
	rto           uint64 // age at which a packet in flight is retransmitted, in picoseconds; 0: never
	creditTimeout uint64 // the same for a flow without packets in flight that waits for credit
	backoff       uint8  // consecutive timeouts without an answer of the receiver, at most maxBackoff
	ackEvery      uint64 // bytes received after which an ACK is sent
	live          bool   // has started and is neither complete nor given up
	entropy       entropyState
}

// uetSink is the receiver of a flow.
type uetSink struct {
	got          reassembly
	count        uint64 // packets received, without duplicates
	bytes        uint64 // bytes of these packets
	unacked      uint64 // bytes since the last ACK
	ackRequested bool   // send an ACK when no packet is missing
}

func newUET(n *network, s *transportConfig) *uet {
	t := &uet{
		n: n, mss: s.mss, header: uint64(s.header), control: s.control, padLast: s.padLast,
		ackEvery:     s.bytes("ack-every"),
		controlTurns: uint32(min(s.number("control-turns"), math.MaxInt32)), hosts: make([]uetHost, n.hosts),
	}
	t.sprayer.count = n.balance.entropies
	t.constantTimeout = s.quirks.constantTimeout
	for i := range t.hosts {
		t.hosts[i].nicQueue = n.newNICQueue(uint32(i))
	}
	return t
}

// setTimeout sets the retransmission timeout from the parameter rto: at least the time of a packet or, if it is
// automatic, base plus the time of six full queues, in picoseconds. Without quirks, timeouts are by path; see timeout.
func (t *uet) setTimeout(s *transportConfig, base uint64) {
	full := uint64(float64(t.mss+t.header) * 8e12 / float64(s.rate))
	if v := s.number("rto"); v >= 0 {
		if v > 0 {
			t.rto = max(uint64(v), full)
		}
		return
	}
	t.timeoutBase = base
	queue := uint64(0)
	for i := range t.n.ports {
		if pt := &t.n.ports[i]; pt.host == none {
			queue = max(queue, pt.capacity[dataQueue])
		}
	}
	t.rto = base + uint64(min(float64(queue)*6*8e12/float64(s.rate), maxDrain))
}

// timeout returns the retransmission timeout of a flow: at least two round trips with the time between ACKs and, if
// it is automatic, the time of six full data queues and of a full control queue, except for requests of credit.
func (t *uet) timeout(f uint32) (rto, credit uint64) {
	if t.rto == 0 || t.n.quirks.firstHostRate {
		return t.rto, t.rto
	}
	path := t.n.path(t.n.flows[f].src, t.n.flows[f].dst)
	rto, credit = t.rto, t.rto
	if t.timeoutBase > 0 {
		credit = t.timeoutBase + min(6*path.drain, maxDrain)
		rto = credit + path.lastControlDrain
	}
	acks := uint64(min(float64(t.ackEvery)*8e12/float64(path.rate), maxDrain)) // longest time between two ACKs
	least := 2 * (path.roundTrip + acks)
	return max(rto, least), max(credit, least)
}

func (t *uet) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, uetSource{})
		t.sinks = append(t.sinks, uetSink{})
	}
	s, k := &t.sources[f], &t.sinks[f]
	bytes := t.n.flows[f].bytes
	total := packetCount(bytes, t.mss)
	s.reset(total)
	t.sprayer.open(&s.entropy, t.n.flows[f].labels[0].key)
	*s = uetSource{scoreboard: s.scoreboard, timerSet: s.timerSet, entropy: s.entropy,
		ackEvery: t.ackEvery}
	s.rto, s.creditTimeout = t.timeout(f)
	s.unsent = int64((total-1)*(t.mss+t.header) + t.size(f, total-1))
	got := k.got
	got.reset()
	*k = uetSink{got: got}
	if t.window != nil {
		t.window.open(f)
	}
	if t.credit != nil {
		t.credit.open(f)
	}
}

// size returns the bytes of a packet on the wire.
func (t *uet) size(f uint32, seq uint64) uint64 {
	if !t.padLast && seq == t.sources[f].total-1 {
		return t.n.flows[f].bytes - seq*t.mss + t.header
	}
	return t.mss + t.header
}

// trimmedSize returns the credit in bytes for a trimmed packet.
func (t *uet) trimmedSize(f uint32, seq uint64) uint64 {
	if t.n.quirks.fullPackets {
		return t.mss + t.header
	}
	return t.size(f, seq)
}

func (t *uet) start(f uint32) {
	s := &t.sources[f]
	t.recordHeard(s)
	s.live = true
	if t.live++; t.live == 1 && t.credit != nil {
		t.credit.restartPacers()
	}
	t.setTimer(f, s)
	t.requestTurn(f)
	if t.detachedNIC {
		t.requestTurn(f)
	}
}

// recordHeard records a packet from the receiver.
func (t *uet) recordHeard(s *uetSource) {
	s.heard, s.answered, s.backoff = t.n.now, t.n.now, 0
}

// finish records that a flow is complete or given up.
func (t *uet) finish(s *uetSource) {
	if s.live {
		s.live = false
		t.live--
	}
}

// nextSize returns the size of the next packet of a flow, or 0 if there is none.
func (t *uet) nextSize(f uint32, s *uetSource) uint64 {
	switch {
	case s.lostCount > 0:
		return t.size(f, s.lowestLost())
	case s.next < s.total:
		return t.size(f, s.next)
	}
	return 0
}

// maySend reports whether a flow has a packet and may send it.
func (t *uet) maySend(f uint32) bool {
	size := int64(t.nextSize(f, &t.sources[f]))
	return size > 0 && (t.credit == nil || t.credit.available(f) > 0) && (t.window == nil || t.window.allows(f, size))
}

// requestTurn queues a flow at its NIC if it may send.
func (t *uet) requestTurn(f uint32) {
	if s := &t.sources[f]; !s.queued && t.maySend(f) {
		host := t.n.flows[f].src
		t.enqueueFlow(host, f)
		t.wake(host)
	}
}

func (t *uet) enqueueFlow(host, f uint32) {
	t.sources[f].queued = true
	t.n.retain(f)
	t.n.pushFlow(&t.hosts[host].flows, f)
}

// sendControl queues a control packet at the NIC of a host.
func (t *uet) sendControl(host, p uint32) {
	if pk := &t.n.packets[p]; t.n.balance.policy != Spray {
		t.n.balance.label(t.n, pk)
	}
	t.n.pushPacket(&t.hosts[host].control, p)
	t.wake(host)
}

// wake makes the NIC of a host look for packets.
func (t *uet) wake(host uint32) {
	h := &t.hosts[host]
	if !t.detachedNIC {
		t.n.wake(h.port)
		return
	}
	if free := t.n.ports[h.port].busyUntil; free < t.n.now {
		h.inTurn = true
		t.n.wake(h.port)
		h.inTurn = false
	} else if !h.turnScheduled {
		h.turnScheduled = true
		t.n.at(free, timerD, host)
	}
}

// nicTurn handles the event of a NIC's turn, with the quirk detachedNIC.
func (t *uet) nicTurn(host uint32) {
	h := &t.hosts[host]
	h.inTurn, h.turnScheduled = true, false
	t.n.wake(h.port)
	h.inTurn = false
	if h.flows.count > 0 || h.control.head != none {
		t.wake(host)
	}
}

// next returns the next packet of a NIC. Control goes first, except after controlTurns packets.
func (t *uet) next(host uint32) uint32 {
	h := &t.hosts[host]
	if t.detachedNIC && !h.inTurn {
		return none
	}
	control := h.control.head != none
	if control && h.flows.count > 0 {
		if h.controlRun++; h.controlRun > t.controlTurns {
			h.controlRun = 0
		}
		control = h.controlRun > 0
	}
	if control {
		return t.n.popPacket(&h.control)
	}
	idle := t.detachedNIC && t.n.ports[h.port].busyUntil < t.n.now
	for h.flows.count > 0 {
		f := t.n.popFlow(&h.flows)
		t.sources[f].queued = false
		p := none
		if t.maySend(f) {
			p = t.transmit(f, h.flows.count+1)
		}
		if p != none && !idle && t.maySend(f) {
			t.enqueueFlow(host, f)
		}
		t.n.release(f)
		if p != none {
			return p
		}
	}
	if h.control.head != none {
		return t.n.popPacket(&h.control)
	}
	return none
}

// transmit returns the next packet of a flow, given the number of flows that compete for the NIC. It returns none if
// only speculative credit remains to drain.
func (t *uet) transmit(f uint32, competing int) uint32 {
	s := &t.sources[f]
	size := t.nextSize(f, s)
	if t.credit != nil && !t.credit.spend(f, int64(size)) {
		return none
	}
	var seq uint64
	var marks flags
	if s.lostCount > 0 {
		seq, marks = s.popLost(), retransmit|flagB
		s.lostBytes -= int64(size)
		t.n.record(f).Retransmits++
	} else {
		seq = s.next
		s.unsent -= int64(size)
		if s.unsent == 0 {
			marks = lastPacket | flagB
		}
	}
	s.send(seq, t.n.now)
	if t.window != nil && t.window.sent(f, int64(size)) {
		marks |= flagB
	}
	p := t.n.newPacket(f, data, uint32(size))
	pk := &t.n.packets[p]
	pk.seq, pk.sent = seq, t.n.now
	if t.credit != nil {
		marks |= t.credit.stampDemand(f, marks, competing, pk)
	}
	pk.flags = marks
	t.label(pk, s)
	return p
}

// label gives a packet an entropy value if packets are sprayed. The packet carries the value, so that the receiver can
// return it.
func (t *uet) label(pk *packet, s *uetSource) {
	if t.n.balance.policy != Spray {
		t.n.balance.label(t.n, pk)
		return
	}
	x := t.sprayer.choose(&s.entropy)
	pk.ack = uint64(x)
	t.n.balance.spread(pk, t.n.flows[pk.flow].id, x)
}

func (t *uet) packetSent(uint32) {}

func (t *uet) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *uet) receive(p uint32) {
	pk := t.n.packets[p]
	f := pk.flow
	switch pk.kind {
	case data:
		t.arrived(f, &pk)
	case creditRequest:
		t.acknowledge(f, &t.sinks[f], &pk, false)
		if !t.n.flows[f].delivered {
			t.credit.updateDemand(f, pk.pull, false)
			if pk.flags&retransmit != 0 && t.credit.needsRequest(f) {
				t.credit.packetTrimmed(f, t.mss+t.header)
			}
			t.credit.activate(f)
		}
	case ack:
		if !t.n.flows[f].complete {
			t.acknowledged(f, &pk)
		}
	case nack:
		if !t.n.flows[f].complete {
			t.nacked(f, &pk)
		}
	case pull:
		if !t.n.flows[f].complete {
			t.recordHeard(&t.sources[f])
			t.credit.addCredit(f, pk.pull)
			t.requestTurn(f)
		}
	}
	t.n.free(p)
}

// arrived handles a data packet at the receiver. flagB requests an ACK.
func (t *uet) arrived(f uint32, pk *packet) {
	k := &t.sinks[f]
	cut := pk.flags&trimmed != 0
	if t.credit != nil {
		t.credit.countPacket(f, pk)
	}
	if cut && !k.got.has(pk.seq) {
		if t.credit != nil {
			t.credit.updateDemand(f, pk.pull, pk.flags&targetWrapped != 0)
		}
		a := t.n.newPacket(f, nack, t.control)
		reply := &t.n.packets[a]
		reply.seq, reply.path, reply.pull, reply.trimmedAtLastHop = pk.seq, pk.path, uint32(pk.ack), pk.trimmedAtLastHop
		if pk.flags&marked != 0 {
			reply.flags |= ecnEcho
		}
		t.sendControl(t.n.flows[f].dst, a)
		if t.credit != nil {
			t.credit.packetTrimmed(f, t.trimmedSize(f, pk.seq))
		}
		return
	}
	if cut {
		t.acknowledge(f, k, pk, false)
		return
	}
	k.unacked += uint64(pk.size)
	if t.credit != nil && !t.n.flows[f].delivered {
		t.credit.updateDemand(f, pk.pull, pk.flags&targetWrapped != 0)
	}
	if k.got.has(pk.seq) {
		t.acknowledge(f, k, pk, pk.flags&marked != 0)
		return
	}
	now := pk.flags&(marked|flagB) != 0 || k.count == 0
	before := k.got.next
	k.got.add(pk.seq)
	k.count++
	k.bytes += uint64(pk.size)
	k.ackRequested = k.ackRequested || pk.flags&flagB != 0
	if k.got.next > before && k.count == k.got.next && k.ackRequested {
		now, k.ackRequested = true, false
	}
	if now || k.unacked > t.sources[f].ackEvery ||
		k.unacked == t.sources[f].ackEvery && !t.ackExceeds {
		t.acknowledge(f, k, pk, pk.flags&(marked|flagB) != 0)
	}
	if k.count == t.sources[f].total {
		t.n.deliverFlow(f)
	}
}

// sackBits is the number of packets covered by the bitmap of an ACK.
const sackBits = 64

// acknowledge sends an ACK in response to a data packet or a credit request. The bitmap covers the packets from that
// one on, or up to it.
//
// Fields of an ACK: ack is the packet's number, and in the upper half the first missing packet; seq is the bitmap,
// whose base follows from flagA; sent is the number of bytes received; pull is the entropy of the data packet. flagB is
// set if the data packet was a retransmission.
func (t *uet) acknowledge(f uint32, k *uetSink, cause *packet, from bool) {
	a := t.n.newPacket(f, ack, t.control)
	pk := &t.n.packets[a]
	pk.ack = k.got.next<<32 | cause.seq
	if from {
		pk.flags = flagA
	}
	if cause.flags&marked != 0 && cause.flags&trimmed == 0 {
		pk.flags |= ecnEcho
	}
	if cause.flags&retransmit != 0 {
		pk.flags |= flagB
	}
	pk.seq = k.got.bitmap(sackBase(pk))
	pk.sent, pk.pull, pk.path = k.bytes, uint32(cause.ack), cause.path
	k.unacked = 0
	t.sendControl(t.n.flows[f].dst, a)
}

// sackBase returns the first packet covered by the bitmap of an ACK.
func sackBase(pk *packet) uint64 {
	seq := pk.ack & math.MaxUint32
	if pk.flags&flagA != 0 {
		return seq
	}
	return max(seq, pk.ack>>32+sackBits) - (sackBits - 1)
}

// bitmap returns the arrivals, after the first missing packet, among the sackBits packets from base on.
func (r *reassembly) bitmap(base uint64) uint64 {
	words := r.words()
	size := uint64(len(words)) * 64
	if base >= r.next+size {
		return 0
	}
	shift := base % 64
	x := *wordOf(words, base) >> shift
	if shift > 0 {
		x |= *wordOf(words, base+64) << (64 - shift)
	}
	if base < r.next { // these bits belong to later packets
		if r.next-base >= 64 {
			return 0
		}
		x &^= 1<<(r.next-base) - 1
	}
	if end := r.next + size; base+64 > end {
		x &= 1<<(end-base) - 1
	}
	return x
}

// acknowledged handles an ACK at the sender.
func (t *uet) acknowledged(f uint32, pk *packet) {
	s := &t.sources[f]
	t.recordHeard(s)
	var sample ackSample
	if t.window != nil {
		sample = t.window.sample(f, s, pk)
	}
	for ; s.first < pk.ack>>32; s.first++ {
		t.markArrived(f, s, s.first)
	}
	seq := sackBase(pk)
	for bits := pk.seq; bits != 0; bits >>= 1 {
		if bits&1 != 0 && seq >= s.first && seq < s.next {
			t.markArrived(f, s, seq)
		}
		seq++
	}
	t.updateEntropy(s, pk)
	if t.window != nil {
		t.window.acknowledged(f, &sample)
	}
	if t.credit != nil {
		t.credit.stopSpeculating(f)
	}
	if s.first == s.total {
		t.finish(s)
		t.n.completeFlow(f)
		return
	}
	t.requestTurn(f)
}

// markArrived records that a packet has arrived.
func (t *uet) markArrived(f uint32, s *uetSource, seq uint64) {
	if s.markArrived(seq) == lost {
		size := int64(t.size(f, seq))
		s.lostBytes -= size
		if t.window != nil {
			t.window.spuriousLoss(f, size)
		}
	}
}

// updateEntropy reports the outcome of an entropy value.
func (t *uet) updateEntropy(s *uetSource, pk *packet) {
	penalty := &t.sprayer.penalty
	switch {
	case t.n.balance.policy != Spray:
	case pk.kind == nack && (!pk.trimmedAtLastHop || penalty.edge):
		t.sprayer.penalize(&s.entropy, pk.pull, penalty.trim)
	case pk.flags&ecnEcho != 0:
		t.sprayer.penalize(&s.entropy, pk.pull, penalty.mark)
	default:
		t.sprayer.succeeded(&s.entropy, pk.pull, t.n.now)
	}
}

// nacked handles a NACK at the sender.
func (t *uet) nacked(f uint32, pk *packet) {
	s := &t.sources[f]
	t.recordHeard(s)
	t.n.record(f).Nacks++
	if !s.has(pk.seq, inFlight) {
		return
	}
	size := int64(t.size(f, pk.seq))
	if t.window != nil {
		t.window.nacked(f, s.packet(pk.seq).sentAt, size, pk.trimmedAtLastHop)
	}
	s.markLost(pk.seq)
	s.lostBytes += size
	if t.credit != nil {
		t.credit.stopSpeculating(f)
	}
	t.updateEntropy(s, pk)
	t.requestTurn(f)
}

// maxBackoff is the largest number of times that consecutive timeouts double the next one.
const maxBackoff = 6

// timeout returns the current retransmission timeout. It doubles with each timeout without an answer of the receiver,
// whose answer may wait behind many others in an incast.
func (s *uetSource) timeout() uint64 { return s.rto << s.backoff }

// patience returns the current time that a flow without packets in flight waits for credit before it requests some.
func (s *uetSource) patience() uint64 { return s.creditTimeout << s.backoff }

func (t *uet) timer(e event, i uint32) {
	switch e {
	case timerA:
		t.credit.sendGrant(i)
	case timerB:
		t.checkTimeout(i)
	case timerC:
		t.credit.adaptRate(i)
	case timerD:
		t.nicTurn(i)
	}
}

// setTimer ensures that a timer is set: for the oldest packet in flight, or otherwise for a flow that may not send.
func (t *uet) setTimer(f uint32, s *uetSource) {
	if s.rto == 0 || s.timerSet {
		return
	}
	s.timerSet = true
	at := s.heard + s.patience()
	if s.oldest != none {
		at = s.packet(uint64(s.oldest)).sentAt + s.timeout()
	}
	t.n.at(max(at, t.n.now+1), timerB, f)
}

// checkTimeout retransmits the oldest packet if it has timed out. A flow that may not send requests credit.
func (t *uet) checkTimeout(f uint32) {
	s := &t.sources[f]
	s.timerSet = false
	if t.n.flows[f].complete || !s.live {
		return
	}
	if t.n.now-s.answered > maxExpirations*s.timeout() {
		t.finish(s)
		return
	}
	asks := false
	if s.oldest != none {
		seq := uint64(s.oldest)
		if t.n.now >= s.packet(seq).sentAt+s.timeout() {
			size := int64(t.size(f, seq))
			asks = true
			s.markLost(seq)
			s.lostBytes += size
			t.sprayer.timedOut(&s.entropy, t.n.now)
			if t.window != nil {
				t.window.timedOut(f, size)
			}
		}
	} else if t.n.now >= s.heard+s.patience() {
		s.heard = t.n.now
		asks = !t.waitForCredit
	}
	if asks {
		if !t.constantTimeout {
			s.backoff = min(s.backoff+1, maxBackoff)
		}
		t.requestTurn(f)
		if t.credit != nil && !s.queued && !t.maySend(f) {
			t.requestCredit(f, s)
		}
	}
	t.setTimer(f, s)
}

// requestCredit requests credit from the receiver, at most once per timeout.
func (t *uet) requestCredit(f uint32, s *uetSource) {
	if s.requested > 0 && t.n.now-s.requested < s.patience() {
		return
	}
	s.requested, s.heard = t.n.now, t.n.now
	p := t.n.newPacket(f, creditRequest, t.control)
	pk := &t.n.packets[p]
	pk.priority, pk.seq = highPriority, s.first
	t.label(pk, s)
	if s.lostCount > 0 {
		pk.flags = retransmit
	}
	t.credit.stampDemand(f, 0, 1, pk)
	t.sendControl(t.n.flows[f].src, p)
}
