// This file implements TCP NewReno: RFC 5681 (slow start, congestion avoidance, fast retransmit), RFC 6582 (recovery)
// and RFC 6298 (timeouts). The receiver counts packets, not bytes, and sends an ACK for each. Windows are as in htsim.

package packet

// tcp is the transport.
type tcp struct {
	pushTransport
	stream
	handshake bool
	initial   uint64 // window of a new flow, in bytes
	threshold uint64 // slow start threshold of a new flow, in bytes
	dctcp     *dctcp // nil: marks are ignored

	sources []tcpSource
	sinks   []reassembly
}

// tcpSource is the sender of a flow.
type tcpSource struct {
	streamSource
	window    uint64
	threshold uint64
	open      bool // the handshake is complete
}

// handshake is the parameter that opens a connection for each flow.
const handshake = "handshake"

// synACK is the flag of the ACK of a handshake.
const synACK = flagA

func newTCP(n *network, s *transportConfig) transport {
	return makeTCP(n, s)
}

func makeTCP(n *network, s *transportConfig) *tcp {
	return &tcp{
		stream: newStream(n, s), handshake: s.enabled(handshake), initial: s.packets("window"),
		threshold: s.packets("ssthresh"),
	}
}

func (t *tcp) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, tcpSource{})
		t.sinks = append(t.sinks, reassembly{})
	}
	s := &t.sources[f]
	*s = tcpSource{streamSource: t.reset(f, &s.streamSource), window: t.initial, threshold: t.threshold}
	t.sinks[f].reset()
	if t.dctcp != nil {
		t.dctcp.open(f)
	}
}

func (t *tcp) start(f uint32) {
	s := &t.sources[f]
	if !t.handshake {
		s.open = true
		t.sendWindow(f, s)
		return
	}
	t.sendSYN(f)
	s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
}

// sendSYN sends the packet that opens the connection.
func (t *tcp) sendSYN(f uint32) {
	size := t.control
	if t.quirks.oneByteSYN {
		size = 1
	}
	p := t.n.newPacket(f, syn, size)
	t.n.packets[p].sent = t.n.now
	t.n.send(t.n.flows[f].src, p)
}

// end returns the position at which the sender stops.
func (t *tcp) end(f uint32) uint64 {
	if t.quirks.sendPastEnd {
		return t.bytes(f) + t.mss + 1
	}
	return t.bytes(f)
}

// complete returns the position whose ACK completes a flow.
func (t *tcp) complete(f uint32) uint64 {
	if t.quirks.sendPastEnd {
		return t.bytes(f) + t.mss - 1
	}
	return t.bytes(f)
}

// sendWindow sends as permitted by the window.
func (t *tcp) sendWindow(f uint32, s *tcpSource) {
	for end := t.end(f); s.sent < end; {
		size := t.payload(f, s.sent)
		if s.acked+s.window < s.sent+size {
			return
		}
		t.transmitNext(f, &s.streamSource, size, 0)
		s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
	}
}

// retransmit sends the first unacknowledged packet.
func (t *tcp) retransmit(f uint32, s *tcpSource) {
	if s.open {
		t.transmit(f, &s.streamSource, s.acked, t.payload(f, s.acked), 0)
	} else {
		t.sendSYN(f)
	}
	s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
}

func (t *tcp) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *tcp) receive(p uint32) {
	pk := t.n.packets[p]
	if pk.kind == ack {
		t.acknowledged(&pk)
		t.n.free(p)
		return
	}
	t.arrived(p, &pk)
}

// arrived handles a SYN or a data packet at the receiver.
func (t *tcp) arrived(p uint32, pk *packet) {
	got := &t.sinks[pk.flow]
	marks := flags(0)
	if pk.kind == syn {
		marks = synACK
	} else {
		got.add(pk.seq)
	}
	if pk.flags&marked != 0 {
		marks |= ecnEcho
	}
	upTo := t.inOrder(pk.flow, got)
	t.reply(p, pk, upTo, upTo, marks)
}

