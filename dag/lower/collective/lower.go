package collective

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
)

// Lower returns the trace with every collective replaced by the sends and receives of its chosen algorithm. The
// references of t must be in range ([dag.Rank.CheckReferences]). Lower does not change t; the result shares its
// unchanged parts.
//
// Messages of collective s of the trace, counted from 0 over all communicators and the collectives of each in order,
// have the tag [dag.CollectiveTag] - s. If t already has such tags, numbering continues below the lowest tag of t.
// Messages of lane 1 have tags below those of lane 0. See docs/reference/lowering.md.
//
// Lower returns an error if the members of a communicator disagree on their number of collectives, or on the kind, the
// root or the size of one.
//
// Lower ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Lower(ctx context.Context, t *dag.Trace, choice Choice) (*dag.Trace, error) {
	return LowerSelected(ctx, t, choice, every)
}

// LowerSelected is [Lower] restricted to collectives for whose subkind selected returns true. The other collectives
// remain in the trace. Members must agree on their number and kind, because these determine which ops form a
// collective. LowerSelected ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func LowerSelected(ctx context.Context, t *dag.Trace, choice Choice,
	selected func(dag.Subkind) bool) (*dag.Trace, error) {
	s, err := lowerSource(ctx, dag.FromTrace(t), choice, Selection{Kinds: selected})
	if err != nil {
		return nil, err
	}
	return memory.ReadTrace(ctx, s)
}

// Covers reports whether selected returns true for at least one collective of the trace (some), and for every one
// (all).
func Covers(t *dag.Trace, selected func(dag.Subkind) bool) (some, all bool) {
	all = true
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			if kind != dag.Coll {
				continue
			}
			if selected(r.Subkind.At(op)) {
				some = true
			} else {
				all = false
			}
		}
	}
	return some, all
}

// maxOps is the maximum number of ops of a lowered rank. It keeps three dependencies per op in the range of
// [dag.Edges].
const maxOps = 1 << 30

// extent is the number of ops and dependencies of a rank.
type extent struct{ ops, deps, startDeps uint32 }

// lowering rewrites ranks, each in two passes: place computes the index of every new op, write writes the ops.
type lowering struct {
	*instances
	choice *Choice
	cursor *cursor

	source      *dag.Rank
	first, last []int32 // new ops at which each op of source starts and ends
	participant Participant
	schedule    Schedule
	planned     shape // of which schedule is
	plannedPart plan  // without fork
	out         rankWriter

	waiters []int32        // by op of source: the calc that alone waits for its end, or noWaiter, or severalWaiters
	tails   map[int32]tail // of collectives without a marker after the messages, by op of source
}

// shape determines the schedule of a member's part in a collective whose members state no sizes of their own. Ranks
// mostly repeat a collective of the same shape, so that its schedule serves many of them.
type shape struct {
	comm     *comm // nil: none
	position int
	bytes    int64
	element  uint32
	root     int32
	kind     dag.Subkind
	uneven   bool
	later    uint32
}

// shape returns the shape of the member's part; comm is nil if members state sizes of their own.
func (m *member) shape() shape {
	inst := m.instance()
	if inst.table >= 0 || inst.counted != 0 {
		return shape{}
	}
	return shape{m.comm, m.position, inst.bytes, inst.element, inst.root, inst.kind, inst.uneven, inst.later}
}

// tail is the last steps of a non-blocking collective as new ops. The op that waits for the collective waits for each
// of them, so that the work of receives may be postponed to that wait.
type tail struct {
	exits  []int32
	posted []int32 // non-blocking messages
}

// Values of lowering.waiters.
const (
	noWaiter       int32 = -1
	severalWaiters int32 = -2
)

func newLowering(in *instances, choice *Choice) *lowering {
	return &lowering{instances: in, choice: choice, cursor: newCursor(len(in.comms))}
}

// write returns the lowered rank, whose size is that returned by place. It may reuse the given memory.
func (l *lowering) write(rank int, r *dag.Rank, size extent, memory *dag.Rank) (dag.Rank, error) {
	if !l.hasCollectives(r) {
		return *r, nil
	}
	if hasForwardDeps(&r.Deps) || hasForwardDeps(&r.StartDeps) {
		if _, err := l.place(rank, r); err != nil {
			return dag.Rank{}, err
		}
	}
	l.start(r)
	l.out.begin(r, size, memory, l.choice.reduction.Num != 0)
	m := member{rank: rank, r: r}
	for i, kind := range r.Kind {
		l.first[i] = int32(l.out.n)
		if kind == dag.Coll {
			l.locate(&m, i, l.cursor)
		}
		if kind == dag.Coll && l.lowers(m.instance()) {
			if err := l.writeMessages(&m); err != nil {
				return dag.Rank{}, err
			}
		} else {
			l.out.copyOp(i)
			l.require(i)
		}
		l.last[i] = l.out.last()
	}
	*memory = l.out.rank
	return l.out.rank, nil
}

