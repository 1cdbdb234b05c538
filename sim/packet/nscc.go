// This file implements NSCC, the sender-based congestion control of the Ultra Ethernet Specification 1.0, as in the
// simulator of the Ultra Ethernet Consortium (ultraethernet/uet-htsim). The window of a sender follows the queueing
// delay and the ECN marks of acknowledged packets. The rest is in uet.go.

package packet

import "math"

// nscc is the window control of all flows. Times are in picoseconds.
type nscc struct {
	t          *uet
	full       int64   // size of a full packet in bytes
	bdp        float64 // bandwidth-delay product of the network in bytes
	windowBDPs float64 // initial and largest window in bandwidth-delay products
	// windowBytes is the same in bytes; 0: windowBDPs applies
	windowBytes float64

	targetRTTs   float64 // target queueing delay in base round trips
	alarm        float64 // queueing delay above which Quick Adapt may act, in targets
	fairIncrease float64 // fair increase: bytes times window per acknowledged byte
	alpha        float64 // proportional increase: the same, per picosecond below the target
	fastGain     float64 // fast increase: bytes per byte acknowledged without a queue
	noQueue      uint64  // queueing delay that counts as no queue
	eta          float64 // unconditional increase in bytes per adjustment period
	gamma        float64
	gain         float64 // gain of the average delay
	minShare     float64 // smallest share of the window after a decrease
	adaptGate    uint    // Quick Adapt acts if fewer than maxWindow >> adaptGate bytes arrived
	adjustBytes  int64   // bytes acknowledged between adjustments
	rttFromNACKs bool    // round trips of NACKs count for the base round trip

	flows []nsccFlow
}

// nsccFlow is the window of a flow. Bytes include headers.
type nsccFlow struct {
	rate       float64 // rate of the path in bytes/s
	share      float64 // bandwidth-delay product relative to that of the network
	roundTrip  uint64  // unloaded round trip
	target     uint64  // target queueing delay
	adaptDelay uint64  // queueing delay above which Quick Adapt may act

	window       int64 // bytes
	maxWindow    int64
	inFlight     int64
	received     uint64 // bytes received, as acknowledged
	baseRTT      uint64 // shortest round trip
	averageDelay uint64 // average queueing delay

	periodBytes int64  // bytes received in the current Quick Adapt period
	periodEnd   uint64 // 0: not set yet
	lossSeen    bool
	ignored     int64 // bytes received since the last Quick Adapt
	ignore      int64 // bytes for which marks are ignored
	sinceAdjust int64 // bytes received since the last adjustment
	adjustedAt  uint64
	increase    int64 // pending increase, in bytes times window
	decreasedAt uint64
	uncongested int64 // consecutive bytes received without a queue
	increasing  bool  // fast increase is active
}

func newNSCC(n *network, s *transportConfig) transport {
	t := newUET(n, s)
	t.setUET(s)
	bdp := wholeBytes(&t.base)
	mss := float64(t.mss)
	w := &nscc{
		t: t, full: int64(t.mss + t.header), bdp: bdp,
		windowBDPs: s.number("window"), windowBytes: float64(s.sizes["window"]),
		targetRTTs: s.number("target-delay"), alarm: s.number("alarm"),
		noQueue: s.time("no-queue"), gamma: s.number("gamma"), gain: min(s.number("delay-gain"), 1),
		minShare: s.number("least-share"), adaptGate: uint(s.number("gate")),
		adjustBytes:  int64(min(s.number("adjust-packets"), 1<<30)) * int64(t.mss+t.header),
		rttFromNACKs: s.enabled("rtt-of-nacks"),
	}
	// The constants apply to 100 Gb/s and a round trip of 12 us, and are scaled to this network.
	const usual, usualTrip = 12.5e9 * 12e-6, 12e6
	scale := bdp / usual
	w.fairIncrease = s.number("fair-increase") * mss * scale
	target := w.targetDelay(t.base.roundTrip)
	w.alpha = s.number("alpha") * mss * scale * (float64(target) / usualTrip) / float64(max(target, 1))
	w.fastGain = s.number("fast-increase") * scale
	w.eta = s.number("eta") * mss * scale
	t.window = w
	return t
}

// clampBytes rounds a number down and limits it to a range safe from overflow.
func clampBytes(x float64) int64 {
	return int64(min(x, 1<<50))
}

