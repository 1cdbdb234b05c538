package packet

// watchdog detects a sender that has received nothing from its receiver for a timeout, for example after losses without
// a NACK. A received packet only updates the time; the timer's event reschedules itself.
type watchdog struct {
	heard       uint64 // time of the receiver's last packet
	expirations int    // consecutive expirations
	armed       bool   // an event is scheduled
}

// maxExpirations is the number of consecutive expirations after which a sender gives up, so that a run ends if the
// receiver is unreachable.
const maxExpirations = 100

// silentRoundTrips is the shortest silence of a receiver, in unloaded round trips, that indicates a loss.
const silentRoundTrips = 3

// silence returns the timeout of a flow: the given one, but at least some round trips of its path. 0 disables it.
func (n *network) silence(f uint32, timeout uint64) uint64 {
	if timeout == 0 || n.quirks.firstHostRate {
		return timeout
	}
	path := n.path(n.flows[f].src, n.flows[f].dst)
	return max(timeout, silentRoundTrips*path.roundTrip)
}

// recordHeard records a packet from the receiver.
func (w *watchdog) recordHeard(n *network) {
	w.heard, w.expirations = n.now, 0
}

// arm sets the timer, unless it is set or the timeout is 0, which disables it.
func (w *watchdog) arm(n *network, f uint32, timeout uint64, e event) {
	if timeout > 0 && !w.armed {
		w.armed = true
		n.at(w.heard+timeout, e, f)
	}
}

// expired handles the event of the timer and reports whether the timer expired. It sets the timer again, unless the
// flow is complete or the sender gives up.
func (w *watchdog) expired(n *network, f uint32, timeout uint64, e event) bool {
	w.armed = false
	// The event may belong to an earlier flow in the slot.
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
