package loggops

import (
	"context"
	"math"
	"math/bits"

	"github.com/tracedag/tracedag/sim"
)

// isMessage marks an event as the arrival of a message, identified by its send op.
const isMessage = 1 << 31

// reference is the shared state of the replays of both reference simulators. All clocks are nanoseconds in unsigned
// integers that wrap around, as in the references.
type reference struct {
	p        *sim.Program
	n        nanoseconds
	clock    hostClocks
	sequence uint64 // number of draws: the reference's event count
	messages int64
	bytes    uint64
	noise    *noise
	timeline sim.Timeline
	progress sim.Progress
	ctx      context.Context // nil: no limit

	watched bool   // a clock could wrap around; see watch
	current uint32 // the op of the current event, if watched
	wrapped uint32 // number of the first op whose event made a clock wrap around; sim.NoOp: none

	ready  []uint32 // ops of the current host that became ready in the current event
	remote []uint32 // ops of the event's other host that became ready
	after  []uint32 // scratch space of dependents

	// By send op: its start and, once its message is unexpected, the message's arrival, as in the references; by
	// receive op: its post; nil without a timeline.
	departed []uint64
}

func newReference(p *sim.Program, n nanoseconds, o Options) (*reference, error) {
	clock, err := newHostClocks(p)
	if err != nil {
		return nil, err
	}
	ranks := p.Ranks()
	r := &reference{
		p: p, n: n, clock: clock, wrapped: sim.NoOp, timeline: o.Timeline, progress: sim.Progress{Func: o.Progress},
		ctx: o.Context,
	}
	if o.Noise != nil {
		r.noise = o.Noise.noise(ranks)
	}
	if o.Timeline != nil {
		if p.Windowed() {
			return nil, sim.ErrWindowedTimeline
		}
		r.departed = make([]uint64, p.NumOps())
	}
	return r, nil
}

// checkEvents is the number of events between two checks of the context. It must be a power of two.
const checkEvents = 1 << 16

// clocks returns the clocks of a stream and a NIC of a host.
func (r *reference) clocks(host uint32, stream uint16, nic uint8) (cpu, gs, gr *uint64) {
	c := &r.clock
	base := c.base(host)
	k := base + 2*int(nic)
	return &c.times[base+2*c.nics+int(stream)], &c.times[k], &c.times[k+1]
}

// hostClocks are the clocks of all hosts, grouped by host: for each NIC the times from which it can send and receive,
// then for each stream the time from which it is free.
type hostClocks struct {
	times  []uint64
	nics   int   // number per host
	stride int   // number of clocks per host, if equal for all
	first  []int // by host: start of its clocks, and the end of the last; nil if all hosts have equally many
}

func newHostClocks(p *sim.Program) (hostClocks, error) {
	ranks := p.Ranks()
	c := hostClocks{nics: max(p.NICs, 1)}
	c.stride = 2*c.nics + max(p.Streams, 1)
	if n := ranks * c.stride; n <= 1<<20 || n <= p.NumOps() {
		c.times = make([]uint64, n)
		return c, nil
	}
	streams, err := p.StreamClocks()
	if err != nil {
		return c, err
	}
	c.first = make([]int, ranks+1)
	for h := range ranks {
		c.first[h+1] = c.first[h] + 2*c.nics + streams[h+1] - streams[h]
	}
	c.times = make([]uint64, c.first[ranks])
	return c, nil
}

// base returns the index of a host's first clock.
func (c *hostClocks) base(host uint32) int {
	if c.first != nil {
		return c.first[host]
	}
	return int(host) * c.stride
}

// finish returns the latest stream clock of a host.
func (c *hostClocks) finish(host int) uint64 {
	first, last := host*c.stride, (host+1)*c.stride
	if c.first != nil {
		first, last = c.first[host], c.first[host+1]
	}
	latest := uint64(0)
	for _, t := range c.times[first+2*c.nics : last] {
		latest = max(latest, t)
	}
	return latest
}

// noiseOver returns the noise on host while it is busy from a to b.
func (r *reference) noiseOver(host uint32, a, b uint64) (uint64, error) {
	if r.noise == nil {
		return 0, nil
	}
	noise, err := r.noise.over(int(host), a, b)
	if r.watched && noise > math.MaxUint64-b {
		r.wrap()
	}
	return noise, err
}

// watch looks for clocks that wrap around in the event at time t of op i, or of its message at host. It is called
// before the event. Negative parameters and messages of 0 bytes turn clocks back, below 0 at worst.
func (r *reference) watch(t uint64, i, host uint32) {
	r.current = i
	op := &r.p.Ops[i]
	latest := t
	for _, h := range [2]uint32{op.Rank, host} {
		cpu, gs, gr := r.clocks(h, op.Stream, op.NIC)
		latest = max(latest, *cpu, *gs, *gr)
	}
	n := &r.n
	if !op.IsMessage() {
		r.count(latest, t, max(int64(op.Size), 0), min(int64(op.Size), 0))
		return
	}
	forward := [...]int64{int64(n.o), int64(n.g), int64(n.L)}
	back := int64(0)
	for k, v := range forward {
		back, forward[k] = min(back, back+v), max(v, 0)
	}
	if op.Size == 0 {
		largest := max(int64(n.O), int64(n.G))
		back = min(back, int64(min(n.o, n.g, 1<<62))-largest)
	}
	wire := uint64(min(math.Ceil(max(n.GFloat, 0)), 1<<62))
	perByte := max(uint64(max(int64(n.O), 0)), uint64(max(int64(n.G), 0)), wire)
	high, low := bits.Mul64(max(op.Size, 1)-1, perByte)
	if high > 0 {
		r.wrap()
	}
	for _, v := range forward {
		var carry uint64
		if low, carry = bits.Add64(low, uint64(v), 0); carry > 0 {
			r.wrap()
		}
	}
	if _, carry := bits.Add64(latest, low, 0); carry > 0 {
		r.wrap()
	}
	r.count(latest, t, 0, back)
}

