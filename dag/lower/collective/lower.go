package collective

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
// on from the lowest. Messages of lane 1 have tags that come after those of all collectives. See docs/lowering.md.
func Lower(t *dag.Trace, choice Choice) (*dag.Trace, error) {
	return LowerSelected(t, choice, every)
}

// LowerSelected is [Lower] for those collectives only whose subkind lowered reports true for. The others stay as
// they are; on these, members must agree in number and kind, so that it is certain which op belongs to which
// collective.
func LowerSelected(t *dag.Trace, choice Choice, lowered func(dag.Subkind) bool) (*dag.Trace, error) {
	s, err := lowerSource(dag.NewInMemory(t), choice, lowered)
	if err != nil {
		return nil, err
	}
	return s.Trace()
}

// Covers reports whether some of the collectives of a trace are among those that the function names, and whether all are.
func Covers(t *dag.Trace, which func(dag.Subkind) bool) (some, all bool) {
	all = true
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op, kind := range r.Kind {
			if kind != dag.Coll {
				continue
			}
			if which(r.Subkind.At(op)) {
				some = true
			} else {
				all = false
			}
		}
	}
	return some, all
}

// maxOps is how many ops a lowered rank may have; three dependencies for each are still in the range of [dag.Edges].
const maxOps = 1 << 30

// extent is how many ops and dependencies a rank has.
type extent struct{ ops, deps, startDeps uint32 }

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

func newLowering(in *instances, choice *Choice) *lowering {
	return &lowering{instances: in, choice: choice, cursor: newCursor(len(in.comms))}
}

// write returns the rank lowered, which has the given size. It may use the given memory for it.
func (l *lowering) write(rank int, r *dag.Rank, size extent, memory *dag.Rank) (dag.Rank, error) {
	if !l.concerns(r) {
		return *r, nil
	}
	if looksAhead(&r.Deps) || looksAhead(&r.StartDeps) {
		if _, err := l.place(rank, r); err != nil {
			return dag.Rank{}, err
		}
	}
	l.start(r)
	l.target.begin(r, size, memory)
	m := member{rank: rank, r: r}
	for i, kind := range r.Kind {
		l.first[i] = int32(l.target.n)
		if kind == dag.Coll {
			l.locate(&m, i, l.cursor)
		}
		if kind == dag.Coll && l.lowered[m.kind()] {
			if err := l.writeMessages(&m); err != nil {
				return dag.Rank{}, err
			}
		} else {
			l.target.copyOp(r, i)
			l.require(i)
		}
		l.last[i] = l.target.last()
	}
	*memory = l.target.rank
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

// looksAhead reports whether an op waits for one that follows it.
func looksAhead(e *dag.Edges) bool {
	for _, off := range e.Off {
		if off <= 0 {
			return true
		}
	}
	return false
}

// start begins with a rank.
func (l *lowering) start(r *dag.Rank) {
	l.source = r
	l.first, l.last = resize(l.first, r.Len()), resize(l.last, r.Len())
	l.cursor.reset()
}

// place sets first and last, and returns the size that the rank will have.
func (l *lowering) place(rank int, r *dag.Rank) (extent, error) {
	if !l.concerns(r) {
		return extent{uint32(r.Len()), uint32(len(r.Deps.Off)), uint32(len(r.StartDeps.Off))}, nil
	}
	l.start(r)
	m := member{rank: rank, r: r}
	ops, deps, startDeps := 0, 0, 0
	for i, kind := range r.Kind {
		l.first[i] = int32(ops)
		if kind == dag.Coll {
			l.locate(&m, i, l.cursor)
		}
		if kind != dag.Coll || !l.lowered[m.kind()] {
			l.last[i] = int32(ops)
			ops++
			deps += r.Deps.Count(i)
			startDeps += r.StartDeps.Count(i)
			continue
		}
		if err := m.checkBlock(); err != nil {
			return extent{}, err
		}
		p, err := l.plan(&m)
		if err != nil {
			return extent{}, err
		}
		ops += p.ops()
		deps += len(l.schedule.after)
		if p.fork {
			deps += p.entries + r.Deps.Count(i)
			startDeps += r.StartDeps.Count(i)
		} else {
			deps += p.entries * r.Deps.Count(i)
			startDeps += p.entries * r.StartDeps.Count(i)
		}
		if p.join {
			deps += p.exits
		}
		if ops > maxOps {
			return extent{}, fmt.Errorf("rank %d: more than %d ops", rank, maxOps)
		}
		l.last[i] = int32(ops - 1)
	}
	return extent{uint32(ops), uint32(deps), uint32(startDeps)}, nil
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
func (l *lowering) plan(m *member) (plan, error) {
	l.call = m.call()
	l.schedule.Reset()
	inst := &m.comm.instances[m.k]
	if err := l.choice.find(inst.kind, m.comm.largest(inst), m.comm.size).plan(&l.call, &l.schedule); err != nil {
		return plan{}, fmt.Errorf("rank %d, op %d: %w", m.rank, m.op, err)
	}
	p := plan{steps: len(l.schedule.Steps)}
	p.entries, p.exits = l.schedule.ends()
	waits := m.r.Deps.Count(m.op) + m.r.StartDeps.Count(m.op)
	p.fork = p.entries == 0 || p.entries > 1 && waits > 1
	p.join = p.exits > 1
	return p, nil
}

// writeMessages appends what stands for a member's part in a collective.
func (l *lowering) writeMessages(m *member) error {
	t, i := &l.target, m.op
	p, err := l.plan(m)
	if err != nil {
		return err
	}
	release, name := m.r.Release.At(i), m.r.Name.At(i)
	if p.fork {
		t.marker(i)
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
		t.message(m.comm.rank(int(s.Peer)), s.Bytes, tag-int64(s.Lane)*l.count, m.id)
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
		t.marker(i)
		for k := range l.schedule.Steps {
			if !l.schedule.Steps[k].Awaited {
				t.require(begin + int32(k))
			}
		}
	}
	return nil
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
