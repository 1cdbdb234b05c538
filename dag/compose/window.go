package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Window returns a trace of the ops of t that start from one time on and before another; from becomes time 0. The
// references of t must be in range ([dag.Rank.CheckReferences]); it changes nothing of it.
//
// When an op starts is its measured start, or where only that is known its measured end, if any op of the trace was
// measured, and otherwise its release. A send or a receive for which that says nothing starts when the other side of
// the message does, a part in a collective with the last of the others. What is left starts with the last of what it
// waits for, or at 0.
//
// Messages of which one side is outside go as a whole, and so do collectives of which one part is. What waited for an
// op that goes waits for what that waited for.
//
// It fails on traces that have no times, and on receives from any source or of any tag.
//
// Window ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Window(ctx context.Context, t *dag.Trace, from, to dag.Time) (*dag.Trace, Removed, error) {
	if from < 0 || to <= from {
		return nil, Removed{}, fmt.Errorf("the window begins at %v and ends at %v", from, to)
	}
	w := &window{ctx: ctx, trace: t, from: from, to: to, when: make([][]when, len(t.Ranks))}
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, Removed{}, err
		}
		w.when[rank] = make([]when, t.Ranks[rank].Len())
		w.measured = w.measured || wasMeasured(&t.Ranks[rank])
	}
	if any, err := w.judgeTimes(); err != nil {
		return nil, Removed{}, err
	} else if !any {
		return nil, Removed{}, errors.New("no op was measured or has a release time")
	}
	if err := w.judgeOthers(); err != nil {
		return nil, Removed{}, err
	}
	if err := w.cutTies(); err != nil {
		return nil, Removed{}, err
	}
	out := *t
	out.Ranks = make([]dag.Rank, len(t.Ranks))
	for rank := range t.Ranks {
		err := par.Interrupted(ctx)
		if err != nil {
			return nil, Removed{}, err
		}
		if out.Ranks[rank], err = w.cut(rank); err != nil {
			return nil, Removed{}, fmt.Errorf("rank %d %w", rank, err)
		}
	}
	return &out, w.removed, nil
}

// when says when an op starts.
type when uint8

const (
	unknown when = iota
	before
	inside
	after
	severed // inside, but what it is a part of is not
)

type window struct {
	ctx      context.Context // ends the work early; nil: never
	trace    *dag.Trace
	from, to dag.Time
	measured bool // times are those measured
	when     [][]when
	removed  Removed
}

func wasMeasured(r *dag.Rank) bool {
	known := func(t dag.Time) bool { return t != dag.Unmeasured }
	return slices.ContainsFunc(r.MeasuredStart, known) || slices.ContainsFunc(r.MeasuredEnd, known)
}

// at returns where a time lies.
func (w *window) at(t dag.Time) when {
	switch {
	case t < w.from:
		return before
	case t < w.to:
		return inside
	}
	return after
}

// judgeTimes finds where the ops lie that have a time of their own, and reports whether there are any.
func (w *window) judgeTimes() (any bool, err error) {
	for rank := range w.trace.Ranks {
		if err := par.Interrupted(w.ctx); err != nil {
			return false, err
		}
		r := &w.trace.Ranks[rank]
		for i := range r.Kind {
			t := r.Release.At(i)
			known := t > 0
			if w.measured {
				start, end := r.Measured(i)
				if t = start; t == dag.Unmeasured {
					t = end
				}
				known = t != dag.Unmeasured
			}
			if known {
				w.when[rank][i] = w.at(t)
				any = true
			}
		}
	}
	return any, nil
}

// judgeOthers finds where the ops lie that have no time of their own.
func (w *window) judgeOthers() error {
	type known struct {
		p place
		w when
	}
	var learnt []known // not before all were asked, for what has a time of its own tells
	err := matchMessages(w.ctx, w.trace, func(send, recv place) {
		s, r := w.when[send.rank][send.op], w.when[recv.rank][recv.op]
		if s == unknown && r != unknown {
			learnt = append(learnt, known{send, r})
		} else if r == unknown && s != unknown {
			learnt = append(learnt, known{recv, s})
		}
	})
	if err != nil {
		return err
	}
	last := w.collectives(func(p place, sum when) when { return max(sum, w.when[p.rank][p.op]) })
	w.eachPart(last, func(p place, sum when) {
		if w.when[p.rank][p.op] == unknown {
			learnt = append(learnt, known{p, sum})
		}
	})
	for _, k := range learnt {
		w.when[k.p.rank][k.p.op] = k.w
	}
	for rank := range w.trace.Ranks {
		if err := par.Interrupted(w.ctx); err != nil {
			return err
		}
		if err := w.inherit(rank); err != nil {
			return fmt.Errorf("rank %d %w", rank, err)
		}
	}
	return nil
}

