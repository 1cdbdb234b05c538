package compose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Repeat returns a trace in which every rank does n times what it does in t: the ops on which nothing waits at the
// end of one iteration must finish before those that wait for nothing start in the next, on each rank by itself.
// Where there are several of both, a marker stands between. The references of t must be in range
// ([dag.Rank.CheckReferences]); it changes nothing of it. Measured times are those of the first iteration, the others
// have none.
//
// A rank may begin an iteration while others are in the one before. Messages of equal source, tag and communicator
// are received in the order in which they were sent, and the receives of an iteration are all done before those of
// the next are posted, so that each gets a message of its own iteration. Only a receive from any source could take
// one of the next: where there are such receives, every iteration has tags of its own, higher than those of the one
// before.
//
// It fails on receives of any tag, for which that does not help; on release times, of which it is not known what they
// are in later iterations; and on more ops, dependencies, text or higher tags than a trace can have.
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
	out := *t
	out.Ranks = slices.Clone(t.Ranks)
	for i := range out.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		if err := spread.repeat(&out.Ranks[i], n); err != nil {
			return nil, fmt.Errorf("rank %d %w", i, err)
		}
	}
	return &out, nil
}

// tagSpread is how far apart the tags of one iteration are from those of the next: those from 0 on go up, those of
// lowered collectives go down.
type tagSpread struct {
	up, down int64
}

// tagsToRepeat returns how the tags are to change, not at all where no receive is from any source.
func tagsToRepeat(ctx context.Context, t *dag.Trace, n int) (tagSpread, error) {
	var s tagSpread
	wild := false
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return s, err
		}
		r := &t.Ranks[rank]
		for i, kind := range r.Kind {
			if at := r.Release.At(i); at != 0 {
				return s, fmt.Errorf("rank %d op %d is released at %v: when in later iterations is not known",
					rank, i, at)
			}
			if kind != dag.Send && kind != dag.Recv {
				continue
			}
			tag := r.Tag.At(i)
			if kind == dag.Recv && tag == dag.AnyTag {
				return s, fmt.Errorf("rank %d op %d receives any tag, and could take a message of the next iteration",
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
		return s, fmt.Errorf("tags from %d to %d cannot be others in each of %d iterations", s.down, s.up, n)
	}
	s.up++
	s.down = min(s.down+1, 0) // -2 is the first
	return s, nil
}

// repeat makes r do n times what it does.
func (s tagSpread) repeat(r *dag.Rank, n int) error {
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
	if total > dag.MaxOps || int64(len(r.Deps.Off)+e.between())*int64(n) > dag.MaxDeps {
		return fmt.Errorf("would have more than %d ops or %d dependencies", dag.MaxOps, int64(dag.MaxDeps))
	}
	if int64(len(r.StartDeps.Off))*int64(n) > dag.MaxDeps || int64(len(r.Order.Off))*int64(n) > dag.MaxDeps ||
		int64(len(r.StartOrder.Off))*int64(n) > dag.MaxDeps {
		return errors.New("would have too many dependencies")
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
	out.Deps = e.chain(n, period)
	out.StartDeps = repeatEdges(&r.StartDeps, n, period)
	out.Order, out.StartOrder = repeatEdges(&r.Order, n, period), repeatEdges(&r.StartOrder, n, period)
	s.shift(&out, period)
	*r = out
	return nil
}

// shift gives the messages of each iteration but the first tags of their own.
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

// repeatEdges returns the lists n times, those of each iteration period ops after those of the one before.
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

// iteration is where a rank begins and ends.
type iteration struct {
	r       *dag.Rank
	sources []int32 // ops that wait for no other
	sinks   []int32 // ops for whose end no other waits
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

// joins reports whether a marker stands between two iterations.
func (e *iteration) joins() bool {
	return len(e.sources) > 1 && len(e.sinks) > 1
}

// between returns how many dependencies there are between two iterations.
func (e *iteration) between() int {
	if e.joins() {
		return len(e.sources) + len(e.sinks)
	}
	return len(e.sources) * len(e.sinks)
}

// chain returns the dependencies of n iterations one after the other.
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

// appendBefore appends what op i, a source, waits for in the iteration before.
func (e *iteration) appendBefore(off []int32, i, period int) []int32 {
	if e.joins() {
		return append(off, int32(i)+1)
	}
	for _, sink := range e.sinks {
		off = append(off, int32(i+period)-sink)
	}
	return off
}
