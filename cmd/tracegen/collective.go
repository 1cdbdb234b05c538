// This file binds the generator dag/gen/collective to its flags.

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newCollective(p *cli.Program) *cobra.Command {
	var g generation
	params := collective.Default()
	cmd := &cobra.Command{
		Use:   "collective",
		Short: "a collective, or several one after the other: a micro-benchmark",
		Long: `Collective makes a trace in which every rank takes part in one collective, or, with --repeat, in
several of them one after the other. With --group there are many groups that do the same, each
for itself. Collectives stay collectives unless --lower is given.

The size is what each rank holds before; for allgather and gather what each contributes, for bcast
and scatter what the root holds.`,
		Example: `  tracegen collective --type allreduce --size 1GiB --ranks 512 -o allreduce.parquet
  tracegen collective --type alltoall --size 1MiB --ranks 64 --group 8 --stride 8 | simulate
  tracegen collective --type allgather --size 64KiB --ranks 32 --repeat 100 --compute 10us | tracecat`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return g.runSource(nil, func() (format.Source, error) { return collective.NewSource(params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	choiceVar(cmd, &params.Type, "type", collective.Types(), "collective")
	cli.SizeVar(flags, &params.Size, "size", params.Size, "bytes of each rank")
	flags.IntVar(&params.Ranks, "ranks", params.Ranks, "number of ranks")
	flags.IntVar(&params.Group, "group", params.Group,
		"number of ranks in each group that has a collective of its own (default: one group of all)")
	flags.IntVar(&params.Stride, "stride", params.Stride, "distance of neighbours in a group")
	flags.IntVar(&params.Root, "root", params.Root, "place of the root in its group, from 0, where there is a root")
	flags.IntVar(&params.Repeat, "repeat", params.Repeat, "how many collectives, each after the one before")
	cli.TimeVar(flags, &params.Compute, "compute", params.Compute, 0, "computation of every rank between two of them")
	flags.Var((*dimMask)(&params.Dims), "dims", "network dimensions that take part, such as 0,2 (default: all)")
	flags.Int32Var(&params.Priority, "priority", params.Priority, "priority, for backends that schedule by it")
	g.register(p, cmd)
	return cmd
}

// dimMask is a flag whose value is a list of dimensions, kept as a bit mask.
type dimMask int32

func (d *dimMask) Type() string { return "dims" }

func (d *dimMask) String() string {
	var list []string
	for i := range 31 {
		if *d>>i&1 != 0 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, ",")
}

func (d *dimMask) Set(s string) error {
	*d = 0
	for part := range strings.SplitSeq(s, ",") {
		i, err := strconv.ParseUint(part, 10, 5)
		if err != nil || i > 30 {
			return errors.New("expected numbers of dimensions, 0 to 30, with commas between them, such as 0,2")
		}
		*d |= 1 << i
	}
	return nil
}