// inherit has the ops of a rank of which nothing else is known start with the last of what they wait for.
func (w *window) inherit(rank int) error {
	r, when := &w.trace.Ranks[rank], w.when[rank]
	order, err := topological(r)
	if err != nil {
		return err
	}
	for k := range when {
		op := k
		if order != nil {
			op = int(order[k])
		}
		if when[op] != unknown {
			continue
		}
		when[op] = w.at(0)
		for _, edges := range []*dag.Edges{&r.Deps, &r.StartDeps} {
			for _, off := range edges.Of(op) {
				when[op] = max(when[op], when[op-int(off)])
			}
		}
	}
	return nil
}

// collectives returns for each instance of each communicator what add makes of all its parts.
func (w *window) collectives(add func(p place, sum when) when) [][]when {
	sums := make([][]when, len(w.trace.Comms))
	for rank := range w.trace.Ranks {
		w.eachCollective(rank, func(p place, comm int32, instance int) {
			if instance == len(sums[comm]) {
				sums[comm] = append(sums[comm], unknown)
			}
			sums[comm][instance] = add(p, sums[comm][instance])
		})
	}
	return sums
}

// eachPart calls visit with every part in a collective and what the instance has.
func (w *window) eachPart(of [][]when, visit func(p place, sum when)) {
	for rank := range w.trace.Ranks {
		w.eachCollective(rank, func(p place, comm int32, instance int) { visit(p, of[comm][instance]) })
	}
}

// eachCollective calls visit with the collectives of a rank, in order.
func (w *window) eachCollective(rank int, visit func(p place, comm int32, instance int)) {
	r := &w.trace.Ranks[rank]
	var count map[int32]int
	for i, kind := range r.Kind {
		comm := r.Comm.At(i)
		if kind != dag.Coll || uint(comm) >= uint(len(w.trace.Comms)) {
			continue
		}
		if count == nil {
			count = make(map[int32]int)
		}
		visit(place{int32(rank), int32(i)}, comm, count[comm])
		count[comm]++
	}
}

// cutTies takes out messages and collectives that are not inside as a whole.
func (w *window) cutTies() error {
	err := matchMessages(w.ctx, w.trace, func(send, recv place) {
		s, r := &w.when[send.rank][send.op], &w.when[recv.rank][recv.op]
		for _, side := range []struct{ own, other *when }{{s, r}, {r, s}} {
			if *side.own == inside && *side.other != inside {
				*side.own = severed
				w.removed.Messages++
				break
			}
		}
	})
	if err != nil {
		return err
	}
	const all, some when = inside, severed
	whole := w.collectives(func(p place, sum when) when {
		if w.when[p.rank][p.op] == inside && sum != some {
			return all
		}
		return some
	})
	w.eachPart(whole, func(p place, sum when) {
		if own := &w.when[p.rank][p.op]; *own == inside && sum == some {
			*own = severed
			w.removed.Collectives++
		}
	})
	return nil
}

// cut returns what of a rank is in the window.
func (w *window) cut(rank int) (dag.Rank, error) {
	out := w.trace.Ranks[rank]
	gone := make([]bool, out.Len())
	for i, when := range w.when[rank] {
		gone[i] = when != inside
		if gone[i] && when != severed {
			w.removed.Ops++
		}
	}
	if slices.Contains(gone, true) {
		var err error
		if out, err = remove(&out, gone); err != nil {
			return out, err
		}
	}
	if w.from == 0 {
		return out, nil
	}
	out.Release = slices.Clone(out.Release)
	for i, at := range out.Release {
		out.Release[i] = max(at, w.from) - w.from
	}
	out.MeasuredStart, out.MeasuredEnd = w.earlier(out.MeasuredStart), w.earlier(out.MeasuredEnd)
	return out, nil
}

// earlier returns measured times as counted from the start of the window.
func (w *window) earlier(times []dag.Time) []dag.Time {
	times = slices.Clone(times)
	for i, t := range times {
		if t > dag.Unmeasured+w.from {
			times[i] = t - w.from
		} else {
			times[i] = dag.Unmeasured
		}
	}
	return times
}
