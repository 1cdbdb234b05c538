package graph500

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "graph500",
	Title: "the breadth-first search of Graph500",
	Group: generator.Applications,
	Page: `Graph500 generates a breadth-first search of Graph500 by a model of its traffic: in each level of the
search every process generates queries, sends them in messages to random others, processes the received
ones, and notifies all others when it is done; an all-reduce ends the level.

The amounts are drawn for each process from distributions that depend on the size of the graph and on
the degree of the root; --print-model prints the distributions instead of a trace. --from-graph takes
the amounts from a search of a generated graph. --measure searches such a graph from many vertices and
compares the model with the results.`,
	Example: `  tracegen graph500 --scale 20 --ranks 72 | simulate
  tracegen graph500 --scale 26 --query-time mont-blanc --seed 7 -o search.parquet
  tracegen graph500 --print-model --scale 26 --root-degree 16 --link 40Gbps
  tracegen graph500 --from-graph --scale 20 --ranks 72 -o search.parquet
  tracegen graph500 --measure --scale 17 --roots per-degree:200 --csv`,
	Exclusive: [][]string{{"print-model", "measure", "from-graph"}, {"json", "csv"}, {"measure", "link"}},
	New: func() generator.Config {
		return &Config{model: Default(), Seed: generator.NewSeed(), measurement: DefaultMeasurement(),
			levels: Span{0, maxLevels - 1}}
	},
	Small: param.Texts{"scale": {"12"}, "ranks": {"4"}},
	Large: param.Texts{"scale": {"12"}, "ranks": {"16"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	generator.Seed
	root         rootChoice
	prints, json bool
	fromGraph    bool
	levels       Span

	measures, csv bool
	measurement   Measurement
	table         table

	link *big.Rat // picoseconds per byte; nil: unknown
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	time := param.Enum((*queryTimes)(p), "query-time",
		"processing time per query, or a machine: "+strings.Join(machineNames(), ", ")+
			"; then ,RANGES=TIME, ,RANGES=MACHINE or ,RANGES=xFACTOR for other processes, such as 1.5ns,0-3+7=x0.5").
		Placeholder("time").Offer(machineNames()...)
	return param.Set{
		param.Int(&p.Scale, "scale", "binary logarithm of the number of vertices"),
		param.Int(&p.EdgeFactor, "edge-factor", "edges per vertex"),
		generator.RanksOf(&p.Nodes, "process on its own node"),
		param.Int(&p.Coalescing, "coalescing", "queries per full message"),
		time,
		param.Int(&p.RootDegree, "root-degree", "degree of the root; 0: random"),
		param.Enum(&p.Degrees, "degree-distribution",
			"random degrees of the root: lognormal; power:ALPHA[,MIN]; rmat: of a Kronecker graph; rmat-noise:B; "+
				"file:FILE with degrees and numbers of vertices").Alias("degree-law").Placeholder("name").
			Offer("lognormal", "power:2", "rmat", "rmat-noise:0.1"),
		param.OneOf(&c.root, "root", "root: a random vertex, or the vertex at a random end of an edge (weighted)",
			vertexRoot, weightedRoot),
		param.Int(&p.RootProcess, "root-process", "process that owns the root; -1: random"),
		param.Float(&p.Variation, "variation",
			"factor of the standard deviation of queries; 0: all processes send the mean"),
		param.OneOf(&p.Eq7, "eq7",
			"form of equation 7: of the reference program, which fits measured graphs (ref), "+
				"or of the paper (printed)", ReferenceEq7, PrintedEq7),
		param.Bool(&p.HIntDiv, "h-intdiv",
			"use integer division in equation 13, as the reference program does"),
		param.OneOf(&p.Injection, "inj",
			"mean time to generate a message: the time of its queries divided by --packet-phits (ref), "+
				"or all of it (paper)",
			ReferenceInjection, PaperInjection),
		param.Time(&p.Cycle, "cycle", "time of a phit on the link: a process tries to generate a message once per "+
			"cycle; "+
			"0s: at any time"),
		param.Int(&p.PacketPhits, "packet-phits", "phits per packet, for --inj ref"),
		param.Time(&p.ConsumeMin, "consume-min",
			"minimum processing time per received message, such as a packet's time on the link"),
		param.Size(&p.MessageBytes, "message-bytes",
			"size of every query message, full or not; 0: 16 bytes per query of a full message"),
		param.OneOf(&p.Notices, "notices", "processes that receive a notice when a process ends a level", AllNotices,
			NoNotices),
		param.Size(&p.ControlBytes, "control-bytes",
			"size of notices and all-reduce messages; 0: as --message-bytes"),
		param.Int(&p.MaxLevels, "max-levels", "maximum number of levels, including level 0"),
		param.Enum((*rangeText)(&c.levels), "levels", "levels of the search that the trace has, such as 2 or 1-3").
			Placeholder("range"),
		param.Float(&p.Rest, "rest", "share of queries that may remain when the search ends, from level 5 on"),
		c.SeedParam(),
		param.Bool(&c.fromGraph, "from-graph",
			"search a Kronecker graph, whose vertices are divided among the processes, in place of the model"),
		param.Bool(&c.prints, "print-model", "print the results of the model's equations instead of a trace"),
		param.Bool(&c.measures, "measure",
			"generate a Kronecker graph, search it and print degrees and explored edges by level, instead of a trace"),
		param.Enum(&c.measurement.Roots, "roots",
			"roots of --measure: all, a number, or per-degree:N of each degree below 9 and range up to a power of two").
			Placeholder("name").Offer("all", "per-degree:200"),
		param.Bool(&c.measurement.Dedup, "dedup", "keep one of several edges between two vertices, with --measure or "+
			"--from-graph"),
		param.OneOf(&c.table, "table",
			"table of --measure: explored ends by degree and level (levels), vertices by degree (degrees), or "+
				"searches "+
				"by the ends explored in --level (bins)", levelsTable, degreesTable, binsTable),
		param.Int(&c.measurement.Level, "level", "level of --table bins"),
		param.Enum((*rangeText)(&c.measurement.Degrees), "degrees",
			"degrees A-B of the roots in --table bins, or of the curves of --print-model").
			Placeholder("range"),
		param.Bool(&c.csv, "csv", "print CSV instead of a table, with --measure or --degrees"),
		param.Bool(&c.json, "json", "print JSON instead of a table, with --print-model or --measure"),
		param.Rate(&c.link, "link", "link bandwidth per node; adds the injection probability to --print-model"),
	}
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	if c.json || c.link != nil {
		return nil, errors.New("--link needs --print-model, and --json needs it or --measure")
	}
	if err := c.checkMeasuring(); err != nil {
		return nil, err
	}
	p, err := c.params(env)
	if err != nil {
		return nil, err
	}
	if c.fromGraph {
		c.warnOfModel(env)
		return generator.From(NewGraphSource(p, c.measurement.Dedup, c.Seed.Value))
	}
	return generator.From(NewSource(p, c.Seed.Value))
}

// warnOfModel warns of flags that shape the model only, and have no effect on the search of a graph.
func (c *Config) warnOfModel(env *generator.Env) {
	p, initial := &c.model, Default()
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"degree-distribution", p.Degrees.Kind != initial.Degrees.Kind},
		{"variation", p.Variation != initial.Variation},
		{"eq7", p.Eq7 != initial.Eq7}, {"h-intdiv", p.HIntDiv}, {"max-levels", p.MaxLevels != initial.MaxLevels},
		{"rest", p.Rest != initial.Rest},
	} {
		if flag.set {
			env.Warnf("--%s shapes the model only: it has no effect with --from-graph", flag.name)
		}
	}
}

