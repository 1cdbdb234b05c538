package calibrate

import (
	"context"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim/fit"
)

// largeShared is the size in bytes from which messages take much longer than ranks differ behind a barrier.
const largeShared = 1 << 18

// sharedResiduals returns the errors of the tests with several messages at once, by test. Those of all ranks follow a
// barrier, whose algorithm is not known yet, and small messages show how ranks leave it: they do not count.
func sharedResiduals(ctx context.Context, rows []fit.Measurement, threads int, time replayer) (found []fit.Residual,
	err error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(m fit.Measurement) bool {
		return (m.Test == fit.AllExchange || m.Incast() > 0) && m.Bytes < largeShared
	})
	errs, err := errorsOf(ctx, rows, threads, time)
	if err != nil {
		return nil, err
	}
	for i, m := range rows {
		name := m.Test
		if m.Incast() > 0 {
			name = "incast"
		}
		k := slices.IndexFunc(found, func(r fit.Residual) bool { return r.Test == name })
		if k < 0 {
			k = len(found)
			found = append(found, fit.Residual{Test: name})
		}
		if e := math.Abs(errs[i]); e == e {
			r := &found[k]
			r.Mean = (r.Mean*float64(r.Points) + e) / float64(r.Points+1)
			r.Largest = max(r.Largest, e)
			r.Points++
		}
	}
	return found, nil
}

// addResiduals adds the errors of the tests with several messages at once to a file.
func addResiduals(ctx context.Context, f *fit.File, rows []fit.Measurement, threads int, time replayer) error {
	found, err := sharedResiduals(ctx, rows, threads, time)
	f.Residuals = append(f.Residuals, found...)
	return err
}

// sharedRows returns the measurements of tests with several messages at once.
func sharedRows(tables []*fit.Table) (rows []fit.Measurement) {
	for _, t := range tables {
		for _, m := range t.Rows {
			if isShared(m) {
				rows = append(rows, m)
			}
		}
	}
	return rows
}
