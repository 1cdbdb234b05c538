// Package calibrate estimates the parameters of a backend and the algorithms of collectives from measured times.
package calibrate

import (
	"context"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/loggops"
)

// Options select how to estimate.
type Options struct {
	Seed    uint64 // of the draws of intervals
	Threads int    // of the predictions of collectives, at least 1
	Version string // of the program, for the file
}

// Estimate returns the parameters of the loggops backend, and the algorithms of collectives that the tables have.
func Estimate(ctx context.Context, tables []*fit.Table, o Options) (*fit.File, error) {
	f, err := fit.LogGOPS(tables, fit.Options{Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	f.Version = o.Version
	params, err := loggops.FromFile(f)
	if err != nil {
		return nil, err
	}
	var rows []fit.Measurement
	for _, t := range tables {
		rows = append(rows, t.Rows...)
	}
	choices, remarks, err := identify(ctx, rows, o.Threads, replay(params))
	if err != nil {
		return nil, err
	}
	f.Choices, f.Collective = choices, expression(choices)
	f.Remarks = append(f.Remarks, remarks...)
	return f, nil
}

// replay returns the times of ranks in the strict model.
func replay(params loggops.Params) replayer {
	return func(ctx context.Context, t *dag.Trace) ([]float64, error) {
		r, err := loggops.Compile(dag.FromTrace(t), loggops.Strict, func(string, ...any) {})
		if err != nil {
			return nil, err
		}
		result, err := r.Run(loggops.Options{Context: ctx, Params: params, Threads: 1})
		if err != nil {
			return nil, err
		}
		seconds := make([]float64, len(result.Finish))
		for i, c := range result.Finish {
			seconds[i] = float64(c.Ticks) * float64(c.Unit) / float64(dag.Second)
		}
		return seconds, nil
	}
}
