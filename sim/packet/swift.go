// This file implements Swift (Kumar et al., Swift: Delay is simple and effective for congestion control in the
// datacenter, SIGCOMM 2020). The sender compares the delay of its packets with a target, which grows with the length of
// the path and with the number of flows that share it (algorithm 1 and section 3.5). A window below one packet becomes
// a pace (section 3.6). The NIC serves the packets of all flows in round robin and notifies a sender when a packet has
// left, so that the measured delay is that of the network.

package packet

import "math"

// swift is the transport.
type swift struct {
	stream
	initial              initialWindow
	minWindow, maxWindow uint64 // bounds of the window in bytes
	increase             float64
	decrease             float64
	maxDecrease          float64
	baseTarget           float64 // base target delay in picoseconds
	hopTarget            float64 // picoseconds added to the target by each link of the path
	scaling              swiftScaling
	maxPace              uint64 // longest time between paced packets, but at least a round trip; 0: unlimited

	sources []swiftSource
	sinks   []swiftSink
}

// swiftScaling is the increase of the target for small windows (section 3.5, equation 3).
type swiftScaling struct {
	max         float64 // in picoseconds
	alpha, beta float64
}

// swiftSource is the sender of a flow.
type swiftSource struct {
	streamSource
	window       uint64
	previous     uint64 // window before the current ACK
	inflated     uint64 // inflation of the window by duplicate ACKs
	lastDecrease uint64 // time of the last decrease of the window
	target       float64
	timeouts     int  // consecutive timeouts
	mayDecrease  bool // the window was not decreased within the last round trip
	blocked      bool // a packet is due, but the NIC has enough packets of the flow
	atNIC        int  // number of the flow's data packets at the NIC

	// Pacing, for windows below one packet.
	interval uint64 // picoseconds between packets, set by each ACK; 0: none
	paced    bool
	lastSend uint64
	nextSend uint64 // time of the next paced packet

	// Only with the quirk separateDataNumbers.
	nextDataNumber uint64   // number of data packets with a data number
	dataNumbers    []uint32 // data number of each packet, by its path number
}

type swiftSink struct {
	got  reassembly
	data reassembly // by data number, with the quirk separateDataNumbers
}

// swiftPace is the event of the next paced packet.
const swiftPace = timerC

// swiftMaxAtNIC is the number of packets of a flow at the NIC above which the flow waits.
const swiftMaxAtNIC = 2

func newSwift(n *network, s *transportConfig) transport {
	t := &swift{
		stream: newStream(n, s), initial: s.windowPackets("window", swiftPackets), minWindow: s.bytes("window-min"),
		maxWindow: s.packets("window-max"),
		increase:  s.number("increase"), decrease: s.number("decrease"), maxDecrease: min(s.number("decrease-max"), 1),
		baseTarget: s.number("target"), hopTarget: s.number("target-hop"), maxPace: s.timeout("pace-max"),
	}
	t.rto.byPath = t.rto.byPath || t.maxPace == byPath
	if few, many := s.number("scaling-min"), s.number("scaling-max"); few < many {
		t.scaling.max = s.number("scaling")
		t.scaling.alpha = t.scaling.max / (1/math.Sqrt(few) - 1/math.Sqrt(many))
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
	fl := &t.n.flows[f]
	*s = swiftSource{
		streamSource: t.reset(f, &s.streamSource), window: t.initial.of(t.n, f),
		dataNumbers: s.dataNumbers[:0], lastSend: t.n.now,
		target: t.baseTarget + t.pathTarget(fl.src, fl.dst),
	}
	k.got.reset()
	k.data.reset()
}

// pathTarget returns the addition of a path to the target delay, in picoseconds: by links, but at least the unloaded
// round trip, which exceeds the target on slow or long links.
func (t *swift) pathTarget(src, dst uint32) float64 {
	target := float64(t.hopTarget * float64(t.n.hopCount(src, dst)))
	if !t.quirks.firstHostRate {
		path := t.n.path(src, dst)
		target = max(target, float64(path.roundTrip))
	}
	return target
}

func (t *swift) start(f uint32) {
	t.sendWindow(f, &t.sources[f])
}

// end returns the position at which the sender stops.
func (t *swift) end(f uint32) uint64 {
	if t.quirks.sendPastEnd {
		return (t.n.flows[f].bytes/t.mss + 1) * t.mss
	}
	return t.bytes(f)
}

// more reports whether there is data to send.
func (t *swift) more(f uint32, s *swiftSource) bool {
	if t.quirks.separateDataNumbers {
		return s.nextDataNumber*t.mss < t.end(f)
	}
	return s.sent < t.end(f)
}

// sendWindow sends as permitted by the window.
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
		s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
	}
}

// pace schedules the next packet for the end of the interval since the last one, which may be now.
func (t *swift) pace(f uint32, s *swiftSource) {
	s.nextSend = s.lastSend + s.interval
	if s.nextSend <= t.n.now {
		t.sendPaced(f, s)
		return
	}
	s.paced = true
	t.n.at(s.nextSend, swiftPace, f)
}

