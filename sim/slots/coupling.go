// This file couples the engine, which handles ranks and messages, with the slots, which handle hosts and flows.

package slots

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// coupling is the engine's view of the network: each message between two hosts is a flow.
// docs/reference/backends/slots.md defines the rules.
type coupling struct {
	program *sim.Program
	net     *network
	policy  policy
	hosts   []uint32 // by rank
	nics    int
	length  uint64 // of a slot in picoseconds
	end     uint64 // of the run
	packet  uint64 // bytes
	limit   int    // flows per queue

	context context.Context // ends the run early; nil: no limit

	arrivals      []arrival // flows that no queue has yet
	flows         flowTable
	slot          *slot
	fresh, merged queues   // memory of admit
	served        []uint64 // by port: packets
	slots         int64    // slots with flows
	last          uint64   // end of the last slot with flows
	stopped       bool     // the run ended with flows in queues, or before flows arrived
	err           error    // ends the run
	sent          []uint64 // by message: time of its handover; nil without a timeline
	jobs          *jobRun  // nil: the trace has no job graphs
	handed        figures  // messages that the engine handed over and that did not begin
}

// arrival is a flow that has arrived during the present slot.
type arrival struct {
	at uint64
	op uint32
}

// flowTable has the flows of a run by number: in the order of arrival, ties by op.
type flowTable struct {
	op      []uint32
	arrived []uint64 // in picoseconds
	ended   []uint64 // end of the last slot; 0: not done
	dropped []bool   // the queue was full
}

// add adds a flow and returns its number.
func (f *flowTable) add(x arrival) uint32 {
	f.op, f.arrived = append(f.op, x.op), append(f.arrived, x.at)
	f.ended, f.dropped = append(f.ended, 0), append(f.dropped, false)
	return uint32(len(f.op) - 1)
}

// Events of the coupling in the engine's queues.
const (
	announced sim.NetworkEvent = iota // at the receiver: the message arrives in the network
	delivered                         // at the receiver: the last packet arrives
	localHere                         // at the receiver: a message that needs no network
	sendEnded                         // at the sender
	begun                             // at the sender: an edge of a job begins
)

func (*coupling) Lookahead() uint64                  { return 0 }
func (*coupling) Ordered() bool                      { return false }
func (*coupling) Request(*sim.Actor, uint32, uint64) {} // messages never wait for their receives
func (*coupling) Grant(*sim.Actor, uint32, uint64)   {}

// Eager hands over a message. An edge of a job begins when the op before it has run.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	if c.err != nil {
		return
	}
	edge, isEdge := c.jobs.edgeOf(m)
	if !isEdge {
		c.begin(a, m, t)
		return
	}
	c.handed.add(a.Op(m).Size)
	a.Schedule(uint32(a.Op(m).Peer), t, announced, m) // now, since later messages to the same rank wait for it
	if c.jobs.isDropped(m) {
		return
	}
	switch at, known := c.jobs.begin(m, edge); {
	case known && at <= t:
		c.begin(a, m, t)
	case known:
		a.Schedule(a.Op(m).Rank, at, begun, m)
	}
}

// begin begins a message at time t, now: a flow, or one that needs no network.
func (c *coupling) begin(a *sim.Actor, m uint32, t uint64) {
	if c.sent != nil {
		c.sent[m] = t
	}
	op := a.Op(m)
	_, isEdge := c.jobs.edgeOf(m)
	from, to := topology.Endpoints(c.hosts, c.nics, op)
	local := from == to || op.Size == 0
	if isEdge && t <= c.end {
		c.handed.flows--
		c.handed.bytes -= op.Size
	}
	switch {
	case isEdge && local && t <= c.end:
		a.Schedule(op.Rank, t, sendEnded, m)
		a.Schedule(uint32(op.Peer), t, delivered, m)
		c.endEdge(a, m, t)
		return
	case isEdge:
	case local:
		a.Schedule(op.Rank, t, sendEnded, m)
		a.Schedule(uint32(op.Peer), t, localHere, m)
		return
	default:
		a.Schedule(uint32(op.Peer), t, announced, m) // so that receives match in the order of sends
	}
	if t > c.end {
		c.stopped = true
		return
	}
	c.arrivals = append(c.arrivals, arrival{t, m})
	a.Wake((t/c.length + 1) * c.length)
}

// endEdge ends a message at time t; if it is an edge of a job, edges that waited for it may begin.
func (c *coupling) endEdge(a *sim.Actor, m uint32, t uint64) {
	if edge, ok := c.jobs.edgeOf(m); ok {
		c.jobs.end(edge, t, func(m uint32, at uint64) { a.Schedule(a.Op(m).Rank, at, begun, m) })
	}
}

// Event handles an event of the coupling.
func (c *coupling) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch {
	case c.err != nil:
	case kind == announced:
		a.Announce(m)
	case kind == localHere:
		a.Announce(m)
		c.deliver(a, m)
	case kind == delivered:
		c.deliver(a, m)
	case kind == sendEnded:
		a.Sent(m, a.Now())
	case kind == begun:
		if !c.jobs.isDropped(m) {
			c.begin(a, m, a.Now())
		}
	case kind == sim.WakeUp:
		c.advance(a)
	}
}

func (c *coupling) deliver(a *sim.Actor, m uint32) {
	sent := a.Now()
	if c.sent != nil {
		sent = c.sent[m]
	}
	a.Deliver(m, sent, a.Now())
}

// checkSlots is the number of slots between two checks of the context.
const checkSlots = 1024

