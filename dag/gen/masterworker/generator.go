package masterworker

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "masterworker",
	Title: "a master that hands out tasks to workers and collects results",
	Group: generator.Applications,
	Page: `Masterworker generates a master (rank 0) that hands out tasks round robin, one for each result that it
has received, and the workers that compute them.`,
	Example: `  tracegen masterworker | simulate
  tracegen masterworker --workers 255 --tasks 100000 --compute 200us --any-source=false -o tasks.parquet`,
	New:   func() generator.Config { return &Config{Default(), generator.NewSeed()} },
	Small: param.Texts{"tasks": {"100"}},
	Large: param.Texts{"tasks": {"1000"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	generator.Seed
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		param.Int(&p.Workers, "workers", "number of workers"),
		param.Int(&p.Tasks, "tasks", "total number of tasks"),
		param.Size(&p.TaskBytes, "task-bytes", "size of a message with a task"),
		param.Size(&p.ResultBytes, "result-bytes", "size of a message with a result"),
		param.TimeIn(&p.Compute, dag.Nanosecond, "compute", "mean computation of a task"),
		param.Float(&p.Spread, "spread", "largest deviation of a task's computation, as a part of the mean"),
		param.TimeIn(&p.Handle, dag.Nanosecond, "handle", "computation of the master per result"),
		param.Bool(&p.AnySource, "any-source",
			"the master receives from any worker, not from one worker after the other"),
		c.SeedParam(),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	return generator.From(NewSource(c.model, c.Seed.Value))
}
