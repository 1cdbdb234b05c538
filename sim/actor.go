package sim

import (
	"math"

	"github.com/tracedag/tracedag/sim/event"
)

// rank is the state of one rank in a run. What nearly every event needs stands together, with room for what ranks mostly
// have: one stream and few events.
type rank struct {
	queue    event.Queue
	streams  []uint64 // when each stream is free
	finish   uint64   // the latest end of an op
	sequence uint32   // numbers the events that the rank scheduled for itself: at most three an op, so 31 bits do
	early    bool     // sends can be handed to the NIC before their time; see begin
	stream0  [1]uint64
	events0  [3]event.Event
	order    *pairOrder // nil while no message came on more than one NIC
}

func (r *rank) init(streams int) {
	r.queue.UseBuffer(r.events0[:])
	r.streams = r.stream0[:]
	if streams > 1 {
		r.streams = make([]uint64, streams)
	}
}

// The kinds of event, in the bits of an event above the number of its op. Those of the network follow.
const (
	opReady  = iota // all that the op waits for has happened
	opHand          // the send hands its message to the NIC
	recvHere        // the receive's message has arrived
	networkEvent
)

const (
	opBits = 29
	opMask = 1<<opBits - 1
)

// ownEvent marks, in the key of an event, those that a rank scheduled for itself: they come after those of the network.
const ownEvent = 1 << 63

// The engine's own bits of Op.Flags.
const (
	hasRun   uint8 = 1 << 7 // the op has started
	hasEnded uint8 = 1 << 6 // the receive has ended, or the send whose end is the network's to say
)

// Actor runs one rank at a time, and is how a network speaks to the engine while it handles a call.
type Actor struct {
	e     *Engine
	group *group
	at    uint32 // the rank that runs
	rank  *rank
	now   uint64
	err   error

	totals counts
}

// counts are what a run reports: events that were handled, ops that started, messages that were sent and their bytes.
type counts struct {
	events, ops, messages, bytes int64

	open int64 // receives, and sends whose end is the network's to say: those that started less those that ended
}

func (c *counts) add(d *counts) {
	c.events += d.events
	c.ops += d.ops
	c.messages += d.messages
	c.bytes += d.bytes
	c.open += d.open
}

// Now returns the time of the event at hand, in picoseconds.
func (a *Actor) Now() uint64 {
	return a.now
}

// At returns the rank at which the event at hand is, or [Engine.Fabric].
func (a *Actor) At() uint32 {
	return a.at
}

// Engine returns the engine.
func (a *Actor) Engine() *Engine {
	return a.e
}

// Program returns the program that runs.
func (a *Actor) Program() *Program {
	return a.e.p
}

// Op returns the send of message m.
func (a *Actor) Op(m uint32) *Op {
	return &a.e.p.Ops[m]
}

// Schedule makes the engine call Network.Event at time t, at a rank or the fabric. Several events that are equal in all four
// make for as many calls.
func (a *Actor) Schedule(where uint32, t uint64, kind NetworkEvent, m uint32) {
	if t > math.MaxInt64 {
		a.err = ErrTooLong
		return
	}
	ev := event.Event{Time: t, Key: uint64(m)<<32 | uint64((networkEvent+uint32(kind))<<opBits|m)}
	if where == a.at {
		a.rank.queue.Push(ev)
		return
	}
	a.group.post(where, ev)
}

// Wake makes the engine call Network.Event at time t, at the fabric, with the kind [WakeUp], behind all else that is
// scheduled there for that time. There is only one such call: the earliest that was asked for since the last.
func (a *Actor) Wake(t uint64) {
	if t > math.MaxInt64 {
		a.err = ErrTooLong
		return
	}
	a.group.wake = min(a.group.wake, t)
}

// Until returns, at the fabric, a time before which nothing is scheduled at any rank or at the fabric, Wake included; at
// most a picosecond after the latest time that there is. So a network that keeps a queue of its own need not come back to
// the engine for each of its events: it may handle all of them that are before that time in one call, later than Now, and
// then uses Wake for the first of the others.
//
// What it does at a time of its own, it may schedule for that time or later. That moves Until, which it asks again before it
// goes on to its next moment. One that handles all its events of a moment at once gets what it would get if it were woken
// for every moment: the ranks act first, then the network, then the ranks for which that scheduled something at the same
// moment.
func (a *Actor) Until() uint64 {
	if a.err != nil {
		return 0
	}
	return min(a.group.until(), math.MaxInt64+1)
}

