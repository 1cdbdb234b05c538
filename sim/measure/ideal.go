package measure

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Ideal returns the makespan of a trace on a backend without network, a lower bound of that on others. It returns an
// error if the run is incomplete or exceeds the limit of memory.
func Ideal(ctx context.Context, kind *sim.Kind, s dag.Source) (sim.Clock, error) {
	replay, err := kind.New().Compile(s, &sim.Env{Context: ctx})
	if err != nil {
		return sim.Clock{}, err
	}
	r, err := replay.Run(sim.RunOptions{Context: ctx})
	if err == nil && !r.Complete {
		err = fmt.Errorf("the run on the %s backend is incomplete", kind.Name)
	}
	if err != nil {
		return sim.Clock{}, err
	}
	return r.Makespan, nil
}

// Bound returns the numbers of a page about a lower bound of the makespan of a result: the bound, and the makespan
// divided by it. It returns nil if the result is below the bound, as that of a backend with its own durations of
// computation may be.
func Bound(r *sim.Result, ideal sim.Clock) map[string]any {
	if ideal.Ticks == 0 || !r.Complete || exact(r.Makespan).Cmp(exact(ideal)) < 0 {
		return nil
	}
	ratio, _ := exactRatio(r.Makespan, ideal).Float64()
	return map[string]any{"ideal_ps": ideal, "ideal_ratio": ratio}
}
