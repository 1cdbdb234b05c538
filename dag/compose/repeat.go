package compose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Repeat returns a trace in which every rank runs its ops of t n times. On each rank separately, the ops without
// dependents of one iteration must finish before the ops without dependencies of the next start; a marker joins them
// if there are several of both. The references of t must be in range ([dag.Rank.CheckReferences]). Repeat does not
// change t. Only the first iteration has measured times. The steps of an iteration follow those of the previous one;
// without steps, each iteration is a step.
//
// A rank may begin an iteration while others are in the previous one. Messages of equal source, tag and communicator
// are received in the order of sending, and all receives of an iteration complete before those of the next are
// posted, so each gets a message of its own iteration. Only a receive from any source could match a message of the
// next iteration: in traces with such receives, every iteration has its own tags, higher than those of the previous
// one.
//
// Repeat returns an error for receives of any tag, which separate tags do not protect; for release times, whose
// values in later iterations are unknown; and for more ops, dependencies, text or higher tags than a trace can have.
//
// Repeat ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Repeat(ctx context.Context, t *dag.Trace, n int) (*dag.Trace, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d iterations, expected at least one", n)
	}
	if n == 1 {
		return t, nil
	}
	spread, err := tagsToRepeat(ctx, t, n)
	if err != nil {
		return nil, err
	}
	if steps := max(1, t.Steps); n > int(math.MaxInt32/steps) {
		return nil, fmt.Errorf("%d iterations of %d steps, expected at most %d steps in all", n, steps, math.MaxInt32)
	}
	out := *t
	out.Steps = max(1, t.Steps) * int32(n)
	out.Ranks = dag.CopyRanks(t.Ranks)
	for i, r := range out.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		if r.Len() == 0 {
			continue
		}
		err := spread.repeat(r, n, t.Steps, func() error { return memory.CheckOps(ctx, t.Ops(), int64(n)) })
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return &out, nil
}

// tagSpread is the distance between the tags of successive iterations: tags from 0 on increase, tags of lowered
// collectives decrease.
type tagSpread struct {
	up, down int64
}

// tagsToRepeat returns the distances; they are 0 if no receive is from any source.
func tagsToRepeat(ctx context.Context, t *dag.Trace, n int) (tagSpread, error) {
	var s tagSpread
	wild := false
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return s, err
		}
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if at := r.Release.At(i); at != 0 {
				return s, fmt.Errorf("rank %d: op %d: release time %v has no known value in later iterations",
					rank, i, at)
			}
			if kind != dag.Send && kind != dag.Recv {
				continue
			}
			tag := r.Tag.At(i)
			if kind == dag.Recv && tag == dag.AnyTag {
				return s, fmt.Errorf("rank %d: op %d: receive of any tag could match a message of the next iteration",
					rank, i)
			}
			wild = wild || kind == dag.Recv && r.Peer.At(i) == dag.AnySource
			if tag >= 0 {
				s.up = max(s.up, tag)
			} else {
				s.down = min(s.down, tag)
			}
		}
	}
	if !wild {
		return tagSpread{}, nil
	}
	if s.up >= math.MaxInt64/int64(n) || s.down <= math.MinInt64/int64(n) {
		return s, fmt.Errorf("tags %d..%d leave no room for other tags in each of %d iterations", s.down, s.up, n)
	}
	s.up++
	s.down = min(s.down+1, 0) // -2 is the highest tag
	return s, nil
}

// repeat repeats the ops of r, which have the given number of steps, n times. If a rank can have so many ops, it calls
// fits before it allocates memory for them.
func (s tagSpread) repeat(r *dag.Rank, n int, steps int32, fits func() error) error {
	ops := r.Len()
	if ops == 0 {
		return nil
	}
	e := newIteration(r)
	period := ops
	if e.joins() {
		period++
	}
	total := int64(period)*int64(n) - int64(period-ops)
	if n > dag.MaxOps || total > dag.MaxOps || int64(len(r.Deps.Off)+e.between())*int64(n) > dag.MaxDeps {
		return fmt.Errorf("more than %d ops or %d dependencies", dag.MaxOps, int64(dag.MaxDeps))
	}
	if int64(len(r.StartDeps.Off))*int64(n) > dag.MaxDeps || int64(len(r.Order.Off))*int64(n) > dag.MaxDeps ||
		int64(len(r.StartOrder.Off))*int64(n) > dag.MaxDeps {
		return errors.New("too many dependencies")
	}
	if err := fits(); err != nil {
		return err
	}
	list := make([]int32, total)
	for i := range list {
		if list[i] = int32(i % period); list[i] == int32(ops) {
			list[i] = junction
		}
	}
	out, err := gather(r, list)
	if err != nil {
		return err
	}
	out.MeasuredStart = slices.Clip(out.MeasuredStart[:min(ops, len(out.MeasuredStart))])
	out.MeasuredEnd = slices.Clip(out.MeasuredEnd[:min(ops, len(out.MeasuredEnd))])
	for at := ops; at < out.Len() && period > ops; at += period {
		out.Subkind.Set(at, dag.Marker)
		out.Job.Set(at, r.Job.At(0))
	}
	out.Step = repeatSteps(&out.Step, int(total), period, ops, steps)
	out.Deps = e.chain(n, period)
	out.StartDeps = repeatEdges(&r.StartDeps, n, period)
	out.Order, out.StartOrder = repeatEdges(&r.Order, n, period), repeatEdges(&r.StartOrder, n, period)
	s.shift(&out, period)
	*r = out
	return nil
}

