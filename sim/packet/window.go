// This file implements the transport of senders with a window of packets. Each packet is acknowledged individually, and
// the header of each trimmed packet is answered with a NACK. ATLAHS calls this transport UEC. The congestion controls
// are
//
//   - mprdma: MP-RDMA (Lu et al., Multi-path transport for RDMA in datacenters, NSDI 2018, section 3.3.1);
//   - constant: a constant window;
//   - single: one packet;
//   - swiftlike: delay-based, after Swift (Kumar et al., SIGCOMM 2020), as swift_like in ATLAHS.

package packet

import (
	"math"

	simevent "github.com/tracedag/tracedag/sim/event"
)

// windowTransport is the transport.
type windowTransport struct {
	pushTransport
	n           *network
	mss         uint64
	header      uint32
	control     uint32
	padLast     bool
	quirks      quirks
	rto         uint64
	congestion  congestionControl
	initialBDPs float64 // initial window in bandwidth-delay products
	maxBDPs     float64
	targetRTTs  float64 // target delay relative to the lowest delay

	sources []windowSource
	sinks   []reassembly
}

// congestionControl controls windows.
type congestionControl struct {
	acked  func(t *windowTransport, s *windowSource, marked bool, rtt uint64)
	nacked func(t *windowTransport, s *windowSource)
}

// windowSource is the sender of a flow. Bytes are payload. Delays are in nanoseconds, rounded down as in ATLAHS.
type windowSource struct {
	window      uint64 // bytes
	maxWindow   uint64 // bytes
	bdp         uint64 // initial bandwidth-delay product, in bytes
	minRTT      uint64 // lowest delay
	target      uint64 // target delay
	rto         uint64 // as the transport's, but longer than the round trip; 0: never
	total       uint64 // number of packets of the flow
	sent        uint64 // number of new packets sent
	inFlight    uint64 // number of packets sent that are neither acknowledged nor trimmed
	acked       reassembly
	retransmits simevent.MinHeap // trimmed packets to retransmit
	watchdog    watchdog
}

func newWindow(c congestionControl) func(n *network, s *transportConfig) transport {
	return func(n *network, s *transportConfig) transport {
		return &windowTransport{
			n: n, mss: s.mss, header: s.header, control: s.control, padLast: s.padLast, quirks: s.quirks,
			rto: s.time("rto"), initialBDPs: s.number("initial"), maxBDPs: s.number("cap"),
			targetRTTs: s.number("target"), congestion: c,
		}
	}
}

func (t *windowTransport) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, windowSource{})
		t.sinks = append(t.sinks, reassembly{})
	}
	s := &t.sources[f]
	acked := s.acked
	acked.reset()
	t.sinks[f].reset()
	*s = windowSource{
		total: packetCount(t.n.flows[f].bytes, t.mss), acked: acked, retransmits: s.retransmits[:0],
		watchdog: watchdog{armed: s.watchdog.armed},
	}
	switch path := t.n.path(t.n.flows[f].src, t.n.flows[f].dst); {
	case t.quirks.fixedRoundTrip:
		s.bdp = t.n.bandwidthDelay()
		s.minRTT = atlahsRoundTrip(t.n.reference.rate)
	case t.quirks.firstHostRate:
		path.rate = t.n.reference.rate
		fallthrough
	default:
		s.minRTT = path.roundTrip / 1000
		s.bdp = path.bandwidthDelay()
	}
	s.rto = t.n.silence(f, t.rto)
	s.maxWindow, s.window = t.windowOf(t.maxBDPs*float64(s.bdp)), t.windowOf(t.initialBDPs*float64(s.bdp))
	s.target = uint64(t.targetRTTs * float64(s.minRTT))
}

// windowOf returns the window for bytes on the wire: at least a packet. It is rounded up to whole packets, since a
// window of a few packets would otherwise lose much of its rate.
func (t *windowTransport) windowOf(wire float64) uint64 {
	if t.quirks.firstHostRate {
		return max(t.mss, uint64(wire))
	}
	return t.mss * max(1, uint64(math.Ceil(wire/float64(t.mss+uint64(t.header)))))
}