// sendPaced sends a paced packet.
func (t *swift) sendPaced(f uint32, s *swiftSource) {
	s.paced = false
	if !t.more(f, s) {
		return
	}
	t.sendNext(f, s)
	if !t.quirks.unarmedPacing {
		s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
	}
	s.lastSend = t.n.now
	if s.interval > 0 {
		t.pace(f, s)
	}
}

// sendNext hands the next packet to the NIC. If the NIC has enough packets of the flow, it returns false, and the flow
// is blocked.
func (t *swift) sendNext(f uint32, s *swiftSource) bool {
	s.blocked = s.atNIC > swiftMaxAtNIC
	if s.blocked {
		return false
	}
	if t.quirks.separateDataNumbers {
		s.dataNumbers = append(s.dataNumbers[:min(s.sent/t.mss, uint64(len(s.dataNumbers)))], uint32(s.nextDataNumber))
		s.nextDataNumber++
	}
	s.atNIC++
	t.transmitNext(f, &s.streamSource, t.payload(f, s.sent), s.dataNumber(s.sent/t.mss))
	s.lastSend = t.n.now
	return true
}

// retransmit sends the first unacknowledged packet, regardless of packets at the NIC.
func (t *swift) retransmit(f uint32, s *swiftSource) {
	s.atNIC++
	t.transmit(f, &s.streamSource, s.acked, t.payload(f, s.acked), s.dataNumber(s.acked/t.mss))
	s.timer.startIfOff(t.n, f, streamTimer, &t.rto)
}

// dataNumber returns the data number of a packet, or 0 if it has none.
func (s *swiftSource) dataNumber(seq uint64) uint64 {
	if seq < uint64(len(s.dataNumbers)) {
		return uint64(s.dataNumbers[seq])
	}
	return 0
}

// packetSent records that a data packet has left the NIC, and lets a blocked flow send.
func (t *swift) packetSent(f uint32) {
	s := &t.sources[f]
	s.atNIC = max(s.atNIC-1, 0)
	if s.blocked {
		s.blocked = false
		t.sendWindow(f, s)
	}
}

func (*swift) next(uint32) uint32 { return none }

func (t *swift) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *swift) receive(p uint32) {
	pk := t.n.packets[p]
	if pk.kind == ack {
		t.acknowledged(&pk)
		t.n.free(p)
		return
	}
	t.arrived(p, &pk)
}

// arrived handles a data packet at the receiver.
func (t *swift) arrived(p uint32, pk *packet) {
	k := &t.sinks[pk.flow]
	k.got.add(pk.seq)
	upTo := t.inOrder(pk.flow, &k.got)
	complete := upTo
	if t.quirks.separateDataNumbers {
		k.data.add(pk.ack)
		complete = k.data.next * t.mss
	}
	t.reply(p, pk, upTo, complete, 0)
}

func (t *swift) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].complete || pk.ack < s.acked {
		return
	}
	t.adjust(s, t.n.now-pk.sent, pk.ack-s.acked)
	if pk.seq >= t.end(f) {
		t.finish(f, s)
		return
	}
	if pk.ack == s.acked {
		if s.acked < s.sent || t.quirks.countIdleDuplicates {
			t.duplicate(f, s)
		}
		return
	}
	switch phase, fresh := t.advance(f, &s.streamSource, pk.ack); phase {
	case fullACK:
		s.inflated = 0
		if s.mayDecrease {
			s.window = uint64((1 - t.maxDecrease) * float64(s.window))
			s.lastDecrease = t.n.now
		}
	case partialACK:
		s.inflated = t.deflate(s.inflated, fresh)
		t.retransmit(f, s)
	}
	t.limit(s)
	t.sendWindow(f, s)
}

