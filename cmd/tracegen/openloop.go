// This file has what the generators of messages that do not wait for each other have in common in their flags.

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

// openLoop are the flags that all these generators have.
type openLoop struct {
	model
	seed  int64
	sigma float64
}

func (o *openLoop) register(p *cli.Program, cmd *cobra.Command, clock *dag.Time) {
	flags := cmd.Flags()
	cli.TimeVar(flags, clock, "clock", *clock, 0, "resolution of times")
	flags.Float64Var(&o.sigma, "gauss-sigma-frac", openloop.DefaultSigma,
		"standard deviation of Gaussian destinations as a part of the number of tasks")
	flags.Int64Var(&o.seed, "seed", 1, "seed of every random choice")
	o.model.register(p, cmd)
	cli.CompleteWith(cmd, "destination", distributionNames)
}

// made returns the source or the error of a generator, which calls parameters as the flags are called.
func made(s *openloop.Source, err error) (format.Source, error) {
	if err != nil {
		return nil, flagError(err)
	}
	return s, nil
}

// flagError returns err with the name of the flag that it is about, where it is about one.
func flagError(err error) error {
	var param *openloop.ParamError
	if errors.As(err, &param) {
		return errors.New("--" + param.Error())
	}
	return err
}

var distributionNames = []string{"uniform", "poisson", "gauss"}

// destinationVar defines the flag for the law of destinations.
func destinationVar(flags *pflag.FlagSet, d *openloop.Distribution, usage string) {
	flags.Var((*distribution)(d), "destination", usage+": "+strings.Join(distributionNames, ", "))
}

type distribution openloop.Distribution

func (d *distribution) String() string { return strings.ToLower(openloop.Distribution(*d).String()) }
func (d *distribution) Type() string   { return "law" }

func (d *distribution) Set(s string) error {
	v, ok := openloop.ParseDistribution(s)
	if !ok {
		return errors.New("expected one of " + strings.Join(distributionNames, ", "))
	}
	*d = distribution(v)
	return nil
}

// gbps is a rate in Gbit/s, which is also the unit of one without.
type gbps float64

func (g *gbps) String() string { return strconv.FormatFloat(float64(*g), 'g', -1, 64) + "Gbps" }
func (g *gbps) Type() string   { return "rate" }

func (g *gbps) Set(s string) error {
	rate, err := units.ParseRate(s, "Gbps")
	if err != nil {
		return err
	}
	if rate.Num == 0 {
		return errors.New("expected a rate that is not infinite")
	}
	*g = gbps(8000 * float64(rate.Den) / float64(rate.Num))
	return nil
}
