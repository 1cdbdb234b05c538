// This file is the coupling of ranks to the network as ATLAHS has it (spcl/atlahs, commit 8837294). Its engine counts
// nanoseconds, rounded down, and its sends and receives both end when the sender has the last acknowledgment and the
// receive is there. Its order among ops of one nanosecond is that of its heap and its hash table, which decides the results
// where messages compete, so both are as libstdc++ has them.

package packet

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	simevent "github.com/tracedag/tracedag/sim/event"
)

// atlahs replays a program whose unit is the nanosecond.
type atlahs struct {
	p        *sim.Program
	n        *network
	hosts    Placement
	overhead uint64 // ns, that a send delays calcs of its stream
	timeline sim.Timeline
	progress sim.Progress

	queue    simevent.StdHeap // what is to be looked at once the network has reached its time, in ns
	matchers []sim.Matcher
	streams  []int      // of each rank, where the clocks of its streams begin
	nics     []int      // and those of its NICs
	free     []uint64   // of each stream, when it is free, ns
	sends    []uint64   // of each NIC, when it can send again
	recvs    []uint64   // and receive again
	changed  rankSet    // ranks at which something has happened since the agenda was filled last
	ready    [][]uint32 // of each rank, ops that wait for nothing more and are not on the agenda

	inFlight    int  // messages that are under way
	running     int  // calcs and alarms of which the network has not said that they are over
	morePending bool // the network has more to do at the present time
	gap         uint64

	messages int64
	bytes    uint64
	sentAt   []uint64 // of each message, when it was handed over; nil without a timeline
}

// What an entry of the agenda is about.
const (
	opStart        uint32 = iota // an op
	calcEnd                      // a calc
	messageArrival               // a message
	kindShift      = 29
)

// What an event of the network is about.
const (
	calcTimer uint32 = iota
	wakeTimer
)

// The replay's own bits of Op.Flags.
const (
	opStarted uint8 = 1 << 7
	opEnded   uint8 = 1 << 6
)

// noAlarm says that the network need not return control at a given time.
const noWake = math.MaxUint64

func runATLAHS(p *sim.Program, n *network, o *Options) (*sim.Outcome, error) {
	s := &atlahs{
		p: p, n: n, hosts: o.Placement, overhead: uint64(o.Params.Coupling.Overhead / dag.Nanosecond), timeline: o.Timeline,
		progress: sim.Progress{Tell: o.Progress}, matchers: make([]sim.Matcher, p.Ranks()), changed: newRankSet(p.Ranks()),
		ready: make([][]uint32, p.Ranks()),
	}
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
	s.progress.Report()
	return s.outcome(), nil
}

func (s *atlahs) schedule(t uint64, what, i uint32) {
	s.queue.Push(simevent.StdEvent{Time: t, Payload: what<<kindShift | i})
}

