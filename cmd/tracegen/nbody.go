// This file binds the generator dag/gen/nbody to its flags.

package main

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/nbody"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newNBody(p *cli.Program) *cobra.Command {
	var g generation
	params := nbody.Default()
	cmd := &cobra.Command{
		Use:   "nbody",
		Short: "bodies that go round a ring of ranks, which compute forces",
		Long: `Nbody makes a trace of bodies that all attract each other: in each step those of every rank go round
a ring, and each rank computes their forces upon its own meanwhile.`,
		Example: `  tracegen nbody | simulate
  tracegen nbody --ranks 128 --bodies 10000 --steps 10 -o nbody.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return g.runSource(nil, func() (format.Source, error) { return nbody.NewSource(params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Ranks, "ranks", params.Ranks, "number of ranks")
	flags.Int64Var(&params.Bodies, "bodies", params.Bodies, "number of bodies of a rank")
	cli.SizeVar(flags, &params.BodyBytes, "body-bytes", params.BodyBytes, "size of a body on its way")
	cli.TimeVar(flags, &params.Interaction, "interaction", params.Interaction, dag.Nanosecond,
		"computation of the force of a body upon another")
	cli.TimeVar(flags, &params.Update, "update", params.Update, dag.Nanosecond,
		"computation of a body's new place, after a step")
	flags.IntVar(&params.Steps, "steps", params.Steps, "number of steps")
	g.register(p, cmd)
	return cmd
}
