package sim

import (
	"cmp"
	"context"
	"errors"
	"math"
)

// Network models the transfer of messages between the NICs of ranks. The number of its send op identifies a message.
// All times are in picoseconds. The engine calls the network in time order, and the time of a call is [Actor.Now]; only
// calls of Eager may be ahead of it, in ascending order, at ranks that make no other calls.
//
// A network acts in events. Each event is at a rank or at the fabric ([Engine.Fabric]), which owns the state shared by
// ranks, such as switches. Ranks run concurrently, so calls at a rank may access only the state of that rank.
//
// For every call of Eager, the network calls [Actor.Announce] and then [Actor.Deliver] at the receiver, and with
// Host.Acknowledged also [Actor.Sent] at the sender. For every call of Request, it calls Announce at the receiver. For
// every call of Grant, it calls Sent at the sender and Deliver at the receiver.
type Network interface {
	// Lookahead returns a lower bound, in picoseconds, of the delay of every message, request and grant between two
	// ranks. The network must not schedule an event at another rank earlier than Lookahead from now. Ranks run
	// independently for this time, so a larger value is faster. A network that uses the fabric returns 0, and may in
	// exchange run ahead of the ranks; see [Actor.Until].
	Lookahead() uint64
	// Ordered reports whether the network always announces messages and requests from one rank to another in the order
	// in which the engine handed them over. Otherwise the engine restores that order.
	Ordered() bool
	// Eager hands over, at the sender, a message that is sent at time t without waiting for its receive.
	Eager(a *Actor, m uint32, t uint64)
	// Request hands over, at the sender and at time t, the announcement of a message that waits for its receive.
	Request(a *Actor, m uint32, t uint64)
	// Grant reports, at the receiver, that the receive of an announced message is posted at time t.
	Grant(a *Actor, m uint32, t uint64)
	// Event handles an event scheduled by the network for now.
	Event(a *Actor, kind NetworkEvent, m uint32)
}

// NetworkEvent is a kind of event of a network, which defines its meaning.
type NetworkEvent uint8

const (
	// NetworkEvents is the number of event kinds of a network.
	NetworkEvents = 5
	// WakeUp is the additional kind that [Actor.Wake] schedules.
	WakeUp NetworkEvent = NetworkEvents
)

// Host models the message handling of a rank's processor.
type Host struct {
	// Busy returns the time in picoseconds for which sending or receiving a message occupies a stream, or math.MaxInt64
	// if that is out of range.
	Busy func(bytes uint64) uint64
	// Receiving is Busy for receives if their time differs from that of sends; nil: Busy.
	Receiving func(bytes uint64) uint64
	// ReceivingOf is Receiving if the time depends on the send op m, too; nil: Receiving.
	ReceivingOf func(m uint32, bytes uint64) uint64
	// Sending is Busy for sends if their time depends on the send op m, too; nil: Busy.
	Sending func(m uint32, bytes uint64) uint64
	// Rendezvous is the size of the largest eager message in bytes. A larger message is announced and waits for its
	// receive.
	Rendezvous uint64
	// Synchronous makes all messages wait for their receive, whatever Rendezvous is.
	Synchronous bool
	// Detached makes sends of fewer bytes end when their stream has handled them, even if their message waits for its
	// receive, or with Acknowledged. The network must not call [Actor.Sent] for them.
	Detached uint64
	// Mode returns the mode of the send op m; nil: all are standard. The network must not call [Actor.Sent] for
	// buffered ones.
	Mode func(m uint32) SendMode
	// Returns makes the start dependents of a send wait until its stream has handled it, like the calls that follow a
	// non-blocking send.
	Returns bool
	// Deferred makes a receive on whose start others depend, which is non-blocking, occupy its stream within the wait
	// of the op that alone depends on its end: not before the other dependencies of that op are met.
	Deferred bool
	// Behind reports whether the receive op m begins when its stream has handled what it began before, as that of
	// MPI_Sendrecv does behind the send; nil: no receive does.
	Behind func(m uint32) bool
	// Timely makes the engine call Network.Eager at the time of the call only, never ahead of it, so that the network
	// may keep state that ranks share even without a fabric, if it has no lookahead.
	Timely bool
	// Acknowledged makes eager sends end when the network calls [Actor.Sent], instead of when their stream has handled
	// them.
	Acknowledged bool
	// Ahead permits ranks to run ahead of time. The network must call Deliver at a rank in the order of the arrival
	// times of last bytes, all different.
	Ahead bool
	// Work returns the end of work with the given start and length on a rank whose processor has other work too, or
	// more than math.MaxInt64 if that is out of range. Calls for different ranks may be concurrent. If nil, work ends
	// at start + length.
	Work func(rank uint32, start, length uint64) uint64
	// Uniform has the times of the host and the network, if all else of Host and the Network are those that it
	// describes, and there is no critical path; nil: they are not.
	Uniform *Uniform
}

