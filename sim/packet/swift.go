// This file is Swift: Kumar et al., Swift: Delay is simple and effective for congestion control in the datacenter,
// SIGCOMM 2020. The sender holds the delay of its packets against a target, which grows with the length of the path and with the
// number of flows that share it (algorithm 1 and section 3.5); below one packet the window becomes a pace (section 3.6).
// Losses are found as in TCP NewReno. A host's interface takes packets of all flows in turns and tells the sender when it
// may give it more, so that the delay is that of the network.

package packet

import "math"

// swift is the transport.
type swift struct {
	n       *network
	mss     uint64
	control uint32 // bytes of an ack
	whole   bool   // the last packet of a flow is as long as the others
	htsim   bool

	initial     uint64 // window at the start, in bytes
	least, most uint64 // window, in bytes
	increase    float64
	decrease    float64
	maxDecrease float64
	base        float64 // target, in picoseconds
	hop         float64 // that each link of the path adds to it
	scaling     swiftScaling
	timeouts    timeoutRules

	sources []swiftSource
	sinks   []swiftSink
}

// swiftScaling is what the target grows by where windows are small (section 3.5, equation 3).
type swiftScaling struct {
	most        float64 // picoseconds
	alpha, beta float64
}

// swiftSource is the sender of a flow. Where it is in the data is in bytes from 0.
type swiftSource struct {
	window       uint64
	before       uint64 // the window before the ack at hand
	inflated     uint64 // what duplicate acks add to the window
	acked        uint64 // all before it is there
	sent         uint64 // all before it was sent; after a timeout, again
	newest       uint64 // all before it was sent once
	recover      uint64 // an ack of it ends the recovery
	lastDecrease uint64 // when the window last shrank
	target       float64
	duplicates   int // acks that said nothing new
	timeouts     int // in a row
	recovering   bool
	mayDecrease  bool // the window did not shrink within the last round trip
	waits        bool // it would send, but the interface has enough of its packets
	inHost       int  // packets of data at the interface

	// The pace, where the window is less than a packet.
	interval uint64 // between packets, as the last ack left it; 0: there is none
	paced    bool
	lastSend uint64
	nextSend uint64 // when the pace next has a packet go

	timer retransmission

	// In htsim, packets have a number on their way and one in the data. After a timeout those on the way begin again where
	// the timeout left them, but those in the data do not, so that a second hole is never filled.
	handed uint64   // packets of data that have a number
	number []uint32 // in the data, of each packet on the way
}

type swiftSink struct {
	got  reassembly
	data reassembly // of the numbers in the data; htsim
}

// The events of the transport.
const (
	swiftTimer  = timerA
	swiftAction = timerB
	swiftPace   = timerC
)

// swiftHeld is how many packets of a flow the interface may hold before the flow has to wait.
const swiftHeld = 2

func newSwift(n *network, s *settings) transport {
	t := &swift{
		n: n, mss: s.mss, control: s.control, whole: s.whole, htsim: s.compat != Own,
		initial: s.packets("window"), least: s.bytes("window-min"), most: s.packets("window-max"),
		increase: s.number("increase"), decrease: s.number("decrease"), maxDecrease: min(s.number("decrease-max"), 1),
		base: s.number("target"), hop: s.number("target-hop"),
		timeouts: timeoutRules{first: s.time("rto-initial"), least: s.time("rto-min"), scan: s.time("rto-scan")},
	}
	if few, many := s.number("scaling-min"), s.number("scaling-max"); few < many {
		t.scaling.most = s.number("scaling")
		t.scaling.alpha = t.scaling.most / (1/math.Sqrt(few) - 1/math.Sqrt(many))
		t.scaling.beta = -t.scaling.alpha / math.Sqrt(many)
	}
	return t
}

func (t *swift) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, swiftSource{})
		t.sinks = append(t.sinks, swiftSink{})
	}
	s, k := &t.sources[f], &t.sinks[f]
	timer, fl := s.timer, &t.n.flows[f]
	timer.reset(&t.timeouts)
	*s = swiftSource{
		window: t.initial, timer: timer, number: s.number[:0], lastSend: t.n.now,
		target: t.base + float64(t.hop*float64(t.n.links(fl.src, fl.dst))),
	}
	k.got.reset()
	k.data.reset()
}

