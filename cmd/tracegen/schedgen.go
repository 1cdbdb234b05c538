// This file binds the generator dag/gen/schedgen to its flags, which include those of Schedgen.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

func newSchedgen(p *cli.Program) *cobra.Command {
	var names []string
	var titles strings.Builder
	for _, x := range schedgen.Patterns() {
		names = append(names, x.Name)
		only := ""
		if len(x.Has) == 1 {
			only = fmt.Sprintf(" (%s only)", x.Has[0])
		}
		fmt.Fprintf(&titles, "\n  %-20s %s%s", x.Name, x.Title, only)
	}
	var g generation
	seed := int64(1)
	params := schedgen.Default()
	cmd := &cobra.Command{
		Use:   "schedgen PATTERN",
		Short: "a pattern of Schedgen, the generator of LogGOPSim and ATLAHS",
		Long: "Schedgen makes the schedules that the program of that name makes with the same options, op for op:\n" +
			titles.String() + "\n\nTimes without a unit are nanoseconds.",
		Example: `  tracegen schedgen dissemination --ranks 64 --bytes 8 | simulate
  tracegen schedgen allreduce_recdoub -s 16 -d 4096 --rpl-dep-cmp 500 -o recdoub.bin`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			return g.runSource(&seed, func() (format.Source, error) { return schedgen.NewSource(args[0], params, seed) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "commsize":
			name = "ranks"
		case "datasize":
			name = "bytes"
		}
		return pflag.NormalizedName(name)
	})
	flags.Var(&variant{&params.Variant}, "variant", "which Schedgen: "+strings.Join(schedgen.VariantNames(), " or "))
	cli.CompleteWith(cmd, "variant", schedgen.VariantNames())
	flags.IntVarP(&params.Ranks, "ranks", "s", params.Ranks, "number of ranks (also --commsize)")
	size := pflag.NewFlagSet("", pflag.ContinueOnError)
	cli.SizeVar(size, &params.Bytes, "bytes", params.Bytes, "size of a message, or of what is segmented (also --datasize)")
	bytes := size.Lookup("bytes")
	bytes.Shorthand = "d"
	flags.AddFlag(bytes)
	flags.IntVar(&params.Root, "root", params.Root, "the root, where the pattern has one")
	cli.SizeVar(flags, &params.SegmentSize, "segmentsize", params.SegmentSize,
		"size of a segment of the pipelined patterns")
	flags.IntVar(&params.NWay, "nway", params.NWay, "to how many ranks at a time nwaydissemination sends")
	flags.Var(&optionalTime{&params.NB}, "nb",
		"computation of every rank that does not wait for the pattern, nor the other way round")
	cli.TimeVar(flags, &params.NBPoll, "nb-poll", params.NBPoll, dag.Nanosecond,
		"cuts that into computations of this length")
	flags.IntVar(&params.CPU, "cpu", params.CPU, "stream of that")
	flags.Var(&optionalTime{&params.RplDepCmp}, "rpl-dep-cmp",
		"computation of allreduce_recdoub instead of dependencies on receives")
	flags.Int64Var(&params.SkewRatio, "a2av-skew-ratio", params.SkewRatio,
		"by what the random sizes of linear_alltoallv are smaller")
	flags.BoolVar(&params.Outcast, "outcast", params.Outcast, "one rank of linear_alltoallv sends full size to all")
	flags.Int64Var(&seed, "seed", seed, "seed of the random bisections, where Schedgen takes the time in seconds")
	g.register(p, cmd)
	return cmd
}

type variant struct{ v *schedgen.Variant }

func (v *variant) Type() string { return "variant" }

func (v *variant) String() string {
	if v.v == nil { // as pflag makes it to learn what the zero value looks like
		return ""
	}
	return v.v.String()
}

func (v *variant) Set(s string) error {
	x, ok := schedgen.ParseVariant(s)
	if !ok {
		return errors.New("expected " + strings.Join(schedgen.VariantNames(), " or "))
	}
	*v.v = x
	return nil
}

// optionalTime is a length of time, or none, which Schedgen writes as -1.
type optionalTime struct{ t *dag.Time }

func (o *optionalTime) Type() string { return "time" }

func (o *optionalTime) String() string {
	if o.t == nil || *o.t == schedgen.None {
		return "none"
	}
	return o.t.String()
}

func (o *optionalTime) Set(s string) error {
	if slices.Contains([]string{"none", "-1"}, s) {
		*o.t = schedgen.None
		return nil
	}
	t, err := units.ParseTime(s, dag.Nanosecond)
	if err == nil {
		*o.t = t
	}
	return err
}
