package fft

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "fft",
	Title: "distributed Fourier transforms: computation and transposes alternate",
	Group: generator.Applications,
	Page: `Fft generates Fourier transforms of two or three dimensions. Each rank transforms its data along one
dimension; then the ranks transpose, all together or within the rows and the columns of a grid. The
transposes are collectives (alltoall).`,
	Example: `  tracegen fft | simulate
  tracegen fft --size 4096x4096 --grid 1x64 --lower alltoall=linear -o fft.parquet`,
	New: func() generator.Config {
		p := Default()
		return &Config{model: p, grid: []int{p.Rows, p.Columns}}
	},
	Small: param.Texts{"size": {"64x64x64"}, "grid": {"4x4"}, "iterations": {"5"}},
	Large: param.Texts{"size": {"64x64x64"}, "grid": {"4x4"}, "iterations": {"50"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	grid  []int
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		param.Dims(&p.Size, "size", "elements along each of two or three dimensions; powers of two"),
		param.Dims(&c.grid, "grid", "rows x columns of ranks; powers of two"),
		param.Size(&p.ElementBytes, "element-bytes", "size of an element"),
		param.Int(&p.FlopRate, "flop-rate", "floating-point operations per second and rank"),
		param.Bool(&p.Inverse, "inverse", "run the inverse transform after each transform"),
		param.Int(&p.Iterations, "iterations", "number of iterations"),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	p := c.model
	if len(c.grid) != 2 {
		return nil, fmt.Errorf("--grid has %d dimensions, expected 2", len(c.grid))
	}
	p.Rows, p.Columns = c.grid[0], c.grid[1]
	return generator.From(NewSource(p))
}