func (t *swift) start(f uint32) {
	t.sendWindow(f, &t.sources[f])
}

// bytes returns the length of a flow. One without data has a byte, so that there is something to acknowledge.
func (t *swift) bytes(f uint32) uint64 {
	return max(t.n.flows[f].bytes, 1)
}

// end returns what is sent of a flow. Htsim sends one packet more than fit into it.
func (t *swift) end(f uint32) uint64 {
	if t.htsim {
		return (t.n.flows[f].bytes/t.mss + 1) * t.mss
	}
	return t.bytes(f)
}

// more reports whether there is data to be sent.
func (t *swift) more(f uint32, s *swiftSource) bool {
	if t.htsim {
		return s.handed*t.mss < t.end(f)
	}
	return s.sent < t.end(f)
}

// sendWindow sends what the window allows.
func (t *swift) sendWindow(f uint32, s *swiftSource) {
	window := s.window + s.inflated
	if window < t.mss {
		if !s.paced {
			t.pace(f, s)
		}
		return
	}
	for t.more(f, s) && s.acked+window >= s.sent+t.payload(f, s.sent) {
		s.paced = false
		if !t.sendNext(f, s) {
			return
		}
		s.timer.ensure(t.n, f, swiftTimer, &t.timeouts)
	}
}

// pace has the next packet go when the interval since the last is over, which may be now.
func (t *swift) pace(f uint32, s *swiftSource) {
	s.nextSend = s.lastSend + s.interval
	if s.nextSend <= t.n.now {
		t.sendPaced(f, s)
		return
	}
	s.paced = true
	t.n.at(s.nextSend, swiftPace, f)
}

// sendPaced sends a packet at its time.
func (t *swift) sendPaced(f uint32, s *swiftSource) {
	s.paced = false
	if !t.more(f, s) {
		return
	}
	t.sendNext(f, s)
	if !t.htsim {
		s.timer.ensure(t.n, f, swiftTimer, &t.timeouts)
	}
	s.lastSend = t.n.now
	if s.interval > 0 {
		t.pace(f, s)
	}
}

// sendNext gives the interface the next packet, unless it has enough of the flow's; then the flow waits.
func (t *swift) sendNext(f uint32, s *swiftSource) bool {
	s.waits = s.inHost > swiftHeld
	if s.waits {
		return false
	}
	size := t.payload(f, s.sent)
	if t.htsim {
		s.number = append(s.number[:min(s.sent/t.mss, uint64(len(s.number)))], uint32(s.handed))
		s.handed++
	}
	t.transmit(f, s, s.sent, size)
	s.sent += size
	s.newest = max(s.newest, s.sent)
	s.lastSend = t.n.now
	return true
}

// retransmit sends the first packet that is not acknowledged, whatever the interface has.
func (t *swift) retransmit(f uint32, s *swiftSource) {
	t.transmit(f, s, s.acked, t.payload(f, s.acked))
	s.timer.ensure(t.n, f, swiftTimer, &t.timeouts)
}

// payload returns the bytes of data in the packet that begins with a byte of a flow.
func (t *swift) payload(f uint32, from uint64) uint64 {
	if t.htsim {
		return t.mss
	}
	return min(t.mss, t.bytes(f)-from)
}

func (t *swift) transmit(f uint32, s *swiftSource, from, size uint64) {
	marks := flags(0)
	switch bytes := t.bytes(f); {
	case from < s.newest:
		marks = retransmit
		t.n.record(f).Retransmits++
	case from < bytes && from+size >= bytes:
		marks = last
	}
	wire := size
	if t.whole {
		wire = t.mss
	}
	p := t.n.newPacket(f, data, uint32(wire))
	pk := &t.n.packets[p]
	pk.seq, pk.flags = from/t.mss, marks
	if pk.seq < uint64(len(s.number)) {
		pk.ack = uint64(s.number[pk.seq])
	}
	s.inHost++
	t.n.send(t.n.flows[f].src, p)
}

// left lets a flow that waits send once the interface has sent a packet of its data.
func (t *swift) left(f uint32) {
	s := &t.sources[f]
	s.inHost = max(s.inHost-1, 0)
	if s.waits {
		s.waits = false
		t.sendWindow(f, s)
	}
}

