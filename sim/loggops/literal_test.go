package loggops

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// literal replays exactly like spcl/LogGOPSim (commit 76451de): one heap for all events, an op or message with a busy
// clock returns to it with the time at which the clock is free, and receives and messages wait in lists that are
// searched from the front. Tests compare loggopsim with it.
type literal struct {
	*reference
	queue      event.Queue
	unexpected []sim.List // messages, by host
	posted     []sim.List // receives, by host
}

func runLiteral(p *sim.Program, n nanoseconds, o Options) (*outcome, error) {
	r, err := newReference(p, n, o)
	if err != nil {
		return nil, err
	}
	s := &literal{reference: r, unexpected: newLists(p.Ranks()), posted: newLists(p.Ranks())}
	for host := range p.Ranks() {
		s.flush(s.roots(host), true)
	}
	for s.queue.Len() > 0 {
		e := s.queue.Pop()
		i := e.Payload() &^ isMessage
		op := &p.Ops[i]
		var err error
		switch {
		case e.Payload()&isMessage != 0:
			err = s.message(e, i, op)
		case op.Flags&sim.IsSend != 0:
			err = s.send(e, i, op)
		case op.Flags&sim.IsRecv != 0:
			s.recv(e.Time, i, op)
		default:
			err = s.calc(e, i, op)
		}
		if err != nil {
			return nil, err
		}
	}
	unexpected, posted := make([][]uint32, p.Ranks()), make([][]uint32, p.Ranks())
	for host := range p.Ranks() {
		unexpected[host], posted[host] = s.list(s.unexpected[host]), s.list(s.posted[host])
	}
	return s.outcome(unexpected, posted), nil
}

// draw puts an event into the queue under the next number.
func (s *literal) draw(t uint64, what uint32) {
	s.queue.Push(event.Event{Time: t, Key: s.sequence<<32 | uint64(what)})
	s.sequence++
}

// flush queues the ops that became ready on a host, at the time at which their clocks are free; at the start of the run
// at time 0.
func (s *literal) flush(ready []uint32, atStart bool) {
	sortByType(ready, s.p.Ops, 0)
	for _, i := range ready {
		t := uint64(0)
		if !atStart {
			op := &s.p.Ops[i]
			cpu, gs, _ := s.clocks(op.Rank, op.Stream, op.NIC)
			t = *cpu
			if op.Flags&sim.IsSend != 0 {
				t = max(t, *gs)
			}
		}
		s.draw(t, i)
	}
}

// flushBoth flushes the host at hand and the other host of the event, the lower one first.
func (s *literal) flushBoth(host, other uint32) {
	if other < host {
		s.flush(s.remote, false)
		s.flush(s.ready, false)
		return
	}
	s.flush(s.ready, false)
	if other != host {
		s.flush(s.remote, false)
	}
}

