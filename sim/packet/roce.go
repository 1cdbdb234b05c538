// This file implements RoCE v2 (InfiniBand Architecture, volume 1, annex A17, and section 9.7 for reliable
// connections). Each flow has a rate, initially that of its NIC. The receiver accepts packets in order only, and
// answers the first out-of-order packet with a NACK, after which the sender goes back to the missing packet. dcqcn.go
// and hpcc.go control the rate.
//
// A NIC requests packets from its flows in round robin, so that no packet waits in it. A flow that may send now is
// ready. A paused NIC requests no packets.

package packet

// roce is the transport.
type roce struct {
	n       *network
	mss     uint64 // payload of a full packet in bytes
	header  uint32
	control uint32 // size of an ACK, NACK or CNP in bytes
	padLast bool   // pad the last packet of a flow to full size
	quirks  quirks
	rto     uint64 // time without progress after which the sender goes back, in picoseconds; 0: never
	retries int    // timeouts with exponential backoff before the sender gives up the flow

	dcqcn *dcqcn // nil: off
	hpcc  *hpcc  // nil: off

	sources []roceSource
	sinks   []roceSink
	hosts   []roceHost
}

// roceSource is the sender of a flow.
type roceSource struct {
	total   uint64 // number of packets of the flow
	next    uint64 // next packet to send
	acked   uint64 // number of acknowledged packets
	highest uint64 // number of packets sent at least once

	rate     float64 // bit/s
	lastSent uint64  // time of the last packet
	lastSize uint64  // its bytes; 0: none sent

	state    senderState
	due      uint64 // end of the current wait
	watchdog watchdog
}

// maxGap exceeds all gaps between packets.
const maxGap = 1 << 60

// senderState is the state of a flow between packets.
type senderState uint8

const (
	idle    senderState = iota // may not send any packet
	waiting                    // waits for its send time
	ready                      // waits for the NIC
	givenUp
)

// roceSink is the receiver of a flow.
type roceSink struct {
	next      uint64 // expected packet
	nacked    bool   // a NACK for it was sent
	lastEarly uint64 // last packet that arrived instead of the expected one
}

// roceHost is the sending side of a host.
type roceHost struct {
	nicQueue
	lastSender uint32 // the flow that sent last and is still ready; it moves to the end of the list
}

func newRoCE(n *network, s *transportConfig) transport {
	return makeRoCE(n, s)
}

func makeRoCE(n *network, s *transportConfig) *roce {
	t := &roce{
		n: n, mss: s.mss, header: s.header, control: s.control, padLast: s.padLast, quirks: s.quirks,
		rto: s.time("rto"), retries: int(s.number("retries")), hosts: make([]roceHost, n.hosts),
	}
	for i := range t.hosts {
		t.hosts[i] = roceHost{n.newNICQueue(uint32(i)), none}
	}
	if t.quirks.pushToNIC {
		n.replaceDiscipline(scheduled, fairClasses)
	}
	if !s.enabled("pfc") {
		n.replaceDiscipline(lossless, markingDropTail)
		return t
	}
	n.pfc = newPFC(n, s)
	if t.quirks.pushToNIC {
		n.pfc.onResume = t.nicResumed
	}
	return t
}

// replaceDiscipline replaces one discipline by another at all ports.
func (n *network) replaceDiscipline(from, to discipline) {
	for i := range n.ports {
		if n.ports[i].discipline == from {
			n.ports[i].discipline = to
		}
	}
}

func (t *roce) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, roceSource{})
		t.sinks = append(t.sinks, roceSink{})
	}
	fl := &t.n.flows[f]
	t.sources[f] = roceSource{
		total: packetCount(fl.bytes, t.mss), rate: 8e12 / t.nicPort(fl.src).byteTime().float(),
		watchdog: watchdog{armed: t.sources[f].watchdog.armed},
	}
	t.sinks[f] = roceSink{}
	if t.dcqcn != nil {
		t.dcqcn.open(f, t.sources[f].rate)
	}
	if t.hpcc != nil {
		t.hpcc.open(t.n, f, t.sources[f].rate)
	}
}

func (t *roce) nicPort(host uint32) *port {
	return &t.n.ports[t.hosts[host].port]
}

func (t *roce) start(f uint32) {
	t.trySend(f)
}

// trySend resumes an idle flow.
func (t *roce) trySend(f uint32) {
	s := &t.sources[f]
	if s.state != idle || s.next >= s.total {
		return
	}
	if due := s.time(); due > t.n.now {
		t.wait(f, s, due)
		return
	}
	host := t.n.flows[f].src
	if !t.quirks.pushToNIC {
		t.makeReady(f, s)
		t.wakeNIC(host)
		return
	}
	if t.nicPort(host).paused {
		t.makeReady(f, s)
		return
	}
	if t.windowOpen(f, s) {
		t.n.send(host, t.nextPacket(f, s))
	} else { // htsim tries again after the time of a packet
		s.lastSent, s.lastSize = t.n.now, t.mss+uint64(t.header)
	}
	if s.next < s.total {
		t.wait(f, s, s.time())
	}
}

