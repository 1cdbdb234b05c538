package sim

import "github.com/tracedag/tracedag/sim/event"

// mostAhead is the largest number of events that a rank runs ahead at a time. It limits the messages that a rank that
// only sends hands to the network long before they are due.
const mostAhead = 64

// mostPending is the largest number of own events of a rank that runs ahead, which are in a short list. More of them
// end the run.
const mostPending = 16

// mayRunAhead reports whether ranks may run ahead; see runAhead.
func (e *Engine) mayRunAhead() bool {
	h := &e.host
	return h.Ahead && e.number == nil && e.network.Lookahead() > 0 && e.timeline == nil && e.causes == nil &&
		h.Work == nil && !h.Timely && e.eager
}

// runAhead runs an event of the current rank before its time, the receive of a message that has announced itself, and
// then the own events that follow from it. This is faster than events in the queue. The result is the same, because
// nothing else can schedule own events of the rank before these:
//
//   - The rank has one stream and no own events in its queue.
//   - All messages are eager, and the rank has no wildcard receives. Messages that arrive meanwhile wait for a receive,
//     or are received after this one (see [Host].Ahead).
//   - No posted receive waits for a message, or this receive makes no op ready.
//
// A receive that is posted ahead ends the run, since its message may arrive before that time. The message is then
// received at the time of the post at the earliest, before the remaining own events, which are not earlier.
func (a *Actor) runAhead(first event.Event) {
	now := a.now
	a.running = true
	a.handle(first)
	for n := 0; n < mostAhead && a.rank.posted == 0 && a.rank.own == 0 && len(a.pending) > 0 && a.err == nil; n++ {
		last := len(a.pending) - 1
		ev := a.pending[last]
		a.pending = a.pending[:last]
		a.handle(ev)
	}
	a.running = false
	for _, ev := range a.pending {
		a.rank.own++
		a.rank.queue.Push(ev)
	}
	a.pending = a.pending[:0]
	a.now = now
}

// pend adds an own event while the rank runs ahead.
func (a *Actor) pend(ev event.Event) {
	a.pending = append(a.pending, ev)
	at := len(a.pending) - 1
	for ; at > 0 && a.pending[at-1].Time <= ev.Time; at-- { // ev has the highest sequence number
		a.pending[at] = a.pending[at-1]
	}
	a.pending[at] = ev
}

// readies reports whether the end of op i may make another op ready. An op may depend on i more than once.
func (a *Actor) readies(i uint32) bool {
	a.dependents = a.e.p.AppendDependents(a.dependents[:0], i)
	for _, d := range a.dependents {
		if a.ops[d].Waits <= uint32(len(a.dependents)) {
			return true
		}
	}
	return false
}
