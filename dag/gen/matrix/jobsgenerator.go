package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/param"
)

// JobsGenerator is the entry of jobs in the registry.
var JobsGenerator = generator.Generator{
	Name:  "jobs",
	Title: "jobs of ops whose data follow a node matrix, by the model of TrafPy",
	Group: generator.Traffic,
	Page: `Jobs generates jobs that arrive over time. A job is a random graph of ops. Its edges are data,
which become flows between nodes as those of the generator matrix, or control, which only order ops.
An op runs before each edge that leaves it. --report states sizes, loads and distances.

Sizes are in bytes, times of distributions in microseconds; docs/reference/generators/jobs.md has the rules.`,
	Example: `  tracegen jobs --racks 4 | simulate --backend ideal
  tracegen jobs --preset prototyping --jobs 20 --ranks 8 -o prototype.parquet
  tracegen jobs --jobs 200 --connectivity 3 --load 0.9 --report r.json -o jobs.parquet`,
	Lowered: true,
	New: func() generator.Config {
		c := &JobsConfig{Seed: generator.NewSeed(), preset: "tensorflow", control: controls[0]}
		c.model = JobParams{Params: Default(), Jobs: 100, Connectivity: 1.5, DataShare: 0.8, RunDeviation: 0.2}
		c.model.Flows, c.model.MaxFlows = 1, MaxFlows
		return c
	},
	Small: param.Texts{"ranks": {"4"}, "jobs": {"3"}, "preset": {"prototyping"}},
	Large: param.Texts{"ranks": {"4"}, "jobs": {"12"}, "preset": {"prototyping"}},
}

// jobPresets are the shapes of TrafPy's benchmark sets of jobs.
var jobPresets = []struct {
	Preset
	ops string // see ParseDistribution
}{
	{Preset{"tensorflow", "normal:loc=50e6,scale=10e6,min=1,round=25",
		"multimodal:mode=1/0/0.1/800,mode=1/100/62/1000,mode=3000/-10/2000/2000,mode=1/10/7500/4000," +
			"mode=1.8e6/50/3.5e6/4000,mode=1e7/6/2e7/3000,background=0.025,min=1,max=1e8",
		skewedNodes, 0.2}, "skewnorm:a=2.3,loc=80,scale=30,min=50,max=200,round=10"},
	{Preset{"prototyping", "uniform:min=10,max=10", "uniform:min=10000,max=10000", "uniform", 0},
		"uniform:min=10,max=10"},
}

// JobPresets returns the names of the presets of jobs.
func JobPresets() []string {
	var names []string
	for _, p := range jobPresets {
		names = append(names, p.Name)
	}
	return names
}

// Use sets distributions, matrix and inter-rack part to those of a preset of jobs. It reports whether the preset
// exists.
func (p *JobParams) Use(name string) bool {
	for _, preset := range jobPresets {
		if preset.Name == name {
			p.Params.use(preset.Preset)
			p.Ops = Values{Distribution: mustParse(ParseDistribution(preset.ops))}
			return true
		}
	}
	return false
}

// JobsConfig is a configuration of the generator of jobs.
type JobsConfig struct {
	model JobParams
	generator.Seed
	generator.Report
	preset, recipe, control    string
	sizeDist, gapDist, opsDist string
	nodeMatrix                 string // file
	interRack                  *float64
}

// controls are the values of --control, by their number.
var controls = []string{"zero", "attr"}

