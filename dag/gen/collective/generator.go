package collective

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "collective",
	Title: "micro-benchmark of one collective, once or repeated",
	Group: generator.Patterns,
	Page: `Collective generates a trace in which every rank takes part in one collective, or, with --repeat, in
several of them in sequence. With --group, each of several groups runs its own collectives.
Collectives stay collectives unless --lower is given.

The size is the input of each rank; the contribution of each rank for allgather and gather; the
data of the root for bcast and scatter.`,
	Example: `  tracegen collective --type allreduce --bytes 1GiB --ranks 512 -o allreduce.parquet
  tracegen collective --type alltoall --bytes 1MiB --ranks 64 --group 8 --stride 8 | simulate
  tracegen collective --type allgather --bytes 64KiB --ranks 32 --repeat 100 --compute 10us | tracecat`,
	New:   func() generator.Config { return &Config{Default()} },
	Small: param.Texts{"repeat": {"10"}},
	Large: param.Texts{"repeat": {"100"}},
}

// Config is a configuration of the generator.
type Config struct{ model Params }

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	return param.Set{
		param.OneOf(&p.Type, "type", "collective", Types()...).Synonym("bcast", "broadcast"),
		param.Size(&p.Size, "bytes",
			"input of each rank; its contribution to allgather and gather; the root's data for bcast and scatter").
			Alias("size"),
		generator.Ranks(&p.Ranks),
		param.Int(&p.Group, "group",
			"ranks per group; each group runs its own collectives").Default("one group of all ranks"),
		param.Int(&p.Stride, "stride", "rank distance between neighbours in a group"),
		param.Int(&p.Root, "root", "index of the root in its group, from 0, for rooted collectives"),
		param.Int(&p.Repeat, "repeat", "collectives in sequence"),
		param.Time(&p.Compute, "compute", "computation per rank between two collectives"),
		param.Enum((*dims)(&p.Dims), "dims",
			"participating network dimensions, such as 0,2, for backends with dimensions").
			Placeholder("dims").Default("all"),
		param.Int(&p.Priority, "priority", "scheduling priority, for backends that schedule by priority"),
	}
}

// Source returns the trace.
func (c *Config) Source(*generator.Env) (dag.Source, error) {
	return generator.From(NewSource(c.model))
}

// dims is a list of network dimensions, kept as a bit mask.
type dims int32

// MarshalText returns the list.
func (d *dims) MarshalText() ([]byte, error) {
	var list []string
	for i := range 31 {
		if *d>>i&1 != 0 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return []byte(strings.Join(list, ",")), nil
}

// UnmarshalText parses a list such as 0,2.
func (d *dims) UnmarshalText(text []byte) error {
	*d = 0
	for part := range strings.SplitSeq(string(text), ",") {
		i, err := strconv.ParseUint(part, 10, 5)
		if err != nil || i > 30 {
			return errors.New("expected numbers of dimensions, 0 to 30, with commas between them, such as 0,2")
		}
		*d |= 1 << i
	}
	return nil
}
