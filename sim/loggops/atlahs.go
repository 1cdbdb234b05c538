package loggops

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// atlahs reproduces the LogGOPSim of spcl/atlahs (commit 8837294): exact matching only, events of equal time in the
// order of a binary heap without a tie rule, no cost per byte at the receiver.
type atlahs struct {
	*reference
	queue      event.StdHeap
	channel    []uint32 // by send or receive op: number of its (host, source, tag); nil in windows
	unexpected []sim.List
	posted     []sim.List
	from       []uint64 // by op: the latest end of its dependencies
	arrived    []uint64 // by send op: time at which its message became unexpected
	hosts      []uint32 // by channel

	// In windows, only channels where something waits have a number.
	numbers map[atlahsChannel]uint32
	unused  []uint32
}

// atlahsChannel identifies the messages that match the same receives. Wildcards are separate sources and tags that no
// message has.
type atlahsChannel struct {
	host   uint32
	source int32
	match  uint32
	anyTag bool
}

// channelOf returns the channel of an op; ok is false for a calc.
func channelOf(op *sim.Op) (c atlahsChannel, ok bool) {
	c = atlahsChannel{match: op.Match, anyTag: op.Flags&sim.AnyTag != 0}
	if c.anyTag {
		c.match = 0
	}
	switch {
	case op.Flags&sim.IsSend != 0:
		c.host, c.source = uint32(op.Peer), int32(op.Rank)
	case op.Flags&sim.IsRecv != 0:
		c.host, c.source = op.Rank, op.Peer
	default:
		return c, false
	}
	return c, true
}

func runATLAHS(p *sim.Program, n nanoseconds, o Options) (*outcome, error) {
	r, err := newReference(p, n, o)
	if err != nil {
		return nil, err
	}
	s := &atlahs{reference: r, from: p.ReleaseTimes(), arrived: make([]uint64, len(p.Ops))}
	if p.Windowed() {
		s.numbers = make(map[atlahsChannel]uint32)
	} else {
		s.number()
	}
	for host := range p.Ranks() {
		for _, i := range s.roots(host) {
			s.draw(0, i)
		}
	}
	g := n
	g.G = uint64(min(math.Ceil(max(n.GFloat, 0)), 1<<62))
	s.watched = !clocksAdvance(p, g, r.noise)
	aborted := ""
	if err := p.Failed(); err != nil {
		return nil, err
	}
	for handled := 0; len(s.queue) > 0 && aborted == ""; handled++ {
		if handled%checkEvents == 0 {
			if err := sim.Interrupted(o.Context); err != nil {
				return nil, err
			}
		}
		e := s.queue.Pop()
		i := e.Payload &^ isMessage
		op := &p.Ops[i]
		host := op.Rank
		if e.Payload&isMessage != 0 {
			host = uint32(op.Peer)
		}
		if s.watched {
			s.watch(e.Time, i, host)
		}
		var err error
		switch {
		case e.Payload&isMessage != 0:
			err = s.message(e, i, op)
		case op.Flags&sim.IsSend != 0:
			err = s.send(e, i, op)
		case op.Flags&sim.IsRecv != 0:
			aborted = s.recv(e.Time, i, op)
		default:
			err = s.calc(e, i, op)
		}
		if err = cmp.Or(err, p.Failed()); err != nil {
			return nil, err
		}
	}
	unexpected, posted := make([][]uint32, p.Ranks()), make([][]uint32, p.Ranks())
	channels, err := s.channels()
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		host := s.hosts[c]
		unexpected[host] = append(unexpected[host], s.list(s.unexpected[c])...)
		posted[host] = append(posted[host], s.list(s.posted[c])...)
	}
	result := s.outcome(unexpected, posted)
	result.Aborted = aborted
	return result, nil
}

// number numbers the channels in the order of their first ops.
func (s *atlahs) number() {
	numbers := make(map[atlahsChannel]uint32)
	s.channel = make([]uint32, s.p.NumOps())
	for i := range s.channel {
		k, ok := channelOf(&s.p.Ops[i])
		if !ok {
			continue
		}
		c, known := numbers[k]
		if !known {
			c = uint32(len(s.hosts))
			numbers[k] = c
			s.hosts = append(s.hosts, k.host)
		}
		s.channel[i] = c
	}
	s.unexpected, s.posted = newLists(len(s.hosts)), newLists(len(s.hosts))
}

// enter returns the number of the channel of a send or receive.
func (s *atlahs) enter(i uint32, op *sim.Op) uint32 {
	if s.numbers == nil {
		return s.channel[i]
	}
	k, _ := channelOf(op)
	c, known := s.numbers[k]
	if known {
		return c
	}
	if n := len(s.unused); n > 0 {
		c, s.unused = s.unused[n-1], s.unused[:n-1]
		s.hosts[c] = k.host
	} else {
		c = uint32(len(s.hosts))
		s.hosts = append(s.hosts, k.host)
		s.unexpected, s.posted = append(s.unexpected, sim.NewList()), append(s.posted, sim.NewList())
	}
	s.numbers[k] = c
	return c
}

