package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/gen/sizes"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "workload",
	Title: "flows of published sizes at a load, in patterns and mixes",
	Group: generator.Traffic,
	Page: `Workload generates flows whose sizes follow a published distribution, or that of a file, at a given
load. Hosts send to each other at random or periodic times, in one of several patterns.

--mix describes one of several kinds of traffic, each of them a job of the trace: its own values of the
flags from --sizes to --node, such as name=bulk,sizes=websearch,load=0.4.

The sizes are those of ` + wrap(sizes.Names()) + `,
a size such as 64KiB, or a FILE of lines with a size in bytes and its cumulative probability.`,
	Example: `  tracegen workload | simulate
  tracegen workload --sizes w4 --ranks 64 --load 0.6 --link 200Gbps --flows 50000 -o hadoop.parquet
  tracegen workload --duration 5ms --mix name=bulk,sizes=websearch,load=0.4 \
    --mix name=incasts,sizes=20KB,pattern=incast,degree=16,period=500us -o mix.parquet --report r.json`,
	Lowered: true,
	New:     func() generator.Config { return newConfig() },
	Small:   param.Texts{"ranks": {"16"}, "flows": {"300"}},
	Large:   param.Texts{"ranks": {"16"}, "flows": {"3000"}},
}

// wrap returns names with commas between them, in lines of at most 96 characters.
func wrap(names []string) string {
	var b strings.Builder
	line := len("The sizes are those of ")
	for i, name := range names {
		switch {
		case i == 0:
		case line+len(name) > 96:
			b.WriteString(",\n")
			line = 0
		default:
			b.WriteString(", ")
		}
		b.WriteString(name)
		line += len(name) + 2
	}
	return b.String()
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	generator.Seed
	generator.Report
	base jobConfig // defaults of the jobs of a mix
	mix  []string
}

func newConfig() *Config {
	c := &Config{model: Default(), Seed: generator.NewSeed()}
	c.base = jobConfig{Job: c.model.Jobs[0], sizes: "websearch", load: 0.5, link: 100, given: map[string]bool{}}
	return c
}

// jobConfig is a configuration of a job.
type jobConfig struct {
	Job
	sizes  string // a name, a size or a file
	rule   sizes.Rule
	load   float64
	link   float64         // Gbit/s
	rate   float64         // of all hosts in Gbit/s; 0: the rate of the load
	given  map[string]bool // parameters that were given
	linked bool            // the rate follows from load and link
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	set := append(param.Set{generator.RanksOf(&c.model.Ranks, "host")}, c.base.params()...)
	return append(set,
		param.Strings(&c.mix, "mix",
			"job of a mix, such as name=bulk,sizes=w4,load=0.2,pattern=shift; repeatable").
			Placeholder("job"),
		openloop.ClockParam(&c.model.Clock),
		c.SeedParam(),
		c.ReportParam("statistics of the flows"),
	)
}

// params describes the parameters of a job.
func (j *jobConfig) params() param.Set {
	set := param.Set{
		param.String(&j.sizes, "sizes",
			"flow sizes: a published table, one size such as 64KiB, or a file").
			Placeholder("sizes").Offer(sizes.Names()...),
		param.OneOf(&j.rule, "rule", "interpolation rule for a file of --sizes", sizes.Rules...),
		param.OneOf(&j.Arrivals.Process, "arrivals", "arrival process of each host", Processes...),
		param.Float(&j.Arrivals.Sigma, "sigma",
			"standard deviation of the logarithm of gaps, for lognormal arrivals"),
		param.Time(&j.Arrivals.On, "on", "mean length of active phases, for onoff arrivals"),
		param.Time(&j.Arrivals.Off, "off", "mean length of idle phases, for onoff arrivals"),
		param.Float(&j.load, "load", "mean sent rate per host, relative to --link"),
		openloop.GbpsParam(&j.link, "link", "link rate per host; Gbit/s without a unit"),
		openloop.GbpsParam(&j.rate, "rate",
			"mean sent rate of all hosts, instead of --load and --link; Gbit/s without a unit"),
		param.Int(&j.Flows, "flows", "maximum number of flows; 0: no limit, the default with --duration"),
		param.Time(&j.Duration, "duration", "end of flow starts; 0: no limit"),
		param.OneOf(&j.Pattern.Kind, "pattern", "traffic pattern", Kinds...),
		param.Int(&j.Pattern.Degree, "degree", "simultaneous senders, for incast"),
		param.Time(&j.Pattern.Period, "period", "mean time between incasts, instead of --load or --rate; 0: none"),
		param.Int(&j.Pattern.Shift, "shift", "rank distance to the destination, for shift"),
		param.Float(&j.Pattern.Fraction, "fraction", "share of flows to the hot host, for hotspot"),
		param.Int(&j.Pattern.Node, "node",
			"receiving host of hotspot and incast; -1: host 0 for hotspot, random for incast"),
	}
	for i := range set {
		name := set[i].Name
		set[i] = set[i].Check(func() error {
			j.given[name] = true
			return nil
		})
	}
	return set
}

