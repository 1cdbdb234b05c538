package sim

import (
	"cmp"
	"context"
	"errors"
	"math"
)

// Network models how messages get from one rank's NIC to another's. A message is identified by the number of its send
// op. All times are picoseconds. Calls come in time order, and their time is [Actor.Now]; only those of Eager may lie
// ahead, in ascending order, at ranks that call nothing else.
//
// A network acts in events. Each event is at a rank or at the fabric ([Engine.Fabric]), the place of state that ranks
// share, such as switches. State of a rank may be accessed in calls at that rank only, since ranks run concurrently.
//
// For every call of Eager, the network calls [Actor.Announce] and then [Actor.Deliver] at the receiver, and with
// Host.Acknowledged also [Actor.Sent] at the sender. For every call of Request, it calls Announce at the receiver. For
// every call of Grant, it calls Sent at the sender and Deliver at the receiver.
type Network interface {
	// Lookahead returns a lower bound, in picoseconds, of the delay of every message, request and grant between two
	// ranks: the network schedules no event at another place earlier than that from now. Ranks run independently for so
	// long, so larger is faster. A network that uses the fabric returns 0, and may in exchange run ahead of the ranks;
	// see [Actor.Until].
	Lookahead() uint64
	// Ordered reports whether messages and requests from one rank to another are always announced in the order in which
	// they were handed over. If not, the engine restores that order.
	Ordered() bool
	// Eager hands over, at the sender, a message that is sent at once, at time t.
	Eager(a *Actor, m uint32, t uint64)
	// Request hands over, at the sender and at time t, the announcement of a message that waits for its receive.
	Request(a *Actor, m uint32, t uint64)
	// Grant tells the network, at the receiver, that an announced message has a receive at time t.
	Grant(a *Actor, m uint32, t uint64)
	// Event handles an event that the network scheduled for now.
	Event(a *Actor, kind NetworkEvent, m uint32)
}

// NetworkEvent is a kind of event of a network. Its meaning is the network's.
type NetworkEvent uint8

const (
	// NetworkEvents is the number of event kinds of a network.
	NetworkEvents = 5
	// WakeUp is the additional kind that [Actor.Wake] schedules.
	WakeUp NetworkEvent = NetworkEvents
)

// Host models how a rank's processor handles messages.
type Host struct {
	// Busy returns how long sending or receiving a message occupies a stream, in picoseconds; math.MaxInt64 if too
	// long.
	Busy func(bytes uint64) uint64
	// Rendezvous is the largest message that is sent eagerly, in bytes. A larger one is announced and waits for its
	// receive.
	Rendezvous uint64
	// Acknowledged makes eager sends, too, end when the network calls [Actor.Sent], not when their stream has handled
	// them.
	Acknowledged bool
	// Work returns the end of work of the given start and length on a rank whose processor also does other things, more
	// than math.MaxInt64 if too late. It must be safe for different ranks concurrently. If nil, work ends at start +
	// length.
	Work func(rank uint32, start, length uint64) uint64
}

// Engine replays a program. It tracks dependencies and streams and matches sends with receives; a Network moves the
// messages. docs/reference/backends/loggops.md states its rules under "strict".
//
// Every rank has its own event queue and runs independently until another rank could affect it: for the network's
// lookahead after the earliest event of all ranks. Events of a rank at the same time are ordered as follows: first
// those of the network, by message number, then its own, in the order in which they were scheduled. Therefore the
// result does not depend on the order in which ranks run, and ranks may run concurrently.
//
// Without lookahead, ranks take turns at each time, and an event that one schedules at another for the same time comes
// after that rank's turn. When no rank has anything left at that time, the fabric runs, and then again the ranks at
// which it scheduled events for the same time.
type Engine struct {
	p        *Program
	host     Host
	network  Network
	timeline Timeline
	progress func(ops int64) // nil, or called now and then with the number of additional ops that ran
	ctx      context.Context // nil: the run is never interrupted
	threads  int
	busy     int // the constant of that name; 0: use threads as early as possible, and keep them

	totals counts
	err    error // the first error, which ends the run

	ranks    []rank    // followed by the fabric
	matchers []Matcher // by rank

	number []uint32 // by send op, the message's index among those of its pair of ranks; nil if order is certain
	sentAt []uint64 // by send op, when its message entered the network; nil without a timeline
}

// NewEngine returns an engine that runs p over the network, on at most the given number of threads. With a timeline or
// without lookahead it uses one.
func NewEngine(p *Program, host Host, network Network, timeline Timeline, threads int) (*Engine, error) {
	if p.streams == nil {
		return nil, errors.New("the engine needs a program with dense streams")
	}
	e := &Engine{
		p: p, host: host, network: network, timeline: timeline, threads: max(1, threads), busy: busy,
		ranks: make([]rank, p.Ranks()+1), matchers: make([]Matcher, p.Ranks()),
	}
	if timeline != nil || network.Lookahead() == 0 {
		e.threads = 1
	}
	if timeline != nil {
		e.sentAt = make([]uint64, p.NumOps())
	}
	if !network.Ordered() {
		e.number = make([]uint32, p.NumOps())
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

// SetProgress makes the engine call progress now and then, from one thread, with the number of additional ops that ran.
func (e *Engine) SetProgress(progress func(ops int64)) {
	e.progress = progress
}

// SetContext makes Run return an error soon after a context ends; see [Interrupted]. A network that handles many events
// of its own in a call checks the context, too.
func (e *Engine) SetContext(ctx context.Context) {
	e.ctx = ctx
}

// Fabric returns the place of network events that belong to no rank: the shared state of the network.
func (e *Engine) Fabric() uint32 {
	return uint32(e.p.Ranks())
}

// never is the time of the next event of a rank without events.
const never = math.MaxUint64

// ErrTooLong ends a run whose clock exceeds the range of dag.Time.
var ErrTooLong = errors.New("the simulated time exceeds 106 days, the longest that fits into 64 bits of picoseconds")

// Run replays the program from start to end. It returns an error if a time is out of range or the context ends.
func (e *Engine) Run() (*Outcome, error) {
	begin := Actor{e: e}
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
	out.Unexpected, out.Posted = Leftovers(e.matchers)
	if e.totals.open > 0 {
		out.Unended = e.unended()
	}
	for r := range e.p.Ranks() {
		out.Finish[r] = e.ranks[r].finish
	}
	return out, nil
}

// unended returns the sends and receives that started and did not end, ascending.
func (e *Engine) unended() []uint32 {
	var ops []uint32
	for i := range e.p.Ops {
		op := &e.p.Ops[i]
		switch {
		case op.Flags&(hasRun|hasEnded) != hasRun || !op.IsMessage():
		case op.Flags&IsRecv != 0 || e.leavesEnd(op):
			ops = append(ops, uint32(i))
		}
	}
	return ops
}

// leavesEnd reports whether the network determines the end of a send.
func (e *Engine) leavesEnd(send *Op) bool {
	return e.host.Acknowledged || send.Size > e.host.Rendezvous
}