// leave takes its number from a channel where nothing waits, in windows.
func (s *atlahs) leave(c uint32, op *sim.Op) {
	if s.numbers != nil && s.unexpected[c].Head == sim.NoOp && s.posted[c].Head == sim.NoOp {
		k, _ := channelOf(op)
		delete(s.numbers, k)
		s.unused = append(s.unused, c)
	}
}

// channels returns the channels in the order of their first ops. In windows, it looks for those only where something
// waits.
func (s *atlahs) channels() (order []uint32, err error) {
	if s.numbers == nil {
		for c := range s.hosts {
			order = append(order, uint32(c))
		}
		return order, nil
	}
	if len(s.numbers) == 0 {
		return nil, nil
	}
	err = s.p.EachOp(func(op *sim.Op, _ uint32) {
		k, ok := channelOf(op)
		if c, waits := s.numbers[k]; waits && ok {
			order = append(order, c)
			delete(s.numbers, k)
		}
	})
	return order, err
}

func (s *atlahs) draw(t uint64, payload uint32) {
	s.queue.Push(event.StdEvent{Time: t, Payload: payload})
	s.sequence++
}

// flush queues a host's ops that became ready.
func (s *atlahs) flush(ready []uint32) {
	for _, i := range ready {
		op := &s.p.Ops[i]
		t := s.from[i]
		cpu, gs, _ := s.clocks(op.Rank, op.Stream, op.NIC)
		switch {
		case op.Flags&sim.IsSend != 0:
			t = max(t, *gs)
		case op.Flags&sim.IsRecv == 0:
			t = max(t, *cpu)
		}
		s.draw(t, i)
	}
}

// started marks a start dependency of each op as met. An op without further dependencies is ready from time 0 on,
// regardless of its earlier dependencies.
func (s *atlahs) started(ops, ready []uint32) []uint32 {
	for _, i := range ops {
		op := &s.p.Ops[i]
		if op.Flags&hasRun != 0 {
			continue // see hasRun
		}
		op.Waits--
		if op.Waits == 0 {
			s.from[i] = 0
			ready = append(ready, i)
		}
	}
	return ready
}

// done marks a dependency of each op as met at time t.
func (s *atlahs) done(t uint64, ops, ready []uint32) []uint32 {
	for _, i := range ops {
		op := &s.p.Ops[i]
		if op.Flags&hasRun != 0 {
			continue // see hasRun
		}
		s.from[i] = max(s.from[i], t)
		op.Waits--
		if op.Waits == 0 {
			ready = append(ready, i)
		}
	}
	return ready
}

func (s *atlahs) calc(e event.StdEvent, i uint32, op *sim.Op) error {
	cpu, _, _ := s.clocks(op.Rank, op.Stream, op.NIC)
	if *cpu > e.Time {
		s.queue.Push(event.StdEvent{Time: *cpu, Payload: e.Payload})
		return nil
	}
	end := e.Time + op.Size
	noise, err := s.noiseOver(op.Rank, e.Time, end)
	if err != nil {
		return err
	}
	s.run(op)
	s.p.PrefetchOps(op)
	*cpu = end + noise
	s.ready = s.started(s.p.StartDependents(i), s.ready[:0])
	s.ready = s.done(*cpu, s.dependents(i), s.ready)
	s.flush(s.ready)
	s.span(sim.CalcSpan, op.Rank, op.Stream, i, e.Time, end)
	s.p.Drop(i)
	return nil
}

// sizes returns the reference's message size, at least one byte; the bytes beyond the first; and the time of these
// bytes on the wire.
func (s *atlahs) sizes(op *sim.Op) (size, x, wire uint64) {
	size = max(op.Size, 1)
	return size, size - 1, uint64(float64(size-1) * s.n.GFloat)
}

func (s *atlahs) send(e event.StdEvent, i uint32, op *sim.Op) error {
	t := e.Time
	cpu, gs, _ := s.clocks(op.Rank, op.Stream, op.NIC)
	if free := max(*cpu, *gs); free > t {
		s.queue.Push(event.StdEvent{Time: free, Payload: e.Payload})
		return nil
	}
	noise, err := s.noiseOver(op.Rank, t, t+s.n.o)
	if err != nil {
		return err
	}
	s.run(op)
	s.p.PrefetchOps(op)
	s.sent(op)
	s.depart(i, t)
	s.ready = s.started(s.p.StartDependents(i), s.ready[:0])
	size, x, wire := s.sizes(op)
	busy := t + s.n.o + x*s.n.O
	end := busy + noise
	*cpu = end
	*gs = t + s.n.g + wire
	s.draw(end+s.n.L+wire, i|isMessage)
	if size <= uint64(s.n.S) {
		s.ready = s.done(end, s.dependents(i), s.ready)
	}
	s.flush(s.ready)
	s.span(sim.SendSpan, op.Rank, op.Stream, i, t, busy)
	s.span(sim.NoiseSpan, op.Rank, op.Stream, i, busy, end)
	if size <= uint64(s.n.S) {
		s.p.Drop(i)
	}
	return nil
}

