package sim

import (
	"cmp"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/event"
)

// rank is the state of one rank in a run. Fields that nearly every event needs are adjacent, with inline memory for the
// common case of one stream and few events.
type rank struct {
	queue    event.Queue
	streams  []uint64 // by stream: the time from which it is free
	finish   uint64   // the latest end of an op so far
	sequence uint32   // numbers the rank's own events: at most three per op, so 31 bits suffice
	early    bool     // sends may be handed to the NIC before they end; see begin
	ahead    bool     // the rank may run ahead; see runAhead
	own      uint32   // number of its own events in queue
	posted   uint32   // number of posted receives without a message
	stream0  [1]uint64
	events0  [3]event.Event
	order    *pairOrder // nil until a message arrives on a second NIC
}

func (r *rank) init(streams int) {
	r.queue.UseBuffer(r.events0[:])
	r.streams = r.stream0[:]
	if streams > 1 {
		r.streams = make([]uint64, streams)
	}
}

// Event kinds, stored above the op number in an event's payload. The network's kinds follow.
const (
	opReady  = iota // all dependencies of the op are met
	opHand          // the send hands its message to the NIC
	recvHere        // the receive's message has arrived
	networkEvent
)

const (
	opBits = 29
	opMask = 1<<opBits - 1
)

// checkEvents is the number of events of a group between two checks of the context. It must be a power of two.
const checkEvents = 1 << 16

// ownEvent marks the key of an event that the rank itself scheduled. Such events follow those of the network.
const ownEvent = 1 << 63

// The engine's bits of Op.Flags.
const (
	hasRun      uint8 = 1 << 7 // the op has started
	hasEnded    uint8 = 1 << 6 // the receive has ended, or the send whose end the network determines has ended
	isPostponed uint8 = 1 << 5 // the receive begins behind what its stream had begun; see Host.Behind
)

// Actor runs one rank at a time. A network calls the engine through it while it handles a call.
type Actor struct {
	e     *Engine
	ops   []Op     // of the program
	ready []uint64 // of the engine
	bare  bool     // no timeline, no critical path and no other work of processors
	group *group
	at    uint32 // the current rank
	rank  *rank
	now   uint64
	err   error

	dependents []uint32 // scratch space of ended

	running bool          // the rank runs ahead
	pending []event.Event // its own events then, the latest first

	totals counts
}

func newActor(e *Engine, g *group) Actor {
	return Actor{e: e, group: g, ops: e.p.Ops, ready: e.ready,
		bare: e.timeline == nil && e.causes == nil && e.host.Work == nil}
}

// counts are the totals of a run: events handled, ops started, messages sent and their bytes.
type counts struct {
	events, ops, messages, bytes int64

	open int64 // receives, and sends whose end the network determines, that have started and not ended
}

func (c *counts) add(d *counts) {
	c.events += d.events
	c.ops += d.ops
	c.messages += d.messages
	c.bytes += d.bytes
	c.open += d.open
}

// tooLong ends the run: a time of op i is out of range. Of several such ops, the first counts.
func (a *Actor) tooLong(i uint32) {
	if a.err == nil {
		a.err = a.e.p.TooLong(i)
	}
}

// Now returns the time of the current event in picoseconds.
func (a *Actor) Now() uint64 {
	return a.now
}

// At returns the rank of the current event, or [Engine.Fabric].
func (a *Actor) At() uint32 {
	return a.at
}

// Engine returns the engine.
func (a *Actor) Engine() *Engine {
	return a.e
}

// Program returns the replayed program.
func (a *Actor) Program() *Program {
	return a.e.p
}

// Op returns the send op of message m.
func (a *Actor) Op(m uint32) *Op {
	return &a.ops[m]
}

