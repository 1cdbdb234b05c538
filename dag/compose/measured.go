package compose

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// StartMeasured returns the trace with each rank starting at its own recorded time, counted from the first of all
// ranks, and these times. Ranks without recorded times start at 0. It returns an error if no rank has any, or if times
// exceed the range.
func StartMeasured(t *dag.Trace) (*dag.Trace, []dag.Time, error) {
	starts := make([]dag.Time, len(t.Ranks))
	earliest, found := dag.MaxTime, false
	for rank, r := range t.Ranks {
		starts[rank] = dag.Unmeasured
		for op := range r.MeasuredStart {
			if at, _ := r.Measured(op); at != dag.Unmeasured && (starts[rank] == dag.Unmeasured || at < starts[rank]) {
				starts[rank] = at
			}
		}
		if starts[rank] != dag.Unmeasured {
			earliest, found = min(earliest, starts[rank]), true
		}
	}
	if !found {
		return nil, nil, errors.New("the trace has no measured times")
	}
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	for rank, r := range t.Ranks {
		moved := *r
		if starts[rank] == dag.Unmeasured {
			starts[rank] = 0
		} else if starts[rank] -= earliest; starts[rank] < 0 {
			return nil, nil, fmt.Errorf("rank %d: measured times too far apart", rank)
		}
		var err error
		if moved.Release, err = delayedReleases(r, starts[rank]); err != nil {
			return nil, nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		out.Ranks[rank] = moved.Keep()
	}
	return &out, starts, nil
}
