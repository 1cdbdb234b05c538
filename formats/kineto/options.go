package kineto

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of traces of torch.profiler. docs/reference/formats/kineto.md describes them.
type Options struct {
	Gaps        string   // which time between the ops of a stream is kept: none, host or all
	KernelGap   dag.Time // largest gap that belongs to the launch of the next op
	OnlyPresent bool     // reduce process groups to the ranks with files
}

// Values of Options.Gaps.
const (
	gapsNone = "none"
	gapsHost = "host"
	gapsAll  = "all"
)

var table = &format.OptionTable{
	Name: "kineto", Title: "torch.profiler traces",
	New: func() format.Options { return newOptions() },
}

func newOptions() *Options {
	return &Options{Gaps: gapsAll, KernelGap: 30 * dag.Microsecond}
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	return param.Set{
		param.Choice(&o.Gaps, "gaps", "time between the ops of a stream of a Kineto trace that is kept: "+
			"none, host (the host was late) or all", gapsNone, gapsHost, gapsAll),
		param.Time(&o.KernelGap, "kernel-gap",
			"longest gap between ops of a Kineto trace that belongs to the launch of the next op"),
		param.Bool(&o.OnlyPresent, "only-present",
			"reduce process groups of a Kineto trace to the ranks that have files"),
	}
}