func (t *tcp) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	opens := pk.flags&synACK != 0
	if t.n.flows[f].complete && !t.quirks.sendPastEnd || opens && s.open {
		return
	}
	if t.dctcp != nil && (!opens || t.quirks.countSYNACK) {
		t.dctcp.acked(t, f, s, pk.flags&ecnEcho != 0)
	}
	if pk.ack < s.acked {
		return
	}
	s.timer.sample(t.n.now-pk.sent, &t.rto)
	if pk.ack >= t.complete(f) {
		s.timer.stop()
		t.n.completeFlow(f)
		if !t.quirks.sendPastEnd {
			return
		}
		s = &t.sources[f] // the driver may have opened other flows
	}
	if !opens && pk.ack == s.acked {
		if s.acked < s.sent || t.quirks.countIdleDuplicates {
			t.duplicate(f, s)
		}
		return
	}
	s.open = true
	switch phase, fresh := t.advance(f, &s.streamSource, pk.ack); phase {
	case normalACK:
		if !opens || t.quirks.countSYNACK {
			t.grow(s)
		}
	case fullACK:
		s.window = min(s.threshold, s.sent-pk.ack+t.mss)
	case partialACK:
		s.window = t.deflate(s.window, fresh)
		t.retransmit(f, s)
	}
	t.sendWindow(f, s)
}

// grow widens the window for an ACK of new data, by at most one packet and at most by the used window.
func (t *tcp) grow(s *tcpSource) {
	if s.acked+s.window < s.sent {
		return
	}
	fresh := min(s.acked+s.window-s.sent, t.mss)
	if s.window < s.threshold {
		s.window += min(fresh, s.threshold-s.window)
		return
	}
	more := fresh * t.mss / s.window
	if more == 0 && !t.quirks.dropSmallIncrease {
		more = 1
	}
	s.window += more
}

// duplicate handles a duplicate ACK.
func (t *tcp) duplicate(f uint32, s *tcpSource) {
	switch s.duplicate() {
	case inflate:
		s.window += t.mss
		t.sendWindow(f, s)
	case sendMore:
		t.sendWindow(f, s)
	case fastRetransmit:
		t.n.record(f).Nacks++
		t.lost(f, s)
		t.retransmit(f, s)
		s.window = s.threshold + 3*t.mss
		s.startRecovery()
	}
}

// lost lowers the slow start threshold after a loss.
func (t *tcp) lost(f uint32, s *tcpSource) {
	if t.dctcp != nil {
		t.dctcp.lost(f, s)
	}
	s.threshold = max(s.window/2, 2*t.mss)
}

func (t *tcp) timer(e event, f uint32) {
	s := &t.sources[f]
	if !t.expired(e, f, &s.streamSource) {
		return
	}
	if s.recovering {
		s.window = min(s.threshold, s.sent-s.acked+t.mss)
	}
	t.lost(f, s)
	s.window = t.mss
	t.endRecovery(&s.streamSource)
	if s.open {
		s.sent = s.acked + t.payload(f, s.acked)
	}
	t.retransmit(f, s)
}

// tcpParameters returns the parameters of TCP. first is htsim's first timeout in picoseconds.
func tcpParameters(first float64) []Parameter {
	return append([]Parameter{
		{Name: "window", Unit: Packets, Value: 10, Min: 1, Doc: "initial window in packets or bytes"},
		{Name: "ssthresh", Unit: Packets, Value: 100, Min: 2, Doc: "initial slow start threshold in packets or bytes"},
		{Name: handshake, Unit: Switch, Value: -1, Compat: number(1),
			Doc: "open a connection for each message; off: connections exist; auto: on for lists of flows, " +
				"off for other traces"},
	}, timeoutParameters(first, 250e9)...)
}

var tcpTransport = Transport{
	Name: "tcp", Title: "TCP NewReno: senders adapt windows to losses",
	ignoresMarks: true,
	discipline:   markingDropTail, nic: fairClasses, header: 64, control: 64, bareCompat: true, balance: Fixed,
	queueBDPs:  5,
	build:      newTCP,
	Parameters: tcpParameters(3e12),
}
