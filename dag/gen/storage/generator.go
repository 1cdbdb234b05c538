package storage

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "storage",
	Title: "storage accesses with the statistics of another trace",
	Group: generator.Storage,
	Page: `Storage generates the reads and writes of a storage system: sizes, the share of reads, the times between
requests, the popularity of units and the locality of addresses are drawn from the statistics of another
trace, or of one of the built-in profiles. --lower turns them into the messages of a storage system.`,
	Example: `  tracegen storage --profile financial --records 5000 | traceconv --lower directdrive | simulate
  tracegen storage --profile websearch --records 1000000 --seed 7 -o websearch.parquet
  tracegen storage --like Financial1.spc --records 5000 --to spc -o small.spc`,
	Exclusive: [][]string{{"profile", "like"}},
	New: func() generator.Config {
		return &Config{Seed: generator.NewSeed(), profile: Names()[0], records: Default().Records}
	},
	Small: param.Texts{"records": {"300"}},
	Large: param.Texts{"records": {"3000"}},
}

// Config is a configuration of the generator.
type Config struct {
	generator.Seed
	profile string
	like    string // file; "": profile
	records int64
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	profile := param.String(&c.profile, "profile", "built-in profile").Placeholder("profile")
	profile.Choices = Names()
	return param.Set{
		profile,
		param.File(&c.like, "like", "source trace of the statistics, instead of a profile"),
		param.Int(&c.records, "records", "number of accesses"),
		c.SeedParam(),
	}
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p := Params{Profile: Builtin(c.profile), Records: c.records, Context: env.OrEmpty().Context}
	if p.Profile == nil {
		return nil, fmt.Errorf("--profile: expected %s, found %q", strings.Join(Names(), " or "), c.profile)
	}
	if c.like != "" {
		err := env.OpenTrace(c.like, func(t *dag.Trace) (err error) {
			p.Profile, err = Like(t)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return generator.From(NewSource(p, c.Seed.Value))
}
