// This file binds the generator dag/gen/flows to its flags.

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/ext"
	"github.com/tracedag/tracedag/internal/cli"
)

func newFlows(p *cli.Program) *cobra.Command {
	var o openLoop
	var classes []string
	var span dag.Time
	var destination openloop.Distribution
	params := flows.Default()
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "flows of several classes, spread over a time",
		Long: `Flows makes a trace of flows, each of them one message, that start at random times of a given span. Each
is of one of several classes, which differ in their sizes and destinations. Without --class they are
those of the published example: 80 % are of 1 to 10 KiB, and 20 % are of 1 to 10 MiB and go to the
tasks around the middle one.`,
		Example: `  tracegen flows | simulate
  tracegen flows --messages 10000 --time 1ms --class min=1KiB,max=1KiB,percent=90 \
    --class min=1MiB,max=4MiB,percent=10,destination=poisson -o flows.parquet
  tracegen flows --emit-spec -o flows.vef`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := setTicks(&params, span); err != nil {
				return err
			}
			if err := setClasses(&params, classes, destination); err != nil {
				return err
			}
			for i := range params.Classes {
				params.Classes[i].Destination.Sigma = o.sigma
			}
			return o.run(&o.seed,
				func() (format.Source, error) { return made(flows.NewSource(params, o.seed)) },
				func() (*ext.Model, error) {
					if err := params.Check(); err != nil {
						return nil, flagError(err)
					}
					return ext.Flows(params), nil
				}, "gauss-sigma-frac")
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Tasks, "tasks", params.Tasks, "number of tasks, one a rank")
	flags.Int64Var(&params.Messages, "messages", params.Messages, "number of flows of all tasks together")
	cli.TimeVar(flags, &span, "time", dag.Time(params.Ticks)*params.Clock, 0, "when the last flows start")
	flags.StringArrayVar(&classes, "class", nil,
		"a `class` of flows, such as min=1KiB,max=64KiB,percent=80,destination=gauss; repeat it until there are 100 %")
	destinationVar(flags, &destination, "law of the destinations of classes that state none")
	o.register(p, cmd, &params.Clock)
	return cmd
}

// setTicks sets the time in which flows start.
func setTicks(params *flows.Params, span dag.Time) error {
	if params.Clock < 1 {
		return cli.Usagef("--clock is %v, expected 1ps or more", params.Clock)
	}
	if span%params.Clock != 0 {
		return cli.Usagef("--time is %v, expected a multiple of the clock's %v", span, params.Clock)
	}
	params.Ticks = int64(span / params.Clock)
	return nil
}

// setClasses sets the classes that texts such as "min=1KiB,max=64KiB,percent=80" describe, if there are any.
func setClasses(params *flows.Params, texts []string, destination openloop.Distribution) error {
	if len(texts) > 0 {
		params.Classes = nil
	}
	for _, text := range texts {
		var least, most int64
		c := flows.Class{Destination: openloop.Law{Distribution: destination}}
		flags := pflag.NewFlagSet("class", pflag.ContinueOnError)
		cli.SizeVar(flags, &least, "min", 0, "")
		cli.SizeVar(flags, &most, "max", 0, "")
		flags.Float64Var(&c.Percent, "percent", 0, "")
		destinationVar(flags, &c.Destination.Distribution, "")
		for setting := range strings.SplitSeq(text, ",") {
			name, value, found := strings.Cut(setting, "=")
			if !found || flags.Lookup(name) == nil {
				return cli.Usagef("--class: expected min=SIZE, max=SIZE, percent=NUMBER or destination=LAW, found %q in %q",
					setting, text)
			}
			if err := flags.Set(name, value); err != nil {
				return cli.Usagef("--class: %s: %v", text, err)
			}
		}
		if least%1024 != 0 || most%1024 != 0 {
			return cli.Usagef("--class: expected sizes in whole KiB, found %q", text)
		}
		c.MinKB, c.MaxKB = least/1024, most/1024
		params.Classes = append(params.Classes, c)
	}
	return nil
}
