// This file couples the engine, which handles ranks and messages, with the solver, which handles flows.

package flow

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// coupling is the engine's view of the network: each message between hosts is a flow.
// docs/reference/backends/flow.md defines the rules.
type coupling struct {
	fluid      *fluid
	model      *model
	paths      paths
	load       []uint64 // of the selector, with the policy least
	loops      bool     // messages between ranks of one host take its route to itself
	ends       *topology.Ends
	local      topology.Local
	rendezvous uint64
	leaves     bool                        // sends end when their last byte has left
	smpi       *smpi                       // nil: other rules of messages
	mode       func(m uint32) sim.SendMode // with smpi
	calls      []sendCall                  // by message, with smpi
	program    *sim.Program
	ctx        context.Context

	handed  []uint32 // messages that become flows at the present time
	flows   int
	records []record // by number of the flow - 1; with a history, of flows under way
	listed  int      // number of flows from which a replay in windows has a history
	history *history // nil: records has all flows
	window  measure.Window
	active  []running
	ended   []uint32
	carried []float64 // by link: bytes, with acknowledgements
	there   path
	back    path
	used    []uint32             // ports of there
	cache   map[[2]uint32]*route // by source and destination, if all their flows have one; nil: they do not
	latest  []latestRoute        // by source: of the latest flow with a route of the cache
	unused  []*route
	sent    []uint64 // by message: time of its handover; nil without a timeline
	number  []uint32 // by message: number of its flow; nil without a critical path
	steps   int64
	err     error // ends the run

	gap     uint64   // shortest time between the starts of two messages at a NIC
	nics    int      // per rank, of the trace
	nicFree []uint64 // by rank and NIC: earliest start of the next message; nil without a gap

	marks    sim.NetworkTimeline // of failures; nil: none
	linkName func(link int) string

	changes []change  // of links, that are to come
	fails   bool      // there were some
	rates   []float64 // by link of the solver: of the network
	waiting []waiting
	running int // flows under way
	sampler *sampler
}

// record describes a flow for results. Times are in picoseconds.
type record struct {
	source, target uint32 // hosts
	bytes          uint64
	start, end     uint64
	latency        float64 // length of the latency phase
	alone          float64 // time of the bytes without other flows

	early   float32 // time between the exact end and end
	message uint32
}

// ideal returns the time of the flow without others in whole picoseconds.
func (r *record) ideal() dag.Time { return dag.Time(min(tick(r.latency+r.alone), math.MaxInt64)) }

// running is a flow under way, by its number in the solver.
type running struct {
	message uint32
	record  uint32
	used    []uint32 // ports, with the policy least
	left    float64  // bytes since its path last changed
	running bool
	sent    bool   // its last byte has left, and its send has ended
	number  uint32 // of the flow, from 1
}

// latestRoute is the route from a host to another. A host mostly sends several messages to one host in a row.
type latestRoute struct {
	route *route // nil: none
	to    uint32
}

// Events of the coupling in the engine's queues.
const (
	requestArrived   sim.NetworkEvent = iota // at the receiver: an announcement has arrived
	grantArrived                             // at the sender: the answer has arrived
	gapEnded                                 // at the sender: its NIC is free for the message
	sendEnded                                // at the sender: the message has arrived or, with leaves, has left
	messageDelivered                         // at the receiver, after that: the message has arrived
)

// A time that exceeds a whole picosecond by less than exact, relative to the time, or exactPs has that value, so that
// rounding errors do not round it up.
const (
	exact   = 1e-15
	exactPs = 1e-3
)

// tick returns the first whole picosecond that is not before a time, and math.MaxUint64 for times out of range.
func tick(t float64) uint64 {
	if t > math.MaxInt64 {
		return math.MaxUint64
	}
	return uint64(max(0, math.Ceil(t-max(exactPs, t*exact))))
}

func (*coupling) Lookahead() uint64 { return 0 }
func (*coupling) Ordered() bool     { return false }

// Eager hands over a message that does not wait for its receive. Those of SMPI match it when they are handed over.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	c.hand(a, m, t)
	if c.smpi != nil {
		a.Schedule(uint32(a.Op(m).Peer), t, requestArrived, m)
	}
}

// hand hands over a message that does not wait, or no longer waits, for its receive.
func (c *coupling) hand(a *sim.Actor, m uint32, t uint64) {
	if c.err != nil {
		return
	}
	op := a.Op(m)
	from, to := c.ends.Of(op, m)
	if copied := c.copies(m); copied || c.isLocal(from, to) {
		if c.sent != nil {
			c.sent[m] = t
		}
		if !copied {
			t += c.local.Time(op.Size)
		}
		a.Schedule(op.Rank, t, sendEnded, m)
		if c.leaves {
			a.Schedule(uint32(op.Peer), t, messageDelivered, m)
		}
		return
	}
	if c.nicFree != nil {
		free := &c.nicFree[int(op.Rank)*c.nics+int(op.NIC)]
		start := max(t, *free)
		*free = start + c.gap
		if start > t {
			a.Schedule(op.Rank, start, gapEnded, m)
			return
		}
	}
	c.depart(a, m, t)
}

