package sim

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/sim/event"
)

// Uniform are the times of a network and its hosts, in picoseconds, if they are the same for all messages but for the
// bytes. A rank has one NIC, which sends one message at a time and receives one at a time. A message occupies the NIC
// at both ends for Gap, plus PerByte for each byte beyond the first, and its bytes travel for Latency.
type Uniform struct {
	Send, Receive uint64 // for which a send or receive occupies its stream
	Latency, Gap  uint64 // not 0
	PerByte       uint64
}

// uniformRun replays a folded program over a uniform network, with the results of an Actor that calls a Network of
// these times. It applies to ranks of one stream that send eager messages only; see newUniformRun. All that an event
// needs is in the state of its rank, so this takes about half the time.
//
// The time of an op's latest dependency matters between the ends of its first and last one only, and that of a message
// from its arrival to its receive, so a rank has few at a time. They are in the state of the rank, and those for which
// that has no room in more.
type uniformRun struct {
	Uniform
	p     *Program
	f     *Folded
	ranks []uniformRank

	// By op: the latest time of its dependencies so far; of a message that waits for its receive, when its last byte
	// arrives; or 0. It has the times that are not in uniformRank only; nil if there were none.
	more   atomic.Pointer[[]uint64]
	making sync.Mutex
}

// uniformRank is the state of a rank in a uniformRun.
type uniformRank struct {
	own      []event.Event // its own events from next on, ascending, but those of late
	next     uint32        // index in own
	sequence uint32        // numbers its own events
	posted   uint32        // number of posted receives without a message
	delta    uint32        // see Folded.Ops
	free     uint64        // the time from which its stream is free
	send     uint64        // the time from which its NIC can send
	receive  uint64        // the time from which its NIC can receive
	finish   uint64        // the latest end of an op so far
	arrivals event.Queue   // messages whose first byte arrives: the number of the send, and in the payload its rank
	peers    []uint32      // see foldedRank
	late     *event.Queue  // own events that belong far before the last one of own; nil if there were none
	matcher  Matcher

	lastPost uint32 // the receive that was posted last
	waiting  uint32 // number of elements of recent ever used
	postedAt uint64 // when lastPost was posted

	partial [4]opTime // by op modulo 4: an op that waits for more dependencies, and the time of the latest so far
	recent  [4]opTime // the last messages that arrived without a receive, and when their last bytes arrive

	own0, arrivals0 [4]event.Event
}

// opTime is a time of an op.
type opTime struct {
	op   uint32 // plus 1; 0: none
	time uint64
}

// newUniformRun returns nil if the program needs an Actor: it is not folded, a message waits for its receive, a rank
// has several streams or NICs, or a time could be out of range.
func newUniformRun(p *Program, h *Host) *uniformRun {
	u := h.Uniform
	if u == nil || p.folded == nil || p.Streams > 1 || p.NICs > 1 || p.LargestMessage > h.Rendezvous {
		return nil
	}
	// No op or message takes any of its times more than once, so no time exceeds their sum.
	sum := float64(p.CalcTime) + float64(p.Sends)*(float64(u.Send)+float64(u.Receive)+float64(u.Latency)+
		2*float64(u.Gap)) + 2*float64(p.SendBytes)*float64(u.PerByte)
	if sum >= math.MaxInt64/2 {
		return nil
	}
	r := &uniformRun{Uniform: *u, p: p, f: p.folded, ranks: make([]uniformRank, p.Ranks())}
	for rank := range r.ranks {
		s := &r.ranks[rank]
		s.own = s.own0[:0]
		s.arrivals.UseBuffer(s.arrivals0[:])
		s.peers = r.f.ranks[rank].peers
		_, s.delta = r.f.Ops(uint32(rank))
		s.matcher = NewMatcher(p)
		for _, i := range p.Roots(rank) {
			s.schedule(0, opReady, i)
		}
	}
	return r
}

// earliest returns the time of the next event of the rank, or never.
func (s *uniformRank) earliest() uint64 {
	return min(s.nextOwn(), s.arrivals.Next())
}

// nextOwn returns the time of the next own event of the rank, or never.
func (s *uniformRank) nextOwn() uint64 {
	t := uint64(never)
	if int(s.next) < len(s.own) {
		t = s.own[s.next].Time
	}
	if s.late != nil {
		t = min(t, s.late.Next())
	}
	return t
}

// mostShifted is the largest number of own events that a new one may precede in uniformRank.own.
const mostShifted = 8

// schedule adds an own event, which follows all others of its time.
func (s *uniformRank) schedule(t uint64, kind, i uint32) {
	ev := event.Event{Time: t, Key: uint64(s.sequence)<<32 | uint64(kind<<opBits|i)}
	s.sequence++
	n := len(s.own)
	if n == int(s.next) {
		s.own, s.next, n = s.own[:0], 0, 0
	} else if n == cap(s.own) && s.next > 0 {
		n = copy(s.own, s.own[s.next:])
		s.own, s.next = s.own[:n], 0
	}
	if n > int(s.next) && s.own[n-1].Time > t {
		s.insert(ev)
		return
	}
	s.own = append(s.own, ev)
}