// Params describes the parameters.
func (c *JobsConfig) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "benchmark set of distributions and node matrix").Placeholder("name")
	preset.Choices = JobPresets()
	control := param.String(&c.control, "control",
		"order of ops on different nodes: zero sends messages of 0 bytes, attr keeps it in attributes only").
		Placeholder("how")
	control.Choices = controls
	return param.Set{
		preset,
		generator.RanksOf(&p.Nodes, "node"),
		param.Int(&p.Jobs, "jobs", "minimum number of jobs"),
		param.Float(&p.Connectivity, "connectivity", "edges: two of n ops have one with probability X ln(n)/n"),
		param.Float(&p.DataShare, "data-share", "share of edges that are data; the others are control"),
		param.Float(&p.RunDeviation, "run-time-sd",
			"standard deviation of the factor of run times; the mean is 1"),
		control,
		param.Int(&p.Racks, "racks",
			"number of racks of consecutive nodes, equal in size up to one node; 0: no racks"),
		param.Given(&c.interRack, "inter-rack", "share of bytes that leave their rack, with --racks; 0: unchanged").
			Default("set by the preset"),
		param.Float(&p.Load, "load",
			"sent bytes per time, relative to half the capacity of all nodes; 0: keep times as drawn"),
		param.Enum((*capacity)(&p.Capacity), "capacity", "capacity per node, half of it per direction; "+
			"bytes/us without a unit").Placeholder("rate"),
		param.Float(&p.Threshold, "threshold",
			"maximum Jensen-Shannon distance of ops per job from their distribution; more jobs are drawn above it"),
		param.String(&c.opsDist, "ops-dist", "distribution of ops per job, such as uniform:min=5,max=20").
			Placeholder("dist").Default("set by the preset"),
		param.String(&c.sizeDist, "size-dist",
			"size distribution in bytes, such as normal:loc=50e6,scale=10e6,min=1,round=25").Placeholder("dist").
			Default("set by the preset"),
		param.String(&c.gapDist, "interarrival-dist",
			"distribution of times between jobs in us, such as exponential:beta=50").
			Placeholder("dist").Default("set by the preset"),
		param.String(&c.recipe, "matrix", "node matrix: "+strings.Join(Kinds(), ", ")+
			", the last two with settings such as nodes:fraction=0.2,share=0.55").Placeholder("recipe").
			Default("set by the preset"),
		param.File(&c.nodeMatrix, "node-matrix", "file of the node matrix, instead of --matrix"),
		param.Bool(&p.AutoCorrect, "auto-correct",
			"move bytes above a node's capacity to other nodes instead of failing"),
		param.Bool(&p.IgnorePorts, "ignore-ports", "pack flows without a limit on port capacity"),
		c.ReportParam("numbers of jobs, distances and loads"),
		c.SeedParam(),
	}
}

// params returns the parameters, with the contents of files.
func (c *JobsConfig) params(env *generator.Env) (JobParams, error) {
	p := c.model
	if !p.Use(c.preset) {
		return p, fmt.Errorf("--preset: expected one of %s, found %q", strings.Join(JobPresets(), ", "), c.preset)
	}
	how := slices.Index(controls, c.control)
	if how < 0 {
		return p, fmt.Errorf("--control: expected one of %s, found %q", strings.Join(controls, ", "), c.control)
	}
	p.Control = jobgraph.Control(how)
	if err := cmp.Or(p.set(c.interRack, c.sizeDist, c.gapDist, c.recipe),
		readInto(env, c.nodeMatrix, &p.Matrix, ReadMatrix)); err != nil {
		return p, err
	}
	if c.opsDist != "" {
		var err error
		if p.Ops.Distribution, err = ParseDistribution(c.opsDist); err != nil {
			return p, fmt.Errorf("--ops-dist: %w", err)
		}
	}
	if p.Matrix != nil {
		p.Nodes = p.Matrix.N
	}
	return p, nil
}

// Source generates the jobs and returns their trace.
func (c *JobsConfig) Source(env *generator.Env) (dag.Source, error) {
	p, err := c.params(env)
	if err != nil {
		return nil, err
	}
	add, done := env.StartProgress("packing", "flows")
	p.Placed, p.Context = add, env.OrEmpty().Context
	jobs, report, err := NewJobs(p, c.Seed.Value)
	done()
	if err != nil {
		return nil, failure(err)
	}
	if report.MatrixCorrected {
		env.Warnf("nodes would exceed their capacity: the node matrix was corrected")
	}
	trace, err := jobgraph.Trace(p.Context, p.Nodes, jobs, p.Control)
	if err != nil {
		return nil, &generator.Failure{Err: err}
	}
	trace.Title = fmt.Sprintf("jobs, %d nodes, %d jobs", p.Nodes, len(jobs))
	if p.Racks > 0 {
		trace.Attrs = racksOf(p.Nodes, p.Racks).Encode()
	}
	return dag.FromTrace(trace), env.PutReport(report)
}
