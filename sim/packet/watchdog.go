package packet

// watchdog detects a sender that has not heard from its receiver for a timeout, as after losses without a NACK. Hearing
// from it only stores the time; the event of the timer reschedules itself.
type watchdog struct {
	heard       uint64 // time of the last word of the receiver
	expirations int    // in a row
	armed       bool   // an event is scheduled
}

// maxExpirations is the number of expirations in a row after which a sender gives up, so that a run ends if the
// receiver is unreachable.
const maxExpirations = 100

// noteHeard records a word of the receiver.
func (w *watchdog) noteHeard(n *network) {
	w.heard, w.expirations = n.now, 0
}

// arm sets the timer, unless it is set or the timeout is 0, which disables it.
func (w *watchdog) arm(n *network, f uint32, timeout uint64, e event) {
	if timeout > 0 && !w.armed {
		w.armed = true
		n.at(w.heard+timeout, e, f)
	}
}

// expired handles the event of the timer, and reports whether the timer expired. The timer is set again, unless the
// flow is complete or the sender gives up.
func (w *watchdog) expired(n *network, f uint32, timeout uint64, e event) bool {
	w.armed = false
	// The event may be of an earlier flow in the slot.
	if fl := &n.flows[f]; !fl.started || fl.complete || w.expirations == maxExpirations {
		return false
	}
	silent := n.now >= w.heard+timeout
	if silent {
		w.heard = n.now
		w.expirations++
	}
	w.arm(n, f, timeout, e)
	return silent
}
