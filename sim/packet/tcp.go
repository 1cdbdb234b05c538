// This file is TCP NewReno: RFC 5681 (slow start, congestion avoidance, fast retransmit), RFC 6582 (recovery) and RFC
// 6298 (timeouts), with packets in place of bytes at the receiver, an ack for every packet, and windows as htsim has them.

package packet

// tcp is the transport.
type tcp struct {
	pushing
	n         *network
	mss       uint64
	control   uint32 // bytes of an ack
	whole     bool   // the last packet of a flow is as long as the others
	htsim     bool
	handshake bool
	initial   uint64 // window at the start, in bytes
	threshold uint64 // between slow start and congestion avoidance at the start, in bytes
	timeouts  timeoutRules
	marks     *dctcp // nil: marks mean nothing

	sources []tcpSource
	sinks   []reassembly
}

// tcpSource is the sender of a flow. Where it is in the data is in bytes from 0.
type tcpSource struct {
	window     uint64
	threshold  uint64
	acked      uint64 // all before it is there
	sent       uint64 // all before it was sent; after a timeout, again
	newest     uint64 // all before it was sent once
	recover    uint64 // an ack of it ends the recovery
	duplicates int    // acks that said nothing new
	recovering bool
	open       bool // the handshake is over
	timer      retransmission
}

// The events of the transport.
const (
	tcpTimer  = timerA
	tcpAction = timerB
)

// greeting is the flag of the ack of a handshake.
const greeting = flagA

func newTCP(n *network, s *settings) transport {
	return makeTCP(n, s)
}

func makeTCP(n *network, s *settings) *tcp {
	return &tcp{
		n: n, mss: s.mss, control: s.control, whole: s.whole, htsim: s.compat != Own, handshake: s.is("handshake"),
		initial: s.packets("window"), threshold: s.packets("ssthresh"),
		timeouts: timeoutRules{first: s.time("rto-initial"), least: s.time("rto-min"), scan: s.time("rto-scan")},
	}
}

func (t *tcp) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, tcpSource{})
		t.sinks = append(t.sinks, reassembly{})
	}
	s := &t.sources[f]
	timer := s.timer
	timer.reset(&t.timeouts)
	*s = tcpSource{window: t.initial, threshold: t.threshold, timer: timer}
	t.sinks[f].reset()
	if t.marks != nil {
		t.marks.open(f)
	}
}

func (t *tcp) start(f uint32) {
	s := &t.sources[f]
	if !t.handshake {
		s.open = true
		t.sendWindow(f, s)
		return
	}
	t.greet(f)
	s.timer.ensure(t.n, f, tcpTimer, &t.timeouts)
}

// greet sends the packet that opens the connection; in htsim it is one byte long.
func (t *tcp) greet(f uint32) {
	size := t.control
	if t.htsim {
		size = 1
	}
	p := t.n.newPacket(f, syn, size)
	t.n.packets[p].sent = t.n.now
	t.n.send(t.n.flows[f].src, p)
}

// bytes returns the length of a flow. One without data has a byte, so that there is something to acknowledge.
func (t *tcp) bytes(f uint32) uint64 {
	return max(t.n.flows[f].bytes, 1)
}

// end returns what is sent of a flow. Htsim goes on for a packet after the end of the data, or two.
func (t *tcp) end(f uint32) uint64 {
	if t.htsim {
		return t.bytes(f) + t.mss + 1
	}
	return t.bytes(f)
}

// complete returns what must be acknowledged for a flow to be over.
func (t *tcp) complete(f uint32) uint64 {
	if t.htsim {
		return t.bytes(f) + t.mss - 1
	}
	return t.bytes(f)
}

// payload returns the bytes of data in the packet that begins with a byte of a flow.
func (t *tcp) payload(f uint32, from uint64) uint64 {
	if t.htsim {
		return t.mss
	}
	return min(t.mss, t.bytes(f)-from)
}

// sendWindow sends what the window allows.
func (t *tcp) sendWindow(f uint32, s *tcpSource) {
	for end := t.end(f); s.sent < end; {
		size := t.payload(f, s.sent)
		if s.acked+s.window < s.sent+size {
			return
		}
		t.transmit(f, s, s.sent, size)
		s.sent += size
		s.newest = max(s.newest, s.sent)
		s.timer.ensure(t.n, f, tcpTimer, &t.timeouts)
	}
}

// retransmit sends the first packet that is not acknowledged.
func (t *tcp) retransmit(f uint32, s *tcpSource) {
	if s.open {
		t.transmit(f, s, s.acked, t.payload(f, s.acked))
	} else {
		t.greet(f)
	}
	s.timer.ensure(t.n, f, tcpTimer, &t.timeouts)
}

// transmit sends a packet of data.
func (t *tcp) transmit(f uint32, s *tcpSource, from, size uint64) {
	marks := flags(0)
	switch bytes := t.bytes(f); {
	case from < s.newest:
		marks = retransmit
	case from < bytes && from+size >= bytes:
		marks = last
	}
	wire := size
	if t.whole {
		wire = t.mss
	}
	t.n.sendData(f, from/t.mss, uint32(wire), marks)
}

func (t *tcp) receive(p uint32) {
	pk := t.n.packets[p]
	if pk.kind == ack {
		t.acknowledged(&pk)
		t.n.free(p)
		return
	}
	t.arrived(p, &pk)
}

