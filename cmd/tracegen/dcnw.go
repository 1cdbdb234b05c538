// This file binds the generator dag/gen/dcnw to its flags, for curves that come with it.

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/ext"
	"github.com/tracedag/tracedag/internal/cli"
)

func newDCNW(p *cli.Program) *cobra.Command {
	var o openLoop
	params := dcnw.Default()
	cmd := &cobra.Command{
		Use:   "dcnw",
		Short: "traffic of data-centre applications",
		Long: `Dcnw makes a trace of messages that all tasks send at random times (Poisson arrivals), whether the
ones before have arrived or not. Their sizes are as measured in a data centre, their number is such
that each task generates a given load.

The sizes are those of ` + strings.Join(dcnw.Workloads(), ", ") + `
(W1 to W5 of Homa are FB_KEYVALUE, GOOGLE_SEARCH, GOOGLE_ALL, FB_HADOOP, WEBSEARCH).`,
		Example: `  tracegen dcnw | simulate
  tracegen dcnw --sizes WEBSEARCH --load 10Gbps --messages 100000 --destination uniform -o web.parquet
  tracegen dcnw --load 1Gbps --emit-spec -o dcnw.vef`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return o.runTraffic(&params, func() (*ext.Model, error) { return ext.DCNW(params), nil })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&workload{&params.Sizes}, "sizes", "whose messages")
	cli.CompleteWith(cmd, "sizes", dcnw.Workloads())
	trafficFlags(flags, &params)
	o.register(p, cmd, &params.Clock)
	return cmd
}

// trafficFlags defines the flags for all parameters but the sizes.
func trafficFlags(flags *pflag.FlagSet, params *dcnw.Params) {
	flags.IntVar(&params.Tasks, "tasks", params.Tasks, "number of tasks, one a rank")
	flags.Int64Var(&params.Messages, "messages", params.Messages, "number of messages of all tasks together")
	flags.Var((*gbps)(&params.Load), "load", "what each task generates, in Gbit/s or with another unit")
	destinationVar(flags, &params.Destination.Distribution, "law of the destinations")
}

// runTraffic writes the trace of the parameters, or what describe makes of them.
func (o *openLoop) runTraffic(params *dcnw.Params, describe func() (*ext.Model, error)) error {
	params.Destination.Sigma = o.sigma
	return o.run(&o.seed,
		func() (format.Source, error) { return made(dcnw.NewSource(*params, o.seed)) },
		func() (*ext.Model, error) {
			if err := params.Check(); err != nil {
				return nil, flagError(err)
			}
			return describe()
		}, "gauss-sigma-frac")
}

// workload is a curve that comes with the generator.
type workload struct{ curve **dcnw.Curve }

func (w *workload) String() string {
	if w.curve == nil { // as pflag makes it to learn what the zero value looks like
		return ""
	}
	return (*w.curve).Name
}

func (w *workload) Type() string { return "workload" }

func (w *workload) Set(s string) error {
	curve, ok := dcnw.Workload(s)
	if !ok {
		return errors.New("expected one of " + strings.Join(dcnw.Workloads(), ", "))
	}
	*w.curve = curve
	return nil
}
