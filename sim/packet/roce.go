// This file is RoCE v2 (InfiniBand Architecture, volume 1, annex A17, and for reliable connections section 9.7): every flow
// has a rate, that of its interface at first; the receiver takes packets in order only and answers the first that is out of
// order with a nack, upon which the sender goes back to the packet that was missing. dcqcn.go and hpcc.go set the rate.
//
// An interface asks its flows for packets in turns, so that none waits in it: a flow whose time has come is ready. A paused
// interface does not ask.

package packet

// roce is the transport.
type roce struct {
	n       *network
	mss     uint64 // payload bytes of a packet
	header  uint32
	control uint32 // bytes of an ack, a nack or a notice
	whole   bool   // the last packet of a flow is as long as the others
	quirks  quirks
	rto     uint64 // after so long without progress the sender goes back; 0: never
	retries int    // how often, twice as late each time, before the flow is given up

	dcqcn *dcqcn // nil: not used
	hpcc  *hpcc  // nil: not used

	sources []roceSource
	sinks   []roceSink
	hosts   []roceHost
}

// roceSource is the sender of a flow.
type roceSource struct {
	total uint64 // packets of the flow
	next  uint64 // the packet to be sent next
	acked uint64 // packets that the receiver has
	most  uint64 // packets that were sent before

	rate     float64 // bit/s
	lastSent uint64  // when the last packet was,
	lastSize uint64  // and its bytes; 0: there was none

	state   turn
	due     uint64 // waiting: when its time comes
	silence watchdog
}

// maxTime is longer than any gap between packets.
const maxTime = 1 << 60

// turn is what a flow does between packets.
type turn uint8

const (
	idle    turn = iota // there is nothing that it may send
	waiting             // for its time
	ready               // for the interface
	givenUp
)

// roceSink is the receiver of a flow.
type roceSink struct {
	next   uint64 // the packet that is expected
	nacked bool   // that it is missing was said
	ahead  uint64 // the last packet that came instead
}

// roceHost is the sending side of a host.
type roceHost struct {
	nicQueue
	turn uint32 // the flow that sent last and is still ready, which goes behind the others
}

func newRoCE(n *network, s *settings) transport {
	return makeRoCE(n, s)
}

func makeRoCE(n *network, s *settings) *roce {
	t := &roce{
		n: n, mss: s.mss, header: s.header, control: s.control, whole: s.whole, quirks: s.quirks,
		rto: s.time("rto"), retries: int(s.number("retries")), hosts: make([]roceHost, n.hosts),
	}
	for i := range t.hosts {
		t.hosts[i] = roceHost{n.newNICQueue(uint32(i)), none}
	}
	if t.quirks.pushToNIC {
		n.redo(scheduled, fairClasses)
	}
	if !s.is("pfc") {
		n.redo(lossless, markingDropTail)
		return t
	}
	n.pauses = newPauses(n, s)
	if t.quirks.pushToNIC {
		n.pauses.resumed = t.resumed
	}
	return t
}

// redo has all ports of a discipline follow another.
func (n *network) redo(from, to discipline) {
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
		total: packetsOf(fl.bytes, t.mss), rate: 8e12 / float64(t.interfaceOf(fl.src).psPerByte),
		silence: watchdog{set: t.sources[f].silence.set},
	}
	t.sinks[f] = roceSink{}
	if t.dcqcn != nil {
		t.dcqcn.open(f, t.sources[f].rate)
	}
	if t.hpcc != nil {
		t.hpcc.open(f, t.sources[f].rate)
	}
}

func (t *roce) interfaceOf(host uint32) *port {
	return &t.n.ports[t.hosts[host].port]
}

func (t *roce) start(f uint32) {
	t.resume(f)
}

// resume has a flow go on that had nothing that it might send.
func (t *roce) resume(f uint32) {
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
		t.queue(f, s)
		t.kick(host)
		return
	}
	if t.interfaceOf(host).paused {
		t.queue(f, s)
		return
	}
	if t.opened(f, s) {
		t.n.send(host, t.packet(f, s))
	} else { // htsim looks again when it would have sent the next packet
		s.lastSent, s.lastSize = t.n.now, t.mss+uint64(t.header)
	}
	if s.next < s.total {
		t.wait(f, s, s.time())
	}
}

