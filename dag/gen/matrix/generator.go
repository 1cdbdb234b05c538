package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "matrix",
	Title: "flows that follow a node matrix, by the model of TrafPy",
	Group: generator.Traffic,
	Page: `Matrix generates flows whose sizes and times follow given distributions, at a given load, and whose
bytes are spread over the pairs of nodes by a node matrix, within the capacity of ports. The
distributions and the matrix are those of a benchmark set of TrafPy, or given by flags or files. --report
states how closely they are met.

Sizes are in bytes, times in files and distributions in microseconds. A distribution is written such as
weibull:alpha=4.7,lambda=4100,round=1; see docs/reference/generators/matrix.md.`,
	Example: `  tracegen matrix | simulate
  tracegen matrix --preset social_media_cloud --ranks 128 --racks 4 --load 0.3 -o social.parquet
  tracegen matrix --node-matrix M.csv --sizes S.csv.gz --interarrivals T.csv.gz --load 0.5 \
    --capacity 12500 --report r.json -o flows.parquet`,
	Lowered: true,
	Exclusive: [][]string{
		{"node-matrix", "matrix"}, {"node-matrix", "inter-rack"}, {"size-pmf", "size-dist"},
		{"interarrival-pmf", "interarrival-dist"}, {"matrix-only", "report"},
	},
	New: func() generator.Config {
		return &Config{model: Default(), Seed: generator.NewSeed(), preset: "uniform"}
	},
	Small: param.Texts{"ranks": {"8"}, "flows": {"300"}, "threshold": {"1"}},
	Large: param.Texts{"ranks": {"8"}, "flows": {"3000"}, "threshold": {"1"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	generator.Seed
	generator.Report
	preset, recipe          string
	sizeDist, gapDist       string
	nodeMatrix, sizes, gaps string // files, like the next two
	sizePMF, gapPMF         string
	nodes, flows            *int // nil: not given
	interRack               *float64
	matrixOnly              bool
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "benchmark set of distributions and node matrix").
		Placeholder("name")
	preset.Choices = Presets()
	return param.Set{
		preset,
		generator.RanksOf(&p.Nodes, "node").Check(given(&c.nodes, &p.Nodes)),
		param.Int(&p.Racks, "racks",
			"number of racks of consecutive nodes, equal in size up to one node; 0: no racks"),
		param.Given(&c.interRack, "inter-rack", "share of bytes that leave their rack, with --racks; 0: unchanged").
			Default("set by the preset"),
		param.Float(&p.Load, "load",
			"sent bytes per time, relative to half the capacity of all nodes; 0: keep times as drawn"),
		param.Enum((*capacity)(&p.Capacity), "capacity", "capacity per node, half of it per direction; "+
			"bytes/us without a unit").Placeholder("rate"),
		param.Int(&p.Flows, "flows", "minimum number of flows").Default("5 N² for N nodes").
			Check(given(&c.flows, &p.Flows)),
		param.Int(&p.MaxFlows, "max-flows", "maximum number of flows"),
		param.Float(&p.Threshold, "threshold",
			"maximum Jensen-Shannon distance of drawn sizes and times from their distribution; "+
				"more are drawn above it"),
		param.Time(&p.MinDuration, "min-duration",
			"minimum time of the last arrival; all flows are repeated until then"),
		param.String(&c.sizeDist, "size-dist",
			"size distribution in bytes, such as weibull:alpha=4.7,lambda=4100,round=1").Placeholder("dist").
			Default("set by the preset"),
		param.String(&c.gapDist, "interarrival-dist",
			"interarrival time distribution in us, such as exponential:beta=50").
			Placeholder("dist").Default("set by the preset"),
		param.String(&c.recipe, "matrix", "node matrix: "+strings.Join(Kinds(), ", ")+
			", the last two with settings such as nodes:fraction=0.2,share=0.55").Placeholder("recipe").
			Default("set by the preset"),
		param.File(&c.nodeMatrix, "node-matrix", "file of the node matrix, instead of --matrix"),
		param.Bool(&c.matrixOnly, "matrix-only", "write the node matrix as CSV, and no flows"),
		param.File(&c.sizes, "sizes", "file of flow sizes"),
		param.File(&c.gaps, "interarrivals", "file of interarrival times"),
		param.File(&c.sizePMF, "size-pmf", "file of the size distribution's mass function"),
		param.File(&c.gapPMF, "interarrival-pmf", "file of the interarrival time distribution's mass function"),
		param.Bool(&p.AutoCorrect, "auto-correct",
			"move bytes above a node's capacity to other nodes instead of failing"),
		param.Bool(&p.IgnorePorts, "ignore-ports", "pack flows without a limit on port capacity"),
		c.ReportParam("achieved distances and loads"),
		c.SeedParam(),
	}
}

// given returns a check that records a parameter as given.
func given[T any](mark **T, value *T) func() error {
	return func() error {
		*mark = value
		return nil
	}
}

// params returns the parameters, with the contents of files.
func (c *Config) params(env *generator.Env) (Params, error) {
	p := c.model
	if err := c.setDistributions(&p); err != nil {
		return p, err
	}
	if err := cmp.Or(
		readInto(env, c.nodeMatrix, &p.Matrix, ReadMatrix),
		readInto(env, c.sizes, &p.Sizes.Given, Size.ReadValues),
		readInto(env, c.gaps, &p.Interarrivals.Given, Interarrival.ReadValues),
		readInto(env, c.sizePMF, &p.Sizes.PMF, Size.ReadPMF),
		readInto(env, c.gapPMF, &p.Interarrivals.PMF, Interarrival.ReadPMF),
	); err != nil {
		return p, err
	}
	err := c.setCounts(&p)
	return p, err
}