func (*swift) next(uint32) uint32 { return none }

func (t *swift) receive(p uint32) {
	pk := t.n.packets[p]
	if pk.kind == ack {
		t.acknowledged(&pk)
		t.n.free(p)
		return
	}
	t.arrived(p, &pk)
}

// arrived takes a packet of data. Each is answered with all that is there without a gap.
func (t *swift) arrived(p uint32, pk *packet) {
	f, k := pk.flow, &t.sinks[pk.flow]
	bytes := t.bytes(f)
	k.got.add(pk.seq)
	there := k.got.next * t.mss
	whole := there
	if t.htsim {
		k.data.add(pk.ack)
		whole = k.data.next * t.mss
	} else {
		there = min(there, bytes)
	}
	a := t.n.newPacket(f, ack, t.control)
	reply := &t.n.packets[a]
	reply.ack, reply.seq, reply.sent = there, whole, pk.sent
	t.n.free(p)
	t.n.send(t.n.flows[f].dst, a)
	if whole >= bytes {
		t.n.deliver(f)
	}
}

func (t *swift) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].over || pk.ack < s.acked {
		return
	}
	t.adjust(s, t.n.now-pk.sent, pk.ack-s.acked)
	if pk.seq >= t.end(f) {
		t.finish(f, s)
		return
	}
	if pk.ack == s.acked {
		if s.acked < s.sent || t.htsim {
			t.repeated(f, s)
		}
		return
	}
	s.timer.start(t.n, f, swiftTimer, &t.timeouts)
	if pk.ack >= s.sent {
		s.sent = pk.ack
		s.timer.stop()
	}
	news := pk.ack - s.acked
	s.acked = pk.ack
	switch {
	case !s.recovering:
		s.duplicates = 0
	case pk.ack >= s.recover:
		s.inflated, s.duplicates, s.recovering = 0, 0, false
		if s.mayDecrease {
			s.window = uint64((1 - t.maxDecrease) * float64(s.window))
			s.lastDecrease = t.n.now
		}
	default: // a partial ack: the next hole is known
		s.inflated = s.inflated - min(s.inflated, news) + t.mss
		t.retransmit(f, s)
	}
	t.limit(s)
	t.sendWindow(f, s)
}

// adjust sets the window by the delay of a packet (algorithm 1).
func (t *swift) adjust(s *swiftSource, delay, fresh uint64) {
	s.before = s.window
	s.mayDecrease = t.n.now-s.lastDecrease >= s.timer.rtt
	s.timer.sample(delay, &t.timeouts)
	s.timeouts = 0
	target := t.target(s)
	window := float64(s.window)
	switch {
	case delay < target && s.window >= t.mss:
		s.window = uint64(window + float64(float64(t.mss)*t.increase*float64(fresh))/window)
	case delay < target:
		s.window = uint64(window + float64(t.increase*float64(fresh)))
	case s.mayDecrease:
		s.window = uint64(window * max(1-t.decrease*float64(delay-target)/float64(delay), 1-t.maxDecrease))
	}
}

// target returns the delay that a flow aims at.
func (t *swift) target(s *swiftSource) uint64 {
	packets := float64(s.window) / float64(t.mss)
	if t.htsim {
		packets = math.Floor(packets)
	}
	more := t.scaling.alpha/math.Sqrt(packets) + t.scaling.beta
	return uint64(s.target + max(0, min(more, t.scaling.most)))
}

// limit keeps the window within bounds, and notes when it shrinks.
func (t *swift) limit(s *swiftSource) {
	s.window = max(t.least, min(s.window, t.most))
	if s.window < s.before {
		s.lastDecrease = t.n.now
	}
	s.interval = 0
	if s.window < t.mss {
		s.interval = s.timer.rtt * t.mss / s.window
	}
}

// repeated handles an ack that says nothing new. The third has the packet sent again that it waits for.
func (t *swift) repeated(f uint32, s *swiftSource) {
	if s.recovering {
		s.inflated = min(s.inflated+t.mss, s.window)
		t.sendWindow(f, s)
		return
	}
	s.duplicates++
	if s.duplicates != 3 {
		t.limit(s)
		t.sendWindow(f, s)
		return
	}
	if s.acked < s.recover { // what was sent before a timeout is no sign of a loss after it
		return
	}
	t.n.record(f).Nacks++
	t.limit(s)
	t.retransmit(f, s)
	s.recovering, s.recover = true, s.sent
}

