// Package flows generates flows of several classes that start at random times of a given span.
//
// The model is FLOWS of F. J. Andújar et al., "Extending the VEF traces framework to model data center network
// workloads", The Journal of Supercomputing, 2023 (doi:10.1007/s11227-022-04692-0). docs/reference/generators/flows.md
// specifies the distributions as they are drawn here.
package flows

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Params describe a workload.
type Params struct {
	Tasks    int      // one per rank; 2..openloop.MaxTasks
	Messages int64    // flows, of all tasks together; 0..openloop.MaxMessages
	Clock    dag.Time // times are multiples of it; 1 ps or more
	Ticks    int64    // flows start at ticks 0..Ticks of the clock; 1 or more
	Classes  []Class  // 1 or more

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Class is a kind of flow.
type Class struct {
	MinKB, MaxKB int64   // smallest and largest size, in units of 1024 bytes; 1..MaxKB
	Percent      float64 // of all flows; the sum over all classes is 100 +- 0.01
	Destination  openloop.DestinationPolicy
}

// MaxKB is the largest size of a flow, in units of 1024 bytes.
const MaxKB = openloop.MaxBytes / 1024

// Default returns the published example: 80 % of flows of 1 to 10 KB to all tasks, 20 % of 1 to 10 MB to tasks around
// the middle one, in 200 ms.
func Default() Params {
	return Params{
		Tasks:    128,
		Messages: 2_000_000,
		Clock:    dag.Nanosecond,
		Ticks:    200_000_000,
		Classes: []Class{
			{MinKB: 1, MaxKB: 10, Percent: 80},
			{MinKB: 1024, MaxKB: 10240, Percent: 20,
				Destination: openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: openloop.DefaultSigma}},
		},
	}
}

// MeanBytes returns the mean size of a flow in bytes.
func (p *Params) MeanBytes() float64 {
	mean := 0.0
	for _, c := range p.Classes {
		mean += float64(c.Percent / 100 * c.sizes().Mean())
	}
	return mean
}

// MeanGap returns the mean time between the starts of two successive flows in ticks.
func (p *Params) MeanGap() float64 {
	return float64(p.Ticks) / float64(p.Messages)
}

// Check validates the parameters, except for those that need tables of destinations.
func (p *Params) Check() error {
	w, err := p.workload(0)
	return cmp.Or(err, w.Check())
}

// NewSource returns the trace of a workload. The same parameters and seed give the same trace.
func NewSource(p Params, seed int64) (*openloop.Source, error) {
	w, err := p.workload(seed)
	if err != nil {
		return nil, err
	}
	return openloop.NewSource(w)
}

func (p *Params) workload(seed int64) (openloop.Workload, error) {
	w := openloop.Workload{
		Title:    fmt.Sprintf("FLOWS, %d tasks, %d flows of %d classes", p.Tasks, p.Messages, len(p.Classes)),
		Tasks:    p.Tasks,
		Messages: p.Messages,
		Clock:    p.Clock,
		Seed:     seed,
		Context:  p.Context,
	}
	sum := 0.0
	for i, c := range p.Classes {
		if err := c.check(i); err != nil {
			return w, err
		}
		sum += c.Percent
		w.Classes = append(w.Classes, openloop.Class{Share: c.Percent, Sizes: c.sizes(), Destination: c.Destination})
	}
	if !(math.Abs(sum-100) <= 0.01+1e-9) { // three times 33.33 is accepted, whatever its last bit
		return w, &openloop.ParamError{
			Param: "class", Found: fmt.Sprintf("%.7g %% of the flows in total", sum), Expected: "100 %",
		}
	}
	if err := openloop.InRange("clock", p.Clock, 1, dag.MaxTime/2); err != nil {
		return w, err
	}
	if err := openloop.InRange("time", p.Ticks, 1, int64(dag.MaxTime/2/p.Clock)); err != nil {
		return w, err
	}
	w.End = dag.Time(p.Ticks) * p.Clock
	w.MeanGap = float64(w.End) / float64(max(1, p.Messages))
	return w, nil
}

func (c *Class) sizes() openloop.Uniform {
	return openloop.Uniform{Min: c.MinKB * 1024, Max: c.MaxKB * 1024}
}

// check validates class i by itself.
func (c *Class) check(i int) error {
	wrong := func(param, found, expected string) error {
		return &openloop.ParamError{Param: fmt.Sprintf("class %d: %s", i, param), Found: found, Expected: expected}
	}
	switch {
	case c.MinKB < 1 || c.MinKB > MaxKB:
		return wrong("min", fmt.Sprintf("%d KB", c.MinKB), fmt.Sprintf("1..%d", int64(MaxKB)))
	case c.MaxKB < c.MinKB || c.MaxKB > MaxKB:
		return wrong("max", fmt.Sprintf("%d KB", c.MaxKB), fmt.Sprintf("%d..%d", c.MinKB, int64(MaxKB)))
	case !(c.Percent >= 0 && c.Percent <= 100):
		return wrong("percent", fmt.Sprint(c.Percent), "0..100")
	}
	return nil
}