// depart makes a message a flow at a time.
func (c *coupling) depart(a *sim.Actor, m uint32, t uint64) {
	if c.sent != nil {
		c.sent[m] = t
	}
	c.handed = append(c.handed, m)
	a.Wake(t)
}

// bytes returns the number of bytes that travel for a message.
func (c *coupling) bytes(op *sim.Op) uint64 {
	if c.smpi != nil {
		return op.Size + uint64(c.smpi.envelope)
	}
	return op.Size
}

// copies reports whether a message does not leave the memory of its rank, which takes no time.
func (c *coupling) copies(m uint32) bool {
	return c.calls != nil && c.calls[m] == copies
}

// isLocal reports whether messages between two hosts use no links.
func (c *coupling) isLocal(from, to uint32) bool {
	return from == to && !c.loops
}

// Request announces a message that waits for its receive.
func (c *coupling) Request(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	if c.smpi != nil {
		a.Schedule(uint32(op.Peer), t, requestArrived, m)
		return
	}
	from, to := c.ends.Of(op, m)
	a.Schedule(uint32(op.Peer), t+c.control(from, to), requestArrived, m)
}

// Grant answers an announcement.
func (c *coupling) Grant(a *sim.Actor, m uint32, t uint64) {
	if c.smpi != nil {
		c.hand(a, m, t)
		return
	}
	op := a.Op(m)
	from, to := c.ends.Of(op, m)
	a.Schedule(op.Rank, t+c.control(to, from), grantArrived, m)
}

// control returns the time of an announcement or its answer, that of a message without bytes.
func (c *coupling) control(from, to uint32) uint64 {
	latencyFactor, _ := c.model.factors(0)
	return min(tick(latencyFactor*c.paths.latencyBetween(from, to)), math.MaxInt64)
}

// Event handles an event of the coupling.
func (c *coupling) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch {
	case c.err != nil:
	case kind == requestArrived:
		a.Announce(m)
	case kind == grantArrived:
		c.hand(a, m, a.Now())
	case kind == gapEnded:
		c.depart(a, m, a.Now())
	case kind == messageDelivered:
		if a.Op(m).Size <= c.rendezvous && c.smpi == nil {
			a.Announce(m)
		}
		sent := a.Now()
		if c.sent != nil {
			sent = c.sent[m]
		}
		a.Deliver(m, sent, a.Now())
	case kind == sendEnded:
		if c.smpi == nil || !c.smpi.detaches(c.mode(m), a.Op(m).Size) {
			a.Sent(m, a.Now())
		}
		if !c.leaves {
			a.Schedule(uint32(a.Op(m).Peer), a.Now(), messageDelivered, m)
		}
	case kind == sim.WakeUp:
		c.advance(a)
	}
}

// contextSteps is the number of events between two checks of the context.
const contextSteps = 1 << 10

// advance runs the solver until a rank has an event. All messages handed over at a time become flows before the shares
// of that time are computed.
func (c *coupling) advance(a *sim.Actor) {
	c.run(a, a.Now())
	c.sampler.until(c, a.Now())
	c.open(a)
	for c.err == nil {
		next := tick(c.fluid.next())
		switch idle := c.running == 0 && len(c.waiting) == 0; {
		case !idle && c.nextChange() < next:
			next = c.nextChange()
		case c.fluid.earliest().empty():
			return
		}
		switch {
		case next > math.MaxInt64:
			m := c.active[c.fluid.earliest().first().number].message
			a.Schedule(c.program.Ops[m].Rank, next, sendEnded, m) // ends the run with an error
			return
		case next >= a.Until():
			a.Wake(max(next, a.Now()))
			return
		}
		c.run(a, next)
	}
}

// run handles the events of the solver up to a time.
func (c *coupling) run(a *sim.Actor, until uint64) {
	for c.err == nil {
		next := tick(c.fluid.next())
		at := min(next, c.nextChange())
		if at > until {
			return
		}
		c.sampler.until(c, at)
		if at < next {
			c.apply(a)
			continue
		}
		if c.steps++; c.steps%contextSteps == 0 {
			c.err = sim.Interrupted(c.ctx)
		}
		c.ended = c.fluid.step(c.ended[:0])
		for _, f := range c.fluid.departed {
			x := &c.active[f]
			x.sent = true
			a.Schedule(c.program.Ops[x.message].Rank, until, sendEnded, x.message)
		}
		for _, f := range c.ended {
			c.end(a, f, until)
			c.fluid.release(f)
		}
	}
}

// end completes a flow.
func (c *coupling) end(a *sim.Actor, f uint32, at uint64) {
	x := &c.active[f]
	r := &c.records[x.record]
	r.end, r.early = at, float32(max(0, float64(at)-c.fluid.now))
	for _, port := range x.used {
		c.load[port] -= r.bytes
	}
	s := &c.fluid.flows[f]
	if s.route != nil { // a flow without bytes may end without a path
		s.left = 0
		c.carry(f)
		if c.cache == nil {
			c.unused = append(c.unused, s.route)
		}
	}
	x.running = false
	c.running--
	if h := c.history; h != nil {
		c.err = cmp.Or(c.err, h.end(x.number, r))
		h.free = append(h.free, x.record)
	}
	op := &c.program.Ops[x.message]
	if !x.sent {
		a.Schedule(op.Rank, at, sendEnded, x.message)
	}
	if c.leaves {
		a.Schedule(uint32(op.Peer), at, messageDelivered, x.message)
	}
}

