// This file couples ranks to the network like ATLAHS (spcl/atlahs, commit 8837294). Its engine counts in nanoseconds,
// rounded down. A send and its receive both end when the sender has the last ACK and the receive is posted. A heap and
// a hash table define the order of ops of the same nanosecond, which affects results when messages compete. Both follow
// libstdc++.

package packet

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	simevent "github.com/tracedag/tracedag/sim/event"
)

// atlahs replays a program whose time unit is the nanosecond.
type atlahs struct {
	p        *sim.Program
	n        *network
	overhead uint64 // delay in ns that a send adds to calcs of its stream
	timeline sim.Timeline
	progress sim.Progress

	queue    simevent.StdHeap // ops and completions by time in ns
	matchers []sim.Matcher
	streams  []int      // by rank: index of its first stream in free
	nics     []int      // by rank: index of its first NIC in sends and recvs
	free     []uint64   // by stream: end of its last op in ns
	sends    []uint64   // by NIC: earliest next send in ns
	recvs    []uint64   // by NIC: earliest next receive in ns
	changed  rankSet    // ranks with activity since the last enqueueReady
	ready    [][]uint32 // by rank: ops without open dependencies that are not in queue

	dependents []uint32 // scratch space of end

	inFlight    int  // messages in flight
	running     int  // calcs and wake timers in the network
	morePending bool // the network has more events at the current time
	gap         uint64

	messages int64
	bytes    uint64
	sentAt   []uint64 // by send: time of its handover; by receive: of its post; nil without a timeline
}

// Kinds of entries in atlahs.queue.
const (
	opStart        uint32 = iota // op
	calcEnd                      // calc
	messageArrival               // message
	kindShift      = 29
)

// Indices of driver events.
const (
	calcTimer uint32 = iota
	wakeTimer
)

// Bits of Op.Flags used by the replay.
const (
	opStarted uint8 = 1 << 7
	opEnded   uint8 = 1 << 6
)

// latest is the latest time in ns within the range of the network, which counts in ps. A run beyond it fails.
const latest = math.MaxInt64/1000 - 1

// noWake is the wake time of a simulation without a wake timer.
const noWake = math.MaxUint64

func runATLAHS(p *sim.Program, n *network, o *Options) (*sim.Outcome, error) {
	s := &atlahs{
		p: p, n: n, overhead: uint64(o.Params.Coupling.Overhead / dag.Nanosecond),
		timeline: o.Timeline,
		matchers: make([]sim.Matcher, p.Ranks()), changed: newRankSet(p.Ranks()),
		ready: make([][]uint32, p.Ranks()),
	}
	s.progress.Func = sim.ProgressUntil(o.Context, o.Progress, func(err error) { n.err = err })
	var err error
	if s.streams, err = p.StreamClocks(); err != nil {
		return nil, err
	}
	if s.nics, err = p.NICClocks(); err != nil {
		return nil, err
	}
	s.free = make([]uint64, s.streams[p.Ranks()])
	s.sends, s.recvs = make([]uint64, s.nics[p.Ranks()]), make([]uint64, s.nics[p.Ranks()])
	if o.Timeline != nil {
		s.sentAt = make([]uint64, p.NumOps())
	}
	n.driver = s
	for rank := range s.matchers {
		s.matchers[rank] = sim.NewMatcher(p)
		for _, i := range p.Roots(rank) {
			s.schedule(0, opStart, i)
		}
	}
	s.run()
	if n.err != nil {
		return nil, n.err
	}
	s.progress.Report()
	return s.outcome(), nil
}

func (s *atlahs) schedule(t uint64, kind, i uint32) {
	s.queue.Push(simevent.StdEvent{Time: t, Payload: kind<<kindShift | i})
}

// run alternates between due entries of the queue and the network.
func (s *atlahs) run() {
	for s.n.err == nil && (len(s.queue) > 0 || s.inFlight > 0 || s.running > 0) {
		now := s.now()
		s.gap = noWake
		for !s.morePending && len(s.queue) > 0 && s.queue[0].Time <= now {
			s.handle(s.queue.Pop().Payload, now)
		}
		if s.enqueueReady(now) {
			continue
		}
		switch {
		case s.inFlight > 0 || s.running > 0:
			if !s.simulate(s.gap) && !s.morePending && (len(s.queue) == 0 || s.queue[0].Time > s.now()) {
				if len(s.queue) == 0 {
					return // packets were lost permanently
				}
				s.simulate(s.queue[0].Time)
			}
		case s.morePending:
			s.morePending = false
		case len(s.queue) > 0 && s.queue[0].Time > now:
			s.simulate(s.queue[0].Time)
		}
	}
}