// insert adds an own event that precedes others.
func (s *uniformRank) insert(ev event.Event) {
	at := len(s.own)
	first := max(int(s.next), at-mostShifted)
	for at > first && s.own[at-1].Time > ev.Time {
		at--
	}
	if at == first && first > int(s.next) {
		if s.late == nil {
			s.late = new(event.Queue)
		}
		s.late.Push(ev)
		return
	}
	s.own = append(s.own, event.Event{})
	copy(s.own[at+1:], s.own[at:])
	s.own[at] = ev
}

// pop removes and returns the next own event. There must be one.
func (s *uniformRank) pop() event.Event {
	if s.late != nil && s.late.Len() > 0 {
		if top, own := s.late.Top(), s.own[s.next]; top.Time < own.Time || top.Time == own.Time && top.Key < own.Key {
			return s.late.Pop()
		}
	}
	ev := s.own[s.next]
	s.next++
	return ev
}

// run handles the events of a rank of a group before the time until. It returns the time of the rank's next event.
//
// Own events are handled ahead of time while no posted receive waits for a message. The result is the same, because
// nothing else can schedule own events of the rank before these: messages that arrive meanwhile wait for a receive, and
// the stream and the sending side of the NIC know nothing of them. A receive that is posted ahead ends this, since its
// message may arrive before that time. The message is then received at the time of the post at the earliest, before the
// remaining own events, which are not earlier.
func (u *uniformRun) run(g *group, rank uint32, until uint64) (next uint64) {
	s := &u.ranks[rank]
	for ahead := 0; ; {
		own, arrival := s.nextOwn(), s.arrivals.Next()
		switch {
		case own < min(until, arrival):
		case s.posted == 0 && own != never && ahead < mostAhead:
			ahead++
		case arrival < until:
			u.arrive(g, s, rank, s.arrivals.Pop())
			continue
		default:
			return min(own, arrival)
		}
		g.actor.totals.events++
		ev := s.pop()
		if i := ev.Payload(); i>>opBits == opReady {
			u.start(g, s, rank, i, ev.Time)
		} else {
			u.take(g, s, rank, i&opMask, ev.Time)
		}
	}
}

// arrive handles the arrival of the first byte of a message.
func (u *uniformRun) arrive(g *group, s *uniformRank, rank uint32, ev event.Event) {
	g.actor.totals.events++
	m, from := uint32(ev.Key>>32), ev.Payload()
	op := &u.f.ops[m+u.ranks[from].delta]
	match := op.Match
	if matches := u.f.ranks[from].matches; matches != nil {
		match = matches[match]
	}
	first, bytes := max(ev.Time, s.receive), u.bytes(op.Size)
	last := first + bytes
	s.receive = last + u.Gap
	i := s.matcher.ArriveFrom(m, from, match)
	if i == NoOp {
		u.wait(s, m, last, ev.Time)
		return
	}
	s.posted--
	now := ev.Time
	if i == s.lastPost { // others were not posted ahead of time
		now = max(now, s.postedAt)
	}
	u.takeAt(g, s, rank, i, last, now)
}

// wait stores when the last byte of a message arrives, for which no receive is posted. Once that is past, nobody asks.
func (u *uniformRun) wait(s *uniformRank, m uint32, last, now uint64) {
	at := &s.recent[s.waiting%uint32(len(s.recent))]
	if at.op > 0 && at.time > now {
		u.store(at.op-1, at.time)
	}
	*at = opTime{m + 1, last}
	s.waiting++
}

// arrival returns when the last byte of a message arrives that waited for its receive, or an earlier time than now.
func (u *uniformRun) arrival(s *uniformRank, m uint32, now uint64) uint64 {
	if s.receive <= now { // so have those of all messages
		return 0
	}
	for k := range s.recent {
		if s.recent[k].op == m+1 {
			return s.recent[k].time
		}
	}
	return u.stored(m)
}

// store stores the time of an op in more, unless it has a later one.
func (u *uniformRun) store(i uint32, t uint64) {
	more := u.more.Load()
	if more == nil {
		u.making.Lock()
		defer u.making.Unlock()
		if more = u.more.Load(); more == nil {
			times := cpu.InHugePages(make([]uint64, u.p.NumOps()))
			more = &times
			u.more.Store(more)
		}
	}
	(*more)[i] = max((*more)[i], t)
}

// stored returns the time of an op in more, or 0.
func (u *uniformRun) stored(i uint32) uint64 {
	if more := u.more.Load(); more != nil {
		return (*more)[i]
	}
	return 0
}

// bytes returns the time of all bytes of a message but the first.
func (u *uniformRun) bytes(size uint64) uint64 {
	return (max(size, 1) - 1) * u.PerByte
}