func (w *nscc) open(f uint32) {
	for int(f) >= len(w.flows) {
		w.flows = append(w.flows, nsccFlow{})
	}
	path := w.t.basePath(f)
	bdp := wholeBytes(&path)
	largest, target := w.maxWindow(bdp), w.targetDelay(path.roundTrip)
	w.flows[f] = nsccFlow{
		rate: float64(path.rate / 8), share: bdp / max(w.bdp, 1), roundTrip: path.roundTrip, target: target,
		adaptDelay: uint64(clampBytes(w.alarm * float64(target))),
		window:     largest, maxWindow: largest, baseRTT: path.roundTrip, adjustedAt: w.t.n.now,
	}
	if s := &w.t.sources[f]; !w.t.n.quirks.firstHostRate { // several ACKs per window, however small
		s.ackEvery = min(s.ackEvery, uint64(largest)/acksPerWindow)
	}
}

// acksPerWindow is the smallest number of ACKs per window.
const acksPerWindow = 4

// targetDelay returns the target queueing delay for a base round trip, both in picoseconds.
func (w *nscc) targetDelay(roundTrip uint64) uint64 {
	return uint64(clampBytes(float64(roundTrip) * w.targetRTTs))
}

// allows reports whether the window has room for a packet.
func (w *nscc) allows(f uint32, size int64) bool {
	fl := &w.flows[f]
	return fl.window >= fl.inFlight+size
}

// sent counts a packet in flight, and reports whether the window is full.
func (w *nscc) sent(f uint32, size int64) bool {
	fl := &w.flows[f]
	fl.inFlight += size
	return fl.inFlight+size >= fl.window
}

// spuriousLoss corrects the bytes in flight for a packet that was considered lost and arrived: it was subtracted when
// considered lost, and again when the receiver counted it.
func (w *nscc) spuriousLoss(f uint32, size int64) {
	w.flows[f].inFlight += size
}

// ackSample is the content of an ACK.
type ackSample struct {
	bytes  int64  // newly received bytes
	delay  uint64 // queueing delay in picoseconds
	marked bool
}

// sample reads an ACK before the scoreboard processes it.
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
		// A round trip counts only if the ACK identifies the transmission.
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

// updateBaseRTT lowers the base round trip to a shorter one.
func (w *nscc) updateBaseRTT(fl *nsccFlow, trip uint64) {
	if trip < fl.baseRTT {
		fl.baseRTT = trip
		fl.maxWindow = w.maxWindow(math.Trunc(float64(trip) / 1e12 * fl.rate))
	}
}

// maxWindow returns the largest window in bytes for a bandwidth-delay product.
func (w *nscc) maxWindow(bdp float64) int64 {
	if w.windowBytes > 0 {
		return max(clampBytes(w.windowBytes), w.full)
	}
	return max(clampBytes(w.windowBDPs*bdp), w.full)
}

// updateDelay adds a queueing delay to the average. A delay above the target without a mark counts as a quarter of the
// base round trip, since the queue has already drained.
func (w *nscc) updateDelay(fl *nsccFlow, delay uint64, marked bool) {
	sample := float64(delay)
	if !marked && delay > fl.target {
		sample = float64(fl.baseRTT) * 0.25
	}
	fl.averageDelay = uint64(float64(w.gain*sample) + float64((1-w.gain)*float64(fl.averageDelay)))
}

// acknowledged adjusts the window for an ACK.
func (w *nscc) acknowledged(f uint32, a *ackSample) {
	fl := &w.flows[f]
	now := w.t.n.now
	if w.quickAdapt(fl, false, a.marked, a.delay) {
		return
	}
	switch {
	case !a.marked && a.delay >= fl.target:
		fl.increase = clampBytes(float64(fl.increase) + float64(w.fairIncrease*fl.share*float64(a.bytes)))
	case !a.marked:
		if w.growFast(fl, a); !fl.increasing {
			fl.increase = clampBytes(float64(fl.increase) +
				float64(w.alpha*fl.share*float64(a.bytes)*float64(fl.target-a.delay)))
		}
	case a.delay >= fl.target:
		w.decrease(fl)
	}
	w.bound(fl)
	if fl.sinceAdjust > w.adjustBytes || now-fl.adjustedAt > fl.roundTrip {
		fl.window += fl.increase / fl.window
		if now-fl.adjustedAt >= fl.roundTrip {
			fl.window = clampBytes(float64(fl.window) + w.eta*fl.share)
			fl.adjustedAt = now
		}
		fl.increase, fl.sinceAdjust = 0, 0
	}
	w.bound(fl)
}

// growFast is fast increase: the window grows immediately after a window of bytes without a queue.
func (w *nscc) growFast(fl *nsccFlow, a *ackSample) {
	if a.delay >= w.noQueue {
		fl.uncongested, fl.increasing = 0, false
		return
	}
	fl.uncongested += a.bytes
	if fl.uncongested > fl.window || fl.increasing {
		fl.window = clampBytes(float64(fl.window) + float64(float64(a.bytes)*w.fastGain*fl.share))
		fl.increasing = true
	}
}