// Schedule makes the engine call Network.Event at time t, in picoseconds, at a rank or the fabric. Equal events are not
// merged.
func (a *Actor) Schedule(where uint32, t uint64, kind NetworkEvent, m uint32) {
	if t > math.MaxInt64 {
		a.tooLong(m)
		return
	}
	key := uint64(a.e.p.Order(m))<<32 | uint64((networkEvent+uint32(kind))<<opBits|m)
	ev := event.Event{Time: t, Key: key}
	if where == a.at {
		a.rank.queue.Push(ev)
		return
	}
	a.group.post(where, ev)
}

// Wake makes the engine call Network.Event with kind [WakeUp] at the fabric at time t, after all other fabric events of
// that time. Only the earliest time requested since the previous WakeUp counts.
func (a *Actor) Wake(t uint64) {
	if t > math.MaxInt64 {
		a.err = cmp.Or(a.err, a.e.TooLong())
		return
	}
	a.group.wake = min(a.group.wake, t)
}

// Until returns the safe horizon: no rank or fabric event, Wake included, is scheduled before it. Only the fabric calls
// it. A network with its own event queue may process all its events before Until in one call, at times later than Now,
// and must then call Wake for its first remaining event.
//
// While the network processes its own event at time t, it may schedule events for t or later. This changes Until, so it
// must call Until again before it advances its time. A network that processes all its events of a time together gets
// the same result as with one Wake per time: the ranks act first, then the network, then the ranks at which the network
// scheduled events for the same time.
func (a *Actor) Until() uint64 {
	if a.err != nil {
		return 0
	}
	return min(a.group.until(), math.MaxInt64+1)
}

// Next returns the time of the next rank or fabric event, or a time above math.MaxInt64 if there is none. Only the
// fabric calls it. Until is faster and may return an earlier time.
func (a *Actor) Next() uint64 {
	if a.err != nil {
		return 0
	}
	g := a.group
	return min(g.reports[g.half].next, g.turns.Next(), g.fabricNext(), math.MaxInt64+1)
}

// own schedules an event of the current rank.
func (a *Actor) own(t uint64, kind, i uint32) {
	if t > math.MaxInt64 {
		a.tooLong(i)
		return
	}
	ev := event.Event{Time: t, Key: ownEvent | uint64(a.rank.sequence)<<32 | uint64(kind<<opBits|i)}
	a.rank.sequence++
	if a.running && len(a.pending) < mostPending {
		a.pend(ev)
		return
	}
	a.rank.own++
	a.rank.queue.Push(ev)
}

// begin schedules the ops of a rank without dependencies.
func (a *Actor) begin(at uint32) {
	a.enter(at)
	p := a.e.p
	// With one stream, sends reach the NIC in stream order. If all of them are eager, nothing else reaches the NIC in
	// between, so the end of a send on its stream needs no event.
	a.rank.early = !a.e.host.Timely && len(a.rank.streams) == 1 && p.ranks[at].largestSend <= a.e.host.Rendezvous
	a.rank.ahead = a.rank.early && a.e.ahead && !p.ranks[at].wildcards
	for _, i := range p.Roots(int(at)) {
		a.own(a.ready[i], opReady, i)
	}
	a.err = cmp.Or(a.err, p.Failed())
}

func (a *Actor) enter(at uint32) {
	a.at, a.rank = at, &a.e.ranks[at]
}

// run handles the events of a rank before the time until. It returns the time of the rank's next event.
func (a *Actor) run(at uint32, until uint64) (next uint64) {
	a.enter(at)
	queue := &a.rank.queue
	for queue.Len() > 0 && a.err == nil {
		if next := queue.Next(); next >= until {
			return next
		}
		ev := queue.Pop()
		a.rank.own -= uint32(ev.Key >> 63) // ownEvent
		a.handle(ev)
	}
	return never
}

// handle handles an event of the current rank.
func (a *Actor) handle(ev event.Event) {
	a.now = ev.Time
	if a.totals.events++; a.totals.events&(checkEvents-1) == 0 {
		a.err = Interrupted(a.e.ctx)
	}
	i := ev.Payload() & opMask
	switch kind := ev.Payload() >> opBits; kind {
	case opReady:
		a.start(i)
	case opHand:
		a.hand(i, a.now)
	case recvHere:
		a.receive(i)
	default:
		a.e.network.Event(a, NetworkEvent(kind-networkEvent), i)
	}
}