// run works off what is due on the agenda, then lets the network run until it returns control, and so on.
func (s *atlahs) run() {
	for len(s.queue) > 0 || s.inFlight > 0 || s.running > 0 {
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
					return // packets were lost, and nobody sends them again
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

// fill puts the ops that wait for nothing more on the agenda, and returns whether there were any.
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

// simulate lets the network run until a message or calc is over or, unless that is noAlarm, until a time in ns. It returns
// false if nothing was left to do.
func (s *atlahs) simulate(until uint64) bool {
	if until != noWake {
		s.running++
		s.n.at(max(s.n.now, until*1000), driverEvent, wakeTimer)
	}
	s.n.run(math.MaxInt64)
	s.morePending = s.n.stop && s.n.queue.Len() > 0 && s.n.queue.Next() == s.n.now
	return s.n.stop
}

// event is how the network returns control when a calc is over or at a time that was asked for.
func (s *atlahs) event(event, uint32) {
	s.running--
	s.n.stop = true
}

func (s *atlahs) lastByteSent(uint32) {}
func (s *atlahs) delivered(uint32)    {}

// acknowledged is how it returns control when a message is over.
func (s *atlahs) acknowledged(f uint32) {
	s.inFlight--
	s.schedule(s.now(), messageArrival, s.n.flows[f].message)
	s.n.stop = true
}

// handle does what is due on the agenda.
func (s *atlahs) handle(what uint32, now uint64) {
	i := what & (1<<kindShift - 1)
	op := &s.p.Ops[i]
	switch what >> kindShift {
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

// calc begins a calc if its stream is free. One of no time takes a nanosecond, and so do messages to oneself.
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
	*free = now + length
	s.begin(i, op)
	s.schedule(*free, calcEnd, i)
	s.running++
	s.n.at(s.n.now+length*1000, driverEvent, calcTimer)
	if s.timeline != nil {
		s.timeline.Span(sim.Span{Kind: sim.CalcSpan, Rank: op.Rank, Stream: uint32(op.Stream), Op: i, Start: now, End: *free})
	}
}

// send hands a message to the network if the NIC has been idle for long enough since the last one: for as long as all its
// packets and one more take at 0.04 ns a byte, whatever the network.
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
	from, to := s.hosts.endpoints(op)
	f := s.n.openFlow(from, to, i, uint32(len(s.n.records)+1), size)
	s.n.at(s.n.now, flowStart, f)
	if s.sentAt != nil {
		s.sentAt[i] = now
	}
}

// arrive has a message meet its receive. If that is there and its stream is busy, both try again later, the receive behind
// those of the same source and tag that were posted since.
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

// meetLate has a receive take a message that waited for it.
func (s *atlahs) completeLate(i, m uint32, now uint64) {
	recv := &s.p.Ops[i]
	nic := max(*s.nic(s.sends, recv.Rank, recv), now)
	s.raiseClocks(s.p.Ops[m].Rank, recv, nic+s.overhead, nic)
	s.complete(i, m, now)
}

// lift has a sender's stream and NIC, those of the op named, be busy until given times at least.
func (s *atlahs) raiseClocks(sender uint32, named *sim.Op, stream, nic uint64) {
	free, gap := s.stream(sender, named), s.nic(s.sends, sender, named)
	*free, *gap = max(*free, stream), max(*gap, nic)
}

// meet ends a receive and the send of its message.
func (s *atlahs) complete(i, m uint32, now uint64) {
	send, recv := &s.p.Ops[m], &s.p.Ops[i]
	if s.timeline != nil {
		s.timeline.Transfer(sim.Transfer{Source: send.Rank, Target: recv.Rank, Send: m, Recv: i, Start: s.sentAt[m], End: now,
			Arrived: now, Bytes: send.Size})
	}
	s.end(m, send)
	s.end(i, recv)
}

func (s *atlahs) begin(i uint32, op *sim.Op) {
	op.Flags |= opStarted
	s.progress.Ran()
	s.changed.add(op.Rank)
	s.release(s.p.StartDependents(i))
}

func (s *atlahs) end(i uint32, op *sim.Op) {
	op.Flags |= opEnded
	s.changed.add(op.Rank)
	s.release(s.p.Dependents(i))
}

func (s *atlahs) release(ops []uint32) {
	for _, d := range ops {
		op := &s.p.Ops[d]
		if op.Waits--; op.Waits == 0 {
			s.ready[op.Rank] = append(s.ready[op.Rank], d)
		}
	}
}

// stream returns the clock that a rank has for the stream of an op, which may be another rank's.
func (s *atlahs) stream(rank uint32, op *sim.Op) *uint64 {
	return &s.free[s.streams[rank]+int(op.Stream)]
}

// nic returns the clock that a rank has for the NIC of an op.
func (s *atlahs) nic(clocks []uint64, rank uint32, op *sim.Op) *uint64 {
	return &clocks[s.nics[rank]+int(op.NIC)]
}

func (s *atlahs) outcome() *sim.Outcome {
	ranks := s.p.Ranks()
	out := &sim.Outcome{
		Finish: make([]uint64, ranks), Events: s.progress.Ops, Messages: s.messages, Bytes: int64(s.bytes),
		Ran: s.p.Ran(s.progress.Ops, opStarted),
	}
	out.Unexpected, out.Posted = sim.Leftovers(s.matchers)
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
