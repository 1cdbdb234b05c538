package lower

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Collectives returns the trace with every collective replaced by the sends and receives of the algorithm that choice
// gives it. The references of t must be in range ([dag.Rank.CheckReferences]); t is not changed, and shares with the
// result whatever is the same in both.
//
// It fails if the members of a communicator disagree on their collectives: on how many there are, or on the kind, the
// root or the size of one. Messages of the s-th collective of the trace, counted from 0 through the communicators and
// through each one's collectives in order, have the tag [dag.CollectiveTag] - s; where t has such tags already, they go
// on from the lowest. See docs/lowering.md.
func Collectives(t *dag.Trace, choice Choice) (*dag.Trace, error) {
	return CollectivesOf(t, choice, func(dag.Subkind) bool { return true })
}

// CollectivesOf is [Collectives] for those collectives only whose subkind lowered reports true for. The others stay as
// they are; on these, members must agree in number and kind, so that it is certain which op belongs to which
// collective.
func CollectivesOf(t *dag.Trace, choice Choice, lowered func(dag.Subkind) bool) (*dag.Trace, error) {
	in, err := findInstances(t, lowered)
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	out := *t
	if in == nil {
		return &out, nil
	}
	out.Ranks = make([]dag.Rank, len(t.Ranks))
	newScratch := func() *lowering {
		return &lowering{instances: in, choice: &choice, cursor: newCursor(len(t.Comms))}
	}
	err = forEachRank(len(t.Ranks), newScratch, func(rank int, l *lowering) error {
		lowered, err := l.rank(rank)
		out.Ranks[rank] = lowered
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	return &out, nil
}

// maxOps is how many ops a lowered rank may have; three dependencies for each are still in the range of [dag.Edges].
const maxOps = 1 << 30

// lowering rewrites one rank after another, each in two passes: the first finds where everything will be, the second
// writes it there.
type lowering struct {
	*instances
	choice *Choice
	cursor *cursor

	source      *dag.Rank
	first, last []int32 // for each op of source, the ops that will stand for its start and its end
	call        Call
	schedule    Schedule
	target      target
}

func (l *lowering) rank(rank int) (dag.Rank, error) {
	l.source = &l.instances.trace.Ranks[rank]
	if !l.concerns(l.source) {
		return *l.source, nil
	}
	ops, edges, err := l.place(rank)
	if err != nil {
		return dag.Rank{}, err
	}
	l.target = newTarget(l.source, ops, edges)
	l.cursor.reset()
	m := member{rank: rank, r: l.source}
	for i, kind := range l.source.Kind {
		if kind == dag.Coll {
			l.locate(&m, i, l.cursor)
			if l.lowered[m.kind()] {
				l.write(&m)
				continue
			}
		}
		l.target.copyOp(l.source, i)
		l.require(i)
	}
	return l.target.rank, nil
}

// concerns reports whether the rank has collectives to lower.
func (l *lowering) concerns(r *dag.Rank) bool {
	for i, kind := range r.Kind {
		if kind == dag.Coll && l.lowered[r.Subkind.At(i)] {
			return true
		}
	}
	return false
}

// place sets first and last, and returns how many ops and dependencies the rank will have.
func (l *lowering) place(rank int) (ops, edges int, err error) {
	r := l.source
	l.first, l.last = resize(l.first, r.Len()), resize(l.last, r.Len())
	l.cursor.reset()
	m := member{rank: rank, r: r}
	for i, kind := range r.Kind {
		l.first[i] = int32(ops)
		if kind == dag.Coll {
			l.locate(&m, i, l.cursor)
		}
		if kind != dag.Coll || !l.lowered[m.kind()] {
			l.last[i] = int32(ops)
			ops++
			edges += r.Deps.Count(i)
			continue
		}
		if err := m.checkBlock(); err != nil {
			return 0, 0, err
		}
		p := l.plan(&m)
		ops += p.ops()
		edges += len(l.schedule.after) + p.entries
		switch {
		case p.fork:
			edges += r.Deps.Count(i)
		default:
			edges += p.entries * (r.Deps.Count(i) - 1)
		}
		if p.join {
			edges += p.exits
		}
		if ops > maxOps {
			return 0, 0, fmt.Errorf("rank %d: more than %d ops", rank, maxOps)
		}
		l.last[i] = int32(ops - 1)
	}
	return ops, edges, nil
}

func resize(s []int32, n int) []int32 {
	if n > cap(s) {
		return make([]int32, n)
	}
	return s[:n]
}

// plan is the form of what stands for a member's part in a collective: the messages of its schedule, a marker before
// them where that saves dependencies, and a marker after them where several of them are the last.
type plan struct {
	fork, join            bool
	steps, entries, exits int
}

func (p *plan) ops() int {
	n := p.steps
	if p.fork {
		n++
	}
	if p.join {
		n++
	}
	return n
}

// plan sets the schedule for a member's part in a collective.
func (l *lowering) plan(m *member) plan {
	l.call = m.call()
	l.schedule.Reset()
	if l.call.Members > 1 {
		inst := &m.comm.instances[m.k]
		l.choice.algorithm(inst.kind, m.comm.largest(inst)).plan(&l.call, &l.schedule)
	}
	p := plan{steps: len(l.schedule.Steps)}
	p.entries, p.exits = l.schedule.ends()
	waits := m.r.Deps.Count(m.op) + m.r.StartDeps.Count(m.op)
	p.fork = p.entries == 0 || p.entries > 1 && waits > 1
	p.join = p.exits > 1
	return p
}

// write appends what stands for a member's part in a collective.
func (l *lowering) write(m *member) {
	t, i := &l.target, m.op
	p := l.plan(m)
	release, name := m.r.Release.At(i), m.r.Name.At(i)
	if p.fork {
		t.add(dag.Calc, i)
		t.open(release, name)
		l.require(i)
		release, name = 0, ""
	}
	fork := t.last()
	tag := l.firstTag - (m.comm.first + int64(m.k))
	begin := int32(t.n)
	for k := range l.schedule.Steps {
		s, after := &l.schedule.Steps[k], l.schedule.After(k)
		t.add(s.Kind, i)
		t.message(m.comm.rank(int(s.Peer)), s.Bytes, tag, m.id)
		for _, a := range after {
			t.require(begin + a)
		}
		if len(after) > 0 {
			continue
		}
		t.open(release, name)
		name = ""
		if p.fork {
			t.require(fork)
		} else {
			l.require(i)
		}
	}
	if p.join {
		t.add(dag.Calc, i)
		for k := range l.schedule.Steps {
			if !l.schedule.Steps[k].Awaited {
				t.require(begin + int32(k))
			}
		}
	}
}

// require makes the last op of target wait for what op i of source waits for.
func (l *lowering) require(i int) {
	for _, off := range l.source.Deps.Of(i) {
		l.target.require(l.last[int32(i)-off])
	}
	for _, off := range l.source.StartDeps.Of(i) {
		l.target.requireStart(l.first[int32(i)-off])
	}
}
