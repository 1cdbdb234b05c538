// This file is the retransmission timer of window transports: the estimate of the round trip and the timeout that follows
// from it (RFC 6298, section 2), and when it expires.

package packet

// timeoutRules is how the timers of a transport work. All are in picoseconds.
type rtoRules struct {
	initial uint64 // timeout before anything is known of the round trip
	min     uint64 // that the estimate makes it
	scan    uint64 // timers are looked at once in so long, from time 0, as in htsim; 0: they are exact
}

// longestTimeout ends the doubling of timeouts (RFC 6298, 2.5).
const maxTimeout = 60e12

// mostTimeouts is how often in a row an exact timer expires before the sender gives up: its receiver cannot be reached, and
// a run has to end. In htsim it never does.
const maxTimeouts = 64

// retransmission is the timer of a flow. Its event is looked at when it comes, so that to set the timer, as every ack
// does, mostly costs nothing.
type rtoTimer struct {
	rtt, deviation uint64 // smoothed; 0: nothing is known yet
	timeout        uint64
	due            uint64 // when the timer expires; 0: it is off
	event          uint64 // when the event comes that looks at it; 0: there is none
	expirations    int    // how often in a row
	action         uint64 // when what the timer is for is done, where timers are scanned
}

// reset is for a new flow. The event of the old one may still come.
func (r *rtoTimer) reset(rules *rtoRules) {
	*r = rtoTimer{timeout: rules.initial, event: r.event}
}

// sample takes note of a round trip, in whole picoseconds with every quotient rounded down, as in htsim.
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
	r.timeout = max(r.rtt+4*r.deviation, rules.min)
}

// start sets the timer, also where it is set already.
func (r *rtoTimer) start(n *network, f uint32, e event, rules *rtoRules) {
	r.due = n.now + r.timeout
	r.schedule(n, f, e, rules)
}

// ensure sets the timer where it is off.
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

// expire handles an event of the timer, and reports whether it has expired. Then it is set again for twice as long. Where
// timers are scanned the flow is to act only some time later, at an event of its own, so that not all do at once.
func (r *rtoTimer) expire(n *network, f uint32, e, act event, rules *rtoRules) bool {
	if n.now != r.event { // of a flow that had the slot before, or of a timer that was set for an earlier time
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
	r.timeout = min(2*r.timeout, maxTimeout)
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

// acts reports whether an event is that at which the flow acts.
func (r *rtoTimer) actsNow(n *network) bool {
	return r.action == n.now && r.action > 0
}
