package compose

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Only returns the trace with the ops of one of its jobs alone, to be run as if the others were not there. Ranks,
// nodes, communicators and jobs keep their numbers; ranks without ops of the job become empty. It changes nothing of t,
// and shares with it the ranks that do nothing else. The references of t must be in range ([dag.Rank.CheckReferences]).
//
// The order of what is left is as before, also where it came about over ops of other jobs: what waited for one of those
// waits for what that waited for. Where an op of another job joins several ops of this one, a calc of this one stays in
// its place that does and takes nothing ([dag.Marker]), so that there are never more dependencies than before. Release
// times and durations of other jobs' ops count no more.
//
// Calcs that join all jobs, as package nodes adds them, are of one job as any other op is: they stay in that one, and
// are gone or become such calcs in the others.
//
// It fails where ops of a rank with several jobs wait for each other in a circle.
//
// Only ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Only(ctx context.Context, t *dag.Trace, job int32) (*dag.Trace, error) {
	out := *t
	out.Ranks = make([]dag.Rank, len(t.Ranks))
	for i := range t.Ranks {
		err := par.Interrupted(ctx)
		if err != nil {
			return nil, err
		}
		if out.Ranks[i], err = only(t.Ranks[i], job); err != nil {
			return nil, fmt.Errorf("rank %d %w", i, err)
		}
	}
	return &out, nil
}

func only(r dag.Rank, job int32) (dag.Rank, error) {
	gone := make([]bool, r.Len())
	others := 0
	for i := range gone {
		if gone[i] = r.Job.At(i) != job; gone[i] {
			others++
		}
	}
	switch others {
	case 0:
		return r, nil
	case r.Len():
		return dag.Rank{}, nil
	}
	r.Release = slices.Clone(r.Release)
	for i := range r.Release {
		if gone[i] {
			r.Release[i] = 0
		}
	}
	left, err := remove(&r, gone)
	for i := range left.Kind {
		left.Job.Set(i, job)
	}
	return left, err
}