// enqueueReady queues the ops without open dependencies, and reports whether there were any.
func (s *atlahs) enqueueReady(now uint64) bool {
	any := false
	for r := s.changed.first; r != noRank; r = s.changed.next[r] {
		for _, i := range s.ready[r] {
			s.schedule(now, opStart, i)
			any = true
		}
		s.ready[r] = s.ready[r][:0]
	}
	s.changed.clear()
	return any
}

func (s *atlahs) now() uint64 {
	return s.n.now / 1000
}

// simulate runs the network until a message or calc completes or, unless it is noWake, until a time in ns. It returns
// false if no event was left.
func (s *atlahs) simulate(until uint64) bool {
	if until != noWake {
		if until > latest {
			s.n.err = s.tooLong()
			return false
		}
		s.running++
		s.n.at(max(s.n.now, until*1000), driverEvent, wakeTimer)
	}
	s.n.run(math.MaxInt64)
	if !s.n.stop && s.n.err == nil && s.n.queue.Len() > 0 {
		s.n.err = s.tooLong()
	}
	s.morePending = s.n.stop && s.n.queue.Len() > 0 && s.n.queue.Next() == s.n.now
	return s.n.stop
}

// tooLong returns the error about a time that is out of range: that of the first op that runs or waits in the queue.
func (s *atlahs) tooLong() error {
	for i := range s.p.Ops {
		if s.p.Ops[i].Flags&(opStarted|opEnded) == opStarted {
			return s.p.TooLong(uint32(i))
		}
	}
	if len(s.queue) > 0 {
		return s.p.TooLong(s.queue[0].Payload & (1<<kindShift - 1))
	}
	return sim.ErrTooLong
}

// event stops the network when a calc or a wake timer ends.
func (s *atlahs) event(event, uint32) {
	s.running--
	s.n.stop = true
}

func (s *atlahs) lastByteSent(uint32) {}
func (s *atlahs) delivered(uint32)    {}

// acknowledged stops the network when a message is complete.
func (s *atlahs) acknowledged(f uint32) {
	s.inFlight--
	s.schedule(s.now(), messageArrival, s.n.flows[f].message)
	s.n.stop = true
}

// handle handles an entry of the queue.
func (s *atlahs) handle(entry uint32, now uint64) {
	i := entry & (1<<kindShift - 1)
	op := &s.p.Ops[i]
	switch entry >> kindShift {
	case calcEnd:
		s.end(i, op)
		return
	case messageArrival:
		s.arrive(i, op, now)
		return
	}
	switch {
	case !op.IsMessage() || uint32(op.Peer) == op.Rank:
		s.calc(i, op, now)
	case op.Flags&sim.IsSend != 0:
		s.send(i, op, now)
	default:
		s.begin(i, op)
		if m := s.matchers[op.Rank].Post(i, op); m != sim.NoOp {
			s.completeLate(i, m, now)
		}
	}
}

// calc starts a calc if its stream is free. A calc takes at least a nanosecond, and so does a message of a rank to
// itself.
func (s *atlahs) calc(i uint32, op *sim.Op, now uint64) {
	free := s.stream(op.Rank, op)
	if *free > now {
		s.schedule(*free, opStart, i)
		return
	}
	length := max(op.Size, 1)
	if op.IsMessage() {
		length = 1
	}
	if length > latest-now {
		s.n.err = s.p.TooLong(i)
		return
	}
	*free = now + length
	s.begin(i, op)
	s.schedule(*free, calcEnd, i)
	s.running++
	s.n.at(s.n.now+length*1000, driverEvent, calcTimer)
	if s.timeline != nil {
		s.span(sim.CalcSpan, i, op, now, *free)
	}
}

// send hands a message to the network if its NIC is free. A message occupies the NIC for the time of its packets plus
// one packet at 0.04 ns per byte, regardless of the network.
func (s *atlahs) send(i uint32, op *sim.Op, now uint64) {
	gap, free := s.nic(s.sends, op.Rank, op), s.stream(op.Rank, op)
	if *gap > now {
		s.schedule(max(*free, *gap), opStart, i)
		return
	}
	s.begin(i, op)
	s.changed.add(uint32(op.Peer))
	*free = now + s.overhead
	size := max(op.Size, 1)
	*gap = now + uint64(float64((packetCount(size, 4096)+1)*4160)*0.04)
	s.gap = *gap
	s.messages++
	s.bytes += size
	s.inFlight++
	if s.timeline != nil {
		s.span(sim.SendSpan, i, op, now, now)
	}
	from, to := s.n.ends.Of(op, i)
	f := s.n.openFlow(from, to, i, uint32(len(s.n.records)+1), size)
	s.n.at(s.n.now, flowStart, f)
}