// resumed has the flows go on whose time came while their interface was paused.
func (t *roce) resumed(host uint32) {
	h := &t.hosts[host]
	for h.flows.head != none {
		f := t.n.popFlow(&h.flows)
		t.wait(f, &t.sources[f], t.n.now)
	}
}

// time returns when the next packet may be sent by the rate.
func (s *roceSource) time() uint64 {
	return s.lastSent + uint64(min(maxTime, float64(s.lastSize)*8e12/s.rate))
}

// wait has a flow wait for its time.
func (t *roce) wait(f uint32, s *roceSource, due uint64) {
	s.state, s.due = waiting, due
	t.n.at(due, timerA, f)
}

// queue makes a flow ready.
func (t *roce) queue(f uint32, s *roceSource) {
	s.state = ready
	t.n.pushFlow(&t.hosts[t.n.flows[f].src].flows, f)
}

// settle ends the turn of the flow that sent last.
func (h *roceHost) settle(t *roce) {
	if h.turn != none {
		t.n.pushFlow(&h.flows, h.turn)
		h.turn = none
	}
}

// withdraw makes a flow idle.
func (t *roce) withdraw(f uint32) {
	s := &t.sources[f]
	if s.state == ready {
		h := &t.hosts[t.n.flows[f].src]
		h.settle(t)
		t.n.removeFlow(&h.flows, f)
	}
	s.state = idle
}

// kick has the interface of a host ask for a packet, if it has none.
func (t *roce) kick(host uint32) {
	t.n.wake(t.hosts[host].port)
}

func (t *roce) next(host uint32) uint32 {
	h := &t.hosts[host]
	if t.n.routes.NIC(host) == none { // its link is down
		return none
	}
	if h.control.head != none {
		return t.n.take(&h.control)
	}
	h.settle(t)
	for h.flows.head != none {
		f := t.n.popFlow(&h.flows)
		s := &t.sources[f]
		s.state = idle
		if s.next >= s.total || !t.opened(f, s) {
			continue
		}
		p := t.packet(f, s)
		if due := s.time(); s.next >= s.total {
			// It waits for acks.
		} else if due <= t.n.now+s.lastSize*uint64(t.interfaceOf(host).psPerByte) {
			s.state = ready
			h.turn = f
		} else {
			t.wait(f, s, due)
		}
		return p
	}
	return none
}

// opened reports whether the window of a flow, if it has one, allows a packet.
func (t *roce) opened(f uint32, s *roceSource) bool {
	return t.hpcc == nil || t.hpcc.opened(f, (s.next-s.acked)*t.mss)
}

// packet returns the next packet of a flow.
func (t *roce) packet(f uint32, s *roceSource) uint32 {
	payload := t.mss
	if !t.whole {
		payload = min(payload, t.n.flows[f].bytes-s.next*t.mss)
	}
	p := t.n.newPacket(f, data, uint32(payload)+t.header)
	pk := &t.n.packets[p]
	pk.seq, pk.sent = s.next, t.n.now
	if s.next == s.acked {
		s.silence.heard = t.n.now
		s.silence.watch(t.n, f, t.patience(s), timerB)
	}
	s.next++
	switch {
	case s.next <= s.most:
		pk.flags = retransmit
		t.n.record(f).Retransmits++
	case s.next == s.total:
		pk.flags = last
		fallthrough
	default:
		s.most = s.next
	}
	if t.hpcc != nil {
		t.n.probes.clear(p)
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
	case notice:
		if !t.n.flows[pk.flow].over {
			t.dcqcn.notified(t, pk.flow, &t.sources[pk.flow])
		}
	}
	t.n.free(p)
}