// finish ends a flow.
func (t *swift) finish(f uint32, s *swiftSource) {
	s.timer.stop()
	s.paced, s.waits = false, false
	t.n.acknowledge(f)
}

func (t *swift) timer(e event, f uint32) {
	s := &t.sources[f]
	over := t.n.flows[f].over
	switch e {
	case swiftPace:
		if !over && s.paced && s.nextSend == t.n.now {
			t.sendPaced(f, s)
		}
	case swiftTimer:
		if s.timer.expire(t.n, f, swiftTimer, swiftAction, &t.timeouts) {
			t.expired(f, s)
		}
	case swiftAction:
		if !over && s.timer.acts(t.n) {
			t.expired(f, s)
		}
	}
}

// swiftPatience is after how many timeouts in a row the window is the smallest.
const swiftPatience = 5

// expired begins again with the first packet that is not acknowledged.
func (t *swift) expired(f uint32, s *swiftSource) {
	s.recovering, s.duplicates = false, 0
	s.recover = s.sent
	if !t.htsim {
		s.recover, s.inflated = s.newest, 0
		s.inHost, s.waits = 0, false // whatever was there may have been lost with the link
	}
	s.sent = s.acked + t.payload(f, s.acked)
	s.timeouts++
	switch {
	case s.timeouts >= swiftPatience:
		s.window = t.least
	case t.n.now-s.lastDecrease >= s.timer.rtt:
		s.window = uint64(float64(s.window) * (1 - t.maxDecrease))
		if !t.htsim {
			s.lastDecrease = t.n.now
		}
	}
	if !t.htsim {
		s.before = s.window
		t.limit(s)
	}
	t.retransmit(f, s)
}

// swiftTarget is the delay that flows aim at without what the path and the other flows add; in picoseconds.
const swiftTarget = 20e6

var swiftTransport = Transport{
	Name: "swift", Title: "Swift: a window by delay",
	queue: randomDrop, nic: fairFlows, control: 40, balance: Fixed, queueBDPs: 5, make: newSwift,
	Parameters: []Parameter{
		{Name: "window", Value: 15, Least: 1e-3, Doc: "window at the start, in packets"},
		{Name: "window-min", Unit: Bytes, Value: 10, Least: 1, Doc: "smallest window"},
		{Name: "window-max", Value: 1000, Least: 1, Doc: "largest window, in packets"},
		{Name: "increase", Value: 1, Least: 0, Doc: "packets by which the window grows in a round trip"},
		{Name: "decrease", Value: 0.8, Least: 0,
			Doc: "share of the window that it shrinks by for an excess delay, per share of the delay that is excess"},
		{Name: "decrease-max", Value: 0.5, Least: 0,
			Doc: "largest share of the window that it shrinks by at once, at most 1"},
		{Name: "target", Unit: Time, Value: swiftTarget, Least: 1, Doc: "delay that flows aim at, without what follows"},
		{Name: "target-hop", Unit: Time, Value: 3_053_435, Compat: number(0),
			Doc: "what each link of the path adds to the target"},
		{Name: "scaling", Unit: Time, Value: 5 * swiftTarget, Doc: "the most that small windows add to the target"},
		{Name: "scaling-min", Value: 0.1, Least: 1e-6, Doc: "window that adds the most, in packets"},
		{Name: "scaling-max", Value: 100, Least: 1e-6,
			Doc: "window that adds nothing, in packets; no window adds anything unless it is above scaling-min"},
		{Name: "drop-chance", Value: 0, Compat: number(0.1),
			Doc: "probability that a switch drops a packet that leaves less room than three full ones"},
		{Name: "rto-initial", Unit: Time, Value: 1e9, Least: 1, Doc: "timeout before anything is known of the round trip"},
		{Name: "rto-min", Unit: Time, Value: 100e6, Least: 1, Doc: "shortest timeout"},
		{Name: "rto-scan", Unit: Time, Compat: number(10e9), Doc: "timers are looked at once in so long; 0: they are exact"},
	},
}