// recv returns the reason if the reference aborts, and "" otherwise.
func (s *atlahs) recv(t uint64, i uint32, op *sim.Op) string {
	s.run(op)
	s.p.PrefetchOps(op)
	s.depart(i, t)
	s.ready, s.remote = s.started(s.p.StartDependents(i), s.ready[:0]), s.remote[:0]
	c := s.enter(i, op)
	m := s.unexpected[c].Head
	if m == sim.NoOp {
		s.posted[c].Put(s.p.Ops, i)
		s.flush(s.ready)
		return ""
	}
	s.unexpected[c].Take(s.p.Ops)
	s.leave(c, op)
	if t < s.arrived[m] {
		return fmt.Sprintf("rank %d op %d receives at %d ns a message that arrived at %d ns", op.Rank, s.p.Index(i), t,
			s.arrived[m])
	}
	size, x, _ := s.sizes(op)
	cpu, gs, gr := s.clocks(op.Rank, op.Stream, op.NIC)
	nic := max(*gs, t) + s.n.g
	end := nic + s.n.o + x*s.n.O
	*cpu, *gr = end, nic
	if size > uint64(s.n.S) {
		s.releaseSend(end, nic, m, op.Rank, op)
		s.transfer(m, i, true, t, t, size)
		if s.waitsForReceive(&s.p.Ops[m]) { // otherwise it has ended before
			s.p.Drop(m)
		}
	}
	s.ready = s.done(end, s.dependents(i), s.ready)
	s.flush(s.remote)
	s.flush(s.ready)
	s.span(sim.RecvSpan, op.Rank, op.Stream, i, t, t+s.n.o)
	s.p.Drop(m)
	s.p.Drop(i)
	return ""
}

func (s *atlahs) message(e event.StdEvent, m uint32, send *sim.Op) error {
	t, host, c := e.Time, uint32(send.Peer), s.enter(m, send)
	i := s.posted[c].Head
	if i == sim.NoOp {
		s.arrived[m] = t
		s.unexpected[c].Put(s.p.Ops, m)
		if s.timeline != nil {
			_, x, wire := s.sizes(send)
			s.arrivedEarly(m, send, t, t+max(x*s.n.O, wire))
		}
		return nil
	}
	recv := &s.p.Ops[i]
	cpu, _, gr := s.clocks(host, recv.Stream, send.NIC)
	s.posted[c].Take(s.p.Ops)
	if free := max(*cpu, *gr); free > t {
		s.queue.Push(event.StdEvent{Time: free, Payload: e.Payload})
		s.posted[c].Put(s.p.Ops, i)
		return nil
	}
	s.leave(c, send)
	noise, err := s.noiseOver(host, t, t+s.n.o)
	if err != nil {
		return err
	}
	size, x, wire := s.sizes(send)
	nic := max(*gr, t) + s.n.g
	end := nic + s.n.o + x*s.n.O + noise
	*cpu, *gr = end, nic
	s.ready, s.remote = s.ready[:0], s.remote[:0]
	if size > uint64(s.n.S) {
		s.releaseSend(end, nic, m, host, send)
	}
	s.ready = s.done(end, s.dependents(i), s.ready)
	s.flush(s.ready)
	s.flush(s.remote)
	received := t + s.n.o + max(x*s.n.O, wire) // the reference draws the cost of loggopsim, not the charged one
	s.transfer(m, i, false, t, t+wire-x*s.n.O, size)
	s.span(sim.RecvSpan, host, send.Stream, i, t+wire-x*s.n.O, received)
	s.span(sim.NoiseSpan, host, send.Stream, i, received, received+noise)
	if size > uint64(s.n.S) {
		s.p.Drop(m)
	}
	s.p.Drop(m)
	s.p.Drop(i)
	return nil
}

// waitsForReceive reports whether a send ends only with its receive.
func (s *atlahs) waitsForReceive(send *sim.Op) bool {
	size, _, _ := s.sizes(send)
	return size > uint64(s.n.S)
}

// releaseSend ends the rendezvous of send m, which host matched. It advances the sender's clocks of the stream and NIC
// of named.
func (s *atlahs) releaseSend(end, nic uint64, m, host uint32, named *sim.Op) {
	sender := s.p.Ops[m].Rank
	if sender == host {
		s.ready = s.done(end, s.dependents(m), s.ready)
	} else {
		s.remote = s.done(end, s.dependents(m), s.remote)
	}
	cpu, gs, _ := s.clocks(sender, named.Stream, named.NIC)
	*cpu, *gs = max(*cpu, end), max(*gs, nic)
}
