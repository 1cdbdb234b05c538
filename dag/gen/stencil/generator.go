package stencil

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "stencil",
	Title: "halo exchange with neighbours on a grid of up to six dimensions",
	Group: generator.Applications,
	Page: `Stencil generates ranks that compute on a block of a grid of cells, then exchange the cells along its
border with their neighbours, in each iteration.`,
	Example: `  tracegen stencil | simulate
  tracegen stencil --grid 16x16 --cells 1000 --halo 2 --periodic --diagonal -o stencil.parquet`,
	New:   func() generator.Config { return &Config{Default()} },
	Small: param.Texts{"grid": {"3x3"}, "iterations": {"5"}},
	Large: param.Texts{"grid": {"3x3"}, "iterations": {"50"}},
}

// Config is a configuration of the generator.
type Config struct{ model Params }

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		param.Dims(&p.Grid, "grid", "number of ranks along each dimension, one to six"),
		param.Dims(&p.Cells, "cells", "cells of a rank along each dimension, or along all"),
		param.Dims(&p.Halo, "halo", "layers of cells that neighbours need, along each dimension or all"),
		param.Size(&p.CellBytes, "cell-bytes", "size of a cell"),
		param.Bool(&p.Periodic, "periodic", "the first and last rank of a dimension are neighbours"),
		param.Bool(&p.Diagonal, "diagonal", "ranks that touch in an edge or a corner are neighbours"),
		param.Int(&p.Iterations, "iterations", "number of iterations"),
		param.TimeIn(&p.Compute, dag.Nanosecond, "compute", "computation of every rank before each exchange"),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	return generator.From(NewSource(c.model))
}
