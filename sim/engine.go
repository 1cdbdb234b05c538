package sim

import (
	"errors"
	"math"
)

// Network is what a backend models: how messages get from one rank's NIC to another's. A message goes by the number of
// its send. All times are picoseconds and never earlier than Engine.Now; those of the Eager and Request calls for one
// NIC do not decrease from call to call.
//
// For every call of Eager the network calls Engine.Announce and Engine.Deliver in due time, in this order; for every call
// of Request Engine.Announce; and for every call of Grant Engine.Sent and Engine.Deliver. It does so from within Event,
// which the engine calls at the times that the network asked for with Engine.Schedule.
type Network interface {
	// Eager takes over a message that is sent at once, at time t.
	Eager(e *Engine, m uint32, t uint64)
	// Request takes over the announcement of a message that is to wait for its receive, at time t.
	Request(e *Engine, m uint32, t uint64)
	// Grant says that at time t there is a receive for a message that was announced.
	Grant(e *Engine, m uint32, t uint64)
	// Event handles an event of the network's own, which is due now.
	Event(e *Engine, kind NetworkEvent, m uint32)
}

// NetworkEvent tells events of a network apart; their meaning is the network's.
type NetworkEvent uint8

// NetworkEvents is the number of kinds of event that a network can have.
const NetworkEvents = 4

// Host is how a rank's processor handles messages. Busy returns for how long a stream is occupied by sending or
// receiving the given bytes, in picoseconds, math.MaxInt64 or more where that is too long.
type Host struct {
	Busy func(bytes uint64) uint64
	// Rendezvous is the largest message that is sent eagerly, in bytes; a larger one is announced and waits for its
	// receive.
	Rendezvous uint64
	// Work returns when work that starts at a given time and takes a given time is done, on a rank whose processor does
	// other things too. nil: when that time has passed.
	Work func(rank uint32, start, length uint64) uint64
}