// takeAt makes receive i take its message when that has arrived, not before the time now.
func (u *uniformRun) takeAt(g *group, s *uniformRank, rank, i uint32, last, now uint64) {
	switch {
	case last <= now:
		u.take(g, s, rank, i, now)
	case s.posted > 0 && s.nextOwn() == never && !u.readies(s, rank, i):
		g.actor.totals.events++
		u.take(g, s, rank, i, last) // later messages arrive later, so nothing precedes it
	default:
		s.schedule(last, recvHere, i)
	}
}

// take makes receive i take its message at time t.
func (u *uniformRun) take(g *group, s *uniformRank, rank, i uint32, t uint64) {
	g.actor.totals.open--
	u.f.State[i] |= hasEnded
	s.free = max(t, s.free) + u.Receive
	u.end(s, rank, i, &u.f.ops[i+s.delta], s.free)
}

// start runs op i, whose dependencies are met, at time t.
func (u *uniformRun) start(g *group, s *uniformRank, rank, i uint32, t uint64) {
	op := &u.f.ops[i+s.delta]
	u.f.State[i] |= hasRun
	u.f.Prefetch(i)
	totals := &g.actor.totals
	totals.ops++
	switch {
	case op.Flags&IsSend != 0:
		totals.messages++
		totals.bytes += int64(op.Size)
		handed := max(t, s.free) + u.Send
		s.free = handed
		u.end(s, rank, i, op, handed)
		first := max(handed, s.send)
		s.send = first + u.Gap + u.bytes(op.Size)
		g.post(s.peers[op.Peer], event.Event{Time: first + u.Latency, Key: uint64(i)<<32 | uint64(rank)})
	case op.Flags&IsRecv != 0:
		totals.open++
		match := op.Match
		if matches := u.f.ranks[rank].matches; matches != nil {
			match = matches[match]
		}
		m := s.matcher.PostFrom(i, s.peers[op.Peer], match)
		if m == NoOp {
			s.lastPost, s.postedAt = i, t
			s.posted++
			return
		}
		u.takeAt(g, s, rank, i, u.arrival(s, m, t), t)
	default:
		length := u.f.Length(rank, op)
		if length > 0 { // a calc of length 0 only joins dependencies and occupies no stream
			t = max(t, s.free) + length
			s.free = t
		}
		u.end(s, rank, i, op, t)
	}
}

// end reports the end of op i at time t to its dependents.
func (u *uniformRun) end(s *uniformRank, rank, i uint32, op *Op, t uint64) {
	s.finish = max(s.finish, t)
	if op.first&listInOp != 0 {
		for near := op.first & inOpMask; near != 0; near >>= inOpBits {
			u.release(s, rank, i+near&farthestInOp, t)
		}
		return
	}
	u.f.eachInList(i, op, rank, func(d uint32) { u.release(s, rank, d, t) })
}

// release reports an end at time t to op d, which waits for it.
func (u *uniformRun) release(s *uniformRank, rank, d uint32, t uint64) {
	at := &s.partial[d%uint32(len(s.partial))]
	switch {
	case u.f.State[d]&waitsMask == 1:
		u.f.State[d]--
		fallthrough
	case u.f.releases(d, rank, 0):
		if at.op == d+1 {
			at.op, t = 0, max(t, at.time)
		}
		if more := u.more.Load(); more != nil {
			t = max(t, (*more)[d])
		}
		s.schedule(t, opReady, d)
	case at.op == d+1:
		at.time = max(at.time, t)
	case at.op == 0:
		*at = opTime{d + 1, t}
	default:
		u.store(d, t)
	}
}

// readies reports whether the end of receive i may make another op ready. An op may depend on it more than once.
func (u *uniformRun) readies(s *uniformRank, rank, i uint32) bool {
	op := &u.f.ops[i+s.delta]
	if op.first&listInOp == 0 {
		return true
	}
	for near := op.first & inOpMask; near != 0; near >>= inOpBits {
		if u.f.State[i+near&farthestInOp]&waitsMask <= nearInOp {
			return true
		}
	}
	return false
}

// nextOf returns the time of the next event of a rank, or never.
func (e *Engine) nextOf(rank int) uint64 {
	if e.uniform != nil {
		return e.uniform.ranks[rank].earliest()
	}
	return e.ranks[rank].queue.Next()
}

// runUniform is Run with a uniformRun.
func (e *Engine) runUniform() (*Outcome, error) {
	u := e.uniform
	if e.err = Interrupted(e.ctx); e.err == nil {
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
	matchers := make([]Matcher, e.p.Ranks())
	for r := range u.ranks {
		matchers[r], out.Finish[r] = u.ranks[r].matcher, u.ranks[r].finish
	}
	out.Unexpected, out.Posted = UnmatchedOf(matchers)
	if e.totals.open > 0 {
		e.p.Unfold()
		out.Unended = e.unended()
	}
	return out, nil
}