// Engine replays a program. It tracks dependencies and streams and matches sends with receives; a Network transfers the
// messages. docs/reference/backends/loggops.md defines its rules under "strict".
//
// Every rank has its own event queue and runs independently until another rank could affect it: for the network's
// lookahead after the earliest event of all ranks. At equal times, a rank handles the network's events first, by
// message number, and then its own in scheduling order. Therefore the result does not depend on the order in which
// ranks run, and ranks may run concurrently.
//
// Without lookahead, ranks take turns at each time. An event that a rank schedules at another rank for the same time
// follows that rank's turn. When no rank has events at that time, the fabric runs, and then the ranks at which it
// scheduled events for the same time.
type Engine struct {
	p        *Program
	host     Host
	network  Network
	timeline Timeline
	causes   *causes         // nil without RecordPath
	deferral *deferral       // nil: no receive is deferred
	progress func(ops int64) // nil, or called periodically with the number of additional ops run
	ctx      context.Context // nil: no limit
	threads  int
	busy     int // replaces the constant of that name; 0: use threads as early as possible and keep them

	totals counts
	err    error // the first error; it ends the run

	uniform  *uniformRun // replaces actors, network, ranks, matchers and ready; nil: it does not
	ahead    bool        // see mayRunAhead
	eager    bool        // all sends are eager and end when their stream has handled them
	ranks    []rank      // followed by the fabric
	matchers []Matcher   // by rank

	// By op: the latest time of its dependencies and its release so far; of a send that has run, see underWay.
	ready []uint64

	number []uint32 // by send op: index among the messages of its pair of ranks; nil if Ordered

	// By send op, nil without a timeline: the time at which its message entered the network, the end of its overhead
	// before, and Transfer.Begun.
	sentAt, begun []uint64
}

// SendMode is the mode of a send, as in MPI.
type SendMode uint8

// The modes of sends.
const (
	StandardSend    SendMode = iota // by the size of the message
	SynchronousSend                 // waits for its receive, whatever Host.Rendezvous and Host.Detached are
	BufferedSend                    // ends when its stream has handled it, even if its message waits for its receive
)

// NewEngine returns an engine that runs p over the network on at most the given number of threads. With a timeline or
// without lookahead, it uses one thread, as in windows. It returns an error if p has no dense streams, or for a
// timeline in windows.
func NewEngine(p *Program, host Host, network Network, timeline Timeline, threads int) (*Engine, error) {
	if p.streams == nil {
		return nil, errors.New("the engine needs a program with dense streams")
	}
	if timeline != nil && p.Windowed() {
		return nil, ErrWindowedTimeline
	}
	if host.Receiving == nil {
		host.Receiving = host.Busy
	}
	e := &Engine{p: p, host: host, network: network, timeline: timeline, threads: max(1, threads), busy: busy}
	if timeline == nil {
		if e.uniform = newUniformRun(p, &host); e.uniform != nil {
			return e, nil
		}
	}
	p.Unfold()
	e.ranks, e.matchers, e.ready = make([]rank, p.Ranks()+1), make([]Matcher, p.Ranks()), p.ReleaseTimes()
	if timeline != nil || network.Lookahead() == 0 || p.Windowed() {
		e.threads = 1
	}
	if timeline != nil {
		e.sentAt, e.begun = make([]uint64, p.NumOps()), make([]uint64, p.NumOps())
	}
	if host.Deferred && !p.Windowed() {
		e.deferral = newDeferral(p)
	}
	if !network.Ordered() {
		e.number = make([]uint32, len(p.Ops))
	}
	for r := range e.ranks {
		streams := 0
		if r < p.Ranks() {
			streams = len(p.streams[r])
			e.matchers[r] = NewMatcher(p)
		}
		e.ranks[r].init(streams)
	}
	return e, nil
}

