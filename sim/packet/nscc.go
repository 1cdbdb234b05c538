// This file is NSCC, the sender-based congestion control of the Ultra Ethernet Specification 1.0, as in
// the simulator of the Ultra Ethernet Consortium (ultraethernet/uet-htsim). A sender has a window, which follows the queueing
// delay and the marks of the packets that are acknowledged. uet.go has the rest.

package packet

import "math"

// nscc is the windows of all flows.
type nscc struct {
	t          *uet
	full       int64   // bytes of a full packet
	rate       float64 // of the interfaces, bytes in a second
	roundTrip  uint64  // of the network, in picoseconds
	bdp        float64 // bytes
	windowBDPs float64 // a window in bandwidth-delay products: that at first, and the largest

	target       uint64  // queueing delay that is aimed at, in picoseconds
	adaptDelay   uint64  // that above which the window may be set anew
	fairIncrease float64 // bytes per window of an increase, per byte acknowledged
	alpha        float64 // the same per picosecond below the target
	fastGain     float64 // bytes per byte acknowledged, where there is no queue
	noQueue      uint64  // a queueing delay that counts as none
	eta          float64 // bytes in a period
	gamma        float64
	gain         float64 // of the average of the delays
	minShare     float64 // a decrease is to this share of the window at most
	adaptGate    uint    // the window is set anew where less than its largest value >> gate was received
	adjustBytes  int64   // bytes acknowledged after which the window is adjusted
	rttFromNACKs bool    // the round trip of a nack may be the base

	flows []nsccFlow
}

// nsccFlow is the window of a flow. All its byte counts are of packets with their headers.
type nsccFlow struct {
	window       int64 // bytes
	maxWindow    int64
	inFlight     int64
	received     uint64 // bytes that the receiver has got
	baseRTT      uint64 // the shortest round trip, in picoseconds
	averageDelay uint64 // queueing delay, in picoseconds

	periodBytes int64  // bytes received in the period at whose end the window may be set anew
	periodEnd   uint64 // 0: there was none
	lossSeen    bool
	ignored     int64 // bytes that came since the window was set anew
	ignore      int64 // marks are ignored for so many
	sinceAdjust int64 // bytes received since the last adjustment
	adjustedAt  uint64
	increase    int64 // bytes times window by which the window is to grow
	decreasedAt uint64
	uncongested int64 // bytes received in a row without a queue
	increasing  bool  // so many that the window grows fast
}

func newNSCC(n *network, s *transportConfig) transport {
	t := newUET(n, s)
	bdp, roundTrip := t.setUET(s)
	mss := float64(t.mss)
	w := &nscc{
		t: t, full: int64(t.mss + t.header), rate: float64(s.rate / 8), roundTrip: roundTrip, bdp: bdp,
		windowBDPs: s.number("window"), target: uint64(clampBytes(float64(roundTrip) * s.number("target-delay"))),
		noQueue: s.time("no-queue"), gamma: s.number("gamma"), gain: min(s.number("delay-gain"), 1), minShare: s.number("least-share"),
		adaptGate: uint(s.number("gate")), adjustBytes: int64(min(s.number("adjust-packets"), 1<<30)) * int64(t.mss+t.header),
		rttFromNACKs: s.enabled("rtt-of-nacks"),
	}
	// The constants are for a network of 100 Gb/s and 12 us, and scaled to this one.
	const usual, usualTrip = 12.5e9 * 12e-6, 12e6
	scale := bdp / usual
	w.adaptDelay = uint64(clampBytes(s.number("alarm") * float64(w.target)))
	w.fairIncrease = s.number("fair-increase") * mss * scale
	w.alpha = s.number("alpha") * mss * scale * (float64(w.target) / usualTrip) / float64(max(w.target, 1))
	w.fastGain = s.number("fast-increase") * scale
	w.eta = s.number("eta") * mss * scale
	t.window = w
	return t
}

// within returns a number rounded down, and kept within what can be calculated with.
func clampBytes(x float64) int64 {
	return int64(min(x, 1<<50))
}

func (w *nscc) open(f uint32) {
	for int(f) >= len(w.flows) {
		w.flows = append(w.flows, nsccFlow{})
	}
	largest := w.maxWindow(w.bdp)
	w.flows[f] = nsccFlow{window: largest, maxWindow: largest, baseRTT: w.roundTrip, adjustedAt: w.t.n.now}
}

// allows reports whether the window has room for a packet.
func (w *nscc) allows(f uint32, size int64) bool {
	fl := &w.flows[f]
	return fl.window >= fl.inFlight+size
}