// advance ends the slots before the next event of a rank: their packets leave, and the flows that arrived in them are
// queued.
func (c *coupling) advance(a *sim.Actor) {
	now := a.Now()
	for n := 1; ; n++ {
		if now > c.end {
			c.stopped = true
			return
		}
		if len(c.slot.flows) > 0 {
			c.serve(a, now)
		}
		if c.admit(now); c.err != nil || len(c.slot.flows)+len(c.arrivals) == 0 {
			return
		}
		until := a.Until()
		now = c.skip(now, until) + c.length
		if now >= until {
			a.Wake(now)
			return
		}
		if n%checkSlots == 0 {
			if c.err = sim.Interrupted(c.context); c.err != nil {
				return
			}
		}
	}
}

// serve ends a slot.
func (c *coupling) serve(a *sim.Actor, now uint64) {
	s := c.slot
	s.place()
	c.policy.schedule(s)
	c.slots++
	c.last = now
	kept := 0
	for i, packets := range s.take {
		if packets > 0 {
			for _, d := range s.path(i) {
				c.served[int(s.used[d])/c.net.channels] += uint64(packets)
			}
		}
		if s.need[i] -= packets; s.need[i] > 0 {
			s.set(kept, &s.queues, i)
			kept++
			continue
		}
		c.flows.ended[s.flows[i]] = now
		m := c.flows.op[s.flows[i]]
		op := a.Op(m)
		a.Schedule(op.Rank, now, sendEnded, m)
		a.Schedule(uint32(op.Peer), now, delivered, m)
		c.endEdge(a, m, now)
	}
	s.resize(kept)
}

// skip returns the time after which the next slot must be simulated: a flow alone sends the same in each slot.
func (c *coupling) skip(now, until uint64) uint64 {
	s := c.slot
	if len(s.flows) != 1 || len(c.arrivals) > 0 {
		return now
	}
	each := c.net.onFirst(s.from[0], s.to[0], s.pairs[0])
	slots := (min(until, c.end+1) - 1 - now) / c.length // that end before
	if slots = min(slots, uint64((s.need[0]-1)/each)); slots == 0 {
		return now
	}
	s.place()
	for _, edge := range s.used {
		c.served[int(edge)/c.net.channels] += slots * uint64(each)
	}
	s.need[0] -= int64(slots) * each
	c.slots += int64(slots)
	c.last = now + slots*c.length
	return c.last
}

// admit queues the flows that arrived before now, each if its queue has room.
func (c *coupling) admit(now uint64) {
	slices.SortFunc(c.arrivals, func(x, y arrival) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.op, y.op))
	})
	n := 0
	for n < len(c.arrivals) && c.arrivals[n].at < now {
		n++
	}
	if n == 0 {
		return
	}
	c.fresh.resize(n)
	i := 0
	for _, x := range c.arrivals[:n] {
		if c.jobs.isDropped(x.op) { // at the end of the slot before
			continue
		}
		op := &c.program.Ops[x.op]
		from, to := topology.Endpoints(c.hosts, c.nics, op)
		pair := c.net.routes.between(from, to)
		if pair.count == 0 {
			c.err = fmt.Errorf("rank %d op %d (send): expected a path from host %d to host %d, found none", op.Rank,
				c.program.Index(x.op), from, to)
			return
		}
		packets := (op.Size-1)/c.packet + 1
		if each := uint64(c.net.onFirst(from, to, pair)); (packets-1)/each >= math.MaxInt64/c.length {
			c.err = c.program.TooLong(x.op)
			return
		}
		f := &c.fresh
		f.flows[i], f.need[i], f.from[i], f.to[i], f.pairs[i] = c.flows.add(x), int64(packets), from, to, pair
		i++
	}
	c.fresh.resize(i)
	c.arrivals = append(c.arrivals[:0], c.arrivals[n:]...)
	c.merge()
}

// merge adds the fresh flows to the queues. A flow that is dropped drops its job; the job's other flows then leave the
// queues.
func (c *coupling) merge() {
	s, f, m := c.slot, &c.fresh, &c.merged
	keys := s.keys[:0]
	for i, flow := range f.flows {
		keys = append(keys, sorted{int64(f.pair(i)), flow, uint32(i)})
	}
	s.keys = keys
	s.sortKeys()
	m.resize(len(s.flows) + len(keys))
	n, length := 0, 0 // flows in m, and in the last queue
	dropped := false  // a job was
	add := func(q *queues, i int) {
		if length++; n == 0 || m.pair(n-1) != q.pair(i) {
			length = 1
		}
		if q == f && length > c.limit {
			c.flows.dropped[q.flows[i]] = true
			length--
			if job, ok := c.jobs.jobOf(c.flows.op[q.flows[i]]); ok {
				c.jobs.dropped[job], dropped = true, true
			}
			return
		}
		m.set(n, q, i)
		n++
	}
	old := 0
	for _, k := range keys {
		for ; old < len(s.flows) && s.pair(old) <= uint64(k.key); old++ {
			add(&s.queues, old)
		}
		add(f, int(k.at))
	}
	for ; old < len(s.flows); old++ {
		add(&s.queues, old)
	}
	if dropped {
		n = c.removeDropped(m, n)
	}
	m.resize(n)
	s.queues, c.merged = *m, s.queues
}

// removeDropped removes the flows of dropped jobs from the first n of q, and returns the number of the others.
func (c *coupling) removeDropped(q *queues, n int) (kept int) {
	for i := range n {
		if flow := q.flows[i]; c.jobs.isDropped(c.flows.op[flow]) {
			c.flows.dropped[flow] = true
			continue
		}
		q.set(kept, q, i)
		kept++
	}
	return kept
}