// params returns the parameters with the degrees of the file.
func (c *Config) params(env *generator.Env) (Params, error) {
	p := c.model
	p.Context = env.OrEmpty().Context
	p.Degrees.Weighted = c.root == weightedRoot
	if c.levels != (Span{0, maxLevels - 1}) {
		p.Levels = &c.levels
	}
	if p.Degrees.Kind != MeasuredDegrees {
		return p, nil
	}
	return p, env.OpenFile(p.Degrees.File, func(_ string, r io.Reader) (err error) {
		p.Degrees.Counts, err = ReadDegrees(r)
		return err
	})
}

// rootChoice is how the root is drawn.
type rootChoice uint8

const (
	vertexRoot rootChoice = iota
	weightedRoot
)

// String returns the name on the command line.
func (r rootChoice) String() string { return [...]string{"vertex", "weighted"}[r] }

// Prints reports whether Print takes the place of Source, because of --print-model or --measure.
func (c *Config) Prints() (name string, prints bool) {
	if c.measures {
		return "measure", true
	}
	return "print-model", c.prints
}

// checkMeasuring returns an error if a flag of --measure is set without it.
func (c *Config) checkMeasuring() error {
	m, initial := c.measurement, DefaultMeasurement()
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"csv", c.csv && !c.prints}, {"table", c.table != levelsTable}, {"roots", m.Roots != initial.Roots},
		{"dedup", m.Dedup && !c.fromGraph},
		{"level", m.Level != initial.Level}, {"degrees", c.hasDegrees() && !c.prints},
	} {
		if flag.set {
			return fmt.Errorf("--%s needs --measure", flag.name)
		}
	}
	if c.csv && !c.hasDegrees() {
		return errors.New("--csv needs --measure, or --degrees with --print-model")
	}
	return nil
}

