// This file finds the event that each message and each part in a collective of a DAG waits for, and its delay
// after the event: the last three fields of a VEF record.

package vef

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
)

// An event is the end of a communicating op of the same rank (for a receive: the arrival of its message), by its
// index, or one of these.
const (
	origin  = -1 // the start of the trace
	unclear = -2 // not a single event for every network
)

// plan is the plan for writing a trace.
type plan struct {
	t     *dag.Trace
	first []int // number of each rank's first op over all ranks; the last entry is the total

	waits []wait // by op number

	clear []bool // by rank: whether no communicating op waits for unclear

	matched bool     // whether tags match messages with receives
	sendOf  []uint32 // by tag, if matched: one more than the number of the send
	sender  []uint32 // by receive number, if not matched: number of its send

	groups        []comm // members of each communicator with collectives
	firstInstance []int  // of each communicator; the last entry is the total
	instances     []collectiveInstance
	// of each instance from collectiveInstance.members on: index of its op on each member's rank
	member   []int32
	instance []int32 // by number of a coll op: its instance; nil: none

	messages, participations int64

	drafts     []draft
	firstDraft []int    // number of each rank's first draft; the last entry is the total
	draftOf    []uint32 // by number of an op with a draft: its number within the rank
	clock      dag.Time
	dropWorld  bool // communicator 0 was added when the trace was read
}

// wait is the event that an op waits for.
type wait struct {
	delay dag.Time // between the event and the op's start
	event int32
}

// collectiveInstance is an instance of a collective.
type collectiveInstance struct {
	members int64
	sum     int64 // of the members' contributions
	comm    int32
	root    int32 // rank; 0 if there is none
	parts   int32 // number of members added
	op      uint8
}

// maxPlanOps is the maximum number of ops of a trace to write.
const maxPlanOps = math.MaxUint32 - 1

// newPlan finds the dependencies of each record. Collectives that VEF lacks become messages.
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
		return nil, fmt.Errorf("expected at most %d ops, found %d", maxPlanOps, n)
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
		if err := p.resolveTiming(); err != nil {
			return nil, err
		}
	}
	p.makeDrafts()
	return p, nil
}

// lowered returns the trace without the collectives that VEF lacks.
func lowered(t *dag.Trace) (*dag.Trace, error) {
	if foreign(t) == 0 {
		return t, nil
	}
	return collective.LowerSelected(context.Background(), t, collective.Choice{}, lacks)
}

// lacks reports whether VEF lacks a collective.
func lacks(kind dag.Subkind) bool {
	return vefOp(kind) < 0
}

// foreign returns the number of collective ops that VEF lacks.
func foreign(t *dag.Trace) int64 {
	n := int64(0)
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			if kind == dag.Coll && lacks(r.Subkind.At(op)) {
				n++
			}
		}
	}
	return n
}

// vefOp returns the number of a collective in VEF, or -1.
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

// isClear reports whether every dependency is on one event, and all messages are matched with receives.
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
	selfs bool // some calcs represent messages of the rank to itself
	clear *bool
}

func (p *plan) newRankPlan(rank int) *rankPlan {
	r := p.t.Ranks[rank]
	from, to := p.first[rank], p.first[rank+1]
	return &rankPlan{r: r, rank: rank, waits: p.waits[from:to], selfs: r.Attrs.Len() > 0,
		clear: &p.clear[rank]}
}

// selfPart returns the attributes of a calc that represents a part of a message of the rank to itself, "" for
// other ops.
func selfPart(r *dag.Rank, i int) string {
	if i >= r.Attrs.Len() || r.Kind[i] != dag.Calc {
		return ""
	}
	switch r.Attrs.At(i) {
	case selfSendAttrs:
		return selfSendAttrs
	case selfRecvAttrs:
		// users can write attributes, so a received message must exist
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

// inCircle returns the error about an op that waits for itself.
func inCircle(rank, op int) error {
	return fmt.Errorf("rank %d, op %d: cyclic dependency: the op waits for itself through other ops", rank, op)
}

// find sets the event and the delay of every op.
func (p *rankPlan) find() error {
	r := p.r
	for i, d := range r.Duration {
		if d < 0 {
			return fmt.Errorf("rank %d, op %d: expected a duration of 0 or more, found %v", p.rank, i, d)
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

// findInOrder is find for a rank with ops that precede their dependencies.
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
			case entered: // all its dependencies are done
				p.set(i)
				state[i] = done
			}
			stack = stack[:len(stack)-1]
		}
	}
	return nil
}

// set sets the event and the delay of an op whose dependencies have theirs.
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

// end returns the event that the end of an op waits for, and the delay after it.
func (p *rankPlan) end(i int) (int32, dag.Time) {
	if p.communicates(i) {
		if p.r.Kind[i] == dag.Recv && (p.waits[i].event != origin || p.waits[i].delay > 0) {
			return unclear, 0 // it may end after the arrival of its message
		}
		return int32(i), 0
	}
	if p.waits[i].event == unclear {
		return unclear, 0
	}
	return p.after(p.waits[i].event, p.waits[i].delay, p.r.CalcTime(i))
}

// after returns the event and the delay increased by more.
func (p *rankPlan) after(event int32, delay, more dag.Time) (int32, dag.Time) {
	if more > dag.MaxTime-delay {
		return unclear, 0 // the replay reports the overflow
	}
	return event, delay + more
}

// start returns the event that the start of an op waits for, and the delay after it. A send starts when it is
// sent.
func (p *rankPlan) start(i int) (int32, dag.Time) {
	if p.r.Kind[i] == dag.Send {
		return int32(i), 0
	}
	return p.waits[i].event, p.waits[i].delay
}

// later returns the later of two times after events, if it is the same one on every network.
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

// maxFollow is the maximum number of events that follows traces back.
const maxFollow = 256

// follows reports whether the time after b is never earlier than that after a, because b itself waits for a long
// enough.
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
