package flowio

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of all flow-list formats.
type Options struct {
	Ranks int      // minimum number of ranks; 0: as many as the flows use
	Cycle dag.Time // unit of times, if the format does not define it; 0: the format's usual unit
}

// Table is the option table of the flow-list formats.
var Table = &format.OptionTable{
	Name: "flows", Title: "flow lists",
	New: func() format.Options { return new(Options) },
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	return param.Set{format.RanksParam(&o.Ranks), format.CycleParam(&o.Cycle)}
}

// OptionsOf returns the options of reading as flow-list options.
func OptionsOf(o *format.ReadOptions) *Options {
	return format.Own(o.Own, func() *Options { return new(Options) })
}
