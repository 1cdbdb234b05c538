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
	Passes int      // number of passes over the workload; 0: one
	Cycle  dag.Time // duration of a cycle; 0: 1 us
}

// Table is the option table of text workloads.
var Table = &format.OptionTable{
	Name: "astratext", Title: "ASTRA-sim text workloads",
	New:       func() format.Options { return new(Options) },
	Misplaced: chakra.Misplaced,
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	passes := param.Int(&o.Passes, "passes", "number of passes over the workload (default: one)")
	return append(o.Options.Params(), format.RanksParam(&o.Ranks), format.Within(passes, &o.Passes, 0, math.MaxInt32),
		format.CycleParam(&o.Cycle))
}