// arrived takes a data packet.
func (t *roce) arrived(p uint32, pk *packet) {
	f, k := pk.flow, &t.sinks[pk.flow]
	if pk.flags&marked != 0 && t.dcqcn != nil {
		t.dcqcn.marked(t, f)
	}
	answer := ack
	switch {
	case pk.seq == k.next:
		k.next++
		k.nacked = false
	case pk.seq > k.next:
		// One nack a gap. A packet that is not further ahead than the last was sent after the sender went back, so what it
		// went back to is missing again.
		again := k.nacked && pk.seq > k.ahead
		k.nacked, k.ahead = true, pk.seq
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
		t.n.probes.copy(a, p)
	}
	t.n.free(p)
	whole := k.next >= t.sources[f].total
	t.reply(f, a)
	if whole {
		t.n.deliver(f)
	}
}

// reply sends a packet of the receiver of a flow.
func (t *roce) reply(f, p uint32) {
	host := t.n.flows[f].dst
	if t.quirks.pushToNIC {
		t.n.send(host, p)
		return
	}
	t.n.balance.label(t.n, &t.n.packets[p])
	t.n.put(&t.hosts[host].control, p)
	t.kick(host)
}

func (t *roce) acknowledged(p uint32, pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].over {
		return
	}
	if pk.ack > s.acked {
		t.progress(s, pk.ack)
	}
	if s.acked >= s.total {
		t.withdraw(f)
		t.n.acknowledge(f)
		return
	}
	if t.hpcc != nil {
		s.rate = t.hpcc.acknowledged(t.n, f, p, s, pk.ack)
	}
	t.resume(f)
}

// progress notes that the receiver has more.
func (t *roce) progress(s *roceSource, acked uint64) {
	s.acked = acked
	s.next = max(s.next, acked)
	s.silence.hear(t.n)
}

// goBack has the sender of a flow go back to what the receiver misses.
func (t *roce) goBack(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].over || pk.ack < s.acked || s.state == givenUp {
		return
	}
	t.n.record(f).Nacks++
	if pk.ack > s.acked {
		t.progress(s, pk.ack)
	}
	s.next = s.acked
	if t.hpcc != nil && t.quirks.nackShrinksWindow {
		s.rate = t.hpcc.shrink(f)
	}
	t.resume(f)
}

func (t *roce) timer(e event, f uint32) {
	s := &t.sources[f]
	switch e {
	case timerA:
		if s.state != waiting || s.due != t.n.now {
			return
		}
		s.state = idle
		t.resume(f)
	case timerB:
		t.look(f, s)
	case timerC:
		t.dcqcn.timer(t, f, s)
	case timerD:
		t.dcqcn.endWindow(t, f)
	}
}

// patience returns how long a flow waits for progress.
func (t *roce) patience(s *roceSource) uint64 {
	return t.rto << min(s.silence.tries, 7)
}

// look has a flow go back that has made no progress for long, though something is on its way; or gives it up.
func (t *roce) look(f uint32, s *roceSource) {
	if s.next == s.acked || s.state == givenUp {
		s.silence.set = false
		return
	}
	if !s.silence.bark(t.n, f, t.patience(s), timerB) {
		return
	}
	if s.silence.tries > t.retries {
		t.withdraw(f)
		s.state = givenUp
		return
	}
	t.n.record(f).Nacks++
	s.next = s.acked
	t.resume(f)
}

func (t *roce) left(uint32) {}

// roceParameters are the parameters of all transports on RoCE.
var roceParameters = append([]Parameter{
	{Name: "rto", Unit: Time, Value: 4096e3 * 1024, Compat: number(0),
		Doc: "after so long without progress, go back to what is not known to be there, then after twice as long; 0: never"},
	{Name: "retries", Value: 7, Doc: "how often, before the flow is given up"},
}, pauseParameters...)

var roceTransport = Transport{
	Name: "roce", Title: "RoCE v2: line rate, go-back-N, pauses",
	queue: lossless, nic: scheduled, header: 64, control: 64, balance: ByFlow, queueBDPs: 1, make: newRoCE,
	Parameters: roceParameters,
}