// arrived takes a packet of data, or that of a handshake. Each is answered with all that is there without a gap.
func (t *tcp) arrived(p uint32, pk *packet) {
	f, got := pk.flow, &t.sinks[pk.flow]
	marks := flags(0)
	if pk.kind == syn {
		marks = greeting
	} else {
		got.add(pk.seq)
	}
	if pk.flags&marked != 0 {
		marks |= echo
	}
	there := got.next * t.mss
	bytes := t.bytes(f)
	if !t.htsim {
		there = min(there, bytes)
	}
	a := t.n.newPacket(f, ack, t.control)
	reply := &t.n.packets[a]
	reply.ack, reply.flags, reply.sent = there, marks, pk.sent
	t.n.free(p)
	t.n.send(t.n.flows[f].dst, a)
	if there >= bytes {
		t.n.deliver(f)
	}
}

func (t *tcp) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	opens := pk.flags&greeting != 0
	if t.n.flows[f].over && !t.htsim || opens && s.open {
		return
	}
	if t.marks != nil && (!opens || t.htsim) {
		t.marks.acked(t, f, s, pk.flags&echo != 0)
	}
	if pk.ack < s.acked {
		return
	}
	s.timer.sample(t.n.now-pk.sent, &t.timeouts)
	if pk.ack >= t.complete(f) {
		s.timer.stop()
		t.n.acknowledge(f)
		if !t.htsim {
			return
		}
		s = &t.sources[f] // others may have been opened
	}
	if !opens && pk.ack == s.acked {
		if s.acked < s.sent || t.htsim {
			t.repeated(f, s)
		}
		return
	}
	s.open = true
	s.timer.start(t.n, f, tcpTimer, &t.timeouts)
	if pk.ack >= s.sent {
		s.sent = pk.ack
		s.timer.stop()
	}
	switch {
	case !s.recovering:
		s.acked, s.duplicates = pk.ack, 0
		if !opens || t.htsim {
			t.grow(s)
		}
	case pk.ack >= s.recover:
		s.window = min(s.threshold, s.sent-pk.ack+t.mss)
		s.acked, s.duplicates, s.recovering = pk.ack, 0, false
	default: // a partial ack: the next hole is known
		s.window = s.window - min(s.window, pk.ack-s.acked) + t.mss
		s.acked = pk.ack
		t.retransmit(f, s)
	}
	t.sendWindow(f, s)
}

// grow widens the window for an ack of new data, by no more than a packet and by no more than the flow could use.
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
	if more == 0 && !t.htsim {
		more = 1
	}
	s.window += more
}

// repeated handles an ack that says nothing new. The third has the packet sent again that it waits for.
func (t *tcp) repeated(f uint32, s *tcpSource) {
	if s.recovering {
		s.window += t.mss
		t.sendWindow(f, s)
		return
	}
	s.duplicates++
	if s.duplicates != 3 {
		t.sendWindow(f, s)
		return
	}
	if s.acked < s.recover { // what was sent before a timeout is no sign of a loss after it
		return
	}
	t.n.record(f).Nacks++
	t.lost(f, s)
	t.retransmit(f, s)
	s.window = s.threshold + 3*t.mss
	s.recovering, s.recover = true, s.sent
}

// lost takes a loss for a sign of congestion.
func (t *tcp) lost(f uint32, s *tcpSource) {
	if t.marks != nil {
		t.marks.lost(f, s)
	}
	s.threshold = max(s.window/2, 2*t.mss)
}

// timer handles the timer of a flow. What htsim sends after the end of the data is not sent again.
func (t *tcp) timer(e event, f uint32) {
	s := &t.sources[f]
	if t.n.flows[f].over {
		s.timer.stop()
	}
	switch e {
	case tcpTimer:
		if !s.timer.expire(t.n, f, tcpTimer, tcpAction, &t.timeouts) {
			return
		}
	case tcpAction:
		if t.n.flows[f].over || !s.timer.acts(t.n) {
			return
		}
	}
	t.expired(f, s)
}

// expired begins again with the first packet that is not acknowledged.
func (t *tcp) expired(f uint32, s *tcpSource) {
	if s.recovering {
		s.window = min(s.threshold, s.sent-s.acked+t.mss)
	}
	t.lost(f, s)
	s.window = t.mss
	s.recovering, s.duplicates = false, 0
	s.recover = s.newest
	if t.htsim {
		s.recover = s.sent
	}
	if s.open {
		s.sent = s.acked + t.payload(f, s.acked)
	}
	t.retransmit(f, s)
}

// tcpParameters returns the parameters of TCP; the first timeout is that of htsim.
func tcpParameters(first float64) []Parameter {
	return []Parameter{
		{Name: "window", Value: 10, Least: 1, Doc: "window at the start, in packets"},
		{Name: "ssthresh", Value: 100, Least: 2, Doc: "window at which slow start ends, in packets"},
		{Name: "handshake", Unit: Switch, Value: 1, Doc: "a flow opens a connection first; 0: there is one"},
		{Name: "rto-initial", Unit: Time, Value: 10e9, Least: 1, Compat: number(first),
			Doc: "timeout before anything is known of the round trip"},
		{Name: "rto-min", Unit: Time, Value: 1e9, Least: 1, Compat: number(250e9), Doc: "shortest timeout"},
		{Name: "rto-scan", Unit: Time, Compat: number(10e9), Doc: "timers are looked at once in so long; 0: they are exact"},
	}
}

var tcpTransport = Transport{
	Name: "tcp", Title: "TCP NewReno: a window, by losses",
	queue: markingDropTail, nic: fairClasses, control: 40, balance: Fixed, queueBDPs: 5, make: newTCP,
	Parameters: tcpParameters(3e12),
}
