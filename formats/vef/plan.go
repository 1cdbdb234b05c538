// This file finds out on what event each message and each part in a collective of a DAG waits, and how long after it it
// begins: what a VEF record says in its last three fields.

package vef

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
)

// An event that something waits for is the end of an op of the same rank that communicates (of a receive: the arrival
// of its message), by its index, or one of these.
const (
	origin  = -1 // the start of the trace
	unclear = -2 // not one event alone, whatever the network does
)

// plan is how a trace is written.
type plan struct {
	t     *dag.Trace
	first []int // number of each rank's first op, through all ranks; and at the end, of all

	waits []wait // by number of the op

	clear []bool // by rank: whether no op that communicates waits for unclear

	matched bool     // whether tags tell which message meets which receive
	sendOf  []uint32 // by tag, where they do: one more than the number of the send
	sender  []uint32 // by number of a receive, where they do not: that of its send

	groups        []comm // of each communicator with collectives, its members
	firstInstance []int  // of each communicator; and at the end, of all
	instances     []collectiveInstance
	// of each instance from collectiveInstance.members on: the index of its op on each member's rank
	member   []int32
	instance []int32 // by number of a coll op: its instance. nil where there are none

	messages, participations int64

	drafts     []draft
	firstDraft []int    // number of each rank's first draft; and at the end, of all
	draftOf    []uint32 // by number of an op that has one, as a number within the rank
	clock      dag.Time
	dropWorld  bool // communicator 0 was added when the trace was read
}

// wait is what an op waits for.
type wait struct {
	delay dag.Time // how long after the event it starts
	event int32
}

// collectiveInstance is an instance of a collective.
type collectiveInstance struct {
	members int64
	sum     int64 // of what the members contribute
	comm    int32
	root    int32 // rank; 0 where there is none
	parts   int32 // members that are entered
	op      uint8
}

// maxPlanOps is how many ops a trace may have to be written.
const maxPlanOps = math.MaxUint32 - 1

// newPlan finds what each record depends on. Collectives that VEF does not have become messages.
func newPlan(t *dag.Trace) (*plan, error) {
	t, err := lowered(t)
	if err != nil {
		return nil, err
	}
	p := &plan{t: t, first: make([]int, len(t.Ranks)+1), clear: make([]bool, len(t.Ranks))}
	for i := range t.Ranks {
		if err := t.Ranks[i].CheckReferences(); err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
		p.first[i+1] = p.first[i] + t.Ranks[i].Len()
	}
	n := p.first[len(t.Ranks)]
	if n > maxPlanOps {
		return nil, fmt.Errorf("%d ops, expected at most %d", n, maxPlanOps)
	}
	p.waits = make([]wait, n)
	if err := par.Each(len(t.Ranks), func(rank int) error { return p.newRankPlan(rank).find() }); err != nil {
		return nil, err
	}
	if err := p.findInstances(); err != nil {
		return nil, err
	}
	p.matchByTag()
	if !p.isClear() {
		if err := p.settle(); err != nil {
			return nil, err
		}
	}
	p.makeDrafts()
	return p, nil
}

// lowered returns the trace without the collectives that VEF does not have.
func lowered(t *dag.Trace) (*dag.Trace, error) {
	if foreign(t) == 0 {
		return t, nil
	}
	return collective.LowerSelected(context.Background(), t, collective.Choice{},
		func(kind dag.Subkind) bool { return vefOp(kind) < 0 })
}

// foreign returns how many ops are collectives that VEF does not have.
func foreign(t *dag.Trace) int64 {
	n := int64(0)
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op, kind := range r.Kind {
			if kind == dag.Coll && vefOp(r.Subkind.At(op)) < 0 {
				n++
			}
		}
	}
	return n
}

// vefOp returns the number of a collective in VEF, -1 where it has none.
func vefOp(kind dag.Subkind) int {
	switch kind {
	case dag.Bcast:
		return opBroadcast
	case dag.Reduce:
		return opReduce
	case dag.Allreduce:
		return opAllreduce
	case dag.Gather, dag.Gatherv:
		return opGather
	case dag.Scatter, dag.Scatterv:
		return opScatter
	case dag.Allgather, dag.Allgatherv:
		return opAllgather
	case dag.Barrier:
		return opBarrier
	case dag.Alltoall, dag.Alltoallv:
		return opAlltoall
	}
	return -1
}

// isClear reports whether every dependency is on one event, and it is known which message meets which receive.
func (p *plan) isClear() bool {
	for _, clear := range p.clear {
		if !clear {
			return false
		}
	}
	return p.matched
}

// rankPlan finds the events of one rank.
type rankPlan struct {
	r     *dag.Rank
	rank  int
	waits []wait
	selfs bool // some calcs stand for messages of the rank to itself
	clear *bool
}

func (p *plan) newRankPlan(rank int) *rankPlan {
	r := &p.t.Ranks[rank]
	from, to := p.first[rank], p.first[rank+1]
	return &rankPlan{r: r, rank: rank, waits: p.waits[from:to], selfs: r.Attrs.Len() > 0,
		clear: &p.clear[rank]}
}

// selfPart returns the attributes of a calc that stands for a part of a message of the rank to itself, "" for another
// op.
func selfPart(r *dag.Rank, i int) string {
	if i >= r.Attrs.Len() || r.Kind[i] != dag.Calc {
		return ""
	}
	switch r.Attrs.At(i) {
	case selfSendAttrs:
		return selfSendAttrs
	case selfRecvAttrs:
		// Anybody can write attributes, so there must be something that it receives.
		if on := r.Deps.Of(i); len(on) == 1 {
			if send := i - int(on[0]); r.Kind[send] == dag.Calc && r.Attrs.At(send) == selfSendAttrs {
				return selfRecvAttrs
			}
		}
	}
	return ""
}

