package flows

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "flows",
	Title: "flows of several classes, spread over a time",
	Group: generator.Traffic,
	Page: `Flows generates flows, one message each, that start at random times of a given span. Each flow is of
one of several classes, which differ in sizes and destinations. Without --class, the classes are those
of the published example: 80 % of the flows have 1 to 10 KiB, and 20 % have 1 to 10 MiB and go to tasks
around the middle one.`,
	Example: `  tracegen flows | simulate
  tracegen flows --messages 10000 --time 1ms --class min=1KiB,max=1KiB,percent=90 \
    --class min=1MiB,max=4MiB,percent=10,destination=poisson -o flows.parquet
  tracegen flows --emit-spec -o flows.vef`,
	New: func() generator.Config {
		p := Default()
		return &Config{model: p, Options: openloop.NewOptions(), span: dag.Time(p.Ticks) * p.Clock}
	},
	Small: param.Texts{"messages": {"300"}},
	Large: param.Texts{"messages": {"3000"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	openloop.Options
	span        dag.Time
	classes     []string
	destination openloop.Distribution // of classes that state none
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	set := append(openloop.SizeParams(&p.Tasks, &p.Messages),
		param.Time(&c.span, "time", "span of flow starts, a multiple of the clock"),
		param.Strings(&c.classes, "class", "flow class, such as min=1KiB,max=64KiB,percent=80,destination=gauss; "+
			"repeatable, 100 % in total").Placeholder("class"),
		openloop.DestinationParam(&c.destination, "distribution of destinations for classes without one"),
	)
	return append(set, c.OptionParams(&p.Clock)...)
}

// Resolve parses the classes and returns the parameters.
func (c *Config) Resolve() (Params, error) {
	p := c.model
	if p.Clock < 1 {
		return p, fmt.Errorf("--clock is %v, expected 1ps or more", p.Clock)
	}
	if c.span%p.Clock != 0 {
		return p, fmt.Errorf("--time is %v, expected a multiple of the clock's %v", c.span, p.Clock)
	}
	p.Ticks = int64(c.span / p.Clock)
	p.Classes = append([]Class(nil), p.Classes...)
	if len(c.classes) > 0 {
		p.Classes = nil
	}
	for _, text := range c.classes {
		class, err := parseClass(text, c.destination)
		if err != nil {
			return p, fmt.Errorf("--class: %w", err)
		}
		p.Classes = append(p.Classes, class)
	}
	for i := range p.Classes {
		p.Classes[i].Destination.Sigma = c.Sigma
	}
	return p, nil
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(p, c.Seed.Value))
}

// parseClass parses a class such as "min=1KiB,max=64KiB,percent=80".
func parseClass(text string, destination openloop.Distribution) (Class, error) {
	var least, most int64
	c := Class{Destination: openloop.DestinationPolicy{Distribution: destination}}
	set := param.Set{
		param.Size(&least, "min", "smallest size"),
		param.Size(&most, "max", "largest size"),
		param.Float(&c.Percent, "percent", "share of all flows in percent"),
		openloop.DestinationParam(&c.Destination.Distribution, "distribution of destinations"),
	}
	for setting := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(setting, "=")
		if !found || set.Find(name) == nil {
			return c, fmt.Errorf("expected min=SIZE, max=SIZE, percent=NUMBER or destination=DISTRIBUTION, "+
				"found %q in %q", setting, text)
		}
		if err := generator.Assign(set, name, value); err != nil {
			return c, fmt.Errorf("%s: %w", text, err)
		}
	}
	if least%1024 != 0 || most%1024 != 0 {
		return c, fmt.Errorf("expected sizes in whole KiB, found %q", text)
	}
	c.MinKB, c.MaxKB = least/1024, most/1024
	return c, nil
}