// Prints reports whether the generator prints the node matrix only.
func (c *Config) Prints() (name string, prints bool) {
	return "matrix-only", c.matrixOnly
}

// Print prints the node matrix.
func (c *Config) Print(env *generator.Env, w io.Writer) error {
	p, err := c.params(env)
	if err != nil {
		return err
	}
	m, report, err := Target(p, c.Seed.Value)
	if err != nil {
		return failure(err)
	}
	report.warnMatrix(env)
	return m.WriteCSV(w)
}

// Source generates the flows and returns their trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p, err := c.params(env)
	if err != nil {
		return nil, err
	}
	add, done := env.StartProgress("packing", "flows")
	p.Placed, p.Context = add, env.OrEmpty().Context
	if env.OrEmpty().Explain != nil {
		p.Took = func(sampling, packing time.Duration) {
			env.Explain("sampling took %.6f s, packing %.6f s", sampling.Seconds(), packing.Seconds())
		}
	}
	s, report, err := NewSource(p, c.Seed.Value)
	done()
	if err != nil {
		return nil, failure(err)
	}
	report.warn(&p, env)
	return s, env.PutReport(report)
}

// failure returns the error of a generation: one of a parameter as it is, any other as a failure of the model.
func failure(err error) error {
	var param *openloop.ParamError
	if errors.As(err, &param) {
		return err
	}
	return &generator.Failure{Err: err}
}

// setDistributions sets the preset, then the given distributions and recipe.
func (c *Config) setDistributions(p *Params) error {
	if !p.Use(c.preset) {
		return fmt.Errorf("--preset: expected one of %s, found %q", strings.Join(Presets(), ", "), c.preset)
	}
	return p.set(c.interRack, c.sizeDist, c.gapDist, c.recipe)
}

// set sets the given inter-rack part, distributions and recipe: nil or "" for those not given.
func (p *Params) set(interRack *float64, sizes, gaps, recipe string) (err error) {
	if interRack != nil {
		if p.Racks == 0 {
			return errors.New("--inter-rack needs --racks")
		}
		p.InterRack = *interRack
	}
	if sizes != "" {
		if p.Sizes.Distribution, err = ParseDistribution(sizes); err != nil {
			return fmt.Errorf("--size-dist: %w", err)
		}
	}
	if gaps != "" {
		if p.Interarrivals.Distribution, err = ParseDistribution(gaps); err != nil {
			return fmt.Errorf("--interarrival-dist: %w", err)
		}
	}
	if recipe != "" {
		if p.Recipe, err = ParseRecipe(recipe); err != nil {
			return fmt.Errorf("--matrix: %w", err)
		}
	}
	return nil
}

// setCounts sets the numbers of nodes and flows that were not given.
func (c *Config) setCounts(p *Params) error {
	if p.Matrix != nil {
		if c.nodes != nil && p.Nodes != p.Matrix.N {
			return fmt.Errorf("--ranks is %d, expected %d, as %s has", p.Nodes, p.Matrix.N, c.nodeMatrix)
		}
		p.Nodes = p.Matrix.N
	}
	if c.flows == nil {
		pairs := min(p.Nodes, MaxNodes) * min(p.Nodes, MaxNodes)
		p.Flows = max(1, min(5*pairs, p.MaxFlows, MaxFlows))
	}
	return nil
}

// warnMatrix reports changes of the node matrix.
func (r *Report) warnMatrix(env *generator.Env) {
	if r.NegativeCells > 0 {
		env.Warnf("%d negative cells of the node matrix were set to 0", r.NegativeCells)
	}
	if r.MatrixCorrected {
		env.Warnf("nodes would exceed their capacity: the node matrix was corrected")
	}
}

// warn reports differences from the parameters.
func (r *Report) warn(p *Params, env *generator.Env) {
	r.warnMatrix(env)
	warnDistance(p, env, "sizes", r.SizeDistance)
	warnDistance(p, env, "times between arrivals", r.IntervalDistance)
	if end := float64(p.MinDuration) / 1e6; float64(r.Copies)*r.Duration < end {
		env.Warnf("the flows end before --min-duration, because --max-flows limits them")
	}
}

func warnDistance(p *Params, env *generator.Env, quantity string, distance *float64) {
	if distance != nil && *distance > p.Threshold {
		env.Warnf("the distance of the %s from their distribution is %.3g", quantity, *distance)
	}
}

// readInto reads a file, if its name is not "".
func readInto[T any](env *generator.Env, name string, to *T, parse func(io.Reader) (T, error)) error {
	if name == "" {
		return nil
	}
	return env.OpenFile(name, func(_ string, r io.Reader) (err error) {
		*to, err = parse(r)
		return err
	})
}

// capacity is in bytes per microsecond, which is also the unit of one without.
type capacity float64

// MarshalText returns the number of bytes per microsecond.
func (c *capacity) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(*c), 'g', -1, 64), nil
}

// UnmarshalText parses a rate.
func (c *capacity) UnmarshalText(text []byte) error {
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && !math.IsNaN(v) {
		*c = capacity(v)
		return nil
	}
	rate, err := units.ParseRate(string(text), "")
	if err != nil {
		return err
	}
	*c = capacity(1e6 * float64(rate.Den) / float64(rate.Num))
	return nil
}
