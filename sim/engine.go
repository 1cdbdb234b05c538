package sim

import (
	"errors"
	"math"
)

// Network is what a backend models: how messages get from one rank's NIC to another's. A message goes by the number of
// its send. All times are picoseconds. Calls come in the order of their times, which are the present, [Actor.Now]; except
// that those of Eager may be later, in ascending order, at ranks that call nothing else.
//
// A network acts in events, each at a rank, or at [Engine.Fabric], which is nowhere: there a network keeps what has no
// place at one rank, such as switches. What it keeps for a rank may be touched at that rank only, for ranks run at the
// same time.
//
// For every call of Eager the network calls [Actor.Announce] and [Actor.Deliver], in this order, at the receiver, and with
// Host.Acknowledged also [Actor.Sent] at the sender; for every call of Request Announce at the receiver; and for every call
// of Grant Sent at the sender and Deliver at the receiver.
type Network interface {
	// Lookahead is a time that every message, request and grant takes from one rank to another, at least: the network
	// schedules no event at another place earlier than that from now. Ranks run for so long without hearing of each other,
	// so larger is faster. A network that uses the fabric has none, 0, and may run ahead of the ranks in exchange; see
	// [Actor.Until].
	Lookahead() uint64
	// Ordered reports whether the messages and requests from one rank to another are certain to be announced in the order
	// in which they were taken over. If not, the engine restores that order.
	Ordered() bool
	// Eager takes over, at the sender, a message that is sent at once, at time t.
	Eager(a *Actor, m uint32, t uint64)
	// Request takes over, at the sender, the announcement of a message that is to wait for its receive, at time t.
	Request(a *Actor, m uint32, t uint64)
	// Grant says, at the receiver, that at time t there is a receive for a message that was announced.
	Grant(a *Actor, m uint32, t uint64)
	// Event handles an event of the network's own, which is due now.
	Event(a *Actor, kind NetworkEvent, m uint32)
}

// NetworkEvent tells events of a network apart; their meaning is the network's.
type NetworkEvent uint8

const (
	// NetworkEvents is the number of kinds of event that a network can have.
	NetworkEvents = 5
	// WakeUp is one more, which [Actor.Wake] asks for.
	WakeUp NetworkEvent = NetworkEvents
)

// Host is how a rank's processor handles messages.
type Host struct {
	// Busy returns for how long a stream is occupied by sending or receiving the given bytes, in picoseconds;
	// math.MaxInt64 where that is too long.
	Busy func(bytes uint64) uint64
	// Rendezvous is the largest message that is sent eagerly, in bytes; a larger one is announced and waits for its
	// receive.
	Rendezvous uint64
	// Acknowledged says that eager sends, too, end when the network says so by [Actor.Sent], not when their stream is done
	// with them.
	Acknowledged bool
	// Work returns when work that starts at a given time and takes a given time is done, on a rank whose processor does
	// other things too, more than math.MaxInt64 where that is too late. It must be safe for different ranks at the same
	// time. nil: when that time has passed.
	Work func(rank uint32, start, length uint64) uint64
}

// Engine replays a program: it keeps dependencies, streams, and the matching of sends and receives, and leaves the way
// of the messages to a Network. docs/backends/loggops.md states its rules under "strict".
//
// Every rank has a queue of its own events, and runs alone from one event to the next until it might hear from another,
// which is the network's lookahead after the earliest event of all. Events of a rank at the same time come in this
// order: those of the network, by the number of the message; then its own, in the order in which they were scheduled.
// (Without lookahead, ranks take turns within a moment, and what one then sends another at the same moment comes after
// what that one did in its turn. When no rank has anything left to do at that moment the fabric has its turn, and after it
// the ranks again for which that scheduled something at the same moment.) So the result does not depend on the order in which ranks run, and ranks may run at the
// same time.
type Engine struct {
	p        *Program
	host     Host
	network  Network
	timeline Timeline
	progress func(ops int64) // nil, or called now and then with how many more ops ran
	threads  int
	busy     int // see the constant; 0: threads are used as soon as may be, and kept

	totals counts
	err    error // the first that ended the run

	ranks    []rank    // and the fabric, behind the ranks
	matchers []Matcher // of each rank

	number []uint32 // of each message by its send, its place among those of its pair of ranks; nil where order is certain
	sentAt []uint64 // of each message by its send, when it entered the network; nil without a timeline
}

// NewEngine returns an engine that will run p over the network, on at most so many threads; with a timeline, on one.
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

// SetProgress makes the engine call progress, from one thread, now and then with how many more ops ran.
func (e *Engine) SetProgress(progress func(ops int64)) {
	e.progress = progress
}

// Fabric returns the place of network events that belong to no rank: the shared state of the network.
func (e *Engine) Fabric() uint32 {
	return uint32(e.p.Ranks())
}

// never is the time of the next event of a rank that has none.
const never = math.MaxUint64

// ErrTooLong ends a run whose clock leaves the range of dag.Time.
var ErrTooLong = errors.New("the simulated time exceeds 106 days, the longest that fits into 64 bits of picoseconds")

// Run replays the program from start to end.
func (e *Engine) Run() (*Outcome, error) {
	begin := Actor{e: e}
	for r := range e.p.Ranks() {
		begin.begin(uint32(r))
	}
	if e.err = begin.err; e.err == nil {
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

// unended returns the sends and receives that started and did not end.
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

// leavesEnd reports whether the end of a send is the network's to say.
func (e *Engine) leavesEnd(send *Op) bool {
	return e.host.Acknowledged || send.Size > e.host.Rendezvous
}
