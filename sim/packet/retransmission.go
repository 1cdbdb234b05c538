// This file implements the retransmission timer of window transports: the round-trip estimate and the timeout (RFC
// 6298, section 2).

package packet

import "math"

// rtoRules is the configuration of retransmission timers, in picoseconds.
type rtoRules struct {
	initial uint64 // timeout before the first round-trip sample
	min     uint64 // smallest timeout
	max     uint64 // largest timeout before backoff; 0: unlimited
	linear  int    // consecutive timeouts without backoff
	restart bool   // restart the timer from the send time of the first of few packets in flight
	byPath  bool   // some of the above need the flow's path
	scan    uint64 // scan period of timers, as in htsim; 0: timers are exact
}

// byPath is the value of a timeout that follows from the path of the flow.
const byPath = math.MaxUint64

func newRTORules(s *transportConfig) rtoRules {
	r := rtoRules{
		initial: s.timeout("rto-initial"), min: s.timeout("rto-min"), max: s.timeout("rto-max"),
		scan:   s.time("rto-scan"),
		linear: int(s.number("rto-linear")), restart: s.enabled("rto-restart"),
	}
	r.byPath = r.restart || r.initial == byPath || r.min == byPath || r.max == byPath
	return r
}

// fullQueueTrips is the smallest timeout that follows from a path, in unloaded round trips.
const fullQueueTrips = 3

// maxTimeout limits exponential backoff (RFC 6298, section 2.5).
const maxTimeout = 60e12

// maxTimeouts is the number of consecutive expirations after which a sender with an exact timer gives up, so that a run
// ends if the receiver is unreachable. Scanned timers never give up.
const maxTimeouts = 64

// rtoTimer is the timer of a flow. An ACK only changes due; the event reschedules itself.
type rtoTimer struct {
	rtt, deviation uint64 // smoothed; 0: no sample yet
	timeout        uint64
	due            uint64 // expiry; 0: off
	event          uint64 // time of the scheduled event; 0: none
	expirations    int    // consecutive expirations
	unloaded       uint64 // round trip of the path in an idle network
	full           uint64 // the same with a full queue at the port to the receiver; the timeout byPath
	action         uint64 // time at which a flow reacts to a scanned timer
}

// reset initializes the timer of a new flow. An event of the slot's previous flow may still be scheduled.
func (r *rtoTimer) reset(rules *rtoRules, path *pathInfo) {
	*r = rtoTimer{
		event: r.event, unloaded: path.roundTrip,
		full: max(path.roundTrip+path.lastDrain, fullQueueTrips*path.roundTrip),
	}
	r.timeout = r.resolve(rules.initial)
}

// resolve returns a timeout of the rules for the timer's flow.
func (r *rtoTimer) resolve(timeout uint64) uint64 {
	if timeout == byPath {
		return r.full
	}
	return timeout
}

// sample adds a round-trip sample in picoseconds. All quotients are rounded down, as in htsim.
func (r *rtoTimer) sample(delay uint64, rules *rtoRules) {
	r.expirations = 0
	switch {
	case r.rtt == 0:
		r.rtt, r.deviation = delay, delay/2
	case delay > 0:
		off := max(delay, r.rtt) - min(delay, r.rtt)
		r.deviation = 3*r.deviation/4 + off/4
		r.rtt = 7*r.rtt/8 + delay/8
	}
	r.timeout = r.rtt + 4*r.deviation
	if rules.max > 0 {
		r.timeout = min(r.timeout, max(r.rtt, r.resolve(rules.max)))
	}
	r.timeout = max(r.timeout, r.resolve(rules.min))
}

// start sets the timer, even if it is already set.
func (r *rtoTimer) start(n *network, f uint32, e event, rules *rtoRules) {
	r.startSince(n, n.now, f, e, rules)
}

// startSince sets the timer from a time in the past, but to at least an unloaded round trip from now.
func (r *rtoTimer) startSince(n *network, since uint64, f uint32, e event, rules *rtoRules) {
	if r.due = since + r.timeout; since < n.now {
		r.due = max(r.due, n.now+r.unloaded)
	}
	r.schedule(n, f, e, rules)
}

// startIfOff sets the timer if it is off.
func (r *rtoTimer) startIfOff(n *network, f uint32, e event, rules *rtoRules) {
	if r.due == 0 {
		r.start(n, f, e, rules)
	}
}

func (r *rtoTimer) stop() { r.due = 0 }

func (r *rtoTimer) schedule(n *network, f uint32, e event, rules *rtoRules) {
	at := r.due
	if rules.scan > 0 {
		at += rules.scan - at%rules.scan
	}
	if r.event == 0 || at < r.event {
		r.event = at
		n.at(at, e, f)
	}
}

// expire handles an event of the timer and reports whether the timer has expired. The timeout then doubles. With
// scanned timers the flow reacts at a separate, later event, so that flows do not act in lockstep.
func (r *rtoTimer) expire(n *network, f uint32, e, act event, rules *rtoRules) bool {
	if n.now != r.event { // from the slot's previous flow, or from an earlier setting
		return false
	}
	r.event = 0
	if r.due == 0 {
		return false
	}
	if n.now < r.due {
		r.schedule(n, f, e, rules)
		return false
	}
	if r.expirations++; r.expirations > maxTimeouts && rules.scan == 0 {
		r.due = 0
		return false
	}
	late := n.now - r.due
	if r.expirations > rules.linear {
		r.timeout = min(2*r.timeout, maxTimeout)
	}
	r.start(n, f, e, rules)
	if rules.scan == 0 {
		return true
	}
	for late > rules.scan {
		late /= 2
	}
	r.action = n.now + (rules.scan-late)/200
	n.at(r.action, act, f)
	return false
}

// actsNow reports whether the flow reacts to a scanned timer now.
func (r *rtoTimer) actsNow(n *network) bool {
	return r.action == n.now && r.action > 0
}
