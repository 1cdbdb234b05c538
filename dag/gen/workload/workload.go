// Package workload generates flows whose sizes follow a published or a given distribution: at a given load, with gaps
// of several distributions, between pairs of several patterns, and as mixes of such traffic, each of them a job.
//
// docs/reference/generators/workload.md specifies the distributions. Sizes are sampled, and loads turned into
// gaps, as in the simulators that the distributions come from: those of Montazeri et al. (Homa), SIGCOMM 2018;
// Alizadeh et al. (pFabric), SIGCOMM 2013; Li et al. (HPCC), SIGCOMM 2019.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/gen/sizes"
)

// Params describe a workload.
type Params struct {
	Ranks int      // hosts; 2..openloop.MaxTasks
	Clock dag.Time // times are multiples of it; 1 ps or more
	Jobs  []Job    // jobs of the mix; 1..MaxJobs

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// MaxJobs is the limit of the jobs of a mix.
const MaxJobs = 256

// Job is one kind of traffic.
type Job struct {
	Name     string
	Sizes    *sizes.Curve
	Arrivals Arrivals
	Pattern  Pattern
	Rate     float64  // bits a second that all hosts generate together, on average; above 0
	Flows    int64    // at most; 0..openloop.MaxMessages, 0: no limit
	Duration dag.Time // flows start before it; 0: no limit. One of both limits is needed.
}

// Default returns a job without a name: flows of web search at half the load of 128 hosts with links of 100 Gbit/s.
func Default() Params {
	sizes, _ := sizes.Named("websearch")
	return Params{Ranks: 128, Clock: dag.Nanosecond, Jobs: []Job{{
		Sizes: sizes, Arrivals: Arrivals{Sigma: 2, On: 100 * dag.Microsecond, Off: 100 * dag.Microsecond},
		Pattern: Pattern{Degree: 16, Shift: 1, Fraction: 0.5, Node: -1}, Rate: 0.5 * 100e9 * 128, Flows: 100_000,
	}}}
}

// gap returns the mean time in picoseconds between the flows of a source, and the number of sources.
func (j *Job) gap(ranks int) (gap float64, sources int) {
	whole := 8e12 * j.Sizes.Mean() / j.Rate // between flows of the job
	if j.Pattern.Kind != Incast {
		return whole * float64(ranks), ranks
	}
	if j.Pattern.Period > 0 {
		return float64(j.Pattern.Period), 1
	}
	return whole * float64(j.Pattern.Degree), 1
}

// flows returns the largest and the approximate number of flows.
func (j *Job) flows(ranks int) (most int64, about float64) {
	most, about = j.Flows, float64(j.Flows)
	if most == 0 {
		most, about = openloop.MaxMessages, math.Inf(1)
	}
	if j.Duration > 0 {
		gap, sources := j.gap(ranks)
		each := 1.0
		if j.Pattern.Kind == Incast {
			each = float64(j.Pattern.Degree)
		}
		about = min(about, float64(j.Duration)/gap*float64(sources)*each)
	}
	return most, about
}

// Check validates the parameters, as far as that needs no draws. The error for a parameter is an *openloop.ParamError.
func (p *Params) Check() error {
	if err := cmp.Or(
		openloop.InRange("ranks", p.Ranks, 2, openloop.MaxTasks),
		openloop.InRange("clock", p.Clock, 1, dag.Second),
	); err != nil {
		return err
	}
	if n := len(p.Jobs); n < 1 || n > MaxJobs {
		return &openloop.ParamError{Param: "mix", Found: fmt.Sprintf("%d jobs", n),
			Expected: fmt.Sprintf("1..%d", MaxJobs)}
	}
	for i := range p.Jobs {
		if err := p.Jobs[i].check(p.Ranks); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) check(ranks int) error {
	if !(j.Rate > 0 && j.Rate <= math.MaxFloat64) {
		return &openloop.ParamError{Param: "rate", Found: fmt.Sprint(j.Rate), Expected: "above 0 (as are load and " +
			"link)"}
	}
	if err := cmp.Or(
		openloop.InRange("flows", j.Flows, 0, openloop.MaxMessages),
		openloop.InRange("duration", j.Duration, 0, dag.MaxTime/4),
		j.Pattern.check(ranks),
	); err != nil {
		return err
	}
	if j.Flows == 0 && j.Duration == 0 {
		return &openloop.ParamError{Param: "flows", Found: "0", Expected: "1 or more, or a duration"}
	}
	gap, sources := j.gap(ranks)
	if err := j.Arrivals.check(gap); err != nil {
		return err
	}
	_, about := j.flows(ranks)
	if about > openloop.MaxMessages {
		return &openloop.ParamError{Param: "duration", Found: j.Duration.String(),
			Expected: fmt.Sprintf("a duration with at most %d flows (found about %.3g)",
				int64(openloop.MaxMessages), about)}
	}
	if j.Duration == 0 {
		if last := about / float64(sources) * gap; last > float64(dag.MaxTime/4) {
			return &openloop.ParamError{Param: "flows", Found: fmt.Sprint(j.Flows),
				Expected: fmt.Sprintf("so few that they take at most %v (these take about %.3g s)",
					dag.MaxTime/4, last/1e12)}
		}
	}
	return nil
}

// String returns a line about the job.
func (j *Job) String() string {
	return fmt.Sprintf("%s, %v, %v", j.Sizes.Name, j.Pattern.Kind, j.Arrivals.Process)
}

// Source is the trace of a workload, made batch by batch. It is a [dag.Source].
type Source struct {
	*openloop.Source
	report Report
}

// Report returns the properties of the flows.
func (s *Source) Report() Report {
	return s.report
}

// NewSource returns the trace of a workload: the same parameters and seed give the same trace. It draws all flows once,
// to count them.
func NewSource(p Params, seed int64) (*Source, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var lines, names []string
	for i := range p.Jobs {
		j := &p.Jobs[i]
		lines = append(lines, j.String())
		names = append(names, j.Name)
	}
	meta := dag.Meta{Title: fmt.Sprintf("%s, %d ranks", strings.Join(lines, "; "), p.Ranks)}
	if len(names) > 1 {
		meta.Jobs = names
	}
	m := openloop.Model{Meta: meta, Tasks: p.Ranks, Context: p.Context,
		Messages: func() openloop.Stream { return newStream(&p, seed) }}
	t := newTally(&p)
	s, err := openloop.NewModelSource(m, t.add)
	if err != nil {
		return nil, err
	}
	return &Source{s, t.report()}, nil
}
