// This file binds the generator dag/gen/fft to its flags.

package main

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen/fft"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newFFT(p *cli.Program) *cobra.Command {
	var g generation
	params := fft.Default()
	grid := []int{params.Rows, params.Columns}
	cmd := &cobra.Command{
		Use:   "fft",
		Short: "distributed Fourier transforms: computation and transposes in turn",
		Long: `Fft makes a trace of Fourier transforms of two or three dimensions: each rank transforms what it has
along one dimension, then the ranks transpose, all together or within the rows and the columns of
a grid. The transposes are collectives (alltoall).`,
		Example: `  tracegen fft | simulate
  tracegen fft --size 4096x4096 --grid 1x64 --lower alltoall=linear -o fft.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(grid) != 2 {
				return cli.Usagef("--grid has %d dimensions, expected 2", len(grid))
			}
			params.Rows, params.Columns = grid[0], grid[1]
			return g.runSource(nil, func() (format.Source, error) { return fft.NewSource(params) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	dimsVar(flags, &params.Size, "size", params.Size, "elements along each of two or three dimensions: powers of two")
	dimsVar(flags, &grid, "grid", grid, "rows and columns of ranks: powers of two")
	cli.SizeVar(flags, &params.ElementBytes, "element-bytes", params.ElementBytes, "size of an element")
	flags.Int64Var(&params.FlopRate, "flop-rate", params.FlopRate, "floating-point operations of a rank in a second")
	flags.BoolVar(&params.Inverse, "inverse", params.Inverse, "each transform is followed by its inverse")
	flags.IntVar(&params.Iterations, "iterations", params.Iterations, "how often")
	g.register(p, cmd)
	return cmd
}
