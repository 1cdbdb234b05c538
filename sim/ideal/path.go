package ideal

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Path is a critical path: a chain of ops from the start of the trace to its makespan, in which each op waited last for
// the previous one. If an op waited equally long for several ops, the path takes the one with the lowest rank, then
// index, and prefers an op to the release time. The path ends with the op of the lowest rank and index among those that
// end last.
type Path struct {
	Length  dag.Time // the makespan: the sum of the following times
	Compute dag.Time // in calcs
	Memory  dag.Time // in mem ops
	IO      dag.Time // in io ops
	Wait    dag.Time // time before the release of the first op

	timeline *Timeline
	steps    []step // last op first
}

// step is an op of a path: twice its order, plus 1 if the path leaves it at its end instead of its start.
type step uint32

func (s step) op() uint32  { return uint32(s >> 1) }
func (s step) ended() bool { return s&1 != 0 }

// Entry is an op of a path with the part of its time that belongs to the path: from the end of the previous part or,
// for the first op, from its release. Receives and collectives that waited for others have parts of length 0.
type Entry struct {
	Rank, Op   int
	Kind       dag.Kind
	Start, End dag.Time
	Lead       sim.Lead
}

// CriticalPath returns the critical path of the ops that ran.
func (t *Timeline) CriticalPath() *Path {
	p := &Path{Length: t.Makespan(), timeline: t}
	last := t.last()
	if last == sim.NoOp {
		return p
	}
	s := step(last)<<1 | 1
	for {
		p.steps = append(p.steps, s)
		entry, before := p.entry(s)
		length := entry.End - entry.Start
		switch entry.Kind {
		case dag.Mem:
			p.Memory += length
		case dag.IO:
			p.IO += length
		default:
			p.Compute += length
		}
		if entry.Lead <= sim.ByRelease {
			p.Wait = entry.Start
			return p
		}
		s = before
	}
}

// last returns the first op that ends at the makespan, or sim.NoOp if no op has ended.
func (t *Timeline) last() uint32 {
	for rank, finish := range t.Result.Finish {
		if finish.Ticks < t.Result.Makespan.Ticks {
			continue
		}
		if i := t.lastEnd[rank]; i != sim.NoOp {
			return i
		}
	}
	return sim.NoOp
}

// entry returns the entry of a step, and the previous step if any.
func (p *Path) entry(s step) (e Entry, before step) {
	t, i := p.timeline, s.op()
	op, state := t.state(i)
	rank, index := t.program.Locate(i)
	start := dag.Time(state.ready)
	e = Entry{Rank: int(rank), Op: int(index), Kind: op.Kind(), Start: start, End: start}
	if s.ended() {
		receives := op.Flags&sim.IsRecv != 0
		e.End = t.end(i)
		if receives && e.End > e.Start {
			e.Start, e.Lead = e.End, sim.ByMessage
			if e.Kind == dag.Coll {
				e.Lead = sim.ByCollective
			}
			return e, step(state.link) << 1
		}
	}
	switch c := state.cause; {
	case c != 0 && c&1 == byStart:
		e.Lead, before = sim.ByStartDep, step(c.op())<<1
	case c != 0:
		e.Lead, before = sim.ByDep, step(c.op())<<1|1
	case e.Start > 0:
		e.Lead = sim.ByRelease
	}
	return e, before
}

// Ops returns the number of ops of the path.
func (p *Path) Ops() int {
	return len(p.steps)
}

// Entry returns op k of the path in time order, from 0.
func (p *Path) Entry(k int) Entry {
	e, _ := p.entry(p.steps[len(p.steps)-1-k])
	return e
}

// report returns the path for a result.
func (p *Path) report() *sim.Path {
	r := &sim.Path{Unit: dag.Picosecond}
	if p.Wait > 0 {
		first := p.Entry(0)
		r.Steps = append(r.Steps, sim.PathStep{Rank: uint32(first.Rank), Op: uint32(first.Op), Kind: first.Kind,
			Part: sim.PathWait, End: uint64(p.Wait)})
	}
	for k := range p.Ops() {
		e := p.Entry(k)
		s := sim.PathStep{Rank: uint32(e.Rank), Op: uint32(e.Op), Kind: e.Kind, Lead: e.Lead, Start: uint64(e.Start),
			End: uint64(e.End)}
		switch e.Kind {
		case dag.Mem:
			s.Part = sim.PathMemory
		case dag.IO:
			s.Part = sim.PathStorage
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}
