package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Window returns a trace of the ops of t that start in the time from from (inclusive) to to (exclusive); from becomes
// time 0. The references of t must be in range ([dag.Rank.CheckReferences]). Window does not change t.
//
// If any op of the trace was measured, the start of an op is its measured start or, if only that is known, its
// measured end; otherwise it is its release. A send or receive without a start takes that of its partner, and a part
// of a collective that of the last other part. Any other op starts with the last of its dependencies, or at 0.
//
// Messages with one side outside the window are removed, as are collectives with a part outside. An op that waited
// for a removed op waits for the dependencies of that op.
//
// Window returns an error for traces without times, and for receives from any source or of any tag.
//
// Window ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Window(ctx context.Context, t *dag.Trace, from, to dag.Time) (*dag.Trace, Removed, error) {
	if from < 0 || to <= from {
		return nil, Removed{}, fmt.Errorf("window from %v to %v, expected an end after a start of 0s or more", from, to)
	}
	w := &window{ctx: ctx, trace: t, from: from, to: to, phases: make([][]phase, len(t.Ranks))}
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, Removed{}, err
		}
		w.phases[rank] = make([]phase, t.Ranks[rank].Len())
		w.measured = w.measured || wasMeasured(t.Ranks[rank])
	}
	if any, err := w.setTimed(); err != nil {
		return nil, Removed{}, err
	} else if !any {
		return nil, Removed{}, errors.New("no op has a measured time or a release time")
	}
	if err := w.setUntimed(); err != nil {
		return nil, Removed{}, err
	}
	if err := w.cutTies(); err != nil {
		return nil, Removed{}, err
	}
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	for rank := range t.Ranks {
		err := par.Interrupted(ctx)
		if err != nil {
			return nil, Removed{}, err
		}
		cut, err := w.cut(rank)
		if err != nil {
			return nil, Removed{}, fmt.Errorf("rank %d: %w", rank, err)
		}
		out.Ranks[rank] = cut.Keep()
	}
	return &out, w.removed, nil
}

// phase is the position of the start of an op relative to the window.
type phase uint8

const (
	unknown phase = iota
	before
	inside
	after
	severed // inside, but the partner or a part of the collective is not
)

type window struct {
	ctx      context.Context // ends the work early; nil: never
	trace    *dag.Trace
	from, to dag.Time
	measured bool // starts are measured times
	phases   [][]phase
	removed  Removed
}

func wasMeasured(r *dag.Rank) bool {
	known := func(t dag.Time) bool { return t != dag.Unmeasured }
	return slices.ContainsFunc(r.MeasuredStart, known) || slices.ContainsFunc(r.MeasuredEnd, known)
}

// at returns the phase of a time.
func (w *window) at(t dag.Time) phase {
	switch {
	case t < w.from:
		return before
	case t < w.to:
		return inside
	}
	return after
}

// setTimed sets the phase of the ops with a time of their own, and reports whether there are any.
func (w *window) setTimed() (any bool, err error) {
	for rank := range w.trace.Ranks {
		if err := par.Interrupted(w.ctx); err != nil {
			return false, err
		}
		r := w.trace.Ranks[rank]
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
				w.phases[rank][i] = w.at(t)
				any = true
			}
		}
	}
	return any, nil
}

// setUntimed sets the phase of the ops without a time of their own.
func (w *window) setUntimed() error {
	type known struct {
		p place
		w phase
	}
	var inferred []known // applied after all look-ups: only ops with a time of their own count
	err := matchMessages(w.ctx, w.trace, func(send, recv place) {
		s, r := w.phases[send.rank][send.op], w.phases[recv.rank][recv.op]
		if s == unknown && r != unknown {
			inferred = append(inferred, known{send, r})
		} else if r == unknown && s != unknown {
			inferred = append(inferred, known{recv, s})
		}
	})
	if err != nil {
		return err
	}
	last := w.collectives(func(p place, sum phase) phase { return max(sum, w.phases[p.rank][p.op]) })
	w.eachPart(last, func(p place, sum phase) {
		if w.phases[p.rank][p.op] == unknown {
			inferred = append(inferred, known{p, sum})
		}
	})
	for _, k := range inferred {
		w.phases[k.p.rank][k.p.op] = k.w
	}
	for rank := range w.trace.Ranks {
		if err := par.Interrupted(w.ctx); err != nil {
			return err
		}
		if err := w.inherit(rank); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// inherit sets the phase of the remaining ops of a rank to that of the last of their dependencies.
func (w *window) inherit(rank int) error {
	r, phases := w.trace.Ranks[rank], w.phases[rank]
	order, err := topological(r)
	if err != nil {
		return err
	}
	for k := range phases {
		op := k
		if order != nil {
			op = int(order[k])
		}
		if phases[op] != unknown {
			continue
		}
		phases[op] = w.at(0)
		for _, edges := range []*dag.Edges{&r.Deps, &r.StartDeps} {
			for _, off := range edges.Of(op) {
				phases[op] = max(phases[op], phases[op-int(off)])
			}
		}
	}
	return nil
}

// collectives returns, for each instance of each communicator, the result of add over all its parts.
func (w *window) collectives(add func(p place, sum phase) phase) [][]phase {
	sums := make([][]phase, len(w.trace.Comms))
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

// eachPart calls visit with every part of a collective and the value of its instance.
func (w *window) eachPart(of [][]phase, visit func(p place, sum phase)) {
	for rank := range w.trace.Ranks {
		w.eachCollective(rank, func(p place, comm int32, instance int) { visit(p, of[comm][instance]) })
	}
}

// eachCollective calls visit with the collectives of a rank, in order.
func (w *window) eachCollective(rank int, visit func(p place, comm int32, instance int)) {
	r := w.trace.Ranks[rank]
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

// cutTies removes messages and collectives that are only partly inside.
func (w *window) cutTies() error {
	err := matchMessages(w.ctx, w.trace, func(send, recv place) {
		s, r := &w.phases[send.rank][send.op], &w.phases[recv.rank][recv.op]
		for _, side := range []struct{ own, other *phase }{{s, r}, {r, s}} {
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
	const all, some phase = inside, severed
	whole := w.collectives(func(p place, sum phase) phase {
		if w.phases[p.rank][p.op] == inside && sum != some {
			return all
		}
		return some
	})
	w.eachPart(whole, func(p place, sum phase) {
		if own := &w.phases[p.rank][p.op]; *own == inside && sum == some {
			*own = severed
			w.removed.Collectives++
		}
	})
	return nil
}

// cut returns the ops of a rank in the window.
func (w *window) cut(rank int) (dag.Rank, error) {
	out := *w.trace.Ranks[rank]
	gone := make([]bool, out.Len())
	for i, p := range w.phases[rank] {
		gone[i] = p != inside
		if gone[i] && p != severed {
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

// earlier returns measured times relative to the start of the window.
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