// repeatSteps returns the steps of n ops, in iterations of period ops with the given number of steps, of which the
// first ops are those of the trace and the last may be a marker.
func repeatSteps(before *dag.Narrow, n, period, ops int, steps int32) (after dag.Narrow) {
	column := make([]int32, n)
	before.Copy(column, 0)
	for i := range column {
		switch iteration := int32(i / period); {
		case steps == 0:
			column[i] = iteration + 1
		case i%period == ops: // belongs to the last step
			column[i] = (iteration + 1) * steps
		case column[i] > 0:
			column[i] += iteration * steps
		}
	}
	after.SetRange(0, column)
	return after
}

// shift changes the tags of the messages of each iteration but the first.
func (s tagSpread) shift(r *dag.Rank, period int) {
	if s.up == 0 {
		return
	}
	for i := period; i < r.Len(); i++ {
		if kind := r.Kind[i]; kind != dag.Send && kind != dag.Recv {
			continue
		}
		iteration := int64(i / period)
		if tag := r.Tag.At(i); tag >= 0 {
			r.Tag.Set(i, tag+iteration*s.up)
		} else if tag < dag.AnyTag {
			r.Tag.Set(i, tag+iteration*s.down)
		}
	}
}

// repeatEdges returns the lists n times, for iterations of period ops.
func repeatEdges(e *dag.Edges, n, period int) dag.Edges {
	if len(e.Off) == 0 {
		return dag.Edges{}
	}
	out := dag.Edges{End: make([]uint32, 0, period*n), Off: make([]int32, 0, len(e.Off)*n)}
	for k := range n {
		before := uint32(len(out.Off))
		for len(out.End) < k*period {
			out.End = append(out.End, before)
		}
		for _, end := range e.End {
			out.End = append(out.End, before+end)
		}
		out.Off = append(out.Off, e.Off...)
	}
	return out
}

// iteration is the first and last ops of a rank.
type iteration struct {
	r       *dag.Rank
	sources []int32 // ops without dependencies
	sinks   []int32 // ops without dependents
}

func newIteration(r *dag.Rank) *iteration {
	e := &iteration{r: r}
	awaited := make([]bool, r.Len())
	for i := range r.Kind {
		deps := r.Deps.Of(i)
		for _, off := range deps {
			awaited[i-int(off)] = true
		}
		if len(deps)+r.StartDeps.Count(i) == 0 {
			e.sources = append(e.sources, int32(i))
		}
	}
	for i, a := range awaited {
		if !a {
			e.sinks = append(e.sinks, int32(i))
		}
	}
	return e
}

// joins reports whether a marker separates two iterations.
func (e *iteration) joins() bool {
	return len(e.sources) > 1 && len(e.sinks) > 1
}

// between returns the number of dependencies between two iterations.
func (e *iteration) between() int {
	if e.joins() {
		return len(e.sources) + len(e.sinks)
	}
	return len(e.sources) * len(e.sinks)
}

// chain returns the dependencies of n consecutive iterations.
func (e *iteration) chain(n, period int) dag.Edges {
	ops := e.r.Len()
	out := dag.Edges{
		End: make([]uint32, 0, period*n),
		Off: make([]int32, 0, len(e.r.Deps.Off)*n+e.between()*(n-1)),
	}
	for k := range n {
		sources := e.sources
		for i := range ops {
			out.Off = append(out.Off, e.r.Deps.Of(i)...)
			if len(sources) > 0 && int(sources[0]) == i {
				if sources = sources[1:]; k > 0 {
					out.Off = e.appendBefore(out.Off, i, period)
				}
			}
			out.End = append(out.End, uint32(len(out.Off)))
		}
		if period > ops && k < n-1 {
			for _, sink := range e.sinks {
				out.Off = append(out.Off, int32(ops)-sink)
			}
			out.End = append(out.End, uint32(len(out.Off)))
		}
	}
	return out
}

// appendBefore appends the dependencies of op i, a source, on the previous iteration.
func (e *iteration) appendBefore(off []int32, i, period int) []int32 {
	if e.joins() {
		return append(off, int32(i)+1)
	}
	for _, sink := range e.sinks {
		off = append(off, int32(i+period)-sink)
	}
	return off
}