// open starts a flow for each message handed over at the present time, in the order of ranks and ops.
func (c *coupling) open(a *sim.Actor) {
	if c.program.Windowed() { // positions are not in order
		slices.SortFunc(c.handed, func(m, n uint32) int { return cmp.Compare(c.program.Order(m), c.program.Order(n)) })
	} else {
		slices.Sort(c.handed)
	}
	for _, m := range c.handed {
		if c.err = c.start(a, m, a.Now(), a.Now()); c.err != nil {
			break
		}
	}
	c.handed = c.handed[:0]
}

// start starts the flow of a message that was handed over at a time, or makes it wait for a path.
func (c *coupling) start(a *sim.Actor, m uint32, handed, now uint64) error {
	op := a.Op(m)
	from, to := c.ends.Of(op, m)
	number := uint32(c.flows + 1)
	route, err := c.route(from, to, number, nil)
	if err != nil && c.fails {
		c.waiting = append(c.waiting, waiting{m, handed})
		return nil
	}
	if err != nil {
		return err
	}
	bytes := c.bytes(op)
	d := c.model.flow(bytes, route)
	if c.leaves {
		d.early = d.latency
	}
	r := record{source: from, target: to, bytes: bytes, start: handed, end: unfinished, latency: d.latency,
		message: m}
	if bytes > 0 {
		r.alone = float64(bytes) / (route.alone * d.factor) * psPerSecond
	}
	c.flows++
	at, err := c.record(&r)
	if err != nil {
		return err
	}
	f := c.fluid.add(float64(now), float64(bytes), &d)
	if int(f) == len(c.active) {
		c.active = append(c.active, running{})
	}
	x := &c.active[f]
	*x = running{message: m, record: at, number: number, used: x.used[:0], left: float64(bytes), running: true}
	c.running++
	if c.load != nil {
		x.used = append(x.used, c.used...)
		for _, port := range x.used {
			c.load[port] += bytes
		}
	}
	if c.number != nil {
		c.number[m] = number
	}
	return nil
}

// record keeps the record of a flow that starts, and returns its place in records.
func (c *coupling) record(r *record) (at uint32, err error) {
	if c.history == nil && len(c.records) == c.listed && c.program.Windowed() {
		if c.history, err = newHistory(c); err != nil {
			return 0, err
		}
	}
	if h := c.history; h != nil {
		if err := h.begin(r); err != nil {
			return 0, err
		}
		if n := len(h.free); n > 0 {
			at, h.free = h.free[n-1], h.free[:n-1]
			c.records[at] = *r
			return at, nil
		}
	}
	c.records = append(c.records, *r)
	return uint32(len(c.records) - 1), nil
}

// route returns the route of a flow, and sets c.used to its ports. The policy least keeps a path that works.
func (c *coupling) route(from, to, number uint32, keep []uint32) (*route, error) {
	pair := [2]uint32{from, to}
	if c.cache != nil {
		if latest := &c.latest[from]; latest.route != nil && latest.to == to {
			return latest.route, nil
		}
		if r := c.cache[pair]; r != nil {
			c.latest[from] = latestRoute{r, to}
			return r, nil
		}
	}
	c.back.hops = c.back.hops[:0]
	if c.model.crossTraffic { // without a path back, acknowledgements take nothing, as in SimGrid
		if _, err := c.paths.find(&c.back, to, from, number, nil); err != nil {
			c.back.hops = c.back.hops[:0]
		}
	}
	var err error
	if c.used, err = c.paths.find(&c.there, from, to, number, keep); err != nil {
		return nil, err
	}
	r := &route{}
	if n := len(c.unused); n > 0 {
		r, c.unused = c.unused[n-1], c.unused[:n-1]
	}
	c.model.fill(r, c.fluid.links, &c.there, &c.back)
	if c.cache != nil {
		c.cache[pair] = r
	}
	return r, nil
}

// Unloaded returns the time of a message in the idle network; see [sim.Unloader].
func (c *coupling) Unloaded(m uint32, leaves bool) (bytes, latency uint64) {
	op := &c.program.Ops[m]
	from, to := c.ends.Of(op, m)
	if c.copies(m) {
		return 0, 0
	}
	if op.Size > c.rendezvous && c.smpi == nil {
		latency = c.control(to, from)
	}
	if c.isLocal(from, to) {
		local := uint64(c.local.Latency)
		return c.local.Time(op.Size) - local, latency + local
	}
	r := &c.records[c.number[m]-1]
	phase := min(tick(r.latency), uint64(r.ideal()))
	bytes = uint64(r.ideal()) - phase
	if c.leaves && leaves {
		phase = 0
	}
	return bytes, latency + phase
}
