package schedgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "schedgen",
	Title: "a pattern of Schedgen, the generator of LogGOPSim and ATLAHS",
	Group: generator.Patterns,
	Page: "Schedgen generates the schedules of the program of that name for the same options, op for op:\n" +
		titles() + "\n\nTimes without a unit are nanoseconds.",
	Example: `  tracegen schedgen dissemination --ranks 64 --bytes 8 | simulate
  tracegen schedgen allreduce_recdoub -s 16 -d 4096 --rpl-dep-cmp 500 -o recdoub.bin`,
	Argument: "pattern",
	New:      func() generator.Config { return &Config{model: Default(), Seed: generator.NewSeed()} },
	Small:    param.Texts{"pattern": {"random_bisect"}, "ranks": {"64"}},
	Large:    param.Texts{"pattern": {"random_bisect"}, "ranks": {"640"}},
}

// titles lists the patterns, one per line.
func titles() string {
	var b strings.Builder
	for i := range patterns {
		x, only := &patterns[i], ""
		if len(x.Has) == 1 {
			only = fmt.Sprintf(" (%s only)", x.Has[0])
		}
		fmt.Fprintf(&b, "\n  %-20s %s%s", x.Name, x.Title, only)
	}
	return b.String()
}

// Config is a configuration of the generator.
type Config struct {
	pattern string
	model   Params
	generator.Seed
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	name := param.String(&c.pattern, "pattern", "pattern").Only()
	for i := range patterns {
		name.Choices = append(name.Choices, patterns[i].Name)
	}
	seed := c.SeedParam()
	seed.Help = "seed of the random bisections; Schedgen uses the time in seconds"
	return param.Set{
		name,
		param.Enum((*variant)(&p.Variant), "variant", "Schedgen variant", VariantNames()...).Placeholder("variant"),
		generator.Ranks(&p.Ranks).Shorthand("s").Alias("commsize"),
		param.Size(&p.Bytes, "bytes", "message size, or size of the segmented data").Shorthand("d").Alias("datasize"),
		param.Int(&p.Root, "root", "root rank, for patterns with a root"),
		param.Size(&p.SegmentSize, "segmentsize", "segment size, for pipelined patterns"),
		param.Int(&p.NWay, "nway", "messages per rank and round, for nwaydissemination"),
		param.Enum((*optionalTime)(&p.NB), "nb",
			"computation per rank that overlaps with the pattern; ns without a unit").Placeholder("time"),
		param.TimeIn(&p.NBPoll, dag.Nanosecond, "nb-poll",
			"length of the calcs that --nb is split into; 0: one calc"),
		param.Int(&p.CPU, "cpu", "compute stream of --nb"),
		param.Enum((*optionalTime)(&p.RplDepCmp), "rpl-dep-cmp",
			"computation after each receive, for allreduce_recdoub; ns without a unit").Placeholder("time"),
		param.Int(&p.SkewRatio, "a2av-skew-ratio", "divisor of the maximum random size, for linear_alltoallv"),
		param.Bool(&p.Outcast, "outcast", "send the full size from rank --root + 1 to all, for linear_alltoallv"),
		seed,
	}
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p := c.model
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(c.pattern, p, c.Seed.Value))
}

// variant is a Variant as a text.
type variant Variant

// MarshalText returns the name.
func (v *variant) MarshalText() ([]byte, error) { return []byte(Variant(*v).String()), nil }

// UnmarshalText parses a name.
func (v *variant) UnmarshalText(text []byte) error {
	x, ok := ParseVariant(string(text))
	if !ok {
		return fmt.Errorf("expected %s", strings.Join(VariantNames(), " or "))
	}
	*v = variant(x)
	return nil
}

// optionalTime is a length of time, or none, which Schedgen writes as -1.
type optionalTime dag.Time

// MarshalText returns the time or "none".
func (o *optionalTime) MarshalText() ([]byte, error) {
	if dag.Time(*o) == None {
		return []byte("none"), nil
	}
	return []byte(dag.Time(*o).String()), nil
}

// UnmarshalText parses a time, none or -1.
func (o *optionalTime) UnmarshalText(text []byte) error {
	if slices.Contains([]string{"none", "-1"}, string(text)) {
		*o = optionalTime(None)
		return nil
	}
	t, err := units.ParseTime(string(text), dag.Nanosecond)
	if err == nil {
		*o = optionalTime(t)
	}
	return err
}