// release counts one dependency of each of the ops as met and appends those that have no other to ready.
func (s *literal) release(ops, ready []uint32) []uint32 {
	for _, i := range ops {
		op := &s.p.Ops[i]
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

func (s *literal) calc(e event.Event, i uint32, op *sim.Op) error {
	cpu, _, _ := s.clocks(op.Rank, op.Stream, op.NIC)
	if *cpu > e.Time {
		s.queue.Push(event.Event{Time: *cpu, Key: e.Key})
		return nil
	}
	end := e.Time + op.Size
	noise, err := s.noiseOver(op.Rank, e.Time, end)
	if err != nil {
		return err
	}
	s.run(op)
	*cpu = end + noise
	s.ready = s.release(s.p.StartDependents(i), s.ready[:0])
	s.ready = s.release(s.p.AppendDependents(nil, i), s.ready)
	s.flush(s.ready, false)
	s.span(sim.CalcSpan, op.Rank, op.Stream, i, e.Time, end)
	return nil
}

func (s *literal) send(e event.Event, i uint32, op *sim.Op) error {
	t := e.Time
	cpu, gs, _ := s.clocks(op.Rank, op.Stream, op.NIC)
	if free := max(*cpu, *gs); free > t {
		s.queue.Push(event.Event{Time: free, Key: e.Key})
		return nil
	}
	noise, err := s.noiseOver(op.Rank, t, t+s.n.o)
	if err != nil {
		return err
	}
	s.run(op)
	s.sent(op)
	s.depart(i, t)
	s.ready = s.release(s.p.StartDependents(i), s.ready[:0])
	x := op.Size - 1
	busy := t + s.n.o + x*s.n.O
	*cpu = busy + noise
	*gs = t + s.n.g + x*s.n.G
	s.draw(t+s.n.o+s.n.L, i|isMessage)
	if op.Size <= uint64(s.n.S) {
		s.ready = s.release(s.p.AppendDependents(nil, i), s.ready)
	}
	s.flush(s.ready, false)
	s.span(sim.SendSpan, op.Rank, op.Stream, i, t, busy)
	s.span(sim.NoiseSpan, op.Rank, op.Stream, i, busy, busy+noise)
	return nil
}

func (s *literal) recv(t uint64, i uint32, op *sim.Op) {
	s.run(op)
	s.ready, s.remote = s.release(s.p.StartDependents(i), s.ready[:0]), s.remote[:0]
	m := s.takeMessage(&s.unexpected[op.Rank], op)
	if m == sim.NoOp {
		s.posted[op.Rank].Put(s.p.Ops, i)
		s.flush(s.ready, false)
		return
	}
	sender := s.p.Ops[m].Rank
	if op.Size > uint64(s.n.S) {
		s.releaseSend(t, m, op.Rank, op)
		s.transfer(m, i, true, t, t, op.Size)
	}
	s.ready = s.release(s.p.AppendDependents(nil, i), s.ready)
	s.flushBoth(op.Rank, sender)
	s.span(sim.RecvSpan, op.Rank, op.Stream, i, t, t+s.n.o)
}

// message handles the arrival of the message of send m. The receiving host's clocks are those of the stream and NIC that
// the send names.
func (s *literal) message(e event.Event, m uint32, send *sim.Op) error {
	t, host := e.Time, uint32(send.Peer)
	cpu, _, gr := s.clocks(host, send.Stream, send.NIC)
	if free := max(*cpu, *gr); free > t {
		s.queue.Push(event.Event{Time: free, Key: e.Key})
		return nil
	}
	noise, err := s.noiseOver(host, t, t+s.n.o)
	if err != nil {
		return err
	}
	x := send.Size - 1
	received := t + s.n.o + max(x*s.n.O, x*s.n.G)
	*cpu = received + noise
	*gr = t + s.n.g + x*s.n.G
	i := s.takeReceive(&s.posted[host], send)
	if i == sim.NoOp {
		s.unexpected[host].Put(s.p.Ops, m)
		s.depart(m, t)
		return nil
	}
	s.ready, s.remote = s.ready[:0], s.remote[:0]
	if send.Size > uint64(s.n.S) {
		s.releaseSend(t, m, host, send)
	}
	s.ready = s.release(s.p.AppendDependents(nil, i), s.ready)
	s.flushBoth(host, send.Rank)
	s.transfer(m, i, false, t, t+x*s.n.G-x*s.n.O, send.Size)
	s.span(sim.RecvSpan, host, send.Stream, i, t+x*s.n.G-x*s.n.O, received)
	s.span(sim.NoiseSpan, host, send.Stream, i, received, received+noise)
	return nil
}

// releaseSend ends the rendezvous of send m, which was met on host at time t. It lifts the sender's clocks of the stream
// and NIC that the op named has.
func (s *literal) releaseSend(t uint64, m, host uint32, named *sim.Op) {
	sender := s.p.Ops[m].Rank
	if sender == host {
		s.ready = s.release(s.p.AppendDependents(nil, m), s.ready)
	} else {
		s.remote = s.release(s.p.AppendDependents(nil, m), s.remote)
	}
	cpu, gs, _ := s.clocks(sender, named.Stream, named.NIC)
	*cpu, *gs = max(*cpu, t), max(*gs, t)
}

// takeMessage removes the first message that fits the receive, sim.NoOp if there is none.
func (s *literal) takeMessage(w *sim.List, recv *sim.Op) uint32 {
	prev := uint32(sim.NoOp)
	for m := w.Head; m != sim.NoOp; prev, m = m, s.p.Ops[m].Link() {
		if s.fits(recv, &s.p.Ops[m]) {
			w.Remove(s.p.Ops, m, prev)
			return m
		}
	}
	return sim.NoOp
}

// takeReceive removes the first receive that the message fits, sim.NoOp if there is none.
func (s *literal) takeReceive(w *sim.List, send *sim.Op) uint32 {
	prev := uint32(sim.NoOp)
	for i := w.Head; i != sim.NoOp; prev, i = i, s.p.Ops[i].Link() {
		if s.fits(&s.p.Ops[i], send) {
			w.Remove(s.p.Ops, i, prev)
			return i
		}
	}
	return sim.NoOp
}
