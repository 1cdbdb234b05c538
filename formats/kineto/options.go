package kineto

import (
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of traces of torch.profiler. docs/reference/formats/kineto.md describes them.
type Options struct {
	Gaps        string   // which time between the ops of a stream is kept: none, host or all
	KernelGap   dag.Time // largest gap that belongs to the launch of the next op
	OnlyPresent bool     // reduce process groups to the ranks with files
	Replicate   bool     // make the ranks without files from those with files
	AlignClocks bool     // correct the clocks of hosts so that collectives end at the same time
	Steps       string   // steps to keep: their number, the first and last as in 15-17, or last; "": all

	steps stepNumbers
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

// stepNumbers are the steps to keep. The zero value keeps everything.
type stepNumbers struct {
	some, last  bool
	first, most int32
}

// Check parses the steps.
func (o *Options) Check() error {
	o.steps = stepNumbers{}
	if o.Replicate && o.OnlyPresent {
		return param.Exclude("replicate", "only-present")
	}
	switch o.Steps {
	case "":
		return nil
	case "last":
		o.steps = stepNumbers{some: true, last: true}
		return nil
	}
	from, to, isRange := strings.Cut(o.Steps, "-")
	if !isRange {
		to = from
	}
	a, errA := strconv.ParseInt(from, 10, 32)
	b, errB := strconv.ParseInt(to, 10, 32)
	if errA != nil || errB != nil || a < 0 || b < a {
		return param.Errorf("steps", "expected a number, a range such as 15-17, or last, found %q", o.Steps)
	}
	o.steps = stepNumbers{some: true, first: int32(a), most: int32(b)}
	return nil
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
		param.Bool(&o.Replicate, "replicate",
			"make the ranks of a Kineto trace that have no files, as copies of the others"),
		param.Bool(&o.AlignClocks, "align-clocks",
			"correct the clocks of Kineto traces of different hosts so that collectives end at the same time"),
		param.String(&o.Steps, "steps", "steps of a Kineto trace to keep, such as 15-17 or last (default: all)"),
	}
}
