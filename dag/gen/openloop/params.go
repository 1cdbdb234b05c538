package openloop

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Options are the parameters that the generators of messages between tasks share. Their configurations embed it.
type Options struct {
	generator.Seed
	Sigma float64 // of Gaussian destinations, see [DestinationPolicy]
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Seed: generator.NewSeed(), Sigma: DefaultSigma}
}

// OptionParams describes the options and the clock.
func (o *Options) OptionParams(clock *dag.Time) param.Set {
	return param.Set{
		ClockParam(clock),
		param.Float(&o.Sigma, "gauss-sigma-frac",
			"standard deviation of Gaussian destinations, relative to --ranks"),
		o.SeedParam(),
	}
}

// ClockParam declares the resolution of times.
func ClockParam(clock *dag.Time) param.Param {
	return param.Time(clock, "clock", "resolution of times")
}

// SizeParams describes the numbers of tasks and messages.
func SizeParams(tasks *int, messages *int64) param.Set {
	return param.Set{
		generator.RanksOf(tasks, "task"),
		param.Int(messages, "messages", "total number of messages"),
	}
}

// DestinationParam declares the distribution of destinations.
func DestinationParam(d *Distribution, help string) param.Param {
	return param.Enum((*destination)(d), "destination", help, destinationChoices...)
}

var destinationChoices = []string{"uniform", "poisson", "gauss"}

// destination is a Distribution as a text.
type destination Distribution

// MarshalText returns the name in lower case.
func (d *destination) MarshalText() ([]byte, error) {
	return []byte(strings.ToLower(Distribution(*d).String())), nil
}

// UnmarshalText parses a name.
func (d *destination) UnmarshalText(text []byte) error {
	v, ok := ParseDistribution(string(text))
	if !ok {
		return errors.New("expected one of " + strings.Join(destinationChoices, ", "))
	}
	*d = destination(v)
	return nil
}

// GbpsParam declares a finite rate in Gbit/s. A number without a unit is in Gbit/s, too.
func GbpsParam(at *float64, name, help string) param.Param {
	return param.Enum((*gbps)(at), name, help).Placeholder("rate")
}

type gbps float64

// MarshalText returns the rate with its unit, "" for 0.
func (g *gbps) MarshalText() ([]byte, error) {
	if *g == 0 {
		return nil, nil
	}
	return append(strconv.AppendFloat(nil, float64(*g), 'g', -1, 64), "Gbps"...), nil
}

// UnmarshalText parses a rate.
func (g *gbps) UnmarshalText(text []byte) error {
	rate, err := units.ParseRate(string(text), "Gbps")
	if err != nil {
		return err
	}
	if rate.Num == 0 {
		return errors.New("expected a finite rate")
	}
	*g = gbps(8000 * float64(rate.Den) / float64(rate.Num))
	return nil
}

// FlagError returns err with the name of the flag that sets the parameter of a [*ParamError], and any other error as it
// is.
func FlagError(err error) error {
	var param *ParamError
	if errors.As(err, &param) {
		return errors.New("--" + param.Error())
	}
	return err
}
