package loggops

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"math/bits"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// runStrict replays on the engine, over a network of NICs with gap g, gap per byte G and latency L, which may depend on
// the size of the message. With nodes, the node of each rank, the ranks on a node share its NICs.
func runStrict(p *sim.Program, nodes []int32, o Options) (*outcome, error) {
	if err := o.Params.Check(Strict); err != nil {
		return nil, err
	}
	costs, err := newCostTable(o.Params)
	if err != nil {
		return nil, err
	}
	host := sim.Host{
		Busy: costs.sendTime(), Receiving: costs.receiveTime(),
		Rendezvous: uint64(o.Params.S),
		Timely:     nodes != nil,
	}
	var noise *detours
	if o.Noise != nil {
		if noise, err = o.Noise.detours(p.Ranks()); err != nil {
			return nil, err
		}
		host.Work = noise.work
	}
	wire, err := newWire(p, nodes, o.Params, costs)
	if err != nil {
		return nil, err
	}
	if o.Latencies != nil {
		wire.latencies, wire.hosts, wire.least = o.Latencies, o.Hosts, leastLatency(o.Latencies, o.Hosts)
		wire.uniform = false
	}
	host.Ahead = wire.Ordered() && nodes == nil
	host.Uniform = wire.times(o)
	engine, err := sim.NewEngine(p, host, wire, o.Timeline, o.Threads)
	if err != nil {
		return nil, err
	}
	if o.Path && p.Windowed() {
		return nil, sim.ErrWindowedTimeline
	}
	if o.Path {
		wire.record(engine.RecordPath(), p)
	}
	engine.SetProgress(o.Progress)
	engine.SetContext(o.Context)
	out, err := engine.Run()
	if wire.latencies != nil {
		err = cmp.Or(wire.latencies.Err(), err)
	}
	if err != nil {
		return nil, err
	}
	result := &outcome{Outcome: *out, wrapped: sim.NoOp}
	if noise != nil {
		result.noise = noise.injected
	}
	if o.Path {
		result.path = engine.Path()
	}
	return result, nil
}

// wire is the LogGOPS network. Every NIC sends one message at a time and receives one at a time. A message occupies the
// NIC at both ends for g, plus G for each byte beyond the first, and its bytes travel for L.
type wire struct {
	costs      costTable
	least, gap uint64 // smallest latency, and g
	uniform    bool   // all messages have the smallest latency
	rate       uint64 // 0, or the time per byte of all messages, if that of the largest is in range
	here       localWire
	single     bool    // no rank has more than one NIC, or shares one
	nics       []int   // by rank: index in free of its first NIC
	nodes      []int32 // by rank: its node, whose NICs it shares; nil: ranks have NICs of their own
	free       []nicFree

	eager  uint64    // size of the largest message that does not wait for its receive
	queues *nicOrder // nil without a critical path

	latencies *topology.Latencies // nil: those of the parameters
	hosts     []uint32            // by rank
}

// localWire is the transfer between ranks that share NICs.
type localWire struct {
	latency uint64  // if ownLatency
	perByte perByte // if ownRate

	ownLatency, ownRate bool // not those of the network
}

// nicFree is the time from which a NIC can send, and the time from which it can receive.
type nicFree struct{ send, recv uint64 }

// Events of the wire.
const (
	eagerArrives   sim.NetworkEvent = iota // the first byte of an eager message is at the receiver
	requestArrives                         // the request is at the receiver
	grantArrives                           // the grant is at the sender
	dataArrives                            // the first byte of a rendezvous message is at the receiver
)

func newWire(p *sim.Program, nodes []int32, params Params, costs costTable) (_ *wire, err error) {
	here := localWire{ownLatency: params.LocalLatency != nil, ownRate: params.LocalPerByte != nil}
	if here.ownLatency {
		here.latency = uint64(*params.LocalLatency)
	}
	if here.ownRate {
		if here.perByte, err = newPerByte(params.LocalPerByte); err != nil {
			return nil, err
		}
	}
	var nics []int
	if nodes == nil {
		nics, err = p.NICClocks()
	} else {
		nics, err = p.SharedNICClocks(nodes)
	}
	if err != nil {
		return nil, err
	}
	w := &wire{costs: costs, least: costs.least(), gap: uint64(params.Gap), here: here,
		single: p.NICs <= 1 && nodes == nil, nics: nics, nodes: nodes, free: make([]nicFree, nics[p.Ranks()]),
		eager: uint64(params.S), uniform: len(costs) == 1 && !here.ownLatency}
	if rate := costs[0].perByte; len(costs) == 1 && !here.ownRate && rate.denominator == 1 &&
		rate.beyondFirst(p.LargestMessage) < math.MaxInt64 {
		w.rate = rate.numerator
	}
	return w, nil
}

// times returns the times of all messages, or nil if they are not those of a uniform network.
func (w *wire) times(o Options) *sim.Uniform {
	c := w.costs[0]
	if !w.Ordered() || !w.uniform || w.here.ownRate || w.nodes != nil || c.perByte.denominator != 1 ||
		c.latency == 0 || c.sendByte.numerator > 0 || c.recvByte.numerator > 0 || o.Noise != nil || o.Path {
		return nil
	}
	return &sim.Uniform{Send: c.send, Receive: c.recv, Latency: c.latency, Gap: w.gap, PerByte: c.perByte.numerator}
}

// local reports whether the ranks of a message share their NICs, so that it uses none.
func (w *wire) local(op *sim.Op) bool {
	return w.nodes != nil && w.nodes[op.Rank] == w.nodes[op.Peer]
}

