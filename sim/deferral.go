package sim

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// deferral postpones the work of non-blocking receives to the op that waits for them; see Host.Deferred. That wait
// begins once all dependencies of the op are met but the ends of requests, which have only started.
type deferral struct {
	waiter  []uint32            // by op: the op that waits for the receive; NoOp for other ops
	waits   []wait              // by op
	pending map[uint32][]uint32 // by op that waits: receives whose messages have arrived
}

// wait is the beginning of the wait of an op.
type wait struct {
	open uint32 // events before it that have not happened
	by   lead   // the last event that happened
	at   uint64 // its time
}

// newDeferral returns the deferral of a program, or nil if no receive is deferred. Only one op waits for the end of
// such a receive: otherwise, what precedes the wait could need the receive through another op.
func newDeferral(p *Program) *deferral {
	d := &deferral{waiter: make([]uint32, len(p.Ops)), waits: make([]wait, len(p.Ops)),
		pending: make(map[uint32][]uint32)}
	any := false
	var ends []uint32
	for i := range uint32(len(p.Ops)) {
		starts := p.StartDependents(i)
		ends = p.AppendDependents(ends[:0], i)
		for _, list := range [...][]uint32{starts, ends} {
			for _, next := range list {
				d.waits[next].open++
			}
		}
		d.waiter[i] = NoOp
		if p.Ops[i].Kind() == dag.Recv && len(starts) > 0 && len(ends) == 1 {
			d.waiter[i], any = ends[0], true
		}
	}
	if !any {
		return nil
	}
	return d
}

// requests reports whether the start of a message is all that precedes the wait for it. The last receive before a wait
// looks like a blocking one; it counts as a request, so that the receives before it are not deferred to its end.
func (p *Program) requests(i uint32) bool {
	op := &p.Ops[i]
	return op.IsMessage() && (op.Kind() == dag.Recv || len(p.StartDependents(i)) > 0)
}

// defers reports whether a receive whose message has arrived is deferred. It handles the receive again when the wait
// for it begins.
func (a *Actor) defers(i uint32) bool {
	d := a.e.deferral
	if d.waiter[i] == NoOp {
		return false
	}
	w := &d.waits[d.waiter[i]]
	switch {
	case w.open > 0:
		d.pending[d.waiter[i]] = append(d.pending[d.waiter[i]], i)
		return true
	case w.at > a.now:
		a.own(w.at, recvHere, i)
		return true
	}
	return false
}

// happens reports an event before the waits of ops, at a time.
func (a *Actor) happens(ops []uint32, t uint64, by lead) {
	d := a.e.deferral
	for _, op := range ops {
		w := &d.waits[op]
		if t >= w.at {
			w.at, w.by = t, by
		}
		if w.open--; w.open > 0 || len(d.pending[op]) == 0 {
			continue
		}
		slices.SortFunc(d.pending[op], func(i, j uint32) int { return cmp.Compare(i, j) })
		for _, i := range d.pending[op] {
			a.own(max(w.at, a.now), recvHere, i)
		}
		delete(d.pending, op)
	}
}

// isPending reports whether the message of a receive that has not ended has arrived.
func (d *deferral) isPending(i uint32) bool {
	return d != nil && d.waiter[i] != NoOp && slices.Contains(d.pending[d.waiter[i]], i)
}
