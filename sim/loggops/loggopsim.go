package loggops

import (
	"math"
	"math/bits"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// loggopsim reproduces spcl/LogGOPSim (commit 76451de) with faster data structures. The reference returns an op or
// message whose clock is busy to the queue again and again; here it waits at the clock (see clockLines). The reference
// searches lists of receives and messages; here a hash table finds them (sim.Matcher). If the conditions of a data
// structure are not met, loggopsim uses the reference's method.
type loggopsim struct {
	reference
	ops      []sim.Op // of the program, unless it is folded
	folded   *sim.Folded
	starts   bool // some op waits for the start of another
	queue    event.Wheel
	grain    uint       // of the queue
	prefetch bool       // see prefetchNext
	windowed bool       // the ops are not all in memory: every event in the queue holds its op
	plain    bool       // neither watched nor prefetch
	direct   bool       // all events go into the queue, which needs no more: neither windowed nor a shard
	shard    *shard     // the shard that this is part of; nil: the replay is not divided
	lines    clockLines // nil: events return to the queue

	matchers []sim.Matcher // by host; nil: search the lists

	unexpected []sim.List // by host: waiting messages
	posted     []sim.List // by host: waiting receives
}

func runLogGOPSim(p *sim.Program, n nanoseconds, o Options) (*outcome, error) {
	s, err := newLogGOPSim(p, n, o)
	if err != nil {
		return nil, err
	}
	s.begin()
	if err := p.Failed(); err != nil {
		return nil, err
	}
	if o.Threads > 1 && s.divisible() {
		err = s.replayOn(o.Threads, &sim.ThreadTuner{
			MinEvents: minDrawn, MinSpeedup: minSpeedup, FirstRounds: firstRounds,
		})
	} else {
		err = s.finish()
	}
	if err != nil {
		return nil, err
	}
	return s.outcome(s.unmatched()), nil
}

// mostGrain limits the length of a bucket.
const mostGrain = 20

func newLogGOPSim(p *sim.Program, n nanoseconds, o Options) (*loggopsim, error) {
	r, err := newReference(p, n, o)
	if err != nil {
		return nil, err
	}
	s := &loggopsim{reference: *r, starts: p.WaitsForStarts(), grain: grain(p, n)}
	s.queue = *event.NewWheel(s.grain)
	if p.Plain {
		s.matchers = make([]sim.Matcher, p.Ranks())
		for host := range s.matchers {
			s.matchers[host] = sim.NewMatcher(p)
		}
	} else {
		s.unexpected, s.posted = newLists(p.Ranks()), newLists(p.Ranks())
	}
	if clocksAdvance(p, n, r.noise) {
		s.lines = newClockLines(p, &r.clock)
	} else {
		s.watched = true
	}
	if s.timeline != nil || s.watched || s.matchers == nil {
		p.Unfold()
	}
	s.ops, s.folded = p.Ops, p.Folded()
	s.prefetch, s.windowed = p.Ranks() >= prefetchRanks && s.folded == nil, p.Windowed()
	s.plain = !s.prefetch && !s.watched
	s.direct = !s.windowed
	return s, nil
}

// grain returns the grain of the event queue. The near buckets cover a typical calc and a typical message, and a bucket
// has a few events if each rank has a few in that time. Ranks that wait for each other have their events at almost the
// same time, so a bucket is not longer than the delay of a short message either. All were found by measurement.
func grain(p *sim.Program, n nanoseconds) uint {
	const nearBuckets, perRank = 6000, 8
	sends := float64(max(1, p.Sends))
	calcs := max(1, float64(p.NumOps())-2*sends)
	typical := float64(p.CalcTime)/calcs + float64(n.L) + 2*float64(n.o) + float64(n.g) +
		float64(p.SendBytes)/sends*float64(n.G)
	buckets := max(1, float64(p.Ranks()/perRank), typical/float64(max(1, n.o+n.L)))
	bucket := typical / min(nearBuckets, buckets)
	const middle = math.Sqrt2 / 2 // between two powers of two
	return uint(min(bits.Len64(uint64(min(bucket*middle, math.MaxUint32))), mostGrain))
}

// begin queues the ops that are ready at the start.
func (s *loggopsim) begin() {
	for host := range s.p.Ranks() {
		ready := s.roots(host)
		ops, delta := s.opsOf(uint32(host))
		sortByType(ready, ops, delta)
		for _, i := range ready {
			s.draw(0, i)
		}
	}
}

// ref is an op of the replay.
type ref struct {
	*sim.Op        // in a folded program only its constant part, see [sim.Folded.Find]
	flags   *uint8 // has the bits of Op.Flags that belong to the replay
	host    uint32 // its rank
}

// ref returns op i.
func (s *loggopsim) ref(i uint32) ref {
	if f := s.folded; f != nil {
		op, host := f.Find(i)
		return ref{op, &f.State[i], host}
	}
	op := &s.ops[i]
	return ref{op, &op.Flags, op.Rank}
}

// refOf returns op i of a host.
func (s *loggopsim) refOf(i, host uint32) ref {
	if f := s.folded; f != nil {
		ops, delta := f.Ops(host)
		return ref{&ops[i+delta], &f.State[i], host}
	}
	op := &s.ops[i]
	return ref{op, &op.Flags, host}
}

// opsOf returns an array with the ops of a host: op i is at index i+delta.
func (s *loggopsim) opsOf(host uint32) (ops []sim.Op, delta uint32) {
	if s.folded != nil {
		return s.folded.Ops(host)
	}
	return s.ops, 0
}

// partner returns the other host of a send or receive, and its Op.Match.
func (s *loggopsim) partner(op ref) (host, match uint32) {
	if s.folded != nil {
		return s.folded.Partner(op.host, op.Op)
	}
	return uint32(op.Peer), op.Match
}

// length returns the length of a calc.
func (s *loggopsim) length(op ref) uint64 {
	if s.folded != nil {
		return s.folded.Length(op.host, op.Op)
	}
	return op.Size
}

// post is [sim.Matcher.Post] for receive i.
func (s *loggopsim) post(i uint32, op ref) uint32 {
	if s.folded != nil {
		from, match := s.folded.Partner(op.host, op.Op)
		return s.matchers[op.host].PostFrom(i, from, match)
	}
	return s.matchers[op.host].Post(i, op.Op)
}

// release is [sim.Program.Release] for op i.
func (s *loggopsim) release(ready []uint32, i uint32, op ref) []uint32 {
	if s.folded != nil {
		return s.folded.Release(ready, i, op.Op, op.host, hasRun)
	}
	return s.p.Release(ready, i, hasRun)
}

// prefetchAfter prefetches what follows op i of its rank.
func (s *loggopsim) prefetchAfter(i uint32, op ref) {
	if s.folded != nil {
		s.folded.Prefetch(i)
	} else {
		s.p.PrefetchOps(op.Op)
	}
}

// finish handles all remaining events and the events that they cause.
func (s *loggopsim) finish() error {
	for {
		if ended, err := s.handleSome(checkEvents); ended || err != nil {
			return err
		}
	}
}

// handleSome handles n events, or all if fewer remain. It reports whether none remained.
func (s *loggopsim) handleSome(n int) (ended bool, err error) {
	if err := sim.Interrupted(s.ctx); err != nil {
		return false, err
	}
	for range n {
		if s.queue.Empty() {
			return true, nil
		}
		e := s.queue.Pop()
		if !s.plain {
			s.prepare(e)
		}
		if err := s.handle(e); err != nil {
			return false, err
		}
		if s.windowed {
			s.p.Drop(e.Payload() &^ isMessage)
			if err := s.p.Failed(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// prepare does what events need before them unless the replay is plain.
func (s *loggopsim) prepare(e event.Event) {
	if s.prefetch {
		s.prefetchNext()
	}
	if s.watched {
		s.watchEvent(e)
	}
}

// watchEvent calls watch for an event.
func (s *loggopsim) watchEvent(e event.Event) {
	i := e.Payload() &^ isMessage
	s.watch(e.Time, i, s.place(e))
}

// prefetchRanks is the number of ranks from which prefetches are worth their time, since the state of all ranks exceeds
// the second-level cache.
const prefetchRanks = 1 << 15

// prefetchNext prefetches the op of an event soon to occur, and the state of the host of an earlier one.
func (s *loggopsim) prefetchNext() {
	if payload, ok := s.queue.Peek(5); ok {
		cpu.Prefetch(s.p.Ops, payload&^isMessage)
	}
	if payload, ok := s.queue.Peek(2); ok {
		op := &s.p.Ops[payload&^isMessage]
		host := op.Rank
		if payload&isMessage != 0 {
			host = uint32(op.Peer)
		}
		cpu.Prefetch(s.clock.times, uint32(s.clock.base(host)))
		if s.matchers != nil {
			cpu.Prefetch(s.matchers, host)
		}
	}
}

// handle handles an event.
func (s *loggopsim) handle(e event.Event) error {
	i := e.Payload() &^ isMessage
	var op ref // of s.ref, which is too large to be inlined
	if f := s.folded; f != nil {
		constant, host := f.Find(i)
		op = ref{constant, &f.State[i], host}
	} else {
		op = s.ref(i)
	}
	switch {
	case e.Payload()&isMessage != 0:
		return s.message(e, i, op)
	case op.Flags&sim.IsSend != 0:
		return s.send(e, i, op)
	case op.Flags&sim.IsRecv != 0:
		s.recv(e.Time, i, op)
		return nil
	}
	return s.calc(e, i, op)
}

// clocksAdvance reports whether clocks never go backwards. They go backwards if a message of 0 bytes has a negative
// cost, and on overflow.
func clocksAdvance(p *sim.Program, n nanoseconds, noise *noise) bool {
	const limit = math.MaxUint64 / 16
	for _, v := range []uint64{n.L, n.o, n.g, n.G, n.O} {
		if v > limit {
			return false
		}
	}
	back := n.G // the amount that a message of 0 bytes subtracts from the receiver's clock
	if n.G == 0 || n.O > 0 && n.O < n.G {
		back = n.O
	}
	if p.EmptySend && (n.o < n.O || n.g < n.G || n.o < back) {
		return false
	}
	hit, bounded := noise.most(max(p.LongestCalc, n.o))
	if !bounded {
		return false
	}
	latest := uint64(0) // an upper bound of all clocks
	for _, v := range [...][2]uint64{
		{p.SendBytes, n.G + n.O}, {p.Sends, 2*n.o + 2*n.g + n.L}, {p.CalcTime, 1}, {uint64(p.NumOps()) + p.Sends, hit},
	} {
		high, low := bits.Mul64(v[0], v[1])
		if high > 0 || low > limit {
			return false
		}
		latest += low
	}
	return latest <= limit
}

// draw queues an event under the next number.
func (s *loggopsim) draw(t uint64, payload uint32) {
	e := event.Event{Time: t, Key: s.sequence<<32 | uint64(payload)}
	s.sequence++
	if s.direct {
		s.queue.Push(e)
	} else {
		s.push(e)
	}
}

// push queues an event, or hands it to the shard if it is beyond the window.
func (s *loggopsim) push(e event.Event) {
	if s.shard != nil && e.Time >= s.shard.end {
		s.shard.later(e)
		return
	}
	if s.windowed {
		s.p.Hold(e.Payload() &^ isMessage)
	}
	s.queue.Push(e)
}

// flush queues ops of a host that became ready, at the time when their clocks are free.
func (s *loggopsim) flush(host uint32, ready []uint32) {
	if len(ready) == 0 {
		return
	}
	ops, delta := s.opsOf(host)
	if len(ready) == 1 {
		i := ready[0]
		op := &ops[i+delta]
		if s.prefetch {
			s.p.PrefetchDependents(i, op)
		}
		s.draw(s.free(host, op), i)
		return
	}
	sortByType(ready, ops, delta)
	for k, i := range ready {
		op := &ops[i+delta]
		if s.prefetch {
			s.p.PrefetchDependents(i, op)
		}
		t := s.free(host, op)
		if s.lines != nil && op.Flags&sim.IsRecv == 0 &&
			(k+1 < len(ready) && sameClocks(op, &ops[ready[k+1]+delta]) ||
				k > 0 && sameClocks(op, &ops[ready[k-1]+delta])) {
			s.drawInLine(t, i, s.refOf(i, host))
		} else {
			s.draw(t, i)
		}
	}
}

// free returns the time from which the clocks of an op of a host are free.
func (r *reference) free(host uint32, op *sim.Op) uint64 {
	c := &r.clock
	base := c.base(host)
	t := c.times[base+2*c.nics+int(op.Stream)]
	if op.Flags&sim.IsSend != 0 {
		t = max(t, c.times[base+2*int(op.NIC)])
	}
	return t
}

// sameClocks reports whether two ops of a host, both sends or both calcs, need the same clocks.
func sameClocks(a, b *sim.Op) bool {
	return (a.Flags^b.Flags)&(sim.IsSend|sim.IsRecv) == 0 && a.Stream == b.Stream &&
		(a.NIC == b.NIC || a.Flags&sim.IsSend == 0)
}

// flushBoth flushes the current host and the event's other host, the lower one first.
func (s *loggopsim) flushBoth(host, other uint32) {
	if other < host {
		s.flush(other, s.remote)
		s.flush(host, s.ready)
		return
	}
	s.flush(host, s.ready)
	if other != host {
		s.flush(other, s.remote)
	}
}

// started marks the start of op i at its start dependents, and returns those without further dependencies.
func (s *loggopsim) started(i uint32) []uint32 {
	ready := s.ready[:0]
	if !s.starts {
		return ready
	}
	for _, i := range s.p.StartDependents(i) {
		op := &s.ops[i]
		if op.Flags&hasRun != 0 {
			continue // see hasRun
		}
		op.Waits--
		if op.Waits == 0 {
			ready = append(ready, i)
		}
	}
	return ready
}

// ran records that an op runs.
func (s *loggopsim) ran(op ref) {
	*op.flags |= hasRun
	s.progress.Ran()
}

// The event handlers below call turn only for events that have waited or must wait, and what costs time only for noise
// and timelines behind a test: most events need none of these.

func (s *loggopsim) calc(e event.Event, i uint32, op ref) error {
	cpu, _, _ := s.clocks(op.host, op.Stream, op.NIC)
	var w *clockLine
	if run := true; *op.flags&opWaited != 0 || *cpu > e.Time {
		if w, run = s.turn(e, op, op.host, calcWaits, *cpu); !run {
			return nil
		}
	}
	end := e.Time + s.length(op)
	*cpu = end
	if s.noise != nil {
		noise, err := s.noiseOver(op.host, e.Time, end)
		if err != nil {
			return err
		}
		*cpu += noise
	}
	s.ran(op)
	s.prefetchAfter(i, op)
	ready := s.ready[:0]
	if s.starts {
		ready = s.started(i)
	}
	s.ready = s.release(ready, i, op)
	s.flush(op.host, s.ready)
	if w != nil {
		s.wakeNext(w, e.Time, *cpu)
	}
	if s.timeline != nil {
		s.span(sim.CalcSpan, op.host, op.Stream, i, e.Time, end)
	}
	s.p.Drop(i)
	return nil
}

func (s *loggopsim) send(e event.Event, i uint32, op ref) error {
	t := e.Time
	cpu, gs, _ := s.clocks(op.host, op.Stream, op.NIC)
	var w *clockLine
	if run, free := true, max(*cpu, *gs); *op.flags&opWaited != 0 || free > t {
		if w, run = s.turn(e, op, op.host, sendWaits, free); !run {
			return nil
		}
	}
	x := op.Size - 1
	busy := t + s.n.o + x*s.n.O
	*cpu = busy
	if s.noise != nil {
		noise, err := s.noiseOver(op.host, t, t+s.n.o)
		if err != nil {
			return err
		}
		*cpu += noise
	}
	*gs = t + s.n.g + x*s.n.G
	s.ran(op)
	s.prefetchAfter(i, op)
	s.sent(op.Op)
	s.depart(i, t)
	ready := s.ready[:0]
	if s.starts {
		ready = s.started(i)
	}
	s.draw(t+s.n.o+s.n.L, i|isMessage)
	eager := op.Size <= uint64(s.n.S)
	if eager {
		ready = s.release(ready, i, op)
	}
	s.ready = ready
	s.flush(op.host, ready)
	if w != nil {
		s.wakeNext(w, t, max(*cpu, *gs))
	}
	if s.timeline != nil {
		s.span(sim.SendSpan, op.host, op.Stream, i, t, busy)
		s.span(sim.NoiseSpan, op.host, op.Stream, i, busy, *cpu)
	}
	if eager {
		s.p.Drop(i)
	}
	return nil
}

func (s *loggopsim) recv(t uint64, i uint32, op ref) {
	s.ran(op)
	s.prefetchAfter(i, op)
	s.depart(i, t)
	s.ready = s.ready[:0]
	if s.starts {
		s.ready = s.started(i)
	}
	var m uint32
	if s.matchers != nil {
		m = s.post(i, op)
	} else {
		m = s.takeMessage(&s.unexpected[op.host], i, op.Op)
	}
	if m == sim.NoOp {
		s.flush(op.host, s.ready)
		return
	}
	s.remote = s.remote[:0]
	send := s.ref(m)
	if op.Size > uint64(s.n.S) {
		s.releaseSend(t, m, send, op.host, op.Op)
		if s.timeline != nil {
			s.transfer(m, i, true, t, t, op.Size)
		}
		if send.Size > uint64(s.n.S) { // otherwise it has ended before
			s.p.Drop(m)
		}
	}
	s.ready = s.release(s.ready, i, op)
	s.flushBoth(op.host, send.host)
	if s.timeline != nil {
		s.span(sim.RecvSpan, op.host, op.Stream, i, t, t+s.n.o)
	}
	s.p.Drop(m)
	s.p.Drop(i)
}

// message handles the arrival of the message of send m. It uses the receiving host's clocks of the send's stream and
// NIC.
func (s *loggopsim) message(e event.Event, m uint32, send ref) error {
	t := e.Time
	host, match := s.partner(send)
	cpu, _, gr := s.clocks(host, send.Stream, send.NIC)
	var w *clockLine
	if run, free := true, max(*cpu, *gr); *send.flags&messageWaited != 0 || free > t {
		if w, run = s.turn(e, send, host, messageWaits, free); !run {
			return nil
		}
	}
	x := send.Size - 1
	received := t + s.n.o + max(x*s.n.O, x*s.n.G)
	*cpu = received
	if s.noise != nil {
		noise, err := s.noiseOver(host, t, t+s.n.o)
		if err != nil {
			return err
		}
		*cpu += noise
	}
	*gr = t + s.n.g + x*s.n.G
	var i uint32
	if s.matchers != nil {
		i = s.matchers[host].ArriveFrom(m, send.host, match)
	} else {
		i = s.takeReceive(&s.posted[host], m, send.Op)
	}
	if i == sim.NoOp {
		s.arrivedEarly(m, send.Op, t, t+max(x*s.n.O, x*s.n.G))
		if w != nil {
			s.wakeNext(w, t, max(*cpu, *gr))
		}
		return nil
	}
	if send.Size > uint64(s.n.S) {
		s.ready, s.remote = s.ready[:0], s.remote[:0]
		s.releaseSend(t, m, send, host, send.Op)
		s.ready = s.release(s.ready, i, s.refOf(i, host))
		s.flushBoth(host, send.host)
	} else {
		s.ready = s.release(s.ready[:0], i, s.refOf(i, host))
		s.flush(host, s.ready)
	}
	if w != nil {
		s.wakeNext(w, t, max(*cpu, *gr))
	}
	if s.timeline != nil {
		s.transfer(m, i, false, t, t+x*s.n.G-x*s.n.O, send.Size)
		s.span(sim.RecvSpan, host, send.Stream, i, t+x*s.n.G-x*s.n.O, received)
		s.span(sim.NoiseSpan, host, send.Stream, i, received, *cpu)
	}
	if send.Size > uint64(s.n.S) {
		s.p.Drop(m)
	}
	s.p.Drop(m)
	s.p.Drop(i)
	return nil
}

// releaseSend ends the rendezvous of send m, which host matched at time t. It advances the sender's clocks of the
// stream and NIC of named.
func (s *loggopsim) releaseSend(t uint64, m uint32, send ref, host uint32, named *sim.Op) {
	if send.host == host {
		s.ready = s.release(s.ready, m, send)
	} else {
		s.remote = s.release(s.remote, m, send)
	}
	cpu, gs, _ := s.clocks(send.host, named.Stream, named.NIC)
	*cpu, *gs = max(*cpu, t), max(*gs, t)
}

// takeMessage is [sim.Matcher.Post] with a linear search.
func (s *loggopsim) takeMessage(w *sim.List, i uint32, recv *sim.Op) uint32 {
	prev := uint32(sim.NoOp)
	for m := w.Head; m != sim.NoOp; prev, m = m, s.p.Ops[m].Link() {
		if s.fits(recv, &s.p.Ops[m]) {
			w.Remove(s.p.Ops, m, prev)
			return m
		}
	}
	s.posted[recv.Rank].Put(s.p.Ops, i)
	return sim.NoOp
}

// takeReceive is [sim.Matcher.Arrive] with a linear search.
func (s *loggopsim) takeReceive(w *sim.List, m uint32, send *sim.Op) uint32 {
	prev := uint32(sim.NoOp)
	for i := w.Head; i != sim.NoOp; prev, i = i, s.p.Ops[i].Link() {
		if s.fits(&s.p.Ops[i], send) {
			w.Remove(s.p.Ops, i, prev)
			return i
		}
	}
	s.unexpected[send.Peer].Put(s.p.Ops, m)
	return sim.NoOp
}

// fits reports whether a receive matches the message of a send. In the reference, both sides may have the any-tag. The
// reference has neither communicators nor lowered collectives; for these, the engine's rules apply.
func (r *reference) fits(recv, send *sim.Op) bool {
	if recv.Flags&sim.AnySource == 0 && uint32(recv.Peer) != send.Rank {
		return false
	}
	if (recv.Flags|send.Flags)&sim.AnyTag == 0 {
		return recv.Match == send.Match
	}
	return r.p.Comm(recv) == r.p.Comm(send) && (recv.Flags|send.Flags)&sim.Internal == 0
}

// unmatched returns the messages and receives without a partner, by host, in the order in which they started to wait.
func (s *loggopsim) unmatched() (unexpected, posted [][]uint32) {
	if s.matchers == nil {
		for host := range s.p.Ranks() {
			unexpected, posted = append(unexpected, s.list(s.unexpected[host])), append(posted, s.list(s.posted[host]))
		}
		return unexpected, posted
	}
	unexpected, posted = make([][]uint32, len(s.matchers)), make([][]uint32, len(s.matchers))
	for host := range s.matchers {
		unexpected[host], posted[host] = s.matchers[host].Unmatched()
		s.p.Numbers(unexpected[host])
		s.p.Numbers(posted[host])
	}
	return unexpected, posted
}