// delay returns the latency of a message.
func (w *wire) delay(op *sim.Op) uint64 {
	if w.uniform {
		return w.least
	}
	return w.latency(op, op.Size)
}

// control returns the latency of a request or its grant, which have the parameters of a message of one byte.
func (w *wire) control(op *sim.Op) uint64 { return w.latency(op, 1) }

// latency returns the latency between the ranks of a message, for the given number of bytes.
func (w *wire) latency(op *sim.Op, size uint64) uint64 {
	if w.here.ownLatency && w.local(op) {
		return w.here.latency
	}
	if w.latencies != nil {
		return uint64(w.latencies.Between(w.hosts[op.Rank], w.hosts[op.Peer]))
	}
	return w.costs.at(size).latency
}

// bytes returns the time of all bytes of a message except the first.
func (w *wire) bytes(op *sim.Op) uint64 {
	if w.rate > 0 {
		return (max(op.Size, 1) - 1) * w.rate
	}
	return w.bytesAt(op)
}

// bytesAt is bytes if the time per byte is not w.rate.
func (w *wire) bytesAt(op *sim.Op) uint64 {
	if w.here.ownRate && w.local(op) {
		return w.here.perByte.beyondFirst(op.Size)
	}
	return w.costs.at(op.Size).perByte.beyondFirst(op.Size)
}

// Lookahead returns the smallest latency, the minimum delay between ranks, or 0 if ranks share NICs.
func (w *wire) Lookahead() uint64 {
	if w.nodes != nil {
		return 0
	}
	return w.least
}

// Ordered reports whether messages of a pair of ranks arrive in the order in which they enter the network, at different
// times: ranks have one NIC, g is not 0, and the latency does not depend on the size.
func (w *wire) Ordered() bool {
	return w.single && w.gap > 0 && len(w.costs) == 1
}

// Eager sends the message as soon as its NIC is free.
func (w *wire) Eager(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	a.Schedule(uint32(op.Peer), later(w.inject(m, op, t, w.bytes(op), false), w.delay(op)), eagerArrives, m)
}

// Request sends a message of one byte, which waits for the NIC like other messages.
func (w *wire) Request(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	a.Schedule(uint32(op.Peer), later(w.inject(m, op, t, 0, true), w.control(op)), requestArrives, m)
}

// Grant sends a reply, which takes L and does not occupy the NIC.
func (w *wire) Grant(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	a.Schedule(op.Rank, later(t, w.control(op)), grantArrives, m)
}

// Event handles an arrival.
func (w *wire) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch kind {
	case eagerArrives:
		a.Announce(m)
		w.deliver(a, m)
	case requestArrives:
		a.Announce(m)
	case grantArrives:
		op := a.Op(m)
		bytes := w.bytes(op)
		first := w.inject(m, op, a.Now(), bytes, false)
		a.Sent(m, later(first, bytes))
		a.Schedule(uint32(op.Peer), later(first, w.delay(op)), dataArrives, m)
	case dataArrives:
		w.deliver(a, m)
	}
}

// inject occupies the sending side of the NIC of send m from time t, or from when it is free, and returns that time.
// The bytes are those of the message or of its request.
func (w *wire) inject(m uint32, op *sim.Op, t, bytes uint64, request bool) uint64 {
	if w.local(op) {
		return t
	}
	nic := w.nics[op.Rank] + int(op.NIC)
	free := &w.free[nic].send
	first := max(t, *free)
	if w.queues != nil {
		w.queues.sends(nic, m, request, *free > t)
	}
	*free = later(later(first, w.gap), bytes)
	return first
}

// later returns t + d, limited to a time just above math.MaxInt64, which the engine rejects. t must not exceed that
// limit, d not math.MaxInt64.
func later(t, d uint64) uint64 {
	return min(t+d, math.MaxInt64+1)
}

// deliver occupies the receiving side of the NIC with the sender's NIC number from now, when the first byte arrives.
// The receive may not be posted yet, so it cannot select the NIC.
func (w *wire) deliver(a *sim.Actor, m uint32) {
	op := a.Op(m)
	bytes := w.bytes(op)
	if w.local(op) {
		a.Deliver(m, a.Now()-w.delay(op), later(a.Now(), bytes))
		return
	}
	nic := w.nics[op.Peer] + int(op.NIC)
	free := &w.free[nic].recv
	first := max(a.Now(), *free)
	if w.queues != nil {
		w.queues.receives(nic, m, *free > a.Now())
	}
	*free = later(later(first, w.gap), bytes)
	a.Deliver(m, a.Now()-w.delay(op), later(first, bytes))
}

// perByte is an exact time per byte: numerator/denominator picoseconds.
type perByte struct {
	numerator, denominator uint64
}

func newPerByte(r *big.Rat) (perByte, error) {
	if !r.Num().IsUint64() || !r.Denom().IsUint64() {
		return perByte{}, errors.New("the time per byte is out of range")
	}
	return perByte{r.Num().Uint64(), r.Denom().Uint64()}, nil
}

// beyondFirst returns the time of all bytes of a message except the first, to the nearest picosecond. It is limited to
// math.MaxInt64, which ends the run with an error.
func (p perByte) beyondFirst(size uint64) uint64 {
	if size <= 1 || p.numerator == 0 {
		return 0
	}
	high, low := bits.Mul64(size-1, p.numerator)
	if p.denominator != 1 {
		var carry uint64
		low, carry = bits.Add64(low, p.denominator/2, 0)
		if high += carry; high >= p.denominator {
			return math.MaxInt64
		}
		low, _ = bits.Div64(high, low, p.denominator)
		high = 0
	}
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return low
}