// start runs an op whose dependencies are met.
func (a *Actor) start(i uint32) {
	op := &a.ops[i]
	if op.Flags&IsColl == IsRecv && a.e.host.Behind != nil && a.postpones(i, op) {
		return
	}
	op.Flags |= hasRun
	a.e.p.PrefetchOps(op)
	a.totals.ops++
	switch {
	case op.Flags&IsSend != 0:
		a.totals.messages++
		a.totals.bytes += int64(op.Size)
		begin, end := a.occupy(i, op, SendSpan, a.e.sending(i, op))
		leaves := !a.e.eager && a.e.leavesEnd(i, op)
		a.ready[i] = underWay
		if a.e.timeline != nil {
			a.e.sentAt[i], a.e.begun[i] = end, end
		}
		if a.e.host.Returns {
			begin = end
		}
		a.started(i, begin)
		if leaves {
			a.totals.open++
		} else {
			a.ended(i, end)
		}
		if a.rank.early {
			a.hand(i, end)
		} else {
			a.own(end, opHand, i)
		}
		if !leaves {
			a.e.p.Drop(i)
		}
	case op.Flags&IsRecv != 0:
		a.totals.open++
		a.started(i, a.now)
		a.ready[i] = a.now
		if m := a.e.matchers[a.at].Post(i, op); m != NoOp {
			a.meet(i, m, true)
		} else {
			a.rank.posted++
		}
	case op.Size == 0: // a calc of length 0 only joins dependencies and occupies no stream
		a.started(i, a.now)
		a.ended(i, a.now)
		a.e.p.Drop(i)
	default:
		begin, end := a.occupy(i, op, workSpan(op), op.Size)
		a.started(i, begin)
		a.ended(i, end)
		a.e.p.Drop(i)
	}
}

// postpones makes a receive begin when its stream has handled what it began before, and reports whether that is later.
func (a *Actor) postpones(i uint32, op *Op) bool {
	free := a.rank.streams[op.Stream]
	if op.Flags&isPostponed != 0 || free <= a.now || !a.e.host.Behind(i) {
		return false
	}
	op.Flags |= isPostponed
	a.own(free, opReady, i)
	return true
}

// hand hands the message of a send to the NIC at time t.
func (a *Actor) hand(i uint32, t uint64) {
	op := &a.ops[i]
	if a.e.number != nil {
		a.e.number[i] = a.pairs().issue(uint32(op.Peer))
	}
	if a.e.eager || !a.e.waits(i, op) {
		a.e.network.Eager(a, i, t)
	} else {
		a.e.network.Request(a, i, t)
	}
}

// occupy puts work of the given length on the op's stream, after the stream's earlier work. It returns the start and
// the end of the work.
func (a *Actor) occupy(i uint32, op *Op, kind SpanKind, length uint64) (begin, end uint64) {
	free := &a.rank.streams[op.Stream]
	begin = max(a.now, *free)
	end = begin + length
	if length > math.MaxInt64 || end > math.MaxInt64 {
		a.tooLong(i)
		return begin, begin
	}
	if a.bare {
		*free = end
		return begin, end
	}
	if a.e.host.Work != nil {
		if end = a.e.host.Work(a.at, begin, length); end > math.MaxInt64 {
			a.tooLong(i)
			return begin, begin
		}
	}
	if a.e.causes != nil {
		a.e.causes.occupies(i, op, begin, *free > a.now)
	}
	*free = end
	if a.e.timeline != nil {
		a.span(i, op, kind, begin, end)
	}
	return begin, end
}

