// This file couples the engine, which handles ranks and messages, with the peer, which handles hosts.

package exec

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// coupling is the engine's view of a peer. docs/reference/backends/exec.md defines the rules.
type coupling struct {
	peer  *conversation
	hosts []uint32 // by rank
	nics  int
	local topology.Local
	ends  string // when sends end: one of the choices of --send-ends

	handed  []handover
	late    lateness
	sent    []uint64 // by message: time of its handover; nil without a timeline
	arrived []inbox  // by rank
	reports []report
	err     error // ends the run
}

// handover is a message that the next batch hands to the peer.
type handover struct {
	at uint64
	op uint32
}

// inbox has the reports for a rank that it has not handled yet, in the order of the peer.
type inbox struct {
	reports []report
	first   int
}

// lateness counts messages that were handed over late because of the window.
type lateness struct {
	sends   int64
	largest uint64 // in picoseconds
}

// Events of the coupling in the engine's queues.
const (
	reported  sim.NetworkEvent = iota // the next report of the rank's inbox
	sentHere                          // a send within a host ends
	localHere                         // a message within a host arrives
)

func (*coupling) Lookahead() uint64                  { return 0 }
func (*coupling) Ordered() bool                      { return false }
func (*coupling) Request(*sim.Actor, uint32, uint64) {} // messages never wait for their receives
func (*coupling) Grant(*sim.Actor, uint32, uint64)   {}
func (c *coupling) endsAtHandover() bool             { return c.ends == endsAtStart }

// Eager hands over a message.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	if c.err != nil {
		return
	}
	if c.sent != nil {
		c.sent[m] = t
	}
	op := a.Op(m)
	if from, to := topology.Endpoints(c.hosts, c.nics, op); from == to {
		done := t + c.local.Time(op.Size)
		if !c.endsAtHandover() {
			a.Schedule(op.Rank, done, sentHere, m)
		}
		a.Schedule(uint32(op.Peer), done, localHere, m)
		return
	}
	c.handed = append(c.handed, handover{t, m})
	a.Wake(t)
}

// Event handles an event of the coupling.
func (c *coupling) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch {
	case c.err != nil:
	case kind == reported:
		box := &c.arrived[a.At()]
		r := box.reports[box.first]
		if box.first++; box.first == len(box.reports) {
			box.reports, box.first = box.reports[:0], 0
		}
		c.handle(a, &r)
	case kind == sentHere:
		a.Sent(m, a.Now())
	case kind == localHere:
		c.deliver(a, m)
	case kind == sim.WakeUp:
		c.err = c.advance(a)
	}
}

// handle handles a report, at the receiver for the end of its receive and at the sender for that of its send.
func (c *coupling) handle(a *sim.Actor, r *report) {
	if r.done {
		c.deliver(a, r.op)
		return
	}
	a.Sent(r.op, a.Now())
}

func (c *coupling) deliver(a *sim.Actor, m uint32) {
	sent := a.Now()
	if c.sent != nil {
		sent = c.sent[m]
	}
	a.Announce(m)
	a.Deliver(m, sent, a.Now())
}

// advance hands over the messages of the present time and makes the peer simulate up to its next report or the next
// event of a rank. With no message under way, the peer waits.
func (c *coupling) advance(a *sim.Actor) error {
	p := c.peer
	if a.Now() < p.now { // ranks still handle reports of a window
		a.Wake(p.now)
		return nil
	}
	if err := c.handOver(a); err != nil || p.open == 0 {
		return err
	}
	until := a.Next()
	if until > math.MaxInt64 {
		until = never
	}
	reports, idle, err := p.run(until, c.reports[:0])
	c.reports = reports
	if err != nil || idle {
		return err
	}
	for i := range reports {
		c.distribute(a, &reports[i])
	}
	a.Wake(p.now)
	return nil
}

// handOver writes the sends of the present time, by time and then in the order of ranks and ops.
func (c *coupling) handOver(a *sim.Actor) error {
	slices.SortFunc(c.handed, func(x, y handover) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.op, y.op))
	})
	for _, h := range c.handed {
		op := a.Op(h.op)
		from, to := topology.Endpoints(c.hosts, c.nics, op)
		t, err := c.peer.send(h.op, h.at, from, to, op.Size, a.Program().Tag(op), op.NIC)
		if err != nil {
			return err
		}
		if t > h.at {
			c.late.sends++
			c.late.largest = max(c.late.largest, t-h.at)
		}
	}
	c.handed = c.handed[:0]
	return nil
}

// distribute puts a report into the inboxes of the ranks that it concerns.
func (c *coupling) distribute(a *sim.Actor, r *report) {
	op := a.Op(r.op)
	switch {
	case !r.done && c.ends != endsAtSent:
	case !r.done:
		c.put(a, op.Rank, r)
	case c.ends == endsAtDelivery:
		c.put(a, op.Rank, &report{at: r.at, op: r.op})
		c.put(a, uint32(op.Peer), r)
	default:
		c.put(a, uint32(op.Peer), r)
	}
}

func (c *coupling) put(a *sim.Actor, rank uint32, r *report) {
	box := &c.arrived[rank]
	box.reports = append(box.reports, *r)
	a.Schedule(rank, r.at, reported, r.op)
}
