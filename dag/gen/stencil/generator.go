package stencil

import (
	"fmt"

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
border with their neighbours, in each iteration. A preset has the exchanges and sums of an application.`,
	Example: `  tracegen stencil | simulate
  tracegen stencil --grid 16x16 --cells 1000 --halo 2 --periodic --diagonal -o stencil.parquet
  tracegen stencil --preset lulesh --grid 3x3x3 -o lulesh.parquet`,
	New:   func() generator.Config { return &Config{model: Default()} },
	Small: param.Texts{"grid": {"3x3"}, "iterations": {"5"}},
	Large: param.Texts{"grid": {"3x3"}, "iterations": {"50"}},
}

// Config is a configuration of the generator.
type Config struct {
	model   Params
	preset  string
	unknown error // the preset does not exist
}

// Params describes the parameters. The preset stands first: others change it.
func (c *Config) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "skeleton of an application; other flags change it").
		Placeholder("name").Check(c.usePreset)
	preset.Choices = Presets()
	return param.Set{
		preset,
		param.Dims(&p.Grid, "grid", "ranks along each of one to six dimensions"),
		param.Dims(&p.Cells, "cells", "cells per rank along each dimension; one number applies to all"),
		param.Dims(&p.Halo, "halo", "exchanged layers of cells along each dimension; one number applies to all"),
		param.Size(&p.CellBytes, "cell-bytes", "size of a cell"),
		param.Bool(&p.Periodic, "periodic", "connect the first and last rank of each dimension"),
		param.Bool(&p.Diagonal, "diagonal", "exchange with ranks that share an edge or corner, too"),
		param.Int(&p.Iterations, "iterations", "number of iterations"),
		param.TimeIn(&p.Compute, dag.Nanosecond, "compute",
			"computation per rank and iteration, before the exchange; ns without a unit"),
		param.Int(&p.Allreduces, "allreduces", "allreduces of all ranks per iteration, after the exchange"),
		param.Size(&p.AllreduceBytes, "allreduce-bytes", "size of an allreduce"),
	}
}

// usePreset sets the parameters to the preset. Source returns the error for an unknown one.
func (c *Config) usePreset() error {
	if c.preset == "" {
		return nil
	}
	p, err := Preset(c.preset)
	if c.unknown = err; err == nil {
		c.model = p
	}
	return nil
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	if c.unknown != nil {
		return nil, fmt.Errorf("--preset: %w", c.unknown)
	}
	return generator.From(NewSource(c.model))
}
