// This file implements the byte-stream sender and receiver shared by TCP and Swift: positions in the data, cumulative
// ACKs, and the loss recovery of TCP NewReno (RFC 6582) with the timer of RFC 6298. The transports add their windows.

package packet

// stream is the transport state shared by all flows.
type stream struct {
	n       *network
	mss     uint64 // payload of a full packet in bytes
	header  uint32 // header of a data packet in bytes
	control uint32 // size of an ACK in bytes
	padLast bool   // pad the last packet of a flow to full size
	quirks  quirks
	rto     rtoRules
}

// streamSource is the sender of a flow. Positions are bytes from the start of the data.
type streamSource struct {
	acked      uint64 // all data before it is acknowledged
	sent       uint64 // all data before it was sent; a timeout moves it back
	newest     uint64 // all data before it was sent at least once
	recover    uint64 // its ACK ends the recovery
	duplicates int    // consecutive duplicate ACKs
	recovering bool
	timer      rtoTimer
	sentAt     [restartPackets + 1]uint64 // with rtoRules.restart: send times of the last packets, by number
}

// The timer events of a stream.
const (
	streamTimer  = timerA
	streamAction = timerB
)

func newStream(n *network, s *transportConfig) stream {
	return stream{
		n: n, mss: s.mss, header: s.header, control: s.control, padLast: s.padLast, quirks: s.quirks,
		rto: newRTORules(s),
	}
}

// reset returns the state of a new flow in the slot of an old one, whose timer event may still be scheduled.
func (t *stream) reset(f uint32, old *streamSource) streamSource {
	timer := old.timer
	var path pathInfo
	if t.rto.byPath {
		path = t.n.path(t.n.flows[f].src, t.n.flows[f].dst)
	}
	timer.reset(&t.rto, &path)
	return streamSource{timer: timer}
}

// restartPackets is the largest number of unacknowledged packets with which an ACK restarts the timer from the send
// time of the first of them (RFC 7765, section 3).
const restartPackets = 3

// bytes returns the length of a flow. A flow without data has one byte, so that there is something to acknowledge.
func (t *stream) bytes(f uint32) uint64 {
	return max(t.n.flows[f].bytes, 1)
}

// payload returns the bytes of data in the packet that starts at a position.
func (t *stream) payload(f uint32, from uint64) uint64 {
	if t.quirks.sendPastEnd {
		return t.mss
	}
	return min(t.mss, t.bytes(f)-from)
}

// transmit sends the packet with the given payload that starts at a position, with its data number, which is 0 unless
// packets have separate data numbers.
func (t *stream) transmit(f uint32, s *streamSource, from, size, number uint64) {
	marks := flags(0)
	switch bytes := t.bytes(f); {
	case from < s.newest:
		marks = retransmit
	case from < bytes && from+size >= bytes:
		marks = lastPacket
	}
	if t.padLast {
		size = t.mss
	}
	s.sentAt[from/t.mss%uint64(len(s.sentAt))] = t.n.now
	p := t.n.newData(f, from/t.mss, uint32(size)+t.header, marks)
	t.n.packets[p].ack = number
	t.n.send(t.n.flows[f].src, p)
}

// transmitNext sends the packet at s.sent and advances s.sent.
func (t *stream) transmitNext(f uint32, s *streamSource, size, number uint64) {
	t.transmit(f, s, s.sent, size, number)
	s.sent += size
	s.newest = max(s.newest, s.sent)
}

// inOrder returns the position up to which a receiver has all data.
func (t *stream) inOrder(f uint32, got *reassembly) uint64 {
	upTo := got.next * t.mss
	if t.quirks.sendPastEnd {
		return upTo
	}
	return min(upTo, t.bytes(f))
}

// reply frees a received packet, and acknowledges all data before upTo. The flow is delivered if complete, which equals
// upTo unless packets have separate data numbers, is the end of the data.
func (t *stream) reply(p uint32, pk *packet, upTo, complete uint64, marks flags) {
	f := pk.flow
	a := t.n.newPacket(f, ack, t.control)
	reply := &t.n.packets[a]
	reply.ack, reply.seq, reply.flags, reply.sent = upTo, complete, marks, pk.sent
	t.n.free(p)
	t.n.send(t.n.flows[f].dst, a)
	if complete >= t.bytes(f) {
		t.n.deliverFlow(f)
	}
}

// ackPhase is the phase of recovery that an ACK of new data ends or continues.
type ackPhase uint8

