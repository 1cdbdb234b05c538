package model

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the parameters that the description of a model does not define.
type Options struct {
	Seed   int64    // seed of all random choices
	Jitter *float64 // standard deviation of drawn times and sizes as a fraction of the mean; nil: the model's
	// GaussSigma is the standard deviation of Gaussian destinations as a fraction of the number of tasks; nil: the
	// model's.
	GaussSigma *float64
	TimeStep   dag.Time // unit of drawn times; 0: the model's
}

// Table is the option table of VEF inputs.
var Table = &format.OptionTable{
	Name: "vef", Title: "VEF traces and workload models",
	New: func() format.Options { return newOptions() },
}

func newOptions() *Options { return &Options{Seed: 1} }

// RandomSeed returns the seed.
func (o *Options) RandomSeed() *int64 { return &o.Seed }

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	const model = " of a workload model"
	return param.Set{
		param.Int(&o.Seed, "seed", "seed of the random choices"+model),
		given(&o.Jitter, "jitter", "standard deviation of the drawn times and sizes"+model+", relative to the mean",
			"0 to 1", func(v float64) bool { return v >= 0 && v <= 1 }),
		given(&o.GaussSigma, "gauss-sigma-frac", "standard deviation of the Gaussian destinations"+model+
			", as a fraction of the number of tasks", "a number above 0",
			func(v float64) bool { return v > 0 && v <= math.MaxFloat64 }),
		param.Time(&o.TimeStep, "time-step", "unit of the drawn times"+model).Default("the model's"),
	}
}

// given declares a number that is nil unless it is given, and then must be valid.
func given(at **float64, name, help, expected string, valid func(float64) bool) param.Param {
	return param.Func("float", name, help, func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return &param.Error{Name: name, Text: text, Err: fmt.Errorf("expected a number, found %q", text)}
		case !valid(v):
			return param.Errorf(name, "expected %s, found %v", expected, v)
		}
		*at = &v
		return nil
	}).Default("the model's")
}
