package loggops

import (
	"errors"
	"math"
	"math/big"
	"math/bits"

	"github.com/tracedag/tracedag/sim"
)

// runStrict replays on the engine, over a network of NICs with a gap g, a gap per byte G and a latency L.
func runStrict(p *sim.Program, o Options) (*outcome, error) {
	if err := o.Params.Check(Strict); err != nil {
		return nil, err
	}
	perByte, err := newPerByte(o.Params.OPerByte)
	if err != nil {
		return nil, err
	}
	overhead := uint64(o.Params.Overhead)
	host := sim.Host{
		Busy:       func(size uint64) uint64 { return later(perByte.beyondFirst(size), overhead) },
		Rendezvous: uint64(o.Params.S),
	}
	var noise *detours
	if o.Noise != nil {
		if noise, err = o.Noise.detours(p.Ranks()); err != nil {
			return nil, err
		}
		host.Work = noise.work
	}
	wire, err := newWire(p, o.Params)
	if err != nil {
		return nil, err
	}
	engine, err := sim.NewEngine(p, host, wire, o.Timeline, o.Threads)
	if err != nil {
		return nil, err
	}
	engine.SetProgress(o.Progress)
	out, err := engine.Run()
	if err != nil {
		return nil, err
	}
	result := &outcome{Outcome: *out}
	if noise != nil {
		result.noise = noise.injected
	}
	return result, nil
}

// wire is the LogGOPS network. Every NIC sends one message at a time and receives one at a time: a message takes g, and G
// for each byte beyond the first, at both ends, and its bytes travel for L.
type wire struct {
	latency, gap uint64
	perByte      perByte
	single       bool  // no rank has more than one NIC
	nics         []int // of each rank, where its NICs are in free
	free         []nicFree
}

// nicFree is when a NIC can send and receive again.
type nicFree struct{ send, recv uint64 }

// The wire's events.
const (
	eagerArrives   sim.NetworkEvent = iota // the first byte of an eager message is at the receiver
	requestArrives                         // the request is at the receiver
	grantArrives                           // the answer to the request is at the sender
	dataArrives                            // the first byte of a message that waited is at the receiver
)

func newWire(p *sim.Program, params Params) (*wire, error) {
	perByte, err := newPerByte(params.GPerByte)
	if err != nil {
		return nil, err
	}
	nics, err := p.NICClocks()
	if err != nil {
		return nil, err
	}
	return &wire{latency: uint64(params.L), gap: uint64(params.Gap), perByte: perByte, single: p.NICs <= 1, nics: nics,
		free: make([]nicFree, nics[p.Ranks()])}, nil
}

// Lookahead is the latency: nothing gets to another rank in less.
func (w *wire) Lookahead() uint64 {
	return w.latency
}

// Ordered holds where messages take time at the one NIC of a rank: no two then enter the network at the same moment.
func (w *wire) Ordered() bool {
	return w.single && w.gap > 0
}

// Eager sends the message as soon as its NIC is free.
func (w *wire) Eager(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	a.Schedule(uint32(op.Peer), later(w.inject(op, t, w.perByte.beyondFirst(op.Size)), w.latency), eagerArrives, m)
}

// Request sends a message of one byte, which takes its turn at the NIC as the others do.
func (w *wire) Request(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	a.Schedule(uint32(op.Peer), later(w.inject(op, t, 0), w.latency), requestArrives, m)
}

// Grant sends an answer, which takes no time but L.
func (w *wire) Grant(a *sim.Actor, m uint32, t uint64) {
	a.Schedule(a.Op(m).Rank, later(t, w.latency), grantArrives, m)
}

// Event moves a message on.
func (w *wire) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch kind {
	case eagerArrives:
		a.Announce(m)
		w.deliver(a, m)
	case requestArrives:
		a.Announce(m)
	case grantArrives:
		op := a.Op(m)
		bytes := w.perByte.beyondFirst(op.Size)
		first := w.inject(op, a.Now(), bytes)
		a.Sent(m, later(first, bytes))
		a.Schedule(uint32(op.Peer), later(first, w.latency), dataArrives, m)
	case dataArrives:
		w.deliver(a, m)
	}
}

// inject takes the sending side of a send's NIC from time t on, or when it is free, and returns when.
func (w *wire) inject(op *sim.Op, t, bytes uint64) uint64 {
	free := &w.free[w.nics[op.Rank]+int(op.NIC)].send
	first := max(t, *free)
	*free = later(later(first, w.gap), bytes)
	return first
}

// later returns t + d, or just more than math.MaxInt64 where it is that or more: a time that the engine refuses. t is at
// most that, d at most math.MaxInt64.
func later(t, d uint64) uint64 {
	return min(t+d, math.MaxInt64+1)
}

// deliver takes the receiving side of the NIC, the first byte having arrived now. It is the NIC that has the number of the
// sending one, for the receive that the message belongs to may not be posted yet.
func (w *wire) deliver(a *sim.Actor, m uint32) {
	op := a.Op(m)
	bytes := w.perByte.beyondFirst(op.Size)
	free := &w.free[w.nics[op.Peer]+int(op.NIC)].recv
	first := max(a.Now(), *free)
	*free = later(later(first, w.gap), bytes)
	a.Deliver(m, a.Now()-w.latency, later(first, bytes))
}

// perByte is an exact time per byte, numerator/denominator picoseconds.
type perByte struct {
	numerator, denominator uint64
}

func newPerByte(r *big.Rat) (perByte, error) {
	if !r.Num().IsUint64() || !r.Denom().IsUint64() {
		return perByte{}, errors.New("the time per byte is out of range")
	}
	return perByte{r.Num().Uint64(), r.Denom().Uint64()}, nil
}

// beyondFirst returns the time of all bytes but the first of a message, to the nearest picosecond; at most
// math.MaxInt64, which ends the run as too long.
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