// communicates reports whether the end of op i is an event.
func (p *rankPlan) communicates(i int) bool {
	switch p.r.Kind[i] {
	case dag.Send, dag.Recv, dag.Coll:
		return true
	}
	return p.selfs && selfPart(p.r, i) != ""
}

// recorded reports whether op i has a record.
func recorded(r *dag.Rank, i int) bool {
	switch r.Kind[i] {
	case dag.Send, dag.Coll:
		return true
	case dag.Calc:
		return selfPart(r, i) == selfSendAttrs
	}
	return false
}

// inCircle is the error that an op waits for itself.
func inCircle(rank, op int) error {
	return fmt.Errorf("rank %d op %d waits for itself, through other ops", rank, op)
}

// find sets the event and the delay of every op.
func (p *rankPlan) find() error {
	r := p.r
	for i, d := range r.Duration {
		if d < 0 {
			return fmt.Errorf("rank %d op %d lasts %v, expected no less than nothing", p.rank, i, d)
		}
	}
	if forward(&r.Deps) || forward(&r.StartDeps) {
		if err := p.findInOrder(); err != nil {
			return err
		}
	} else {
		for i := range r.Kind {
			p.set(i)
		}
	}
	*p.clear = true
	for i := range r.Kind {
		if p.waits[i].event == unclear && recorded(r, i) {
			*p.clear = false
			break
		}
	}
	return nil
}

func forward(e *dag.Edges) bool {
	for _, off := range e.Off {
		if off <= 0 {
			return true
		}
	}
	return false
}

// findInOrder is find for a rank of which some ops come before those that they wait for.
func (p *rankPlan) findInOrder() error {
	const (
		unseen = iota
		entered
		done
	)
	state := make([]uint8, p.r.Len())
	var stack []int32
	for root := range p.r.Kind {
		stack = append(stack, int32(root))
		for len(stack) > 0 {
			i := int(stack[len(stack)-1])
			switch state[i] {
			case unseen:
				state[i] = entered
				for _, e := range []*dag.Edges{&p.r.Deps, &p.r.StartDeps} {
					for _, off := range e.Of(i) {
						switch on := int32(i) - off; state[on] {
						case unseen:
							stack = append(stack, on)
						case entered:
							return inCircle(p.rank, int(on))
						}
					}
				}
				continue
			case entered: // all that it waits for is done
				p.set(i)
				state[i] = done
			}
			stack = stack[:len(stack)-1]
		}
	}
	return nil
}

// set sets the event and the delay of an op, when those that it waits for have theirs.
func (p *rankPlan) set(i int) {
	deps, starts, release := p.r.Deps.Of(i), p.r.StartDeps.Of(i), p.r.Release.At(i)
	event, delay := int32(origin), dag.Time(0)
	if len(deps) > 0 {
		event, delay = p.end(i - int(deps[0]))
	}
	if len(deps) > 1 || len(starts) > 0 || release > 0 {
		for _, off := range deps[min(1, len(deps)):] {
			e, d := p.end(i - int(off))
			event, delay = p.later(event, delay, e, d)
		}
		for _, off := range starts {
			e, d := p.start(i - int(off))
			event, delay = p.later(event, delay, e, d)
		}
		event, delay = p.later(event, delay, origin, release)
	}
	p.waits[i] = wait{event: event, delay: delay}
}

// end returns the event that the end of an op waits for, and how long after it that is.
func (p *rankPlan) end(i int) (int32, dag.Time) {
	if p.communicates(i) {
		if p.r.Kind[i] == dag.Recv && (p.waits[i].event != origin || p.waits[i].delay > 0) {
			return unclear, 0 // it may end later than its message arrives
		}
		return int32(i), 0
	}
	if p.waits[i].event == unclear {
		return unclear, 0
	}
	return p.after(p.waits[i].event, p.waits[i].delay, p.r.CalcTime(i))
}

// after returns the event, and how long after it a time later than delay is.
func (p *rankPlan) after(event int32, delay, more dag.Time) (int32, dag.Time) {
	if more > dag.MaxTime-delay {
		return unclear, 0 // where the replay will say what is too long
	}
	return event, delay + more
}

// start returns the event that the start of an op waits for, and how long after it that is. A send starts when it is
// sent.
func (p *rankPlan) start(i int) (int32, dag.Time) {
	if p.r.Kind[i] == dag.Send {
		return int32(i), 0
	}
	return p.waits[i].event, p.waits[i].delay
}

// later returns the later of two times after events, if that is the same one whatever the network does.
func (p *rankPlan) later(a int32, afterA dag.Time, b int32, afterB dag.Time) (int32, dag.Time) {
	switch {
	case a == unclear || b == unclear:
		return unclear, 0
	case a == b:
		return a, max(afterA, afterB)
	case p.follows(b, afterB, a, afterA):
		return b, afterB
	case p.follows(a, afterA, b, afterB):
		return a, afterA
	}
	return unclear, 0
}

// maxFollow is how many events follows goes back before it gives up.
const maxFollow = 256

// follows reports whether the time after b is surely no earlier than that after a, because b itself waits for a, for
// long enough.
func (p *rankPlan) follows(b int32, afterB dag.Time, a int32, afterA dag.Time) bool {
	if a == origin && afterA == 0 {
		return true
	}
	for range maxFollow {
		if b < 0 || afterB >= dag.MaxTime/2 {
			return false
		}
		b, afterB = p.waits[b].event, afterB+p.waits[b].delay
		if b == a {
			return afterB >= afterA
		}
	}
	return false
}