// SetProgress makes the engine call progress periodically from one thread, with the number of additional ops run.
func (e *Engine) SetProgress(progress func(ops int64)) {
	e.progress = progress
}

// SetContext makes Run return an error soon after the context ends; see [Interrupted]. A network that handles many of
// its own events in one call must check the context too.
func (e *Engine) SetContext(ctx context.Context) {
	e.ctx = ctx
}

// Fabric returns the place of network events that belong to no rank: the network state shared by all ranks.
func (e *Engine) Fabric() uint32 {
	return uint32(e.p.Ranks())
}

// never is the time of the next event of a rank that has no events.
const never = math.MaxUint64

// Run replays the program. It returns a [*TooLongError] if a time is out of range, and an error if the context ends.
// With several such times it names the same op on any number of threads.
func (e *Engine) Run() (*Outcome, error) {
	if e.uniform != nil {
		return e.runUniform()
	}
	h := &e.host
	e.eager = !h.Acknowledged && !h.Synchronous && h.Mode == nil && e.p.LargestMessage <= h.Rendezvous
	e.ahead = e.mayRunAhead()
	begin := newActor(e, nil)
	for r := range e.p.Ranks() {
		begin.begin(uint32(r))
	}
	if e.err = cmp.Or(begin.err, Interrupted(e.ctx)); e.err == nil {
		e.runAll()
	}
	if e.err != nil {
		return nil, e.err
	}
	out := &Outcome{
		Finish: make([]uint64, e.p.Ranks()), Eager: e.host.Rendezvous,
		Events: e.totals.events, Messages: e.totals.messages, Bytes: e.totals.bytes,
		Ran: e.p.Ran(e.totals.ops, hasRun),
	}
	if e.host.Detached > 0 || e.host.Synchronous || e.host.Mode != nil {
		out.Eager = math.MaxUint64 // Unended has all sends that wait
	}
	out.Unexpected, out.Posted = UnmatchedOf(e.matchers)
	if e.totals.open > 0 {
		out.Unended = e.unended()
	}
	for r := range e.p.Ranks() {
		out.Finish[r] = e.ranks[r].finish
	}
	return out, nil
}

// unended returns, in ascending order, the sends and receives that started and did not end.
func (e *Engine) unended() []uint32 {
	var ops []uint32
	e.p.EachInMemory(func(i uint32, op *Op) {
		switch {
		case op.Flags&(hasRun|hasEnded) != hasRun || !op.IsMessage():
		case e.deferral.isPending(i):
		case op.Flags&IsRecv != 0 || e.leavesEnd(i, op):
			ops = append(ops, i)
		}
	})
	return e.p.Numbers(ops)
}

// leavesEnd reports whether the network determines the end of a send.
func (e *Engine) leavesEnd(i uint32, send *Op) bool {
	switch e.mode(i) {
	case SynchronousSend:
		return true
	case BufferedSend:
		return false
	}
	return (e.host.Acknowledged || e.waits(i, send)) && send.Size >= e.host.Detached
}

// waits reports whether the message of a send waits for its receive.
func (e *Engine) waits(i uint32, send *Op) bool {
	return send.Size > e.host.Rendezvous || e.host.Synchronous || e.mode(i) == SynchronousSend
}

// mode returns the mode of a send.
func (e *Engine) mode(i uint32) SendMode {
	if e.host.Mode == nil {
		return StandardSend
	}
	return e.host.Mode(i)
}

// receiving returns the time in picoseconds for which the receive of a message occupies its stream.
func (e *Engine) receiving(m uint32, send *Op) uint64 {
	if e.host.ReceivingOf != nil {
		return e.host.ReceivingOf(m, send.Size)
	}
	return e.host.Receiving(send.Size)
}

// sending returns the time in picoseconds for which a send occupies its stream.
func (e *Engine) sending(i uint32, send *Op) uint64 {
	if e.host.Sending != nil {
		return e.host.Sending(i, send.Size)
	}
	return e.host.Busy(send.Size)
}