// mixed returns the job that a text such as "name=bulk,load=0.2" describes.
func (j jobConfig) mixed(text string, number int) (jobConfig, error) {
	inherited := j.given
	j.given = map[string]bool{}
	j.Name = fmt.Sprintf("job%d", number)
	set := append(j.params(), param.String(&j.Name, "name", "name of the job"))
	for setting := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(setting, "=")
		if !found || set.Find(name) == nil {
			return j, fmt.Errorf("--mix: expected name=NAME or a flag of a job such as load=0.2, found %q in %q",
				setting, text)
		}
		if err := generator.Assign(set, name, value); err != nil {
			return j, fmt.Errorf("--mix: %s: %w", text, err)
		}
	}
	if j.given["load"] || j.given["link"] {
		if j.given["rate"] {
			return j, fmt.Errorf("--mix: %s: expected a load and a link, or a rate", text)
		}
		j.rate = 0
	}
	ruled := j.given["rule"]
	maps.Copy(j.given, inherited)
	j.resolve()
	j.given["rule"] = ruled
	return j, nil
}

// resolve sets the defaults that depend on given parameters.
func (j *jobConfig) resolve() {
	if j.given["duration"] && !j.given["flows"] {
		j.Flows = 0
	}
	if j.Pattern.Kind == Incast && !j.given["arrivals"] {
		j.Arrivals.Process = Periodic
	}
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p := c.model
	jobs, err := c.jobs(p.Ranks, env)
	if err != nil {
		return nil, err
	}
	p.Jobs = nil
	for i := range jobs {
		p.Jobs = append(p.Jobs, jobs[i].Job)
	}
	p.Context = env.OrEmpty().Context
	s, err := NewSource(p, c.Seed.Value)
	if err != nil {
		return nil, err
	}
	report := s.Report()
	for i := range jobs {
		if jobs[i].linked {
			report.Jobs[i].setLoads(jobs[i].link * 1e9 * float64(p.Ranks))
		}
	}
	return s, env.PutReport(report)
}

// setLoads sets the loads of links with the given rate in bit/s.
func (r *JobReport) setLoads(links float64) {
	load, wanted := r.Rate/links, r.WantedRate/links
	r.Load, r.WantedLoad = &load, &wanted
}

// jobs returns the jobs of the workload.
func (c *Config) jobs(ranks int, env *generator.Env) ([]jobConfig, error) {
	if given := c.base.given; given["rate"] && (given["load"] || given["link"]) {
		return nil, errors.New("expected --load and --link, or --rate")
	}
	var jobs []jobConfig
	for i, text := range c.mix {
		j, err := c.base.mixed(text, i)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		c.base.resolve()
		jobs = []jobConfig{c.base}
	}
	for i := range jobs {
		if err := cmp.Or(jobs[i].setSizes(env), jobs[i].setRate(ranks)); err != nil {
			return nil, err
		}
	}
	return slices.Clip(jobs), nil
}

// maxLoad is the largest load. A larger one is a percentage; --rate has no limit.
const maxLoad = 10

// setRate sets the rate of a job, from its load if no rate was given.
func (j *jobConfig) setRate(ranks int) error {
	if j.rate > 0 {
		j.Rate = j.rate * 1e9
		return nil
	}
	if !(j.load > 0 && j.load <= maxLoad) {
		return fmt.Errorf("--load is %v, expected above 0 and at most %d, where 1 is the rate of --link", j.load,
			maxLoad)
	}
	j.linked = true
	j.Rate = j.load * j.link * 1e9 * float64(ranks)
	return nil
}

// setSizes sets the sizes of a job: a published table, else one size, else those of a file.
func (j *jobConfig) setSizes(env *generator.Env) error {
	var known bool
	if j.Sizes, known = sizes.Named(j.sizes); known {
		if j.given["rule"] {
			return fmt.Errorf("--rule applies to files only: the rule of %s is %v", j.sizes, j.Sizes.Rule)
		}
		return nil
	}
	if bytes, err := units.ParseSize(j.sizes); err == nil {
		if err := openloop.InRange("sizes", bytes, 1, openloop.MaxBytes); err != nil {
			return err
		}
		j.Sizes = sizes.Constant(bytes)
		return nil
	}
	opened := false
	err := env.OpenFile(j.sizes, func(name string, r io.Reader) (err error) {
		opened = true
		j.Sizes, err = sizes.Read(name, r, sizes.CSV, j.rule)
		return err
	})
	if err != nil && !opened {
		const expected = "a name that tracegen workload --help lists, nor a size, nor a file"
		return &generator.Failure{Err: fmt.Errorf("--sizes: neither %s: %w", expected, err)}
	}
	return err
}