// nicResumed resumes the flows that became ready while their NIC was paused.
func (t *roce) nicResumed(host uint32) {
	h := &t.hosts[host]
	for h.flows.head != none {
		f := t.n.popFlow(&h.flows)
		t.wait(f, &t.sources[f], t.n.now)
	}
}

// time returns the earliest time of the next packet according to the rate.
func (s *roceSource) time() uint64 {
	return s.lastSent + uint64(min(maxGap, float64(s.lastSize)*8e12/s.rate))
}

// wait suspends a flow until the time due.
func (t *roce) wait(f uint32, s *roceSource, due uint64) {
	s.state, s.due = waiting, due
	t.n.at(due, timerA, f)
}

// makeReady appends a flow to the NIC's list.
func (t *roce) makeReady(f uint32, s *roceSource) {
	s.state = ready
	t.n.pushFlow(&t.hosts[t.n.flows[f].src].flows, f)
}

// requeueLastSender appends the flow that sent last to the list.
func (h *roceHost) requeueLastSender(t *roce) {
	if h.lastSender != none {
		t.n.pushFlow(&h.flows, h.lastSender)
		h.lastSender = none
	}
}

// makeIdle removes a flow from the list of its NIC.
func (t *roce) makeIdle(f uint32) {
	s := &t.sources[f]
	if s.state == ready {
		h := &t.hosts[t.n.flows[f].src]
		h.requeueLastSender(t)
		t.n.removeFlow(&h.flows, f)
	}
	s.state = idle
}

// wakeNIC makes an idle NIC request a packet.
func (t *roce) wakeNIC(host uint32) {
	t.n.wake(t.hosts[host].port)
}

func (t *roce) next(host uint32) uint32 {
	h := &t.hosts[host]
	if t.n.routes.NIC(host) == none { // the link has failed
		return none
	}
	if h.control.head != none {
		return t.n.popPacket(&h.control)
	}
	h.requeueLastSender(t)
	for h.flows.head != none {
		f := t.n.popFlow(&h.flows)
		s := &t.sources[f]
		s.state = idle
		if s.next >= s.total || !t.windowOpen(f, s) {
			continue
		}
		p := t.nextPacket(f, s)
		if due := s.time(); s.next >= s.total {
			// The flow waits for ACKs.
		} else if due <= t.n.now+t.nicPort(host).byteTime().of(s.lastSize) {
			s.state = ready
			h.lastSender = f
		} else {
			t.wait(f, s, due)
		}
		return p
	}
	return none
}

// windowOpen reports whether the window of a flow, if any, permits a packet.
func (t *roce) windowOpen(f uint32, s *roceSource) bool {
	return t.hpcc == nil || t.hpcc.windowOpen(f, (s.next-s.acked)*t.mss)
}

// nextPacket returns the next packet of a flow.
func (t *roce) nextPacket(f uint32, s *roceSource) uint32 {
	payload := t.mss
	if !t.padLast {
		payload = min(payload, t.n.flows[f].bytes-s.next*t.mss)
	}
	p := t.n.newPacket(f, data, uint32(payload)+t.header)
	pk := &t.n.packets[p]
	pk.seq, pk.sent = s.next, t.n.now
	if s.next == s.acked {
		s.watchdog.heard = t.n.now
		s.watchdog.arm(t.n, f, t.timeout(s), timerB)
	}
	s.next++
	switch {
	case s.next <= s.highest:
		pk.flags = retransmit
		t.n.record(f).Retransmits++
	case s.next == s.total:
		pk.flags = lastPacket
		fallthrough
	default:
		s.highest = s.next
	}
	if t.hpcc != nil {
		t.n.telemetry.clear(p)
	}
	s.lastSent, s.lastSize = t.n.now, uint64(pk.size)
	if t.dcqcn != nil {
		t.dcqcn.sent(t, f, s)
	}
	if !t.quirks.pushToNIC {
		t.n.balance.label(t.n, pk)
	}
	return p
}

func (t *roce) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *roce) receive(p uint32) {
	pk := t.n.packets[p]
	switch pk.kind {
	case data:
		t.arrived(p, &pk)
		return
	case ack:
		t.acknowledged(p, &pk)
	case nack:
		t.goBack(&pk)
	case cnp:
		if !t.n.flows[pk.flow].complete {
			t.dcqcn.onCNP(t, pk.flow, &t.sources[pk.flow])
		}
	}
	t.n.free(p)
}

