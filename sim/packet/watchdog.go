package packet

// watchdog notices that a sender has not heard of its receiver for long, as happens when packets are lost without a trace.
// Its timer is an event that is looked at when it comes, so that to hear costs nothing.
type watchdog struct {
	heard       uint64 // when the receiver was heard last
	expirations int    // how often in a row it was not
	armed       bool   // there is a timer
}

// mostTries is after how many times of silence a sender gives up: its receiver cannot be reached, and a run has to end.
const maxExpirations = 100

// hear notes that the receiver was heard.
func (w *watchdog) noteHeard(n *network) {
	w.heard, w.expirations = n.now, 0
}

// watch sets the timer, unless it is set or the patience is 0: then there is none.
func (w *watchdog) arm(n *network, f uint32, patience uint64, e event) {
	if patience > 0 && !w.armed {
		w.armed = true
		n.at(w.heard+patience, e, f)
	}
}

// bark handles the timer, and reports whether the receiver was not heard for so long. The timer is set again, unless the
// flow is over or the sender gives up.
func (w *watchdog) expired(n *network, f uint32, patience uint64, e event) bool {
	w.armed = false
	if fl := &n.flows[f]; !fl.started || fl.complete || w.expirations == maxExpirations { // the timer may be that of the slot's last flow
		return false
	}
	silent := n.now >= w.heard+patience
	if silent {
		w.heard = n.now
		w.expirations++
	}
	w.arm(n, f, patience, e)
	return silent
}
