// This file binds the generator dag/gen/pattern to its flags.

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/internal/cli"
)

func newPattern(p *cli.Program) *cobra.Command {
	var names []string
	var titles strings.Builder
	for _, x := range pattern.Patterns() {
		names = append(names, x.Name)
		fmt.Fprintf(&titles, "\n  %-14s %s", x.Name, x.Title)
	}
	var g generation
	params := pattern.Default()
	cmd := &cobra.Command{
		Use:   "pattern NAME",
		Short: "one communication pattern, repeated, in sends and receives",
		Long: "Pattern makes a trace in which every rank computes, then communicates with others in a fixed\n" +
			"pattern, and again:\n" + titles.String(),
		Example: `  tracegen pattern ring --ranks 16 --bytes 1MiB -o ring.parquet
  tracegen pattern alltoall --ranks 64 --bytes 64KiB --compute 0 --to goal | less`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			return g.run(nil, func() (*dag.Trace, error) { return pattern.Generate(args[0], params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Ranks, "ranks", params.Ranks, "number of ranks")
	cli.SizeVar(flags, &params.Bytes, "bytes", params.Bytes, "size of what is communicated; of each message in alltoall")
	flags.IntVar(&params.Iterations, "iterations", params.Iterations, "how often")
	cli.TimeVar(flags, &params.Compute, "compute", params.Compute, 0, "computation of every rank before each iteration")
	flags.IntVar(&params.Root, "root", params.Root, "the root, where the pattern has one")
	g.register(p, cmd)
	return cmd
}
