package compose

import (
	"context"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/clock"
)

// withClocks returns the trace with clocks in place of release times, for formats and backends without these.
func withClocks(ctx context.Context, t *dag.Trace) (*dag.Trace, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c, err := clock.Add(ctx, dag.FromTrace(t),
		clock.Options{Unit: dag.Picosecond, HighestStream: math.MaxInt32, Readers: 1})
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(dag.WithContext(ctx, c))
}