// arrive matches a message with its receive. If the receive is posted and its stream is busy, both retry later; the
// receive then follows those of the same source and tag posted since.
func (s *atlahs) arrive(m uint32, send *sim.Op, now uint64) {
	host := uint32(send.Peer)
	i := s.matchers[host].Arrive(m, send)
	if i == sim.NoOp {
		return
	}
	recv := &s.p.Ops[i]
	free, nic := s.stream(host, recv), s.nic(s.recvs, host, send)
	if busy := max(*free, *nic); busy > now {
		s.schedule(busy, messageArrival, m)
		s.matchers[host].Post(i, recv)
		return
	}
	*free, *nic = now, now
	s.raiseClocks(send.Rank, send, now, now)
	s.complete(i, m, now)
}

// completeLate completes a message that arrived before its receive was posted.
func (s *atlahs) completeLate(i, m uint32, now uint64) {
	recv := &s.p.Ops[i]
	nic := max(*s.nic(s.sends, recv.Rank, recv), now)
	s.raiseClocks(s.p.Ops[m].Rank, recv, nic+s.overhead, nic)
	s.complete(i, m, now)
}

// raiseClocks raises the clocks of a sender's stream and NIC, those of the op named, to at least the given times.
func (s *atlahs) raiseClocks(sender uint32, named *sim.Op, stream, nic uint64) {
	free, gap := s.stream(sender, named), s.nic(s.sends, sender, named)
	*free, *gap = max(*free, stream), max(*gap, nic)
}

// complete ends a receive and the send of its message.
func (s *atlahs) complete(i, m uint32, now uint64) {
	send, recv := &s.p.Ops[m], &s.p.Ops[i]
	if s.timeline != nil {
		s.span(sim.WaitSpan, m, send, s.sentAt[m], now)
		s.span(sim.WaitSpan, i, recv, min(s.sentAt[i], now), now)
		s.span(sim.RecvSpan, i, recv, now, now)
		s.timeline.Transfer(sim.Transfer{Source: send.Rank, Target: recv.Rank, Send: m, Recv: i, Begun: s.sentAt[m],
			Start: s.sentAt[m], End: now, Arrived: now, Bytes: send.Size})
	}
	s.end(m, send)
	s.end(i, recv)
}

// span reports a span to the timeline.
func (s *atlahs) span(kind sim.SpanKind, i uint32, op *sim.Op, start, end uint64) {
	s.timeline.Span(sim.Span{Kind: kind, Rank: op.Rank, Stream: s.p.Stream(op), Op: i, Start: start, End: end})
}

func (s *atlahs) begin(i uint32, op *sim.Op) {
	if s.sentAt != nil {
		s.sentAt[i] = s.now()
	}
	op.Flags |= opStarted
	s.progress.Ran()
	s.changed.add(op.Rank)
	s.release(s.p.StartDependents(i))
}

func (s *atlahs) end(i uint32, op *sim.Op) {
	op.Flags |= opEnded
	s.changed.add(op.Rank)
	s.dependents = s.p.AppendDependents(s.dependents[:0], i)
	s.release(s.dependents)
}

func (s *atlahs) release(ops []uint32) {
	for _, d := range ops {
		op := &s.p.Ops[d]
		if op.Waits--; op.Waits == 0 {
			s.ready[op.Rank] = append(s.ready[op.Rank], d)
		}
	}
}

// stream returns a rank's clock of the stream of an op, which may be an op of another rank.
func (s *atlahs) stream(rank uint32, op *sim.Op) *uint64 {
	return &s.free[s.streams[rank]+int(op.Stream)]
}

// nic returns a rank's clock of the NIC of an op.
func (s *atlahs) nic(clocks []uint64, rank uint32, op *sim.Op) *uint64 {
	return &clocks[s.nics[rank]+int(op.NIC)]
}

func (s *atlahs) outcome() *sim.Outcome {
	ranks := s.p.Ranks()
	out := &sim.Outcome{
		Finish: make([]uint64, ranks), Events: s.progress.Ops, Messages: s.messages, Bytes: int64(s.bytes),
		Ran: s.p.Ran(s.progress.Ops, opStarted),
	}
	out.Unexpected, out.Posted = sim.UnmatchedOf(s.matchers)
	for rank := range ranks {
		for _, t := range s.free[s.streams[rank]:s.streams[rank+1]] {
			out.Finish[rank] = max(out.Finish[rank], t)
		}
	}
	for i := range s.p.Ops {
		if s.p.Ops[i].Flags&(opStarted|opEnded) == opStarted {
			out.Unended = append(out.Unended, uint32(i))
		}
	}
	return out
}
