package dcnw

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry for published sizes.
var Generator = generator.Generator{
	Name:  "dcnw",
	Title: "traffic of data-center applications with published message sizes",
	Group: generator.Traffic,
	Page: `Dcnw generates messages that all tasks send at random times (Poisson arrivals), independent of earlier
messages. Sizes follow a published measurement; the rate is such that each task generates a given
load.

The measurements are ` + strings.Join(Workloads(), ", ") + `
(W1 to W5 of Homa are FB_KEYVALUE, GOOGLE_SEARCH, GOOGLE_ALL, FB_HADOOP, WEBSEARCH).`,
	Example: `  tracegen dcnw | simulate
  tracegen dcnw --sizes WEBSEARCH --load 10Gbps --messages 100000 --destination uniform -o web.parquet
  tracegen dcnw --load 1Gbps --emit-spec -o dcnw.vef`,
	New:   func() generator.Config { return &Config{model: Default(), Options: openloop.NewOptions()} },
	Small: param.Texts{"messages": {"300"}},
	Large: param.Texts{"messages": {"3000"}},
}

// FileGenerator is the entry of the registry for sizes of a file.
var FileGenerator = generator.Generator{
	Name:  "cdcnw",
	Title: "traffic with the message sizes of a file",
	Group: generator.Traffic,
	Page: `Cdcnw generates the traffic of dcnw with the sizes of a file: lines with a size in bytes and the part of
all messages that are not larger. A line with a single number, the mean size, may come first.`,
	Example: `  printf '64 0.5\n1500 0.9\n1000000 1\n' > sizes.txt
  tracegen cdcnw sizes.txt --load 2.5Gbps -o traffic.parquet
  tracegen cdcnw sizes.txt --emit-spec -o traffic.vef`,
	Argument: "file",
	New: func() generator.Config {
		return &Config{model: Default(), Options: openloop.NewOptions(), reads: true}
	},
	Small: param.Texts{"file": {"testdata/sizes.txt"}, "messages": {"300"}},
	Large: param.Texts{"file": {"testdata/sizes.txt"}, "messages": {"3000"}},
}

// Config is a configuration of either generator.
type Config struct {
	model Params
	openloop.Options
	reads bool   // sizes are those of a file
	file  string // of sizes
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	set := param.Set{param.Enum(&named{&p.Sizes}, "sizes", "published message sizes",
		Workloads()...).Placeholder("workload")}
	if c.reads {
		set = param.Set{param.File(&c.file, "file", "file of sizes").Only()}
	}
	set = append(set, openloop.SizeParams(&p.Tasks, &p.Messages)...)
	set = append(set,
		openloop.GbpsParam(&p.Load, "load", "mean load per task; Gbit/s without a unit"),
		openloop.DestinationParam(&p.Destination.Distribution, "distribution of destinations"),
	)
	return append(set, c.OptionParams(&p.Clock)...)
}

// File returns the name of the file of sizes, "" for published sizes.
func (c *Config) File() string { return c.file }

// Resolve reads the file of sizes, if there is one, and returns the parameters.
func (c *Config) Resolve(env *generator.Env) (Params, error) {
	p := c.model
	p.Destination.Sigma = c.Sigma
	if !c.reads {
		return p, nil
	}
	return p, env.OpenFile(c.file, func(name string, r io.Reader) (err error) {
		p.Sizes, err = ReadSizes(name, r, env.Warnf)
		return err
	})
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p, err := c.Resolve(env)
	if err != nil {
		return nil, err
	}
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(p, c.Seed.Value))
}

// ReadSizes reads a file of sizes that messages call name. It warns if the mean that the file states is not that of its
// sizes. A line that does not parse is an *openloop.LineError.
func ReadSizes(name string, r io.Reader, warn func(message string, args ...any)) (*Curve, error) {
	c, stated, err := ReadCurve(filepath.Base(name), r)
	if err != nil {
		return nil, err
	}
	if stated > 0 && math.Abs(stated-c.Mean()) > c.Mean()/100 {
		warn("%s: states a mean of %v bytes, but the mean of its sizes is %.7g", name, stated, c.Mean())
	}
	return c, nil
}

// named is a published Curve as a text.
type named struct{ at **Curve }

// MarshalText returns the name.
func (n *named) MarshalText() ([]byte, error) { return []byte((*n.at).Name), nil }

// UnmarshalText parses a name.
func (n *named) UnmarshalText(text []byte) error {
	c, ok := Workload(string(text))
	if !ok {
		return errors.New("expected one of " + strings.Join(Workloads(), ", "))
	}
	*n.at = c
	return nil
}
