// This file binds the generator dag/gen/sweep3d to its flags.

package main

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/sweep3d"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newSweep3D(p *cli.Program) *cobra.Command {
	var g generation
	params := sweep3d.Default()
	grid, cells := []int{params.GridX, params.GridY}, []int64{params.X, params.Y, params.Z}
	cmd := &cobra.Command{
		Use:   "sweep3d",
		Short: "wavefronts from the corners of a grid of ranks",
		Long: `Sweep3d makes a trace of a transport code: wavefronts sweep over a grid of ranks from each of its
corners, block by block, as in Sweep3D.`,
		Example: `  tracegen sweep3d | simulate
  tracegen sweep3d --grid 32x16 --cells 20x20x400 --z-block 20 -o sweep.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(grid) != 2 {
				return cli.Usagef("--grid has %d dimensions, expected 2", len(grid))
			}
			if len(cells) != 3 {
				return cli.Usagef("--cells has %d dimensions, expected 3", len(cells))
			}
			params.GridX, params.GridY = grid[0], grid[1]
			params.X, params.Y, params.Z = cells[0], cells[1], cells[2]
			return g.runSource(nil, func() (format.Source, error) { return sweep3d.NewSource(params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	dimsVar(flags, &grid, "grid", grid, "number of ranks along x and y")
	dimsVar(flags, &cells, "cells", cells, "cells of a rank along x, y and z")
	flags.Int64Var(&params.ZBlock, "z-block", params.ZBlock, "planes of cells that are computed at a time (mk)")
	flags.Int64Var(&params.Angles, "angles", params.Angles, "angles of an octant")
	flags.Int64Var(&params.AngleBlock, "angle-block", params.AngleBlock, "angles that are computed at a time (mmi)")
	cli.SizeVar(flags, &params.FluxBytes, "flux-bytes", params.FluxBytes, "size of what passes a cell's face for an angle")
	cli.TimeVar(flags, &params.Grind, "grind", params.Grind, dag.Nanosecond, "computation of a cell for an angle")
	flags.IntVar(&params.Iterations, "iterations", params.Iterations, "how often")
	g.register(p, cmd)
	return cmd
}
