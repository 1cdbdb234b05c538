// This file couples the engine, which handles ranks and messages, with the network, which handles hosts and flows.

package packet

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// coupling is the engine's view of the network: each message is a flow. docs/reference/backends/packet.md defines the
// rules.
type coupling struct {
	n       *network
	program *sim.Program
	actor   *sim.Actor // actor of the current call
	nics    int        // NICs per rank
	params  *Coupling
	quirks  couplingQuirks
	flowIDs []uint32 // flow number of each message; nil: in order of start

	starts  []pendingFlow // messages handed over that are not flows yet
	started uint32        // number of flows
	active  int           // number of flows that have started and are not complete
	end     uint64        // time at which the run stops, in picoseconds
	stopped bool          // the run was stopped with flows in progress
	sent    []uint64      // by message: time of its handover; nil without a timeline
	nicFree []uint64      // by rank and NIC: earliest start of the next message

	unloaded *unloaded // nil without a critical path
}

// pendingFlow is a message that becomes a flow.
type pendingFlow struct {
	at      uint64
	message uint32
}

// Events of the coupling in the engine's queues.
const (
	requestArrived   sim.NetworkEvent = iota // at the receiver: an announcement has arrived
	grantArrived                             // at the sender: the answer has arrived
	messageDelivered                         // at the receiver: the message has arrived
	sendEnded                                // at the sender: the send has ended
)

func (*coupling) Lookahead() uint64 { return 0 }
func (*coupling) Ordered() bool     { return false }

// Eager hands over a message that is sent without waiting for its receive.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.n.ends.Of(op, m)
	if c.quirks.emptyIsLocal && op.Size == 0 || from == to {
		done := t + c.params.localTime(op.Size)
		a.Schedule(op.Rank, done, sendEnded, m)
		a.Schedule(uint32(op.Peer), done, messageDelivered, m)
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

// Request announces a message that waits for its receive.
func (c *coupling) Request(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.n.ends.Of(op, m)
	a.Schedule(uint32(op.Peer), t+c.handshake(from, to), requestArrived, m)
}

// Grant answers an announcement.
func (c *coupling) Grant(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	from, to := c.n.ends.Of(op, m)
	a.Schedule(op.Rank, t+c.handshake(to, from), grantArrived, m)
}

// handshake returns the time of an announcement or its answer: that of a control packet in an idle network.
func (c *coupling) handshake(from, to uint32) uint64 {
	if c.quirks.freeHandshake || from == to {
		return 0
	}
	return c.n.unloadedLatency(from, to, c.n.controlSize)
}

// unloaded computes times of messages in the idle network.
type unloaded struct {
	options *Options
	routes  *topology.Routes // without failures
	ideal   func(f *Flow) dag.Time
}

func newUnloaded(n *network, o *Options) *unloaded {
	routes := n.routes
	if n.failures != nil {
		routes = intactRoutes(o.Network)
	}
	return &unloaded{o, routes, idealTime(routes, o)}
}

// Unloaded returns the time of a message in the idle network; see [sim.Unloader].
func (c *coupling) Unloaded(m uint32, leaves bool) (bytes, latency uint64) {
	op := &c.program.Ops[m]
	from, to := c.n.ends.Of(op, m)
	if op.Size > uint64(c.params.Rendezvous) {
		latency = c.handshake(to, from)
	}
	if c.quirks.emptyIsLocal && op.Size == 0 || from == to {
		local := uint64(c.params.LocalLatency)
		return c.params.localTime(op.Size) - local, latency + local
	}
	u := c.unloaded
	first, rest := wireBytes(op.Size, uint64(u.options.Params.MSS), uint64(u.options.Params.HeaderSize),
		u.options.Params.PadLastPacket)
	ideal := uint64(u.ideal(&Flow{Source: from, Target: to, Bytes: op.Size})) // 0 without a path
	if ideal > 0 {
		rate := u.options.Network.Links[u.routes.NIC(from)/2].Rate
		bytes = min(c.n.quirks.byteTimeOf(rate).of(first+rest), ideal) // failures may make links faster
	}
	latency += ideal - bytes
	if leaves {
		latency += c.n.unloadedLatency(to, from, c.n.controlSize)
	}
	return bytes, latency
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

// advance runs the network until a rank has an event. With no flow in progress, it stops: the remaining ACKs and timers
// can wait for the next flow. After the end of the context, it does nothing.
func (c *coupling) advance(a *sim.Actor) {
	c.actor = a
	n := c.n
	if a.Now() >= c.end { // flows in progress and later ones stay incomplete
		c.stopped = true
		return
	}
	n.run(a.Now())
	c.open(a.Now())
	for c.active > 0 && n.queue.Len() > 0 && n.err == nil {
		until := min(a.Until(), c.end)
		if n.queue.NotBefore() >= until {
			break
		}
		if n.run(until); !n.stop {
			break
		}
	}
	if c.active == 0 || n.queue.Len() == 0 || n.err != nil {
		return
	}
	next := n.queue.Next()
	if next >= c.end {
		c.stopped = true
		return
	}
	a.Wake(next)
}

// open starts a flow for each message handed over. Messages of the current time start before other events. Messages
// that follow from several completions start in reverse order, as in htsim.
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
		slices.SortStableFunc(c.starts, func(x, y pendingFlow) int {
			return order * cmp.Compare(c.flowIDs[x.message], c.flowIDs[y.message])
		})
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
		from, to := n.ends.Of(op, s.message)
		f := n.openFlow(from, to, s.message, id, op.Size)
		if s.at > now {
			n.at(s.at, flowStart, f)
		} else {
			n.startFlow(f)
		}
	}
	c.starts = c.starts[:0]
}

// lastByteSent ends the send of a flow.
func (c *coupling) lastByteSent(f uint32) {
	if !c.params.AckEnds && !c.quirks.endAtLastACK {
		c.notify(c.rankOf(f), sendEnded, f)
	}
}

// delivered completes the receive of a flow.
func (c *coupling) delivered(f uint32) {
	if !c.quirks.endAtLastACK {
		m := c.n.flows[f].message
		c.notify(uint32(c.program.Ops[m].Peer), messageDelivered, f)
	}
}

// acknowledged ends the send of a flow and, with the quirk endAtLastACK, its receive.
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

// notify schedules an event of a rank at the current time, and stops the network for it.
func (c *coupling) notify(rank uint32, kind sim.NetworkEvent, f uint32) {
	c.actor.Schedule(rank, c.n.now, kind, c.n.flows[f].message)
	c.n.stop = true
}

func (c *coupling) event(event, uint32) {}

// localTime returns the time of a message between ranks on one host, at most math.MaxInt64.
func (c *Coupling) localTime(bytes uint64) uint64 {
	return topology.Local{Rate: c.LocalRate, Latency: c.LocalLatency}.Time(bytes)
}