// packetCount returns the number of packets of a flow, at least one.
func packetCount(bytes, mss uint64) uint64 {
	return max(1, (bytes+mss-1)/mss)
}

func (t *windowTransport) start(f uint32) {
	s := &t.sources[f]
	s.watchdog.recordHeard(t.n)
	t.sendWindow(f, s)
	s.watchdog.arm(t.n, f, s.rto, timerA)
}

// sendWindow sends as permitted by the window: retransmissions, then new packets.
func (t *windowTransport) sendWindow(f uint32, s *windowSource) {
	for len(s.retransmits) > 0 && s.inFlight*t.mss < s.window {
		t.transmit(f, s, uint64(s.retransmits.Pop()), retransmit)
	}
	for s.sent < s.total && (s.inFlight+1)*t.mss <= s.window {
		marks := flags(0)
		if s.sent+1 == s.total {
			marks = lastPacket
		}
		s.sent++
		t.transmit(f, s, s.sent-1, marks)
	}
}

func (t *windowTransport) transmit(f uint32, s *windowSource, seq uint64, marks flags) {
	s.inFlight++
	t.n.sendData(f, seq, uint32(t.n.payload(f, seq, t.mss, t.padLast))+t.header, marks)
}

func (t *windowTransport) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *windowTransport) receive(p uint32) {
	pk := t.n.packets[p]
	switch pk.kind {
	case data:
		t.arrived(p, &pk)
		return
	case ack:
		t.acknowledged(&pk)
	case nack:
		t.nacked(&pk)
	}
	t.n.free(p)
}

// arrived handles a data packet or the header of a trimmed one. It answers a packet in order or a duplicate with a
// cumulative ACK, other packets with a selective one.
func (t *windowTransport) arrived(p uint32, pk *packet) {
	f, got := pk.flow, &t.sinks[pk.flow]
	answer, upTo := ack, pk.seq+1
	marks := flags(0)
	if pk.flags&trimmed != 0 {
		answer = nack
	} else {
		inOrder := pk.seq <= got.next
		got.add(pk.seq)
		if inOrder {
			upTo, marks = got.next, flagA
		}
	}
	if pk.flags&marked != 0 {
		marks |= ecnEcho
	}
	t.n.free(p)
	a := t.n.newPacket(f, answer, t.control)
	reply := &t.n.packets[a]
	reply.seq, reply.ack, reply.flags, reply.sent = pk.seq, upTo, marks, pk.sent
	complete := got.next >= t.sources[f].total
	t.n.send(t.n.flows[f].dst, a)
	if complete {
		t.n.deliverFlow(f)
	}
}

func (t *windowTransport) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].complete {
		return
	}
	s.watchdog.recordHeard(t.n)
	rtt := (t.n.now - pk.sent) / 1000
	if rtt < s.minRTT {
		s.minRTT = rtt
		s.target = uint64(t.targetRTTs * float64(rtt))
		if t.quirks.capAtLowestRTT {
			s.maxWindow = rtt * (t.n.reference.rate / 1e9) / 8
			s.window = min(s.window, s.maxWindow)
		}
	}
	from := pk.seq
	if pk.flags&flagA != 0 {
		from = s.acked.next
	}
	for i := from; i < pk.ack; i++ {
		if s.acked.add(i) {
			s.inFlight--
		}
	}
	if s.acked.next >= s.total && (pk.ack >= s.total || !t.quirks.finishOnLastACK) {
		t.n.completeFlow(f)
		return
	}
	t.congestion.acked(t, s, pk.flags&ecnEcho != 0, rtt)
	s.window = max(min(s.window, s.maxWindow), t.mss)
	t.sendWindow(f, s)
}

