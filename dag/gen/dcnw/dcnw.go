// Package dcnw generates the traffic of data-center applications: messages of measured sizes that all tasks send at
// random times, at a given load.
//
// The models are DCNW and CDCNW of F. J. Andújar et al., "Extending the VEF traces framework to model data center
// network workloads", The Journal of Supercomputing, 2023 (doi:10.1007/s11227-022-04692-0).
// docs/reference/generators/dcnw.md specifies the distributions as they are drawn here.
package dcnw

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
	Tasks       int      // one per rank; 2..openloop.MaxTasks
	Messages    int64    // of all tasks together; 0..openloop.MaxMessages
	Clock       dag.Time // times are multiples of it; 1 ps or more
	Sizes       *Curve
	Destination openloop.DestinationPolicy
	Load        float64 // Gbit/s that each task generates on average; above 0

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Default returns the published example: Google's applications at 0.5 Gbit/s.
func Default() Params {
	sizes, _ := Workload("GOOGLE_ALL")
	return Params{
		Tasks:       128,
		Messages:    2_000_000,
		Clock:       dag.Nanosecond,
		Sizes:       sizes,
		Destination: openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: openloop.DefaultSigma},
		Load:        0.5,
	}
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

// workload returns the workload as one Poisson source of messages for all tasks. It is equivalent to a Poisson source
// per task: the sum of n such sources is a Poisson source of n times their rate, each of whose messages comes from any
// of them with equal probability.
func (p *Params) workload(seed int64) (openloop.Workload, error) {
	w := openloop.Workload{
		Title:    fmt.Sprintf("%s, %d tasks, %d messages", p.Sizes.Name, p.Tasks, p.Messages),
		Tasks:    p.Tasks,
		Messages: p.Messages,
		Clock:    p.Clock,
		Classes:  []openloop.Class{{Share: 1, Sizes: p.Sizes.steps, Destination: p.Destination}},
		Seed:     seed,
		Context:  p.Context,
	}
	if !(p.Load > 0 && p.Load <= math.MaxFloat64) {
		return w, &openloop.ParamError{Param: "load", Found: fmt.Sprint(p.Load), Expected: "above 0"}
	}
	w.MeanGap = 8000 * p.Sizes.Mean() / p.Load / float64(p.Tasks) // bits in Gbit/s are nanoseconds
	return w, nil
}
