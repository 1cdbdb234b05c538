package astratext

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of text workloads.
type Options struct {
	chakra.Options
	Ranks  int      // number of ranks; 0: one
	Passes int      // number of runs through the workload; 0: one
	Cycle  dag.Time // length of a cycle; 0: a microsecond
}

// Table is the table of the options.
var Table = &format.OptionTable{
	Name: "astratext", Title: "text workloads of ASTRA-sim",
	New:       func() format.Options { return new(Options) },
	Misplaced: chakra.Misplaced,
}

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	passes := param.Int(&o.Passes, "passes", "number of runs through the workload (default: one)")
	return append(o.Options.Params(), format.RanksParam(&o.Ranks), format.Within(passes, &o.Passes, 0, math.MaxInt32),
		format.CycleParam(&o.Cycle))
}
