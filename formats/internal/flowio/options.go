package flowio

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of all formats of flows.
type Options struct {
	Ranks int      // least number of ranks; 0: as many as the flows name
	Cycle dag.Time // unit of times, if the format leaves it open; 0: the format's usual one
}

// Table is the table of the options of formats of flows.
var Table = &format.OptionTable{
	Name: "flows", Title: "traces of flows",
	New: func() format.Options { return new(Options) },
}

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	return param.Set{format.RanksParam(&o.Ranks), format.CycleParam(&o.Cycle)}
}

// OptionsOf returns the options of reading as those of flows.
func OptionsOf(o *format.ReadOptions) *Options {
	return format.Own(o.Own, func() *Options { return new(Options) })
}