// span reports a span to the timeline.
func (a *Actor) span(i uint32, op *Op, kind SpanKind, begin, end uint64) {
	a.e.timeline.Span(Span{Kind: kind, Rank: op.Rank, Stream: a.e.p.Stream(op), Op: i, Start: begin, End: end})
}

// workSpan returns the kind of span of an op compiled like a calc.
func workSpan(op *Op) SpanKind {
	switch dag.Kind(op.Match) {
	case dag.Mem:
		return MemSpan
	case dag.IO:
		return IOSpan
	}
	return CalcSpan
}

// started reports the start of op i at time t to its start dependents.
func (a *Actor) started(i uint32, t uint64) {
	if a.e.p.anyStarts {
		a.releaseStarts(i, t)
	}
}

func (a *Actor) releaseStarts(i uint32, t uint64) {
	starts := a.e.p.StartDependents(i)
	if a.e.deferral != nil {
		a.happens(starts, t, afterStart|lead(i))
		if a.e.p.requests(i) {
			a.dependents = a.e.p.AppendDependents(a.dependents[:0], i)
			a.happens(a.dependents, t, afterStart|lead(i))
		}
	}
	a.release(starts, t, afterStart|lead(i))
}

// ended reports the end of op i at time t to its dependents.
func (a *Actor) ended(i uint32, t uint64) {
	if a.e.causes != nil {
		a.e.causes.finishes(a.at, i, t > a.rank.finish)
	}
	a.rank.finish = max(a.rank.finish, t)
	p := a.e.p
	if near := a.ops[i].first; near&listInOp != 0 && p.windows == nil && a.e.causes == nil &&
		a.e.deferral == nil { // the usual case
		for near &= inOpMask; near != 0; near >>= inOpBits {
			a.releaseOne(i+near&farthestInOp, t)
		}
		return
	}
	a.dependents = p.AppendDependents(a.dependents[:0], i)
	if a.e.deferral != nil && !p.requests(i) {
		a.happens(a.dependents, t, afterEnd|lead(i))
	}
	a.release(a.dependents, t, afterEnd|lead(i))
	if p.windows != nil {
		a.err = cmp.Or(a.err, p.windows.err)
	}
}

// release reports the event by, at time t, to ops that wait for it.
func (a *Actor) release(ops []uint32, t uint64, by lead) {
	for _, d := range ops {
		if a.e.causes != nil {
			a.e.causes.released(d, a.ready[d], t, by)
		}
		a.releaseOne(d, t)
	}
}

// releaseOne reports an event at time t to op d, which waits for it.
func (a *Actor) releaseOne(d uint32, t uint64) {
	op, ready := &a.ops[d], &a.ready[d]
	*ready = max(*ready, t)
	op.Waits--
	if op.Waits == 0 {
		a.own(*ready, opReady, d)
	}
}

// Announce reports to the engine, at the receiver, that the head of message m, or its request, has arrived and may
// match a receive. Messages between two ranks match receives in the order in which they were sent, as in MPI,
// regardless of the order of these calls.
func (a *Actor) Announce(m uint32) {
	if a.e.number == nil {
		a.announced(m)
		return
	}
	from := a.ops[m].Rank
	for m := a.pairs().arrive(from, m, a.e.number); m != NoOp; m = a.pairs().following(from) {
		a.announced(m)
	}
}

func (a *Actor) pairs() *pairOrder {
	if a.rank.order == nil {
		a.rank.order = newPairOrder()
	}
	return a.rank.order
}

func (a *Actor) announced(m uint32) {
	if i := a.e.matchers[a.at].Arrive(m, &a.ops[m]); i != NoOp {
		a.rank.posted--
		a.meet(i, m, false)
	}
}

// Values of Engine.ready of a send that has run. Any other value is the arrival time of the last byte of its message.
const (
	underWay = math.MaxUint64     // the message has not matched a receive
	awaited  = math.MaxUint64 - 1 // the message has matched its receive and has not arrived
)