// sent notes that a packet is sent, and reports whether the window is full.
func (w *nscc) sent(f uint32, size int64) bool {
	fl := &w.flows[f]
	fl.inFlight += size
	return fl.inFlight+size >= fl.window
}

// wasThere notes that a packet that was to be sent again turns out to have come: it was taken off what is in flight when it
// was given up, and again when the receiver counted it.
func (w *nscc) spuriousLoss(f uint32, size int64) {
	w.flows[f].inFlight += size
}

// ackSample is what an ack says.
type ackSample struct {
	bytes  int64  // that the receiver has got since the last ack
	delay  uint64 // queueing delay in picoseconds
	marked bool
}

// sample takes what an ack says, before its packets are forgotten.
func (w *nscc) sample(f uint32, s *uetSource, pk *packet) ackSample {
	fl := &w.flows[f]
	a := ackSample{marked: pk.flags&ecnEcho != 0}
	if pk.sent > fl.received {
		a.bytes = int64(pk.sent - fl.received)
		fl.received = pk.sent
	}
	fl.periodBytes += a.bytes
	fl.sinceAdjust += a.bytes
	fl.ignored += a.bytes
	fl.inFlight -= a.bytes
	seq := pk.ack & math.MaxUint32
	a.delay = fl.averageDelay
	if s.has(seq, inFlight) {
		// The time of a packet counts if it is clear which of its copies the ack is for.
		r := s.packet(seq)
		if again := pk.flags&flagB != 0; r.repeats == 0 && !again || r.repeats == 1 && again {
			trip := w.t.n.now - r.sentAt
			w.updateBaseRTT(fl, trip)
			a.delay = trip - fl.baseRTT
			w.updateDelay(fl, a.delay, a.marked)
		}
	}
	return a
}

// rebase takes a round trip for the one without queues if it is the shortest so far.
func (w *nscc) updateBaseRTT(fl *nsccFlow, trip uint64) {
	if trip < fl.baseRTT {
		fl.baseRTT = trip
		fl.maxWindow = w.maxWindow(math.Trunc(float64(trip) / 1e12 * w.rate))
	}
}

// most returns the largest window for a bandwidth-delay product, in bytes.
func (w *nscc) maxWindow(bdp float64) int64 {
	return max(clampBytes(w.windowBDPs*bdp), w.full)
}

// learn has the average follow a queueing delay. One above the target without a mark counts as a quarter of a round trip:
// the queue is already gone.
func (w *nscc) updateDelay(fl *nsccFlow, delay uint64, marked bool) {
	sample := float64(delay)
	if !marked && delay > w.target {
		sample = float64(fl.baseRTT) * 0.25
	}
	fl.averageDelay = uint64(float64(w.gain*sample) + float64((1-w.gain)*float64(fl.averageDelay)))
}

// acknowledged changes the window for an ack.
func (w *nscc) acknowledged(f uint32, a *ackSample) {
	fl := &w.flows[f]
	now := w.t.n.now
	if w.quickAdapt(fl, false, a.marked, a.delay) {
		return
	}
	switch {
	case !a.marked && a.delay >= w.target:
		fl.increase = clampBytes(float64(fl.increase) + float64(w.fairIncrease*float64(a.bytes)))
	case !a.marked:
		if w.growFast(fl, a); !fl.increasing {
			fl.increase = clampBytes(float64(fl.increase) + float64(w.alpha*float64(a.bytes)*float64(w.target-a.delay)))
		}
	case a.delay >= w.target:
		w.decrease(fl)
	}
	w.bound(fl)
	if fl.sinceAdjust > w.adjustBytes || now-fl.adjustedAt > w.roundTrip {
		fl.window += fl.increase / fl.window
		if now-fl.adjustedAt >= w.roundTrip {
			fl.window = clampBytes(float64(fl.window) + w.eta)
			fl.adjustedAt = now
		}
		fl.increase, fl.sinceAdjust = 0, 0
	}
	w.bound(fl)
}

// growFast has the window grow at once where there has been no queue for a window of bytes.
func (w *nscc) growFast(fl *nsccFlow, a *ackSample) {
	if a.delay >= w.noQueue {
		fl.uncongested, fl.increasing = 0, false
		return
	}
	fl.uncongested += a.bytes
	if fl.uncongested > fl.window || fl.increasing {
		fl.window = clampBytes(float64(fl.window) + float64(float64(a.bytes)*w.fastGain))
		fl.increasing = true
	}
}