// Engine replays a program: it keeps dependencies, streams, and the matching of sends and receives, and leaves the way
// of the messages to a Network. docs/backends/loggops.md states its rules under "strict".
//
// An op takes one event, a receive one more where it waits for its message, plus the network's. Work on a stream is
// placed when its op is ready, behind what was placed there before, so nothing ever goes back into the queue.
type Engine struct {
	p        *Program
	host     Host
	network  Network
	timeline Timeline

	now      uint64
	queue    Queue
	sequence uint32
	events   int64
	err      error

	stream []uint64 // when each stream of each rank is free, at stream0 of the rank
	first  []uint32 // of each rank, its first stream in stream
	finish []uint64 // of each rank, the latest end of an op

	// Of each op that has not run, the latest of what it waited for and its release; of a message, by its send, when its
	// last byte is there, or underWay, or awaited.
	ready []uint64
	// Of each receive and message that have met, the other; of those that have not, the next in a list of the matcher.
	link    []uint32
	matcher matcher
	order   *pairOrder // nil where the network cannot change the order of messages
	sentAt  []uint64   // of each message by its send, when it entered the network; nil without a timeline

	messages int64
	bytes    int64
	ran      Set
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

// NewEngine returns an engine that will run p over the network.
func NewEngine(p *Program, host Host, network Network, timeline Timeline) *Engine {
	e := &Engine{
		p: p, host: host, network: network, timeline: timeline,
		first:  make([]uint32, p.Ranks()+1),
		finish: make([]uint64, p.Ranks()),
		ready:  make([]uint64, p.NumOps()),
		link:   make([]uint32, p.NumOps()),
		ran:    NewSet(p.NumOps()),
	}
	for rank := range p.Ranks() {
		e.first[rank+1] = e.first[rank] + uint32(len(p.streams[rank]))
	}
	e.stream = make([]uint64, e.first[p.Ranks()])
	e.matcher = newMatcher(p, e.link)
	if timeline != nil {
		e.sentAt = make([]uint64, p.NumOps())
	}
	if p.NICs > 1 {
		e.order = newPairOrder(p)
	}
	return e
}

// errTooLong ends a run whose clock leaves the range of dag.Time.
var errTooLong = errors.New("the simulated time exceeds 106 days, the longest that fits into 64 bits of picoseconds")

// errTooManyEvents ends a run that has used up the numbers that order events of equal time.
var errTooManyEvents = errors.New("the run takes more than 4294967295 events")

// Run replays the program from start to end.
func (e *Engine) Run() (*Outcome, error) {
	if e.p.streams == nil {
		return nil, errors.New("the engine needs a program with dense streams")
	}
	for i := range uint32(e.p.NumOps()) {
		if e.p.Release != nil {
			e.ready[i] = uint64(e.p.Release[i])
		}
		if e.p.Ops[i].Waits == 0 {
			e.push(e.ready[i], opReady, i)
		}
	}
	for e.queue.Len() > 0 && e.err == nil {
		ev := e.queue.Pop()
		e.now = ev.Time
		e.events++
		what := ev.What()
		i := what & opMask
		switch kind := what >> opBits; kind {
		case opReady:
			e.start(i)
		case opHand:
			e.hand(i, e.now)
		case recvHere:
			e.receive(i)
		default:
			e.network.Event(e, NetworkEvent(kind-networkEvent), i)
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	unexpected, posted := e.matcher.leftover()
	return &Outcome{Finish: e.finish, Events: e.events, Messages: e.messages, Bytes: e.bytes, Ran: e.ran,
		Unexpected: unexpected, Posted: posted}, nil
}

// Now returns the time of the event at hand, in picoseconds.
func (e *Engine) Now() uint64 {
	return e.now
}

// Program returns the program that runs.
func (e *Engine) Program() *Program {
	return e.p
}

// Schedule makes the engine call Network.Event at time t.
func (e *Engine) Schedule(t uint64, kind NetworkEvent, m uint32) {
	e.push(t, networkEvent+uint32(kind), m)
}

func (e *Engine) push(t uint64, kind, i uint32) {
	if t > math.MaxInt64 {
		e.err = errTooLong
		return
	}
	if e.sequence == math.MaxUint32 {
		e.err = errTooManyEvents
		return
	}
	e.queue.Push(Event{Time: t, Key: uint64(e.sequence)<<32 | uint64(kind<<opBits|i)})
	e.sequence++
}

// start runs an op that is ready now.
func (e *Engine) start(i uint32) {
	op := &e.p.Ops[i]
	e.ran.Add(i)
	switch {
	case op.Flags&IsSend != 0:
		e.messages++
		e.bytes += int64(op.Size)
		begin, end := e.occupy(i, op, SendSpan, e.host.Busy(op.Size))
		e.ready[i] = underWay
		e.started(i, begin)
		if op.Size <= e.host.Rendezvous {
			e.ended(i, op, end)
		}
		// With one stream, sends reach the NIC in the order in which they were placed, and there is no need to wait.
		if e.first[op.Rank+1]-e.first[op.Rank] == 1 || end == e.now {
			e.hand(i, end)
		} else {
			e.push(end, opHand, i)
		}
	case op.Flags&IsRecv != 0:
		e.started(i, e.now)
		if m := e.matcher.post(i, op); m != nobody {
			e.meet(i, m)
		}
	case op.Size == 0: // a calc that only joins others takes no stream
		e.started(i, e.now)
		e.ended(i, op, e.now)
	default:
		begin, end := e.occupy(i, op, CalcSpan, op.Size)
		e.started(i, begin)
		e.ended(i, op, end)
	}
}

// hand gives the message of a send to the NIC at time t.
func (e *Engine) hand(i uint32, t uint64) {
	op := &e.p.Ops[i]
	if e.order != nil {
		e.order.issue(i, op)
	}
	if op.Size > e.host.Rendezvous {
		e.network.Request(e, i, t)
	} else {
		e.network.Eager(e, i, t)
	}
}

// occupy places work for an op on its stream, and returns when the work begins and ends.
func (e *Engine) occupy(i uint32, op *Op, kind SpanKind, length uint64) (begin, end uint64) {
	free := &e.stream[e.first[op.Rank]+uint32(op.Stream)]
	begin = max(e.now, *free)
	end = begin + length
	if length > math.MaxInt64 || end > math.MaxInt64 {
		e.err = errTooLong
		return begin, begin
	}
	if e.host.Work != nil {
		end = e.host.Work(op.Rank, begin, length)
	}
	*free = end
	if e.timeline != nil {
		e.timeline.Span(Span{Kind: kind, Rank: op.Rank, Stream: uint32(op.Stream), Op: i, Start: begin, End: end})
	}
	return begin, end
}

// started counts the start of op i, at time t, for those that wait for it.
func (e *Engine) started(i uint32, t uint64) {
	if e.p.startFirst != nil {
		e.release(e.p.StartDependents(i), t)
	}
}

// ended counts the end of op i, at time t, for those that wait for it.
func (e *Engine) ended(i uint32, op *Op, t uint64) {
	e.finish[op.Rank] = max(e.finish[op.Rank], t)
	e.release(e.p.Dependents(i), t)
}

func (e *Engine) release(ops []uint32, t uint64) {
	for _, d := range ops {
		op := &e.p.Ops[d]
		e.ready[d] = max(e.ready[d], t)
		op.Waits--
		if op.Waits == 0 {
			e.push(e.ready[d], opReady, d)
		}
	}
}

// Announce says that the head of message m, or its request, is at the receiving NIC now, so that it can meet a receive. Of
// the messages between two ranks, those sent earlier meet their receives earlier, as in MPI, whatever the order of these
// calls.
func (e *Engine) Announce(m uint32) {
	if e.order == nil {
		e.announced(m)
		return
	}
	for m := e.order.arrive(m, &e.p.Ops[m]); m != nobody; m = e.order.following(&e.p.Ops[m]) {
		e.announced(m)
	}
}

func (e *Engine) announced(m uint32) {
	if i := e.matcher.arrive(m, &e.p.Ops[m]); i != nobody {
		e.meet(i, m)
	}
}

// What Engine.ready holds of a message whose last byte has no time yet.
const (
	underWay = math.MaxUint64     // it has not met its receive
	awaited  = math.MaxUint64 - 1 // it has
)

// meet pairs receive i with message m.
func (e *Engine) meet(i, m uint32) {
	e.link[i], e.link[m] = m, i
	if there := e.ready[m]; there != underWay {
		e.receiveAt(i, there)
		return
	}
	e.ready[m] = awaited
	if e.p.Ops[m].Size > e.host.Rendezvous {
		e.network.Grant(e, m, e.now)
	}
}

// Sent says that the last byte of a message that waited for its receive leaves the sender at time t.
func (e *Engine) Sent(m uint32, t uint64) {
	if t > math.MaxInt64 {
		e.err = errTooLong
		return
	}
	e.ended(m, &e.p.Ops[m], t)
}

// Deliver says that message m entered the network at the time sent and that its last byte arrives at the time last, which
// may be in the future.
func (e *Engine) Deliver(m uint32, sent, last uint64) {
	if e.sentAt != nil {
		e.sentAt[m] = sent
	}
	if e.ready[m] == awaited {
		e.receiveAt(e.link[m], last)
		return
	}
	e.ready[m] = last
}

// receiveAt has receive i take its message once it is there.
func (e *Engine) receiveAt(i uint32, there uint64) {
	if there > e.now {
		e.push(there, recvHere, i)
		return
	}
	e.receive(i)
}

// receive has receive i take its message, which is there.
func (e *Engine) receive(i uint32) {
	op, m := &e.p.Ops[i], e.link[i]
	send := &e.p.Ops[m]
	_, end := e.occupy(i, op, RecvSpan, e.host.Busy(send.Size))
	if e.timeline != nil {
		e.timeline.Transfer(Transfer{Source: send.Rank, Target: op.Rank, Send: m, Recv: i, Start: e.sentAt[m], End: e.now,
			Bytes: send.Size})
	}
	e.ended(i, op, end)
}
