package nbody

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "nbody",
	Title: "force computation of bodies that pass around a ring of ranks",
	Group: generator.Applications,
	Page: `Nbody generates a simulation of bodies that attract each other. In each step the bodies of every rank
pass around a ring; each rank meanwhile computes their forces upon its own bodies.`,
	Example: `  tracegen nbody | simulate
  tracegen nbody --ranks 128 --bodies 10000 --steps 10 -o nbody.parquet`,
	New:   func() generator.Config { return &Config{Default()} },
	Small: param.Texts{"ranks": {"8"}, "steps": {"5"}},
	Large: param.Texts{"ranks": {"8"}, "steps": {"50"}},
}

// Config is a configuration of the generator.
type Config struct{ model Params }

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		generator.Ranks(&p.Ranks),
		param.Int(&p.Bodies, "bodies", "bodies per rank"),
		param.Size(&p.BodyBytes, "body-bytes", "message bytes per body"),
		param.TimeIn(&p.Interaction, dag.Nanosecond, "interaction",
			"computation per pair of bodies; ns without a unit"),
		param.TimeIn(&p.Update, dag.Nanosecond, "update",
			"computation per body at the end of a step; ns without a unit"),
		param.Int(&p.Steps, "steps", "number of steps"),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	return generator.From(NewSource(c.model))
}