// hasCollectives reports whether the rank has collectives to lower.
func (l *lowering) hasCollectives(r *dag.Rank) bool {
	for i, kind := range r.Kind {
		if kind == dag.Coll && l.lowered[r.Subkind.At(i)] {
			return true
		}
	}
	return false
}

// hasForwardDeps reports whether an op waits for a later one.
func hasForwardDeps(e *dag.Edges) bool {
	for _, off := range e.Off {
		if off <= 0 {
			return true
		}
	}
	return false
}

// start begins a pass over a rank.
func (l *lowering) start(r *dag.Rank) {
	l.source = r
	l.first, l.last = resize(l.first, r.Len()), resize(l.last, r.Len())
	l.cursor.reset()
	clear(l.tails)
	if l.direct {
		l.cursor.findStarted(r)
		l.findWaiters(r)
	}
}

// findWaiters sets waiters.
func (l *lowering) findWaiters(r *dag.Rank) {
	l.waiters = resize(l.waiters, r.Len())
	for i := range l.waiters {
		l.waiters[i] = noWaiter
	}
	for i, kind := range r.Kind {
		for _, off := range r.Deps.Of(i) {
			on := int32(i) - off
			if l.waiters[on] == noWaiter && kind == dag.Calc && off > 0 {
				l.waiters[on] = int32(i)
			} else {
				l.waiters[on] = severalWaiters
			}
		}
	}
}

// setStart sets the new op whose start is that of a non-blocking collective, whose first step is the new op begin: the
// last non-blocking send, which follows all others.
func (l *lowering) setStart(m *member, begin int32) {
	if m.instance().later == 0 {
		return
	}
	for k := range l.schedule.Steps {
		if s := &l.schedule.Steps[k]; s.Kind == dag.Send && s.NonBlocking {
			l.first[m.op] = begin + int32(k)
		}
	}
}

// setTail records the steps of the schedule, whose first is the new op begin, for the op that waits for the collective
// of m, and returns true; false if that needs a marker.
func (l *lowering) setTail(m *member, begin int32) bool {
	if !m.later || l.waiters[m.op] < 0 || m.instance().later == 0 {
		return false
	}
	var t tail
	for k := range l.schedule.Steps {
		if !l.schedule.Steps[k].Awaited {
			t.exits = append(t.exits, begin+int32(k))
		}
		if l.schedule.Steps[k].NonBlocking {
			t.posted = append(t.posted, begin+int32(k))
		}
	}
	if l.tails == nil {
		l.tails = map[int32]tail{}
	}
	l.tails[int32(m.op)] = t
	return true
}

// tailOf returns the last steps of a collective for the op that waits for it.
func (l *lowering) tailOf(op int32) (t tail, ok bool) {
	if len(l.tails) > 0 {
		if t, ok = l.tails[op]; ok {
			delete(l.tails, op) // no other op waits
		}
	}
	return t, ok
}