// arrived handles a data packet.
func (t *roce) arrived(p uint32, pk *packet) {
	f, k := pk.flow, &t.sinks[pk.flow]
	if pk.flags&marked != 0 && t.dcqcn != nil {
		t.dcqcn.onMark(t, f)
	}
	answer := ack
	switch {
	case pk.seq == k.next:
		k.next++
		k.nacked = false
	case pk.seq > k.next:
		// One NACK per gap. A packet that does not follow the last early one was sent after the sender went back, so
		// the expected packet is missing again.
		again := k.nacked && pk.seq > k.lastEarly
		k.nacked, k.lastEarly = true, pk.seq
		if again && !t.quirks.nackEveryPacket {
			t.n.free(p)
			return
		}
		answer = nack
	}
	a := t.n.newPacket(f, answer, t.control)
	reply := &t.n.packets[a]
	reply.seq, reply.ack, reply.sent = pk.seq, k.next, pk.sent
	if t.hpcc != nil {
		t.n.telemetry.copy(a, p)
	}
	t.n.free(p)
	complete := k.next >= t.sources[f].total
	t.reply(f, a)
	if complete {
		t.n.deliverFlow(f)
	}
}

// reply sends a packet from the receiver of a flow.
func (t *roce) reply(f, p uint32) {
	host := t.n.flows[f].dst
	if t.quirks.pushToNIC {
		t.n.send(host, p)
		return
	}
	t.n.balance.label(t.n, &t.n.packets[p])
	t.n.pushPacket(&t.hosts[host].control, p)
	t.wakeNIC(host)
}

func (t *roce) acknowledged(p uint32, pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].complete {
		return
	}
	if pk.ack > s.acked {
		t.progress(s, pk.ack)
	}
	if s.acked >= s.total {
		t.makeIdle(f)
		t.n.completeFlow(f)
		return
	}
	if t.hpcc != nil {
		s.rate = t.hpcc.acknowledged(t.n, f, p, s, pk.ack)
	}
	t.trySend(f)
}

// progress handles an ACK of new packets.
func (t *roce) progress(s *roceSource, acked uint64) {
	s.acked = acked
	s.next = max(s.next, acked)
	s.watchdog.recordHeard(t.n)
}

// goBack rewinds the sender of a flow to the packet expected by the receiver.
func (t *roce) goBack(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].complete || pk.ack < s.acked || s.state == givenUp {
		return
	}
	t.n.record(f).Nacks++
	if pk.ack > s.acked {
		t.progress(s, pk.ack)
	}
	s.next = s.acked
	if t.hpcc != nil && t.quirks.nackShrinksWindow {
		s.rate = t.hpcc.onNACK(f)
	}
	t.trySend(f)
}

func (t *roce) timer(e event, f uint32) {
	s := &t.sources[f]
	switch e {
	case timerA:
		if s.state != waiting || s.due != t.n.now {
			return
		}
		s.state = idle
		t.trySend(f)
	case timerB:
		t.checkProgress(f, s)
	case timerC:
		t.dcqcn.timer(t, f, s)
	case timerD:
		t.dcqcn.sendDelayedCNP(t, f)
	}
}

// timeout returns the current timeout of a flow, in picoseconds.
func (t *roce) timeout(s *roceSource) uint64 {
	return t.rto << min(s.watchdog.expirations, 7)
}

// checkProgress rewinds or gives up a flow with packets in flight and without progress for the timeout.
func (t *roce) checkProgress(f uint32, s *roceSource) {
	if s.next == s.acked || s.state == givenUp {
		s.watchdog.armed = false
		return
	}
	if !s.watchdog.expired(t.n, f, t.timeout(s), timerB) {
		return
	}
	if s.watchdog.expirations > t.retries {
		t.makeIdle(f)
		s.state = givenUp
		return
	}
	t.n.record(f).Nacks++
	s.next = s.acked
	t.trySend(f)
}

func (t *roce) packetSent(uint32) {}

// roceParameters are the parameters shared by all transports on RoCE.
var roceParameters = append([]Parameter{
	{Name: "rto", Unit: Time, Value: 4096e3 * 1024, Compat: number(0),
		Doc: "time without progress after which the sender goes back, doubled each time; " +
			"0: never"},
	{Name: "retries", Value: 7, Doc: "consecutive timeouts before the sender gives up the flow"},
}, pfcParameters...)

var roceTransport = Transport{
	Name: "roce", Title: "RoCE v2: line rate, go-back-N, priority flow control",
	ignoresMarks: true, goBackN: true,
	discipline: lossless, nic: scheduled, header: 64, control: 64, balance: ByFlow, queueBDPs: 1, build: newRoCE,
	Parameters: roceParameters,
}
