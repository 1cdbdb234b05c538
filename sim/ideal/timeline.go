package ideal

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Never is the time of an event that did not occur.
const Never dag.Time = -1

// Timeline contains the start and end times of the ops of a trace. Ranks and ops count from 0.
type Timeline struct {
	Result *sim.Result // the result, including the incomplete ops

	program *sim.Program // its ops in their final state
	ready   []uint64     // see run
	cause   []cause
	lastEnd []uint32 // see run.last
	history *history // see run
}

// state returns an op, by order, with its final state.
func (t *Timeline) state(i uint32) (*sim.Op, opState) {
	if at, ok := t.program.At(i); ok {
		op := &t.program.Ops[at]
		return op, opState{t.ready[at], t.cause[at], op.Link()}
	}
	s := t.history.state(t.program, i)
	return t.program.OpAt(i), s
}

// Makespan returns the latest end of an op.
func (t *Timeline) Makespan() dag.Time {
	return dag.Time(t.Result.Makespan.Ticks)
}

// Ops returns the number of ops of a rank.
func (t *Timeline) Ops(rank int) int {
	return int(t.program.Start[rank+1] - t.program.Start[rank])
}

// Ran reports whether an op ran to its end.
func (t *Timeline) Ran(rank, op int) bool {
	return t.End(rank, op) != Never
}

// Start returns the start of an op, or Never if it did not start.
func (t *Timeline) Start(rank, op int) dag.Time {
	if i := t.number(rank, op); t.program.Ops[i].Flags&started != 0 {
		return t.start(i)
	}
	return Never
}

// End returns the end of an op, or Never if it did not end.
func (t *Timeline) End(rank, op int) dag.Time {
	if i := t.number(rank, op); t.hasEnded(i) {
		return t.end(i)
	}
	return Never
}

// Sender returns the send of the message that a receive took; ok is false if there is none.
func (t *Timeline) Sender(rank, op int) (fromRank, fromOp int, ok bool) {
	recv := &t.program.Ops[t.number(rank, op)]
	if recv.Flags&sim.IsColl != sim.IsRecv || recv.Flags&ended == 0 {
		return 0, 0, false
	}
	return int(t.program.Ops[recv.Link()].Rank), t.program.Index(recv.Link()), true
}

func (t *Timeline) number(rank, op int) uint32 {
	return t.program.Start[rank] + uint32(op)
}

func (t *Timeline) hasEnded(i uint32) bool {
	flags := t.program.Ops[i].Flags
	if flags&sim.IsRecv != 0 { // or a collective
		return flags&ended != 0
	}
	return flags&started != 0
}

// start returns the start of op i; the op must have started.
func (t *Timeline) start(i uint32) dag.Time {
	_, s := t.state(i)
	return dag.Time(s.ready)
}

// end returns the end of op i; the op must have ended.
func (t *Timeline) end(i uint32) dag.Time {
	op, s := t.state(i)
	switch {
	case op.Flags&sim.IsRecv != 0:
		return max(dag.Time(s.ready), t.start(s.link))
	case op.Flags&sim.IsSend != 0:
		return dag.Time(s.ready)
	}
	return dag.Time(s.ready + op.Size)
}

// report reports the run to a timeline, receives last.
func (t *Timeline) report(to sim.Timeline) {
	to.Begin(t.program.Layout())
	t.reportOps(to, false)
	t.reportOps(to, true)
}

// reportOps reports the receives, or all other ops.
func (t *Timeline) reportOps(to sim.Timeline, receives bool) {
	for i := range uint32(t.program.NumOps()) {
		op := &t.program.Ops[i]
		if op.Flags&started == 0 {
			continue
		}
		s := sim.Span{Rank: op.Rank, Stream: t.program.Stream(op), Op: i, Start: t.ready[i], End: t.ready[i]}
		kind := t.program.Kind(i)
		if (kind == dag.Recv) != receives {
			continue
		}
		if t.hasEnded(i) {
			s.End = uint64(t.end(i))
		} else if kind == dag.Coll || kind == dag.Recv {
			continue
		}
		switch kind {
		case dag.Send:
			s.Kind = sim.SendSpan
		case dag.Recv:
			s.Kind = sim.WaitSpan
			to.Span(s)
			s.Kind, s.Start = sim.RecvSpan, s.End
			m := op.Link()
			sent, send := t.ready[m], &t.program.Ops[m]
			to.Transfer(sim.Transfer{Source: send.Rank, Target: op.Rank, Send: m, Recv: i, Begun: sent, Start: sent,
				End: s.End, Arrived: sent, Bytes: send.Size})
		case dag.Coll:
			s.Kind = sim.CollWaitSpan
		case dag.Mem:
			s.Kind = sim.MemSpan
		case dag.IO:
			s.Kind = sim.IOSpan
		}
		to.Span(s)
	}
}
