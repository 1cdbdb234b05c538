package sweep3d

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "sweep3d",
	Title: "wavefronts from the corners of a grid of ranks",
	Group: generator.Applications,
	Page: `Sweep3d generates a transport code: wavefronts sweep over a grid of ranks from each of its corners,
block by block, as in Sweep3D.`,
	Example: `  tracegen sweep3d | simulate
  tracegen sweep3d --grid 32x16 --cells 20x20x400 --z-block 20 -o sweep.parquet`,
	New: func() generator.Config {
		p := Default()
		return &Config{model: p, grid: []int{p.GridX, p.GridY}, cells: []int64{p.X, p.Y, p.Z}}
	},
	Small: param.Texts{"grid": {"2x3"}, "cells": {"4x4x20"}, "iterations": {"2"}},
	Large: param.Texts{"grid": {"2x3"}, "cells": {"4x4x20"}, "iterations": {"20"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	grid  []int
	cells []int64
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		param.Dims(&c.grid, "grid", "ranks along x and y"),
		param.Dims(&c.cells, "cells", "cells per rank along x, y and z"),
		param.Int(&p.ZBlock, "z-block", "planes of cells per block (mk); the last block may be smaller"),
		param.Int(&p.Angles, "angles", "angles per octant"),
		param.Int(&p.AngleBlock, "angle-block", "angles per block (mmi); the last block may be smaller"),
		param.Size(&p.FluxBytes, "flux-bytes", "message bytes per cell face and angle"),
		param.TimeIn(&p.Grind, dag.Nanosecond, "grind", "computation per cell and angle; ns without a unit"),
		param.Int(&p.Iterations, "iterations", "number of iterations"),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	p := c.model
	if len(c.grid) != 2 {
		return nil, fmt.Errorf("--grid has %d dimensions, expected 2", len(c.grid))
	}
	if len(c.cells) != 3 {
		return nil, fmt.Errorf("--cells has %d dimensions, expected 3", len(c.cells))
	}
	p.GridX, p.GridY = c.grid[0], c.grid[1]
	p.X, p.Y, p.Z = c.cells[0], c.cells[1], c.cells[2]
	return generator.From(NewSource(p))
}
