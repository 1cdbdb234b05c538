package ideal

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Path is a critical path: a chain of ops from the start of the trace to its makespan, each of which waited last for
// the one before. Where an op waited for several that came at the same time, the path goes over the one of the lowest
// rank, then index; where it waited as long for its release time, over an op. It ends with the op of the lowest rank
// and index of those that end last.
type Path struct {
	Length  dag.Time // the makespan: the sum of the following
	Compute dag.Time // in calcs
	Memory  dag.Time // in mem ops
	IO      dag.Time // in io ops
	Wait    dag.Time // for the release time of the first op

	timeline *Timeline
	steps    []step // last op first
}

// step is an op of a path: twice its number, plus one if the path leaves it at its end and not at its start.
type step uint32

func (s step) op() uint32  { return uint32(s >> 1) }
func (s step) ended() bool { return s&1 != 0 }

// Lead is what made an op of a path start or, if it has no part of its own in the path, end.
type Lead uint8

const (
	AtOnce       Lead = iota // nothing: the op could start from the beginning
	ByRelease                // its release time came
	ByDep                    // the op before ended, which it depends on
	ByStartDep               // the op before started, which it depends on
	ByMessage                // it is a receive, whose message the op before sent
	ByCollective             // it is a collective, to which the op before came as the last member that it waited for
)

func (l Lead) String() string {
	return [...]string{"start", "release", "dep", "start_dep", "message", "collective"}[l]
}

// Entry is an op of a path, and the part of its time that belongs to the path: from the end of the part before, or if
// that has none, from when the op was released. Receives and collectives that waited for others have parts of no
// length.
type Entry struct {
	Rank, Op   int
	Kind       dag.Kind
	Start, End dag.Time
	Lead       Lead
}

// CriticalPath returns the critical path of the part of the trace that ran.
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
		if entry.Lead <= ByRelease {
			p.Wait = entry.Start
			return p
		}
		s = before
	}
}

// last returns the first of the ops that end at the makespan, sim.NoOp if no op has ended.
func (t *Timeline) last() uint32 {
	for rank, finish := range t.Result.Finish {
		if finish.Ticks < t.Result.Makespan.Ticks {
			continue
		}
		for i := t.program.Start[rank]; i < t.program.Start[rank+1]; i++ {
			if t.hasEnded(i) && t.end(i) == t.Makespan() {
				return i
			}
		}
	}
	return sim.NoOp
}

// entry returns what a step stands for, and the step before it, if there is one.
func (p *Path) entry(s step) (e Entry, before step) {
	t, i := p.timeline, s.op()
	op := &t.program.Ops[i]
	e = Entry{Rank: int(op.Rank), Op: t.program.Index(i), Kind: t.program.Kind(i), Start: t.start(i), End: t.start(i)}
	if s.ended() {
		e.End = t.end(i)
		if op.Flags&sim.IsRecv != 0 && e.End > e.Start {
			e.Start, e.Lead = e.End, ByMessage
			if e.Kind == dag.Coll {
				e.Lead = ByCollective
			}
			return e, step(op.Link) << 1
		}
	}
	switch c := t.cause[i]; {
	case c != 0 && c&1 == byStart:
		e.Lead, before = ByStartDep, step(c.op())<<1
	case c != 0:
		e.Lead, before = ByDep, step(c.op())<<1|1
	case e.Start > 0:
		e.Lead = ByRelease
	}
	return e, before
}

// Ops returns how many ops the path has.
func (p *Path) Ops() int {
	return len(p.steps)
}

// Entry returns op k of the path, from 0, in the order of time.
func (p *Path) Entry(k int) Entry {
	e, _ := p.entry(p.steps[len(p.steps)-1-k])
	return e
}
