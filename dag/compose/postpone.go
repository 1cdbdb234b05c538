package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Postpone returns a trace in which every rank with ops begins with a calc of the given duration, on a stream that it
// does not use otherwise; ops without dependencies wait for it. It is for formats and backends without release times;
// a job of [Merge] that starts later gets release times. Release and measured times increase by the same amount. The
// references of t must be in range ([dag.Rank.CheckReferences]). Postpone does not change t. It ends early, with an
// error that wraps the context's cause, when ctx ends; nil never ends.
func Postpone(ctx context.Context, t *dag.Trace, by dag.Time) (*dag.Trace, error) {
	if by < 0 {
		return nil, fmt.Errorf("later by %v, expected 0s or more", by)
	}
	out := *t
	out.Ranks = slices.Clone(t.Ranks)
	for i := range out.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		if out.Ranks[i].Len() == 0 {
			continue
		}
		if err := postpone(&out.Ranks[i], by); err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return &out, nil
}

func postpone(r *dag.Rank, by dag.Time) error {
	sources := newIteration(r).sources
	if r.Len() == dag.MaxOps || int64(len(r.Deps.Off)+len(sources)) > dag.MaxDeps {
		return errors.New("no room for another op")
	}
	list := make([]int32, r.Len()+1)
	stream := int32(0)
	for i := range list {
		list[i] = int32(i) - 1
		if i > 0 {
			stream = max(stream, r.Stream.At(i-1))
		}
	}
	list[0] = junction
	out, err := gather(r, list)
	if err != nil {
		return err
	}
	out.Deps = dag.Edges{End: make([]uint32, 1, len(list)), Off: make([]int32, 0, len(r.Deps.Off)+len(sources))}
	for i := range r.Kind {
		out.Deps.Off = append(out.Deps.Off, r.Deps.Of(i)...)
		if len(sources) > 0 && int(sources[0]) == i {
			sources = sources[1:]
			out.Deps.Off = append(out.Deps.Off, int32(i)+1)
		}
		out.Deps.End = append(out.Deps.End, uint32(len(out.Deps.Off)))
	}
	out.StartDeps, out.Order, out.StartOrder = oneLater(&r.StartDeps), oneLater(&r.Order), oneLater(&r.StartOrder)
	if err := delay(&out, by); err != nil {
		return err
	}
	out.Release.Set(0, 0)
	out.Duration.Set(0, by)
	out.Stream.Set(0, min(stream, 1<<31-2)+1)
	out.Job.Set(0, r.Job.At(0))
	*r = out
	return nil
}

// oneLater returns the lists for ops whose index increased by one.
func oneLater(e *dag.Edges) dag.Edges {
	if len(e.Off) == 0 {
		return dag.Edges{}
	}
	return dag.Edges{End: slices.Insert(slices.Clone(e.End), 0, 0), Off: e.Off}
}