// place sets first and last, and returns the size of the lowered rank.
func (l *lowering) place(rank int, r *dag.Rank) (extent, error) {
	if !l.hasCollectives(r) {
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
		if kind != dag.Coll || !l.lowers(m.instance()) {
			l.last[i] = int32(ops)
			ops++
			deps += r.Deps.Count(i)
			startDeps += r.StartDeps.Count(i)
			for _, off := range r.Deps.Of(i) {
				if t, ok := l.tailOf(int32(i) - off); ok {
					deps += len(t.exits) - 1
					startDeps += len(t.posted)
				}
			}
			continue
		}
		if err := m.checkBlock(); err != nil {
			return extent{}, err
		}
		p, err := l.plan(&m)
		if err != nil {
			return extent{}, err
		}
		begin := int32(ops)
		if p.fork {
			begin++
		}
		l.setStart(&m, begin)
		if p.join && l.setTail(&m, begin) {
			p.join = false
		}
		ops += p.ops()
		deps += len(l.schedule.after)
		startDeps += p.following
		if p.fork {
			deps += p.entries + r.Deps.Count(i)
			startDeps += r.StartDeps.Count(i)
		} else {
			deps += p.entries * r.Deps.Count(i)
			startDeps += p.entries * r.StartDeps.Count(i)
		}
		if p.join {
			deps += p.exits
			startDeps += p.posted
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

// plan is the form of a member's part in a collective: the steps of its schedule, a marker before them (fork) if
// that saves dependencies, and a marker after them (join) if several messages have no dependents.
type plan struct {
	fork, join            bool
	steps, entries, exits int
	following             int // steps that wait for the start of the one before
	posted                int // non-blocking messages, whose start the marker after the messages waits for
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

// plan computes the schedule of a member's part in a collective, unless it has the shape of the one before.
func (l *lowering) plan(m *member) (plan, error) {
	if s := m.shape(); s.comm == nil || s != l.planned {
		l.planned = shape{}
		p, err := l.computeSchedule(m)
		if err != nil {
			return plan{}, err
		}
		l.planned, l.plannedPart = s, p
	}
	p := l.plannedPart
	waits := m.r.Deps.Count(m.op) + m.r.StartDeps.Count(m.op)
	p.fork = p.entries == 0 || p.entries > 1 && waits > 1
	return p, nil
}

// computeSchedule computes the schedule of a member's part in a collective, and the plan without fork.
func (l *lowering) computeSchedule(m *member) (plan, error) {
	l.participant = m.participant()
	l.participant.choice = l.choice
	l.schedule.Reset()
	// the byte of a barrier's message is no data
	l.schedule.reducing = l.choice.reduction.Num != 0 && l.participant.Kind != dag.Barrier
	inst := &m.comm.instances[m.k]
	if err := l.choice.find(inst.kind, m.comm.traits(inst)).plan(&l.participant, &l.schedule); err != nil {
		return plan{}, fmt.Errorf("rank %d, op %d: %w", m.rank, m.op, err)
	}
	p := plan{steps: len(l.schedule.Steps)}
	p.entries, p.exits = l.schedule.ends()
	for i := range l.schedule.Steps {
		s := &l.schedule.Steps[i]
		if s.NonBlocking {
			p.posted++
		}
		if s.Follows {
			p.following++
		}
		if s.Kind == dag.Calc {
			if _, ok := l.choice.reductionTime(s.Bytes); !ok {
				return plan{}, fmt.Errorf("rank %d, op %d: a reduction of %d bytes at %v takes more than %v; expected "+
					"a shorter time per byte in %s=", m.rank, m.op, s.Bytes, l.choice.reduction,
					dag.Time(math.MaxInt64), reductionKey)
			}
		}
	}
	p.join = p.exits > 1 || p.posted > 0
	return p, nil
}

// writeMessages appends the ops of a member's part in a collective.
func (l *lowering) writeMessages(m *member) error {
	t, i := &l.out, m.op
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
	l.setStart(m, begin)
	for k := range l.schedule.Steps {
		s, after := &l.schedule.Steps[k], l.schedule.After(k)
		switch {
		case s.Kind != dag.Calc:
			t.add(s.Kind, i)
			t.message(m.comm.rank(int(s.Peer)), s.Bytes, tag-int64(s.Lane)*l.count, m.id)
		case s.Bytes == 0:
			t.marker(i)
		default:
			t.add(s.Kind, i)
			t.rank.Duration[t.n-1], _ = l.choice.reductionTime(s.Bytes) // in range, see plan
		}
		for _, a := range after {
			t.require(begin + a)
		}
		if s.Follows {
			t.requireStart(t.last() - 1)
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
	if p.join && !l.setTail(m, begin) {
		t.marker(i)
		for k := range l.schedule.Steps {
			if !l.schedule.Steps[k].Awaited {
				t.require(begin + int32(k))
			}
			if l.schedule.Steps[k].NonBlocking {
				t.requireStart(begin + int32(k))
			}
		}
	}
	return nil
}

// require copies the dependencies of op i of source to the last op of out.
func (l *lowering) require(i int) {
	for _, off := range l.source.Deps.Of(i) {
		on := int32(i) - off
		t, ok := l.tailOf(on)
		if !ok {
			l.out.require(l.last[on])
			continue
		}
		for _, exit := range t.exits {
			l.out.require(exit)
		}
		for _, posted := range t.posted {
			l.out.requireStart(posted)
		}
	}
	for _, off := range l.source.StartDeps.Of(i) {
		l.out.requireStart(l.first[int32(i)-off])
	}
}