// decrease has the window shrink by how far the average delay is above the target, once in a round trip.
func (w *nscc) decrease(fl *nsccFlow) {
	fl.increasing, fl.uncongested = false, 0
	if fl.averageDelay > w.target && w.t.n.now-fl.decreasedAt > fl.baseRTT {
		share := 1 - float64(float64(w.gamma*float64(fl.averageDelay-w.target))/float64(fl.averageDelay))
		fl.window = max(clampBytes(float64(fl.window)*max(share, w.minShare)), w.full)
		fl.decreasedAt = w.t.n.now
	}
}

// adapt is Quick Adapt: once in a round trip, after a loss or where the delay is far too long and little has come through,
// the window becomes what has. It returns true if the window is not to change otherwise: then, and while marks are of the
// time before.
func (w *nscc) quickAdapt(fl *nsccFlow, loss, marked bool, delay uint64) bool {
	done := false
	now := w.t.n.now
	switch {
	case marked && fl.ignored < fl.ignore:
		done = true
	case now > fl.periodEnd:
		if fl.periodEnd != 0 && (fl.lossSeen || loss || delay > w.adaptDelay) && fl.periodBytes < fl.maxWindow>>w.adaptGate {
			fl.window = max(fl.periodBytes, w.full)
			fl.ignore, fl.ignored = fl.inFlight, 0
			fl.lossSeen = false
			done = true
		}
		fl.periodBytes = 0
		fl.periodEnd = now + fl.baseRTT + w.target
	}
	if done {
		fl.increase, fl.sinceAdjust = 0, 0
	}
	return done
}

// nacked changes the window for a packet that was trimmed.
func (w *nscc) nacked(f uint32, at uint64, size int64, atEdge bool) {
	fl := &w.flows[f]
	if w.rttFromNACKs {
		w.updateBaseRTT(fl, w.t.n.now-at)
	}
	fl.ignored += size
	w.updateDelay(fl, w.roundTrip, true) // a full queue takes about as long
	fl.lossSeen = true
	if !w.quickAdapt(fl, true, true, 0) && (w.t.credit == nil || !atEdge) {
		fl.window -= size
		w.bound(fl)
	}
	fl.inFlight -= size
}

// timedOut changes the window for a packet that was lost.
func (w *nscc) timedOut(f uint32, size int64) {
	fl := &w.flows[f]
	fl.inFlight -= size
	fl.window = max(fl.window-size, w.full)
}

func (w *nscc) bound(fl *nsccFlow) {
	fl.window = min(max(fl.window, w.full), fl.maxWindow)
}

var nsccTransport = Transport{
	Name: "nscc", Title: "Ultra Ethernet with NSCC: senders have windows, switches trim and mark",
	discipline: trimming, nic: scheduled, header: 64, control: 64, balance: Spray, queueBDPs: 1, neverPad: true,
	build: newNSCC,
	ecn:   ecnDefaults{minShare: 0.2, maxShare: 0.8, noHeaders: true},
	Parameters: uetParameters(
		Parameter{Name: "target-delay", Value: 0.75, Doc: "queueing delay that is aimed at, in base-rtt"},
		Parameter{Name: "alarm", Value: 4,
			Doc: "queueing delay above which the window is set to what came through, in target-delay"},
		Parameter{Name: "gate", Value: 3, Doc: "it is where less than the largest window halved so often came through"},
		Parameter{Name: "no-queue", Unit: Time, Value: 1e6, Doc: "queueing delay that counts as none"},
		Parameter{Name: "fair-increase", Value: 5, Doc: "packets by which the window grows without marks above the target"},
		Parameter{Name: "alpha", Value: 4,
			Doc: "packets by which the window grows without marks below the target, times how far below"},
		Parameter{Name: "fast-increase", Value: 0.25, Doc: "bytes by which the window grows for a byte, where there is no queue"},
		Parameter{Name: "eta", Value: 0.15, Doc: "packets by which the window grows in any round trip"},
		Parameter{Name: "gamma", Value: 0.8, Doc: "how much the window shrinks at a mark"},
		Parameter{Name: "least-share", Value: 0.5, Doc: "share of the window that a mark leaves at least"},
		Parameter{Name: "delay-gain", Value: 0.0125, Doc: "gain of the average of the queueing delay"},
		Parameter{Name: "adjust-packets", Value: 8,
			Doc: "packets after which the window is adjusted, at the latest after a round trip"},
		Parameter{Name: "rtt-of-nacks", Unit: Switch, Value: 1, Doc: "the round trip of a nack may be the one without queues"},
	),
}
