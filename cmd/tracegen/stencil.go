// This file binds the generator dag/gen/stencil to its flags.

package main

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/stencil"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newStencil(p *cli.Program) *cobra.Command {
	var g generation
	params := stencil.Default()
	cmd := &cobra.Command{
		Use:   "stencil",
		Short: "exchange of halos with neighbours on a grid of up to six dimensions",
		Long: `Stencil makes a trace of ranks that each compute on a block of a grid of cells, then exchange the
cells along its border with their neighbours, and again.`,
		Example: `  tracegen stencil | simulate
  tracegen stencil --grid 16x16 --cells 1000 --halo 2 --periodic --diagonal -o stencil.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return g.runSource(nil, func() (format.Source, error) { return stencil.NewSource(params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	dimsVar(flags, &params.Grid, "grid", params.Grid, "number of ranks along each dimension, one to six")
	dimsVar(flags, &params.Cells, "cells", params.Cells, "cells of a rank along each dimension, or along all")
	dimsVar(flags, &params.Halo, "halo", params.Halo, "layers of cells that neighbours need, along each dimension or all")
	cli.SizeVar(flags, &params.CellBytes, "cell-bytes", params.CellBytes, "size of a cell")
	flags.BoolVar(&params.Periodic, "periodic", params.Periodic, "the first and last rank of a dimension are neighbours")
	flags.BoolVar(&params.Diagonal, "diagonal", params.Diagonal, "ranks that touch in an edge or a corner are neighbours")
	flags.IntVar(&params.Iterations, "iterations", params.Iterations, "how often")
	cli.TimeVar(flags, &params.Compute, "compute", params.Compute, dag.Nanosecond,
		"computation of every rank before each exchange")
	g.register(p, cmd)
	return cmd
}
