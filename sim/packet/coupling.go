// This file couples the engine, which knows ranks and messages, to the network, which knows hosts and flows.

package packet

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim"
)

// coupling is the network as the engine sees it: every message is a flow. docs/backends/packet.md has the rules.
type coupling struct {
	n         *network
	program   *sim.Program
	actor     *sim.Actor // of the call at hand
	placement Placement
	nics      int // of a rank
	params    *Coupling
	quirks    couplingQuirks
	flowIDs   []uint32 // htsim: of each message the number of its flow; nil: in order of their starts

	starts  []pendingFlow // messages that are handed over and are no flows yet
	started uint32        // flows
	active  int           // flows that have begun and whose sender does not know that they are over
	end     uint64        // when the run is stopped
	stopped bool          // it was, with flows under way
	sent    []uint64      // of each message, when it was handed over; nil without a timeline
	nicFree []uint64      // of each rank and NIC, when that takes the next message
}

// start is a message that is to become a flow.
type pendingFlow struct {
	at      uint64
	message uint32
}

// The events of the coupling in the engine's queues.
const (
	requestArrived   sim.NetworkEvent = iota // at the receiver: a request is there
	grantArrived                             // at the sender: it may send
	messageDelivered                         // at the receiver: a message is there
	sendEnded                                // at the sender: a send has ended
)

func (*coupling) Lookahead() uint64 { return 0 }
func (*coupling) Ordered() bool     { return false }

// Eager takes over a message that is sent at once.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.placement.endpoints(op)
	if c.quirks.emptyIsLocal && op.Size == 0 || from == to {
		there := t + c.params.localTime(op.Size)
		a.Schedule(op.Rank, there, sendEnded, m)
		a.Schedule(uint32(op.Peer), there, messageDelivered, m)
		return
	}
	free := &c.nicFree[int(op.Rank)*c.nics+int(op.NIC)]
	t = max(t, *free)
	*free = t + uint64(c.params.Gap)
	if c.sent != nil {
		c.sent[m] = t
	}
	c.starts = append(c.starts, pendingFlow{at: t, message: m})
	a.Wake(t)
}

// Request sends the announcement of a message that waits for its receive.
func (c *coupling) Request(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.placement.endpoints(op)
	a.Schedule(uint32(op.Peer), t+c.handshake(from, to), requestArrived, m)
}

// Grant sends the answer.
func (c *coupling) Grant(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.placement.endpoints(op)
	a.Schedule(op.Rank, t+c.handshake(to, from), grantArrived, m)
}

// handshake returns how long a request or its answer takes: as long as a control packet with nothing in its way.
func (c *coupling) handshake(from, to uint32) uint64 {
	if c.quirks.freeHandshake || from == to {
		return 0
	}
	return c.n.unloadedLatency(from, to, c.n.headerSize)
}

// Event handles an event of the coupling.
func (c *coupling) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch kind {
	case requestArrived:
		a.Announce(m)
	case grantArrived:
		c.Eager(a, m, a.Now())
	case messageDelivered:
		if a.Op(m).Size <= uint64(c.params.Rendezvous) {
			a.Announce(m)
		}
		sent := a.Now()
		if c.sent != nil {
			sent = c.sent[m]
		}
		a.Deliver(m, sent, a.Now())
	case sendEnded:
		a.Sent(m, a.Now())
	case sim.WakeUp:
		c.advance(a)
	}
}

// advance runs the network until a rank has something to do. Where no flow is under way it is left alone: acks that nobody
// needs and timers can wait for the next flow.
func (c *coupling) advance(a *sim.Actor) {
	c.actor = a
	n := c.n
	if a.Now() >= c.end { // what is under way, or comes yet, stays where it is
		c.stopped = true
		return
	}
	n.run(a.Now())
	c.open(a.Now())
	for c.active > 0 && n.queue.Len() > 0 {
		until := min(a.Until(), c.end)
		if n.queue.NotBefore() >= until {
			break
		}
		if n.run(until); !n.stop {
			break
		}
	}
	if c.active == 0 || n.queue.Len() == 0 {
		return
	}
	next := n.queue.Next()
	if next >= c.end {
		c.stopped = true
		return
	}
	a.Wake(next)
}

// open makes flows of the messages that were handed over. Those of the present start before anything else happens; several
// that the end of others has set off, the last first, as in htsim.
func (c *coupling) open(now uint64) {
	if len(c.starts) == 0 {
		return
	}
	n := c.n
	if c.flowIDs != nil {
		order := 1
		if n.now == now && n.events > 0 {
			order = -1
		}
		slices.SortStableFunc(c.starts, func(x, y pendingFlow) int { return order * cmp.Compare(c.flowIDs[x.message], c.flowIDs[y.message]) })
	}
	n.now = max(n.now, now)
	for _, s := range c.starts {
		op := &c.program.Ops[s.message]
		c.started++
		c.active++
		id := c.started
		if c.flowIDs != nil {
			id = c.flowIDs[s.message]
		}
		from, to := c.placement.endpoints(op)
		f := n.openFlow(from, to, s.message, id, op.Size)
		if s.at > now {
			n.at(s.at, flowStart, f)
		} else {
			n.startFlow(f)
		}
	}
	c.starts = c.starts[:0]
}

// left ends the send of a flow whose last byte has left the host.
func (c *coupling) lastByteSent(f uint32) {
	if !c.params.AckEnds && !c.quirks.endAtLastACK {
		c.notify(c.rankOf(f), sendEnded, f)
	}
}

// delivered has the receive of a flow's message take it.
func (c *coupling) delivered(f uint32) {
	if !c.quirks.endAtLastACK {
		m := c.n.flows[f].message
		c.notify(uint32(c.program.Ops[m].Peer), messageDelivered, f)
	}
}

// acknowledged ends the send of a flow, and with htsim's rules the receive as well.
func (c *coupling) acknowledged(f uint32) {
	c.active--
	if c.params.AckEnds || c.quirks.endAtLastACK {
		c.notify(c.rankOf(f), sendEnded, f)
	}
	if c.quirks.endAtLastACK {
		m := c.n.flows[f].message
		c.notify(uint32(c.program.Ops[m].Peer), messageDelivered, f)
	}
}

func (c *coupling) rankOf(f uint32) uint32 {
	return c.program.Ops[c.n.flows[f].message].Rank
}

// tell has something happen at a rank now, and the network wait for it.
func (c *coupling) notify(rank uint32, what sim.NetworkEvent, f uint32) {
	c.actor.Schedule(rank, c.n.now, what, c.n.flows[f].message)
	c.n.stop = true
}

func (c *coupling) event(event, uint32) {}

// local returns how long a message takes between ranks on one host.
func (c *Coupling) localTime(bytes uint64) uint64 {
	t := uint64(c.LocalLatency)
	if c.LocalRate > 0 {
		t += uint64(math.Ceil(float64(bytes) * 8e12 / float64(c.LocalRate)))
	}
	return t
}
