package analytical

import (
	"errors"
	"math"
)

// A run with classes of collectives has fewer events than a run of all messages, so the order of simultaneous events
// can differ. It matters only among the events of one NPU that end ops: if two of them, at the same time, make ready or
// issue ops of the same lane, their order decides which op comes first. The order of events is that in which they were
// added, so it is certain if the events were added at different times. Otherwise the run ends with errOrder, and is
// repeated message by message.

// errOrder ends a run with classes of collectives that would have to simulate every message.
var errOrder = errors.New("the order of simultaneous events is not known")

// order is the events of an NPU at one time that end ops.
type order struct {
	time     uint64 // plus 1; 0: none
	current  turn
	earlier  []turn // before current, at the same time
	ownFirst uint64 // when the first of the NPU's own events was added

	waiting bool     // the NPU has issued a collective that others have not
	log     []uint64 // since then, the times of its own events
}

// turn is an event of an NPU that ends an op.
type turn struct {
	added uint64 // when the event was added; unknown: not recorded
	own   bool   // one of the NPU's own events, see eventQueue
	last  bool   // the end of a collective of a class
	lanes uint64 // one bit per lane whose ops it made ready or issued
	other uint32 // hashes of the receives that it posted, and touchedRoofline
}

// unknown is the time of an addition that is not recorded.
const unknown = math.MaxUint64

// touchedRoofline is the bit in turn.other of a calc whose floating-point sums depend on the order of calcs.
const touchedRoofline = 1 << 31

// begins records that an event of an NPU is handled.
func (e *engine) begins(r int32, own bool, added uint64) {
	if e.orders == nil {
		return
	}
	s := &e.orders[r]
	if t := e.queue.now + 1; s.time != t {
		s.time, s.earlier, s.ownFirst = t, s.earlier[:0], math.MaxUint64
	} else {
		s.earlier = append(s.earlier, s.current)
	}
	s.current = turn{own: own, added: added}
	if own {
		s.ownFirst = min(s.ownFirst, added)
		if n := &e.npus[r]; n.outcome != nil && n.outcome.tied(e, r, e.queue.now-n.begun) {
			e.fail(errOrder)
		}
		if s.waiting {
			s.log = append(s.log, e.queue.now)
		}
	}
}

// touches records that the current event of an NPU makes ready or issues an op of a lane.
func (e *engine) touches(r int32, lane uint8) {
	if e.orders != nil && lane < maxLanes {
		e.touch(r, 1<<lane, 0)
	}
}

func (e *engine) touch(r int32, lanes uint64, other uint32) {
	s := &e.orders[r]
	if s.time != e.queue.now+1 { // at the start of the run, before all events
		return
	}
	s.current.lanes |= lanes
	s.current.other |= other
	for i := range s.earlier {
		t := &s.earlier[i]
		if (t.lanes&lanes != 0 || t.other&other != 0) && !s.certain(t, s.waiting || e.npus[r].outcome != nil) {
			e.fail(errOrder)
		}
	}
}

// certain reports whether an earlier event of the same time also precedes the current one in a run of all messages.
// running reports whether the NPU runs a collective, which may have further events at this time.
func (s *order) certain(t *turn, running bool) bool {
	c := &s.current
	switch {
	case t.added == unknown || c.added == unknown:
		return false
	case t.own == c.own:
		return t.added < c.added
	case t.own:
		return s.ownFirst < c.added
	default: // further own events may precede both
		return t.added < s.ownFirst && (c.last || !running)
	}
}

// receiveHash returns a bit that receives of the same key share.
func receiveHash(peer int32, tag int64, comm int32) uint32 {
	h := (uint64(uint32(peer))*0x9e3779b97f4a7c15 ^ uint64(tag)) * 0xd6e8feb86659fd93
	return 1 << ((h>>32 ^ uint64(uint32(comm))) % 31)
}

// orderIssue records the issue of an op by the current event of an NPU.
func (e *engine) orderIssue(r int32, n *npu, o *op, i uint32) {
	if o.lane < maxLanes {
		e.issuedAt[n.lanes+int(o.lane)] = e.queue.now
		e.touch(r, 1<<o.lane, 0)
	}
	switch {
	case o.kind == opRecv:
		e.touch(r, 0, receiveHash(o.peer, n.g.tag(i), o.comm))
	case o.kind == opCompute && e.system.Roofline && o.lane != laneHost && !o.bare:
		e.touch(r, 0, touchedRoofline)
	}
}
