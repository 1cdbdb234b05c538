package compose

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Scale returns a trace with the durations of calcs multiplied by numerator/denominator, rounded to picoseconds, half
// up. Calcs with operations but without a duration do not change; without is their number. Markers, other ops and
// measured times do not change either. Scale does not change t; the result shares everything but the durations with
// it.
//
// It returns an error for an invalid or negative factor, for negative durations, and for results above [dag.MaxTime].
//
// Scale ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Scale(ctx context.Context, t *dag.Trace, numerator, denominator int64) (scaled *dag.Trace,
	without int64, err error) {
	if numerator < 0 || denominator <= 0 {
		return nil, 0, fmt.Errorf("factor %d/%d, expected a number of 0 or more", numerator, denominator)
	}
	out := *t
	out.Ranks = dag.CopyRanks(t.Ranks)
	for rank, r := range out.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, 0, err
		}
		if r.Len() == 0 {
			continue
		}
		r.Duration = slices.Clone(r.Duration)
		for i, kind := range r.Kind {
			if kind != dag.Calc || r.Subkind.At(i) == dag.Marker {
				continue
			}
			d := r.Duration.At(i)
			if d == 0 {
				if r.Flops.At(i) > 0 {
					without++
				}
				continue
			}
			if r.Duration[i], err = scaleTime(d, numerator, denominator); err != nil {
				return nil, 0, fmt.Errorf("rank %d: op %d: %w", rank, i, err)
			}
		}
	}
	return &out, without, nil
}

func scaleTime(d dag.Time, numerator, denominator int64) (dag.Time, error) {
	if d < 0 {
		return 0, fmt.Errorf("duration %v, expected 0s or more", d)
	}
	high, low := bits.Mul64(uint64(d), uint64(numerator))
	if high < uint64(denominator) {
		quotient, rest := bits.Div64(high, low, uint64(denominator))
		if rest >= uint64(denominator)-rest && quotient < math.MaxUint64 {
			quotient++
		}
		if quotient <= uint64(dag.MaxTime) {
			return dag.Time(quotient), nil
		}
	}
	return 0, fmt.Errorf("duration %v times %d/%d exceeds %v", d, numerator, denominator, dag.MaxTime)
}
