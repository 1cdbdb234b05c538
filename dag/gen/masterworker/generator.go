package masterworker

import (
	"fmt"
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
	"math/big"
	"strconv"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "masterworker",
	Title: "a master that hands out tasks to workers and collects results",
	Group: generator.Applications,
	Page: `Masterworker generates a master (rank 0) that hands out tasks round robin, one for each result that it
has received, and the workers that compute them.`,
	Example: `  tracegen masterworker | simulate
  tracegen masterworker --ranks 256 --tasks 100000 --compute 200us --any-source=false -o tasks.parquet`,
	Exclusive: [][]string{{"ranks", "workers"}},

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
		param.Custom("int", "ranks", "number of ranks: the master and its workers", parseRanks,
			func(ranks *big.Rat) error {
				n, err := param.Rounded(ranks)
				p.Workers = int(n - 1)
				return err
			}, func() string { return strconv.Itoa(p.Workers + 1) }).Default(strconv.Itoa(p.Workers + 1)),
		param.Int(&p.Workers, "workers", "number of workers: one less than ranks").Hidden(),
		param.Int(&p.Tasks, "tasks", "total number of tasks of all workers"),
		param.Size(&p.TaskBytes, "task-bytes", "size of a task message"),
		param.Size(&p.ResultBytes, "result-bytes", "size of a result message"),
		param.TimeIn(&p.Compute, dag.Nanosecond, "compute", "mean computation per task; ns without a unit"),
		param.Float(&p.Spread, "spread", "largest relative deviation of a task's computation from the mean"),
		param.TimeIn(&p.Handle, dag.Nanosecond, "handle", "computation of the master per result; ns without a unit"),
		param.Bool(&p.AnySource, "any-source",
			"receive results from any worker; off: from the workers in the order of their tasks"),
		c.SeedParam(),
	}
}

// parseRanks parses a number of ranks.
func parseRanks(text string) (*big.Rat, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("expected a whole number, found %q", text)
	}
	return new(big.Rat).SetInt64(int64(n)), nil
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	return generator.From(NewSource(c.model, c.Seed.Value))
}