// meet pairs receive i with message m, when the receive is posted or when the message is announced.
func (a *Actor) meet(i, m uint32, posted bool) {
	recv, send, arrival := &a.ops[i], &a.ops[m], &a.ready[m]
	recv.SetLink(m) // the matcher no longer uses these links
	send.SetLink(i)
	if *arrival != underWay {
		a.receiveAt(i, *arrival)
		return
	}
	*arrival = awaited
	if !a.e.eager && a.e.waits(m, send) {
		if a.e.timeline != nil {
			a.e.begun[m] = max(a.e.begun[m], a.now)
		}
		if a.e.causes != nil {
			a.e.causes.matched(m, a.now, posted)
		}
		a.e.network.Grant(a, m, a.now)
	}
}

// Sent reports to the engine, at the sender, that the send of message m ends at time t: its last byte leaves or, with
// Host.Acknowledged, the sender knows of its arrival. The network calls it for messages that waited for their receive
// and, with Host.Acknowledged, for all messages.
func (a *Actor) Sent(m uint32, t uint64) {
	if t > math.MaxInt64 {
		a.tooLong(m)
		return
	}
	a.totals.open--
	op := &a.ops[m]
	op.Flags |= hasEnded
	if a.e.timeline != nil {
		a.span(m, op, WaitSpan, min(a.e.sentAt[m], t), t)
	}
	a.ended(m, t)
	a.e.p.Drop(m)
}

// Deliver reports to the engine, at the receiver, that message m entered the network at time sent and that its last
// byte arrives at time last, which may be in the future.
func (a *Actor) Deliver(m uint32, sent, last uint64) {
	if last > math.MaxInt64 {
		a.tooLong(m)
		return
	}
	if a.e.sentAt != nil {
		a.e.sentAt[m] = sent
	}
	arrival := &a.ready[m]
	if *arrival == awaited {
		a.receiveAt(a.ops[m].Link(), last)
		return
	}
	*arrival = last
}

// receiveAt makes receive i take its message at its arrival time.
func (a *Actor) receiveAt(i uint32, arrival uint64) {
	switch now := a.now; {
	case a.rank.ahead && !a.running && arrival <= a.ready[i]: // posted, maybe ahead
		a.now = max(now, a.ready[i])
		a.receive(i)
		a.now = now
	case arrival <= now:
		a.receive(i)
	case a.rank.ahead && !a.running && a.rank.own == 0 && (a.rank.posted == 0 || !a.readies(i)):
		a.runAhead(event.Event{Time: arrival, Key: uint64(recvHere<<opBits | i)})
	default:
		a.own(arrival, recvHere, i)
	}
}

// receive makes receive i take its message, which has arrived.
func (a *Actor) receive(i uint32) {
	if a.e.deferral != nil && a.defers(i) {
		return
	}
	op := &a.ops[i]
	m := op.Link()
	send := &a.ops[m]
	if a.e.timeline != nil {
		a.span(i, op, WaitSpan, a.ready[i], a.now)
	}
	if a.e.causes != nil {
		a.e.causes.takes(i, a.ready[i], min(a.now, a.ready[m]))
		if d := a.e.deferral; d != nil && d.waiter[i] != NoOp {
			if w := &d.waits[d.waiter[i]]; w.at > max(a.ready[i], min(a.now, a.ready[m])) {
				a.e.causes.taken[i] = uint32(w.by)
			}
		}
	}
	_, end := a.occupy(i, op, RecvSpan, a.e.receiving(m, send))
	if a.e.timeline != nil {
		a.e.timeline.Transfer(Transfer{Source: send.Rank, Target: op.Rank, Send: m, Recv: i,
			Begun: min(a.e.begun[m], a.e.sentAt[m]), Start: a.e.sentAt[m], End: a.now,
			Arrived: min(a.now, a.ready[m]), Bytes: send.Size})
	}
	a.totals.open--
	op.Flags |= hasEnded
	a.ended(i, end)
	a.e.p.Drop(i)
	a.e.p.Drop(m)
}