// adjust sets the window according to the delay of a packet, in picoseconds (algorithm 1).
func (t *swift) adjust(s *swiftSource, delay, fresh uint64) {
	s.previous = s.window
	trip := s.timer.rtt
	if !t.quirks.smoothedDecrease {
		trip = max(trip, delay)
	}
	s.mayDecrease = t.n.now-s.lastDecrease >= trip
	s.timer.sample(delay, &t.rto)
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

// target returns the target delay of a flow in picoseconds.
func (t *swift) target(s *swiftSource) uint64 {
	packets := float64(s.window) / float64(t.mss)
	if t.quirks.wholePacketTarget {
		packets = math.Floor(packets)
	}
	more := t.scaling.alpha/math.Sqrt(packets) + t.scaling.beta
	return uint64(s.target + max(0, min(more, t.scaling.max)))
}

// limit keeps the window within its bounds, records a decrease and sets the pace.
func (t *swift) limit(s *swiftSource) {
	s.window = max(t.minWindow, min(s.window, t.maxWindow))
	if s.window < s.previous {
		s.lastDecrease = t.n.now
	}
	s.interval = 0
	if s.window < t.mss {
		s.interval = s.timer.rtt * t.mss / s.window
		if t.maxPace > 0 {
			s.interval = min(s.interval, max(s.timer.rtt, s.timer.resolve(t.maxPace)))
		}
	}
}

// duplicate handles a duplicate ACK.
func (t *swift) duplicate(f uint32, s *swiftSource) {
	switch s.duplicate() {
	case inflate:
		s.inflated = min(s.inflated+t.mss, s.window)
		t.sendWindow(f, s)
	case sendMore:
		t.limit(s)
		t.sendWindow(f, s)
	case fastRetransmit:
		t.n.record(f).Nacks++
		t.limit(s)
		t.retransmit(f, s)
		s.startRecovery()
	}
}

// finish completes a flow.
func (t *swift) finish(f uint32, s *swiftSource) {
	s.timer.stop()
	s.paced, s.blocked = false, false
	t.n.completeFlow(f)
}

func (t *swift) timer(e event, f uint32) {
	s := &t.sources[f]
	if e == swiftPace {
		if !t.n.flows[f].complete && s.paced && s.nextSend == t.n.now {
			t.sendPaced(f, s)
		}
		return
	}
	if t.expired(e, f, &s.streamSource) {
		t.goBack(f, s)
	}
}

// swiftResetTimeouts is the number of consecutive timeouts that sets the window to the minimum.
const swiftResetTimeouts = 5

// goBack restarts at the first unacknowledged packet after a timeout.
func (t *swift) goBack(f uint32, s *swiftSource) {
	t.endRecovery(&s.streamSource)
	if !t.quirks.timeoutKeepsState {
		s.inflated = 0
		s.atNIC, s.blocked = 0, false // packets at the NIC may have been lost with the link
	}
	s.sent = s.acked + t.payload(f, s.acked)
	s.timeouts++
	switch {
	case s.timeouts >= swiftResetTimeouts:
		s.window = t.minWindow
	case t.n.now-s.lastDecrease >= s.timer.rtt:
		s.window = uint64(float64(s.window) * (1 - t.maxDecrease))
		if !t.quirks.timeoutKeepsState {
			s.lastDecrease = t.n.now
		}
	}
	if !t.quirks.timeoutKeepsState {
		s.previous = s.window
		t.limit(s)
	}
	t.retransmit(f, s)
}

// swiftPackets is the smallest automatic initial window, in packets.
const swiftPackets = 15

// swiftTarget is the default base target delay in picoseconds.
const swiftTarget = 20e6

var swiftTransport = Transport{
	Name: "swift", Title: "Swift: senders adapt windows to delay",
	ignoresMarks: true,
	discipline:   randomDrop, nic: fairFlows, header: 64, control: 64, bareCompat: true, balance: Fixed,
	queueBDPs: 5, build: newSwift,
	Parameters: append([]Parameter{
		{Name: "window", Unit: Packets, Value: -1, Min: 1e-3, Compat: number(swiftPackets),
			Doc: "initial window in packets or bytes; auto: 15 packets or, if larger, the bandwidth-delay product of " +
				"the path"},
		{Name: "window-min", Unit: Bytes, Value: 10, Min: 1, Doc: "smallest window"},
		{Name: "window-max", Unit: Packets, Value: 1000, Min: 1, Doc: "largest window in packets or bytes"},
		{Name: "increase", Value: 1, Min: 0, Doc: "additive increase, in packets per round trip"},
		{Name: "decrease", Value: 0.8, Min: 0,
			Doc: "multiplicative decrease: share of the window, times the excess share of the delay"},
		{Name: "decrease-max", Value: 0.5, Min: 0,
			Doc: "largest single decrease as a share of the window, at most 1"},
		{Name: "target", Unit: Time, Value: swiftTarget, Min: 1,
			Doc: "base target delay, without the following additions"},
		{Name: "target-hop", Unit: Time, Value: 3_053_435, Compat: number(0),
			Doc: "addition to the target delay per link of the path; without --compat at least the " +
				"unloaded round trip"},
		{Name: "scaling", Unit: Time, Value: 5 * swiftTarget,
			Doc: "largest addition to the target delay by small windows"},
		{Name: "scaling-min", Value: 0.1, Min: 1e-6, Doc: "window with the largest addition, in packets"},
		{Name: "scaling-max", Value: 100, Min: 1e-6,
			Doc: "window without an addition, in packets; if not above scaling-min, no window has an addition"},
		{Name: "pace-max", Unit: Time, Value: -1, Compat: number(0),
			Doc: "longest time between packets of a window below one packet, at least the smoothed round trip; auto: " +
				"as rto-initial; 0: unlimited"},
		{Name: "drop-chance", Value: 0, Compat: number(0.1),
			Doc: "probability of dropping a packet at a switch queue with less free space than three full packets"},
	}, timeoutParameters(1e9, 100e6)...),
}