// own schedules an event of the rank's own.
func (a *Actor) own(t uint64, kind, i uint32) {
	if t > math.MaxInt64 {
		a.err = ErrTooLong
		return
	}
	a.rank.queue.Push(event.Event{Time: t, Key: ownEvent | uint64(a.rank.sequence)<<32 | uint64(kind<<opBits|i)})
	a.rank.sequence++
}

// begin schedules what the rank can do from the start.
func (a *Actor) begin(at uint32) {
	a.enter(at)
	p := a.e.p
	// With one stream, sends come to the NIC in the order in which the stream takes them. Where they are all eager, nothing
	// else comes in between, and there is no need for an event when the stream is done with one.
	a.rank.early = len(a.rank.streams) == 1 && p.ranks[at].largestSend <= a.e.host.Rendezvous
	for _, i := range p.Roots(int(at)) {
		a.own(p.Ops[i].Ready, opReady, i)
	}
}

func (a *Actor) enter(at uint32) {
	a.at, a.rank = at, &a.e.ranks[at]
}

// run handles the events of a rank up to and without the time until, and returns the time of the next.
func (a *Actor) run(at uint32, until uint64) (next uint64) {
	a.enter(at)
	queue := &a.rank.queue
	for queue.Len() > 0 && a.err == nil {
		if next := queue.Next(); next >= until {
			return next
		}
		ev := queue.Pop()
		a.now = ev.Time
		a.totals.events++
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
	return never
}

// start runs an op that is ready now.
func (a *Actor) start(i uint32) {
	op := &a.e.p.Ops[i]
	op.Flags |= hasRun
	a.e.p.PrefetchOps(op)
	a.totals.ops++
	switch {
	case op.Flags&IsSend != 0:
		a.totals.messages++
		a.totals.bytes += int64(op.Size)
		begin, end := a.occupy(i, op, SendSpan, a.e.host.Busy(op.Size))
		op.Ready = underWay
		a.started(i, begin)
		if a.e.leavesEnd(op) {
			a.totals.open++
		} else {
			a.ended(i, end)
		}
		if a.rank.early {
			a.hand(i, end)
		} else {
			a.own(end, opHand, i)
		}
	case op.Flags&IsRecv != 0:
		a.totals.open++
		a.started(i, a.now)
		if m := a.e.matchers[a.at].Post(i, op); m != NoOp {
			a.meet(i, m)
		}
	case op.Size == 0: // a calc that only joins others takes no stream
		a.started(i, a.now)
		a.ended(i, a.now)
	default:
		begin, end := a.occupy(i, op, CalcSpan, op.Size)
		a.started(i, begin)
		a.ended(i, end)
	}
}

// hand gives the message of a send to the NIC at time t.
func (a *Actor) hand(i uint32, t uint64) {
	op := &a.e.p.Ops[i]
	if a.e.number != nil {
		a.e.number[i] = a.pairs().issue(uint32(op.Peer))
	}
	if op.Size > a.e.host.Rendezvous {
		a.e.network.Request(a, i, t)
	} else {
		a.e.network.Eager(a, i, t)
	}
}

// occupy places work for an op on its stream, behind what was placed there before, and returns when the work begins and
// ends.
func (a *Actor) occupy(i uint32, op *Op, kind SpanKind, length uint64) (begin, end uint64) {
	free := &a.rank.streams[op.Stream]
	begin = max(a.now, *free)
	end = begin + length
	if length > math.MaxInt64 || end > math.MaxInt64 {
		a.err = ErrTooLong
		return begin, begin
	}
	if a.e.host.Work != nil {
		if end = a.e.host.Work(a.at, begin, length); end > math.MaxInt64 {
			a.err = ErrTooLong
			return begin, begin
		}
	}
	*free = end
	if a.e.timeline != nil {
		a.e.timeline.Span(Span{Kind: kind, Rank: a.at, Stream: uint32(op.Stream), Op: i, Start: begin, End: end})
	}
	return begin, end
}

// started counts the start of op i, at time t, for those that wait for it.
func (a *Actor) started(i uint32, t uint64) {
	a.release(a.e.p.StartDependents(i), t)
}

// ended counts the end of op i, at time t, for those that wait for it.
func (a *Actor) ended(i uint32, t uint64) {
	a.rank.finish = max(a.rank.finish, t)
	a.release(a.e.p.Dependents(i), t)
}

func (a *Actor) release(ops []uint32, t uint64) {
	for _, d := range ops {
		op := &a.e.p.Ops[d]
		op.Ready = max(op.Ready, t)
		op.Waits--
		if op.Waits == 0 {
			a.own(op.Ready, opReady, d)
		}
	}
}

// Announce says, at the receiver, that the head of message m, or its request, is there now, so that it can meet a
// receive. Of the messages between two ranks, those sent earlier meet their receives earlier, as in MPI, whatever the
// order of these calls.
func (a *Actor) Announce(m uint32) {
	if a.e.number == nil {
		a.announced(m)
		return
	}
	from := a.e.p.Ops[m].Rank
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
	if i := a.e.matchers[a.at].Arrive(m, &a.e.p.Ops[m]); i != NoOp {
		a.meet(i, m)
	}
}

// What Op.Ready of a send holds once the send has run: when the last byte of its message is there, or one of these. Before,
// and of the other ops, it is the latest of what the op waited for and its release.
const (
	underWay = math.MaxUint64     // it has not met its receive
	awaited  = math.MaxUint64 - 1 // it has
)

// meet pairs receive i with message m.
func (a *Actor) meet(i, m uint32) {
	recv, send := &a.e.p.Ops[i], &a.e.p.Ops[m]
	recv.Link, send.Link = m, i // each to the other, for the matcher is done with them
	if send.Ready != underWay {
		a.receiveAt(i, send.Ready)
		return
	}
	send.Ready = awaited
	if send.Size > a.e.host.Rendezvous {
		a.e.network.Grant(a, m, a.now)
	}
}

// Sent says, at the sender, that the last byte of a message leaves at time t, or with Host.Acknowledged that by then the
// sender knows it to have arrived: that its send ends. It is for messages that waited for their receive, and for all with
// Host.Acknowledged.
func (a *Actor) Sent(m uint32, t uint64) {
	if t > math.MaxInt64 {
		a.err = ErrTooLong
		return
	}
	a.totals.open--
	a.e.p.Ops[m].Flags |= hasEnded
	a.ended(m, t)
}

// Deliver says, at the receiver, that message m entered the network at the time sent and that its last byte arrives at
// the time last, which may be in the future.
func (a *Actor) Deliver(m uint32, sent, last uint64) {
	if last > math.MaxInt64 {
		a.err = ErrTooLong
		return
	}
	if a.e.sentAt != nil {
		a.e.sentAt[m] = sent
	}
	send := &a.e.p.Ops[m]
	if send.Ready == awaited {
		a.receiveAt(send.Link, last)
		return
	}
	send.Ready = last
}

// receiveAt has receive i take its message once it is there.
func (a *Actor) receiveAt(i uint32, there uint64) {
	if there > a.now {
		a.own(there, recvHere, i)
		return
	}
	a.receive(i)
}

// receive has receive i take its message, which is there.
func (a *Actor) receive(i uint32) {
	op := &a.e.p.Ops[i]
	m := op.Link
	send := &a.e.p.Ops[m]
	_, end := a.occupy(i, op, RecvSpan, a.e.host.Busy(send.Size))
	if a.e.timeline != nil {
		a.e.timeline.Transfer(Transfer{Source: send.Rank, Target: op.Rank, Send: m, Recv: i, Start: a.e.sentAt[m],
			End: a.now, Arrived: min(a.now, send.Ready), Bytes: send.Size})
	}
	a.totals.open--
	op.Flags |= hasEnded
	a.ended(i, end)
}