const (
	normalACK  ackPhase = iota // outside of recovery
	partialACK                 // in recovery, with more packets missing: the first of them is known
	fullACK                    // ends the recovery
)

// advance processes an ACK of new data, and returns the number of bytes acknowledged for the first time.
func (t *stream) advance(f uint32, s *streamSource, upTo uint64) (phase ackPhase, fresh uint64) {
	since := t.n.now
	if t.rto.restart && upTo < s.sent && s.sent-upTo <= restartPackets*t.mss {
		since = s.sentAt[upTo/t.mss%uint64(len(s.sentAt))]
	}
	s.timer.startSince(t.n, since, f, streamTimer, &t.rto)
	if upTo >= s.sent {
		s.sent = upTo
		s.timer.stop()
	}
	fresh = upTo - s.acked
	s.acked = upTo
	switch {
	case !s.recovering:
		s.duplicates = 0
		return normalACK, fresh
	case upTo >= s.recover:
		s.duplicates, s.recovering = 0, false
		return fullACK, fresh
	}
	return partialACK, fresh
}

// deflate returns a window in recovery after a partial ACK (RFC 6582, section 3.2, step 3).
func (t *stream) deflate(window, fresh uint64) uint64 {
	return window - min(window, fresh) + t.mss
}

// duplicateAction is the reaction to a duplicate ACK.
type duplicateAction uint8

const (
	sendMore       duplicateAction = iota // send as permitted by the window
	inflate                               // widen the window, since a packet has left the network
	fastRetransmit                        // retransmit the first unacknowledged packet
	// the packets were sent before a timeout, so this indicates no loss after it
	ignore
)

// duplicate counts a duplicate ACK. The third consecutive one starts a recovery; the caller then calls startRecovery.
func (s *streamSource) duplicate() duplicateAction {
	if s.recovering {
		return inflate
	}
	s.duplicates++
	switch {
	case s.duplicates != 3:
		return sendMore
	case s.acked < s.recover:
		return ignore
	}
	return fastRetransmit
}

func (s *streamSource) startRecovery() {
	s.recovering, s.recover = true, s.sent
}

// expired handles an event of the retransmission timer, and reports whether the sender must go back. Data sent past the
// end of a flow is not retransmitted.
func (t *stream) expired(e event, f uint32, s *streamSource) bool {
	over := t.n.flows[f].complete
	if over {
		s.timer.stop()
	}
	if e == streamTimer {
		return s.timer.expire(t.n, f, streamTimer, streamAction, &t.rto)
	}
	return !over && s.timer.actsNow(t.n)
}

// endRecovery ends a recovery at a timeout.
func (t *stream) endRecovery(s *streamSource) {
	s.recovering, s.duplicates = false, 0
	s.recover = s.newest
	if t.quirks.recoverAtSent {
		s.recover = s.sent
	}
}

// linearTimeouts is the default number of timeouts without backoff. Linux has 6 for flows with few packets in flight
// (tcp_thin_linear_timeouts), pFabric (Alizadeh et al., SIGCOMM 2013) no backoff. In incasts of 2,047 messages, some
// senders need 20.
const linearTimeouts = 30

// timeoutParameters returns the parameters of retransmission timers, with htsim's first and shortest timeout in
// picoseconds.
func timeoutParameters(initial, least float64) []Parameter {
	return []Parameter{
		{Name: "rto-initial", Unit: Time, Value: -1, Min: 1, Compat: number(initial),
			Doc: "timeout before the first round-trip sample; auto: the unloaded round trip plus the time of a full " +
				"queue at the port to the receiver, at least three round trips"},
		{Name: "rto-min", Unit: Time, Value: -1, Min: 1, Compat: number(least),
			Doc: "shortest timeout; auto: as rto-initial"},
		{Name: "rto-max", Unit: Time, Value: -1, Compat: number(0),
			Doc: "longest timeout before backoff, at least rto-min and the smoothed round trip; auto: as " +
				"rto-initial; 0: unlimited"},
		{Name: "rto-linear", Value: linearTimeouts, Compat: number(0),
			Doc: "consecutive timeouts before each doubles the next"},
		{Name: "rto-restart", Unit: Switch, Value: 1, Compat: number(0),
			Doc: "with at most three packets in flight, restart the timer from the first one's send time (RFC 7765)"},
		{Name: "rto-scan", Unit: Time, Compat: number(10e9), Doc: "period at which timers are checked; 0: " +
			"timers are exact"},
	}
}
