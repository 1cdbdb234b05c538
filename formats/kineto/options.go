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
	Jitter      float64  // standard deviation of the computation of replicated ranks, relative to it
	Stragglers  []string // replicated ranks whose computation takes longer, as RANK=FACTOR
	Seed        int64    // seed of the jitter
	KeepHost    bool     // add the threads of the host as streams
	MergeCalcs  bool     // make each run of calcs of a stream one calc
	Steps       string   // steps to keep: their number, the first and last as in 15-17, or last; "": all

	steps   stepNumbers
	factors map[int32]float64 // of the stragglers
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
	return &Options{Gaps: gapsAll, KernelGap: 30 * dag.Microsecond, Seed: 1}
}

// RandomSeed returns the seed.
func (o *Options) RandomSeed() *int64 { return &o.Seed }

// alignClocks is the option that corrects clocks.
const alignClocks = "align-clocks"

// largestFactor is the largest factor of a straggler.
const largestFactor = 1e6

// checkVariation parses the stragglers.
func (o *Options) checkVariation() error {
	switch {
	case !o.Replicate && len(o.Stragglers) > 0:
		return param.Needs("straggler", "--replicate")
	case !o.Replicate && o.Jitter > 0:
		return param.Needs("replicate-jitter", "--replicate")
	case !(o.Jitter >= 0 && o.Jitter <= 1):
		return param.Errorf("replicate-jitter", "expected 0 to 1, found %v", o.Jitter)
	}
	o.factors = make(map[int32]float64)
	for _, text := range o.Stragglers {
		left, right, found := strings.Cut(text, "=")
		rank, errRank := strconv.ParseInt(left, 10, 32)
		factor, errFactor := strconv.ParseFloat(right, 64)
		if !found || errRank != nil || errFactor != nil || rank < 0 || !(factor > 0 && factor <= largestFactor) {
			return param.Errorf("straggler", "expected RANK=FACTOR, such as 5=1.3, with a factor above 0 and at most "+
				"%v, found %q", float64(largestFactor), text)
		}
		o.factors[int32(rank)] = factor
	}
	return nil
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
	if err := o.checkVariation(); err != nil {
		return err
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
		param.Bool(&o.KeepHost, "keep-host",
			"add the threads of the host of a Kineto trace as streams, which launch the ops of devices"),
		param.Bool(&o.MergeCalcs, "merge-calcs",
			"make each run of calcs of a stream of a Kineto trace one calc, if no other op needs them"),
		param.Bool(&o.OnlyPresent, "only-present",
			"reduce process groups of a Kineto trace to the ranks that have files"),
		param.Bool(&o.Replicate, "replicate",
			"make the ranks of a Kineto trace that have no files, as copies of the others"),
		param.Float(&o.Jitter, "replicate-jitter",
			"standard deviation of the computation of ranks made by --replicate, relative to that of their original"),
		param.Strings(&o.Stragglers, "straggler", "rank made by --replicate whose computation takes a multiple of "+
			"the time, such as 5=1.3; repeatable").Placeholder("rank=factor"),
		param.Int(&o.Seed, "seed", "seed of the random choices of --replicate-jitter"),
		param.Bool(&o.AlignClocks, alignClocks,
			"correct the clocks of Kineto traces of different hosts so that collectives end at the same time"),
		param.String(&o.Steps, "steps", "steps of a Kineto trace to keep, such as 15-17 or last (default: all)"),
	}
}