// hasDegrees reports whether --degrees is set.
func (c *Config) hasDegrees() bool { return c.measurement.Degrees != DefaultMeasurement().Degrees }

// measure writes the results of searches of a graph.
func (c *Config) measure(env *generator.Env, w io.Writer) error {
	p, m := c.model, c.measurement
	p.Context = env.OrEmpty().Context
	add, done := env.StartProgress("searching", "searches")
	m.Progress = add
	r, err := Measure(p, m, c.Seed.Value)
	done()
	switch {
	case err != nil:
		return err
	case c.json:
		return r.writeJSON(w)
	case c.csv:
		return r.writeCSV(w, c.table)
	}
	return r.write(w, c.table)
}

// rangeText is the text of a range of degrees or levels.
type rangeText Span

// MarshalText returns the range, such as 10-20.
func (s *rangeText) MarshalText() ([]byte, error) { return []byte(Span(*s).String()), nil }

// UnmarshalText parses a number or a range such as 10-20.
func (s *rangeText) UnmarshalText(text []byte) error {
	parsed, err := parseSpan(string(text))
	if err != nil {
		return fmt.Errorf("%.40q, expected a number or a range such as 10-20, the lower one first", text)
	}
	*s = rangeText(parsed)
	return nil
}

// Print writes the results of the model's equations, or of a measurement.
func (c *Config) Print(env *generator.Env, w io.Writer) error {
	if c.measures {
		return c.measure(env, w)
	}
	if err := c.checkMeasuring(); err != nil {
		return err
	}
	if c.hasDegrees() {
		curves, err := Curves(c.model, c.measurement.Degrees)
		if err != nil {
			return err
		}
		return writeCurves(w, curves, c.csv, c.json)
	}
	bytePicoseconds := 0.0
	if c.link != nil {
		bytePicoseconds, _ = c.link.Float64()
	}
	p, err := c.params(env)
	if err != nil {
		return err
	}
	d, err := Describe(p, c.Seed.Value, bytePicoseconds)
	if err != nil {
		return err
	}
	if c.json {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(d)
	}
	return d.write(w)
}

// write prints the description for people.
func (d *Description) write(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "graph\tscale %d, edge factor %d, %d ends of edges\n", d.Scale, d.EdgeFactor, d.TotalEdges)
	fmt.Fprintf(tab, "processes\t%d, the root's is %d, %d queries a message\n", d.Nodes, d.RootProcess, d.Coalescing)
	fmt.Fprintf(tab, "equations\t7: %s, integer division in 13: %v\n", d.Eq7, d.HIntDiv)
	r := d.RootDegree
	fmt.Fprintf(tab, "root degree\t%d; drawn: median %.6g, mean %.6g, logarithm %.6g +- %.6g\n",
		r.Value, r.Median, r.Mean, r.Mu, r.Sigma)
	fmt.Fprintf(tab, "\t%s: 90 %% up to %.6g, 99 %% up to %.6g\n", r.Distribution, r.P90, r.P99)
	if d.InjectionProbability != nil {
		fmt.Fprintf(tab, "injection probability\t%.6g\n", *d.InjectionProbability)
	}
	for _, g := range d.Groups {
		fmt.Fprintf(tab, "processes %s\t%.6g ns per query", g.Processes, g.QueryTimeNS)
		if g.InjectionProbability != nil {
			fmt.Fprintf(tab, ", injection probability %.6g", *g.InjectionProbability)
		}
		fmt.Fprintln(tab)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	tab = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tab, "\nlevel\tmean\tsigma\ttruncated\tqueries\tdestinations\tmessages\t\n")
	for _, l := range d.Levels {
		fmt.Fprintf(tab, "%d\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t\n", l.Level, l.Mean, l.Sigma, l.MeanTruncated,
			l.QueriesPerProcess, l.Destinations, l.MessagesPerProcess)
	}
	return tab.Flush()
}
