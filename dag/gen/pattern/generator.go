package pattern

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "pattern",
	Title: "one communication pattern, repeated, in sends and receives",
	Group: generator.Patterns,
	Page: "Pattern generates a trace in which every rank computes, then communicates with others in a fixed\n" +
		"pattern, in each iteration:\n" + titles(),
	Example: `  tracegen pattern ring --ranks 16 --bytes 1MiB -o ring.parquet
  tracegen pattern alltoall --ranks 64 --bytes 64KiB --compute 0 --to goal | less`,
	Argument: "name",
	New:      func() generator.Config { return &Config{model: Default()} },
	Small:    param.Texts{"name": {"ring"}, "iterations": {"5"}},
	Large:    param.Texts{"name": {"ring"}, "iterations": {"50"}},
}

// titles lists the patterns, one per line.
func titles() string {
	var b strings.Builder
	for i := range patterns {
		fmt.Fprintf(&b, "\n  %-14s %s", patterns[i].Name, patterns[i].Title)
	}
	return b.String()
}

// Config is a configuration of the generator.
type Config struct {
	name  string
	model Params
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	name := param.String(&c.name, "name", "pattern").Only()
	for i := range patterns {
		name.Choices = append(name.Choices, patterns[i].Name)
	}
	return param.Set{
		name,
		generator.Ranks(&p.Ranks),
		param.Size(&p.Bytes, "bytes", "message size; for ring, the size of the allreduce"),
		param.Int(&p.Iterations, "iterations", "number of iterations"),
		param.Time(&p.Compute, "compute", "computation per rank at the start of each iteration"),
		param.Int(&p.Root, "root", "root rank, for binomial"),
	}
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p := c.model
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(c.name, p))
}
