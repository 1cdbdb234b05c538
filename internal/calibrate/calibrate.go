// Package calibrate estimates the parameters of a backend and the algorithms of collectives from measured times.
package calibrate

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
	"github.com/tracedag/tracedag/sim/loggops"
	"github.com/tracedag/tracedag/sim/topology"
)

// Options select how to estimate.
type Options struct {
	Backend    string // of Backends; empty: the first
	Topology   string // of flow and packet, as --topology names it
	Transport  string // of packet; empty: its default
	Network    string // of analytical, as --network names it
	Congestion string // of analytical, as --congestion names it; empty: unaware
	Seed       uint64 // of the draws of intervals

	Recorded []*dag.Trace // whose collectives identify algorithms if tables have none, on flow
	Threads  int          // of the predictions, at least 1
	Version  string       // of the program, for the file
}

// Backends are the backends whose parameters Estimate estimates; the first is the default.
var Backends = []string{"loggops", "flow", "packet", "analytical"}

// Estimate returns the parameters of a backend, and the algorithms of collectives that the tables have, unless the
// backend has its own.
func Estimate(ctx context.Context, tables []*fit.Table, o Options) (*fit.File, error) {
	estimate := estimateLogGOPS
	switch o.Backend {
	case "", "loggops":
	case "flow":
		estimate = estimateFlow
	case "packet":
		estimate = estimatePacket
	case "analytical":
		estimate = estimateAnalytical
	default:
		return nil, fmt.Errorf("expected one of the backends %s, found %q", strings.Join(Backends, ", "), o.Backend)
	}
	if err := checkOnce(tables); err != nil {
		return nil, err
	}
	f, time, err := estimate(ctx, tables, o)
	if err != nil {
		return nil, err
	}
	f.Version = o.Version
	if text := f.Misses(); text != "" {
		f.Remark("%s", text)
	}
	if time == nil {
		return f, nil
	}
	var rows []fit.Measurement
	for _, t := range tables {
		rows = append(rows, t.Rows...)
	}
	found, err := identify(ctx, rows, o.Threads, time, usualTable(f))
	if err != nil {
		return nil, err
	}
	if len(o.Recorded) > 0 && f.Backend == flow.Backend.Name && len(found.choices) == 0 {
		recorded, err := identifyRecorded(ctx, o.Recorded, f, o.Threads, time, usualTable(f))
		if err != nil {
			return nil, err
		}
		recorded.remarks = append(found.remarks, recorded.remarks...)
		found = recorded
	}
	f.Choices, f.Collective = found.choices, found.expression
	f.Remarks = append(f.Remarks, found.remarks...)
	return f, nil
}

// CheckNetwork returns an error if the network of a parameter file, which name names, is a platform file that is not
// there.
func CheckNetwork(f *fit.File, name string) error {
	if !topology.IsPlatform(f.Topology) {
		return nil
	}
	if _, err := os.Stat(f.Beside(name)); err != nil {
		return fmt.Errorf("%s: member \"topology\": expected %s in the working folder or in that of the parameter "+
			"file, found none; name the network with --topology", name, f.Topology)
	}
	return nil
}

// checkOnce returns an error if two tables have the same content: equal times look like times without noise.
func checkOnce(tables []*fit.Table) error {
	names := map[string]string{}
	for _, t := range tables {
		if first, ok := names[t.SHA256]; ok && t.SHA256 != "" {
			return fmt.Errorf("%s: expected another table, found the content of %s again, whose times would count "+
				"twice; name it once", t.Name, first)
		}
		names[t.SHA256] = t.Name
	}
	return nil
}

// smpiTable is the table of an SMPI that selects no other, and smpiError the mean error of ping-pongs up to which
// the protocol of SMPI is that of the machine.
const (
	smpiTables = "smpi-" // what the names of tables of SMPI begin with
	smpiTable  = smpiTables + "default"
	smpiError  = 0.05
)

// usualTable returns the table that decides for collectives that are not measured, if no table explains the measured
// ones: that of SMPI if the network is a platform of SimGrid and the protocol of SMPI explains its ping-pongs, else "".
func usualTable(f *fit.File) string {
	if f.Backend != flow.Backend.Name || !topology.IsPlatform(f.Topology) {
		return ""
	}
	for _, r := range f.Residuals {
		if r.Test == "" && r.Mean > smpiError {
			return ""
		}
	}
	return smpiTable
}

// estimateLogGOPS estimates the parameters of loggops.
func estimateLogGOPS(ctx context.Context, tables []*fit.Table, o Options) (*fit.File, replayer, error) {
	f, err := fit.LogGOPS(tables, fit.Options{Seed: o.Seed})
	if err != nil {
		return nil, nil, err
	}
	params, err := loggops.FromFile(f)
	if err != nil {
		return nil, nil, err
	}
	time := replay(params)
	return f, time, addResiduals(ctx, f, sharedRows(tables), o.Threads, time)
}

// replay returns the times of ranks in the strict model.
func replay(params loggops.Params) replayer {
	return func(ctx context.Context, t *dag.Trace, marks [][]int) (at [][]float64, end []float64, err error) {
		r, err := loggops.Compile(dag.FromTrace(t), loggops.Strict, func(string, ...any) {})
		if err != nil {
			return nil, nil, err
		}
		c := &clock{marks: marks}
		result, err := r.Run(loggops.Options{Context: ctx, Params: params, Threads: 1, Timeline: c})
		return c.times(result, err)
	}
}