// nacked handles a NACK.
func (t *windowTransport) nacked(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].complete || s.acked.has(pk.seq) {
		return
	}
	s.watchdog.recordHeard(t.n)
	t.n.record(f).Nacks++
	t.congestion.nacked(t, s)
	s.window = max(min(s.window, s.maxWindow), t.mss)
	s.inFlight--
	if s.inFlight*t.mss < s.window {
		t.transmit(f, s, pk.seq, retransmit)
	} else {
		s.retransmits.Push(uint32(pk.seq))
	}
}

// timer considers all unacknowledged packets lost if the receiver was silent for the timeout.
func (t *windowTransport) timer(_ event, f uint32) {
	s := &t.sources[f]
	if !s.watchdog.expired(t.n, f, s.rto, timerA) {
		return
	}
	s.retransmits, s.inFlight = s.retransmits[:0], 0
	for seq := s.acked.next; seq < s.sent; seq++ {
		if !s.acked.has(seq) {
			s.retransmits.Push(uint32(seq))
		}
	}
	t.congestion.nacked(t, s)
	s.window = max(min(s.window, s.maxWindow), t.mss)
	t.sendWindow(f, s)
}

var mprdma = congestionControl{
	acked: func(t *windowTransport, s *windowSource, marked bool, _ uint64) {
		if marked {
			s.window -= t.mss / 2
		} else {
			s.window += t.mss * t.mss / s.window
		}
	},
	nacked: func(_ *windowTransport, s *windowSource) { s.window /= 2 },
}

var constant = congestionControl{
	acked:  func(*windowTransport, *windowSource, bool, uint64) {},
	nacked: func(*windowTransport, *windowSource) {},
}

var swiftLike = congestionControl{
	acked: func(t *windowTransport, s *windowSource, _ bool, rtt uint64) {
		if rtt < s.target {
			s.window = uint64(float64(s.window) + float64(t.mss)/float64(s.window)*float64(t.mss))
			return
		}
		s.window = uint64(float64(s.window) * math.Max(1-(float64(rtt)-float64(s.target))/float64(rtt), 0.75))
	},
	nacked: func(_ *windowTransport, s *windowSource) { s.window /= 2 },
}

// newWindowTransport returns a transport with a congestion control. initial and most are the initial and the largest
// window of ATLAHS in bandwidth-delay products.
func newWindowTransport(name, title string, c congestionControl, initial, most float64) Transport {
	return Transport{
		Name: name, Title: title, discipline: trimming, nic: fairClasses, header: 64, control: 64, balance: Spray,
		queueBDPs: 1, ecn: ecnDefaults{minShare: 0.2, maxShare: 0.8}, build: newWindow(c),
		ignoresMarks: name != "mprdma",
		Parameters: []Parameter{
			{Name: "initial", Value: min(2*initial, 1), Min: 0, Compat: number(initial),
				Doc: "initial window in bandwidth-delay products; at least a packet"},
			{Name: "cap", Value: most, Min: 0, Compat: number(min(most, 1)),
				Doc: "largest window in bandwidth-delay products; at least a packet"},
			{Name: "target", Value: 1.5, Min: 1, Doc: "swiftlike: target delay above which the window shrinks, " +
				"relative to the lowest delay"},
			{Name: "rto", Unit: Time, Value: 1e9, Compat: number(0),
				Doc: "silence of the receiver after which unacknowledged packets are retransmitted; 0: never"},
		},
	}
}

var (
	mprdmaTransport = newWindowTransport("mprdma", "MP-RDMA: senders adapt windows to the ECN mark of each packet",
		mprdma, 0.5, 8)
	constantTransport = newWindowTransport("constant", "constant window of one bandwidth-delay product",
		constant, 1, 1)
	singleTransport    = newWindowTransport("single", "window of one packet", constant, 0, 0)
	swiftLikeTransport = newWindowTransport("swiftlike", "delay-based window, as swift_like in ATLAHS", swiftLike, 1, 1)
)
