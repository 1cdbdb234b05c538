package compose

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Only returns the trace with the ops of one of its jobs alone, as if the other jobs did not run. Ranks, nodes,
// communicators and jobs keep their numbers; ranks without ops of the job become empty. It does not change t, and
// shares with it the ranks that have ops of this job only. The references of t must be in range
// ([dag.Rank.CheckReferences]).
//
// The order of the remaining ops does not change, including order through ops of other jobs: an op that waited for a
// removed op waits for the dependencies of that op. If a removed op joins several ops of this job, a [dag.Marker] of
// this job replaces it, so the number of dependencies never grows. Release times and durations of removed ops are
// discarded.
//
// Calcs that join all jobs, as package nodes adds them, belong to one job like any other op: they stay in that job,
// and are removed or become markers in the others.
//
// Only returns an error if ops of a rank with several jobs form a cycle.
//
// Only ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Only(ctx context.Context, t *dag.Trace, job int32) (*dag.Trace, error) {
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	for i := range t.Ranks {
		err := par.Interrupted(ctx)
		if err != nil {
			return nil, err
		}
		r, err := only(*t.Ranks[i], job)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
		out.Ranks[i] = r.Keep()
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