// decrease is multiplicative decrease: by the excess of the average delay, once per round trip.
func (w *nscc) decrease(fl *nsccFlow) {
	fl.increasing, fl.uncongested = false, 0
	if fl.averageDelay > fl.target && w.t.n.now-fl.decreasedAt > fl.baseRTT {
		share := 1 - float64(float64(w.gamma*float64(fl.averageDelay-fl.target))/float64(fl.averageDelay))
		fl.window = max(clampBytes(float64(fl.window)*max(share, w.minShare)), w.full)
		fl.decreasedAt = w.t.n.now
	}
}

// quickAdapt is Quick Adapt: once per round trip, after a loss or with a very long delay, the window becomes the number
// of received bytes if that is small. It returns true if no other rule may change the window: after such a change, and
// while marks are older than it.
func (w *nscc) quickAdapt(fl *nsccFlow, loss, marked bool, delay uint64) bool {
	done := false
	now := w.t.n.now
	switch {
	case marked && fl.ignored < fl.ignore:
		done = true
	case now > fl.periodEnd:
		if fl.periodEnd != 0 && (fl.lossSeen || loss || delay > fl.adaptDelay) &&
			fl.periodBytes < fl.maxWindow>>w.adaptGate {
			fl.window = max(fl.periodBytes, w.full)
			fl.ignore, fl.ignored = fl.inFlight, 0
			fl.lossSeen = false
			done = true
		}
		fl.periodBytes = 0
		fl.periodEnd = now + fl.baseRTT + fl.target
	}
	if done {
		fl.increase, fl.sinceAdjust = 0, 0
	}
	return done
}

// nacked adjusts the window for a trimmed packet.
func (w *nscc) nacked(f uint32, at uint64, size int64, atEdge bool) {
	fl := &w.flows[f]
	if w.rttFromNACKs {
		w.updateBaseRTT(fl, w.t.n.now-at)
	}
	fl.ignored += size
	w.updateDelay(fl, fl.roundTrip, true) // about the delay of a full queue
	fl.lossSeen = true
	if !w.quickAdapt(fl, true, true, 0) && (w.t.credit == nil || !atEdge) {
		fl.window -= size
		w.bound(fl)
	}
	fl.inFlight -= size
}

// timedOut adjusts the window for a lost packet.
func (w *nscc) timedOut(f uint32, size int64) {
	fl := &w.flows[f]
	fl.inFlight -= size
	fl.window = max(fl.window-size, w.full)
}

func (w *nscc) bound(fl *nsccFlow) {
	fl.window = min(max(fl.window, w.full), fl.maxWindow)
}

var nsccTransport = Transport{
	Name: "nscc", Title: "Ultra Ethernet with NSCC: senders adapt windows to delay and marks, switches trim",
	discipline: trimming, nic: scheduled, header: 64, control: 64, balance: Spray, queueBDPs: 1, neverPad: true,
	build: newNSCC,
	ecn:   ecnDefaults{minShare: 0.2, maxShare: 0.8, noHeaders: true},
	Parameters: uetParameters(
		Parameter{Name: "target-delay", Value: 0.75, Doc: "target queueing delay, in units of base-rtt"},
		Parameter{Name: "alarm", Value: 4,
			Doc: "queueing delay above which Quick Adapt may act, in units of target-delay"},
		Parameter{Name: "gate", Value: 3,
			Doc: "Quick Adapt acts if fewer bytes than the largest window / 2^gate arrived"},
		Parameter{Name: "no-queue", Unit: Time, Value: 1e6,
			Doc: "queueing delay below which the queue counts as empty"},
		Parameter{Name: "fair-increase", Value: 5,
			Doc: "fair increase: packets by which the window grows without marks above the target"},
		Parameter{Name: "alpha", Value: 4,
			Doc: "proportional increase: packets without marks below the target, times the distance to it"},
		Parameter{Name: "fast-increase", Value: 0.25,
			Doc: "fast increase: bytes per acknowledged byte with an empty queue"},
		Parameter{Name: "eta", Value: 0.15, Doc: "unconditional increase, in packets per round trip"},
		Parameter{Name: "gamma", Value: 0.8, Doc: "strength of the decrease at a mark"},
		Parameter{Name: "least-share", Value: 0.5, Doc: "smallest share of the window after a decrease"},
		Parameter{Name: "delay-gain", Value: 0.0125, Doc: "gain of the average queueing delay"},
		Parameter{Name: "adjust-packets", Value: 8,
			Doc: "packets between window adjustments, which occur at least once per round trip"},
		Parameter{Name: "rtt-of-nacks", Unit: Switch, Value: 1,
			Doc: "use round trips of NACKs for the base round trip"},
	),
}