// count records whether a clock wraps around that advances from latest, or goes back from t.
func (r *reference) count(latest, t uint64, forward, back int64) {
	if latest > math.MaxUint64-uint64(forward) || uint64(-back) > t {
		r.wrap()
	}
}

// wrap records that a clock wraps around in the current event.
func (r *reference) wrap() {
	if r.wrapped == sim.NoOp {
		r.wrapped = r.p.Number(r.current)
	}
}

// roots returns the ops of a rank without dependencies, in ascending order.
func (r *reference) roots(rank int) []uint32 {
	r.ready = append(r.ready[:0], r.p.Roots(rank)...) // a copy, since it will be sorted
	return r.ready
}

// hasRun is a flag in Op.Flags: the op has run. The references end a send twice if it is eager and its receive has more
// than S bytes. An op that has run ignores the second end, and its Op.Link remains.
const hasRun uint8 = 1 << 7

// run records that an op runs.
func (r *reference) run(op *sim.Op) {
	op.Flags |= hasRun
	r.progress.Ran()
}

// sent counts the message of a send that runs.
func (r *reference) sent(op *sim.Op) {
	r.messages++
	r.bytes += op.Size
}

// dependents returns the ops that depend on the end of op i, in memory that the next call reuses.
func (r *reference) dependents(i uint32) []uint32 {
	r.after = r.p.AppendDependents(r.after[:0], i)
	return r.after
}

// outcome returns the outcome of the replay. The lists contain the waiting messages and receives of each host.
func (r *reference) outcome(unexpected, posted [][]uint32) *outcome {
	o := &outcome{Outcome: sim.Outcome{
		Finish: make([]uint64, r.p.Ranks()), Events: int64(r.sequence), Messages: r.messages, Bytes: int64(r.bytes),
		Ran: r.p.Ran(r.progress.Ops, hasRun), Eager: uint64(r.n.S), Unexpected: unexpected, Posted: posted,
	}, wrapped: r.wrapped}
	for h := range o.Finish {
		o.Finish[h] = r.clock.finish(h)
	}
	if r.noise != nil {
		o.noise = r.noise.injected
	}
	return o
}

// depart records the departure time of message m, or the post of receive m, for the timeline.
func (r *reference) depart(m uint32, t uint64) {
	if r.departed != nil {
		r.departed[m] = t
	}
}

// arrivedEarly records, for the timeline, that the first byte of message m arrives at time t and its last one at time
// arrived, without a posted receive.
func (r *reference) arrivedEarly(m uint32, send *sim.Op, t, arrived uint64) {
	if r.timeline != nil {
		start := r.departed[m] + r.n.o
		r.timeline.Transfer(sim.Transfer{Source: send.Rank, Target: uint32(send.Peer), Send: m, Recv: sim.NoOp,
			Begun: start, Start: start, End: t, Arrived: arrived, Bytes: send.Size})
		r.departed[m] = t
	}
}

// span reports a span to the timeline, if any.
func (r *reference) span(kind sim.SpanKind, host uint32, stream uint16, op uint32, start, end uint64) {
	if r.timeline != nil {
		r.timeline.Span(sim.Span{Kind: kind, Rank: host, Stream: r.p.StreamNumber(host, uint32(stream)), Op: op,
			Start: start, End: end})
	}
}

// transfer reports a transfer to the timeline, if any. If the message arrived before its receive was posted, the
// reference swaps the ends.
func (r *reference) transfer(send, recv uint32, early bool, end, arrived, bytes uint64) {
	if r.timeline != nil {
		op, start := &r.p.Ops[recv], r.departed[send]+r.n.o
		r.timeline.Transfer(sim.Transfer{Source: r.p.Ops[send].Rank, Target: op.Rank, Send: send, Recv: recv,
			Begun: start, Start: start, End: end, Arrived: arrived, Bytes: bytes, Swapped: early})
		r.span(sim.WaitSpan, op.Rank, op.Stream, recv, min(r.departed[recv], end), end)
	}
}

// newLists returns n empty lists of waiting receives or messages.
func newLists(n int) []sim.List {
	lists := make([]sim.List, n)
	for i := range lists {
		lists[i] = sim.NewList()
	}
	return lists
}

// list returns the ops of a list.
func (r *reference) list(l sim.List) []uint32 {
	var ops []uint32
	for i := l.Head; i != sim.NoOp; i = r.p.Ops[i].Link() {
		ops = append(ops, i)
	}
	return r.p.Numbers(ops)
}
