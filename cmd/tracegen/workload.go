// This file binds the generator dag/gen/workload to its flags and files.

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/gen/sizes"
	workloads "github.com/tracedag/tracedag/dag/gen/workload"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

// workloadRun is the flags of the generator, before the files that they name are read.
type workloadRun struct {
	generation
	params     workloads.Params
	seed       int64
	base       workloadJob // what all jobs of a mix have that state nothing else
	mix        []string
	reportFile string
	report     *cli.Output
}

// workloadJob is a kind of traffic as flags tell it.
type workloadJob struct {
	workloads.Job
	sizes  string
	rule   sizes.Rule
	load   float64
	link   gbps
	rate   gbps // of all hosts; 0: what makes the load
	flags  *pflag.FlagSet
	linked bool // the rate is made of load and link
}

func newWorkload(p *cli.Program) *cobra.Command {
	w := workloadRun{params: workloads.Default()}
	cmd := &cobra.Command{
		Use:   "workload",
		Short: "flows of published sizes, at a load, in patterns and mixes",
		Long: `Workload makes a trace of flows whose sizes follow a published distribution, or that of a file, at a
given load. Hosts send at random times of several laws, to each other in several patterns.

--mix describes one of several kinds of traffic, each of them a job of the trace: what of the flags from
--sizes to --duration it has of its own, such as name=bulk,sizes=websearch,load=0.4.

The sizes are those of ` + wrapNames(sizes.Names()) + `,
a size such as 64KiB, or a FILE of lines with a size in bytes and its cumulative probability.`,
		Example: `  tracegen workload | simulate
  tracegen workload --sizes w4 --ranks 64 --load 0.6 --link 200Gbps --flows 50000 -o hadoop.parquet
  tracegen workload --duration 5ms --mix name=bulk,sizes=websearch,load=0.4 \
    --mix name=incasts,sizes=20KB,pattern=incast,degree=16,period=500us -o mix.parquet --report r.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return w.run() },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&w.params.Ranks, "ranks", w.params.Ranks, "number of hosts, one a rank")
	w.base = workloadJob{Job: w.params.Jobs[0], sizes: "websearch", load: 0.5, link: 100}
	w.base.register(flags)
	cli.CompleteWith(cmd, "sizes", sizes.Names())
	flags.StringArrayVar(&w.mix, "mix", nil,
		"a `job` of a mix, such as name=bulk,sizes=w4,load=0.2,pattern=shift; repeat it")
	cli.TimeVar(flags, &w.params.Clock, "clock", w.params.Clock, 0, "resolution of times")
	flags.Int64Var(&w.seed, "seed", 1, "seed of every random choice")
	flags.StringVar(&w.reportFile, "report", "", "write what the flows are like to `FILE`, as JSON")
	// There is nothing to lower, and --report is that of the generator.
	w.p = p
	w.write.Register(p, cmd, "output `file` (default: standard output)")
	return cmd
}

// wrapNames returns names with a comma between them, in lines that are not too long.
func wrapNames(names []string) string {
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

// register defines the flags of a job, whose values so far are the defaults.
func (j *workloadJob) register(flags *pflag.FlagSet) {
	j.flags = flags
	flags.StringVar(&j.sizes, "sizes", j.sizes, "whose sizes: a name, a size or a `FILE`")
	namedVar(flags, &j.rule, "rule", sizes.Rules, "how to read the table of a FILE of sizes")
	namedVar(flags, &j.Arrivals.Process, "arrivals", workloads.Processes, "law of the gaps")
	flags.Float64Var(&j.Arrivals.Sigma, "sigma", j.Arrivals.Sigma, "standard deviation of the logarithm of lognormal gaps")
	cli.TimeVar(flags, &j.Arrivals.On, "on", j.Arrivals.On, 0, "mean length of phases with flows, of onoff")
	cli.TimeVar(flags, &j.Arrivals.Off, "off", j.Arrivals.Off, 0, "mean length of phases without flows, of onoff")
	flags.Float64Var(&j.load, "load", j.load, "what hosts send, on average, as a part of what their links can carry")
	flags.Var(&j.link, "link", "what the link of a host can carry")
	flags.Var(&j.rate, "rate", "what all hosts send together, on average, instead of a load (0: none)")
	flags.Int64Var(&j.Flows, "flows", j.Flows, "number of flows, at most (0: no limit; the default, with --duration)")
	cli.TimeVar(flags, &j.Duration, "duration", j.Duration, 0, "flows start before it (0: no limit)")
	namedVar(flags, &j.Pattern.Kind, "pattern", workloads.Kinds, "who sends to whom")
	flags.IntVar(&j.Pattern.Degree, "degree", j.Pattern.Degree, "how many hosts send at a time, of incast")
	cli.TimeVar(flags, &j.Pattern.Period, "period", j.Pattern.Period, 0, "mean time between incasts, instead of a load")
	flags.IntVar(&j.Pattern.Shift, "shift", j.Pattern.Shift, "how far on hosts send, of shift")
	flags.Float64Var(&j.Pattern.Fraction, "fraction", j.Pattern.Fraction, "part of all flows that goes to the hotspot")
	flags.IntVar(&j.Pattern.Node, "node", j.Pattern.Node, "host that is the hotspot, or to which incasts go (-1: host 0; any)")
}

// mixed returns the job that a text such as "name=bulk,load=0.2" describes.
func (j workloadJob) mixed(text string, number int) (workloadJob, error) {
	given := j.flags
	flags := pflag.NewFlagSet("mix", pflag.ContinueOnError)
	j.register(flags)
	flags.StringVar(&j.Name, "name", fmt.Sprintf("job%d", number), "")
	for setting := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(setting, "=")
		if !found || flags.Lookup(name) == nil {
			return j, cli.Usagef("--mix: expected name=NAME or a flag of a job such as load=0.2, found %q in %q", setting, text)
		}
		if err := flags.Set(name, value); err != nil {
			return j, cli.Usagef("--mix: %s: %v", text, err)
		}
	}
	if flags.Changed("load") || flags.Changed("link") {
		if flags.Changed("rate") {
			return j, cli.Usagef("--mix: %s: expected a load and a link, or a rate", text)
		}
		j.rate = 0
	}
	changed := func(name string) bool { return flags.Changed(name) || given.Changed(name) }
	j.settle(changed)
	return j, nil
}

// settle sets what depends on which flags are given.
func (j *workloadJob) settle(changed func(string) bool) {
	if changed("duration") && !changed("flows") {
		j.Flows = 0
	}
	if j.Pattern.Kind == workloads.Incast && !changed("arrivals") {
		j.Arrivals.Process = workloads.Periodic
	}
}

func (w *workloadRun) run() error {
	if w.reportFile == "-" && (w.write.Output == "" || w.write.Output == "-") {
		return cli.Usagef("--report: the trace goes to standard output already")
	}
	to, err := w.p.Target(w.write)
	if err != nil {
		return err
	}
	jobs, err := w.jobs()
	if err != nil {
		return err
	}
	s, err := workloads.NewSource(w.params, w.seed)
	if err != nil {
		return cli.Usagef("%v", flagError(err))
	}
	if err := w.writeReport(s.Report(), jobs); err != nil {
		return err
	}
	if w.report != nil {
		defer w.report.Close()
	}
	meta := s.Meta()
	w.describe(&meta, &w.seed, to)
	if err := w.p.WriteSource(cli.WithMeta(s, meta), to); err != nil || w.report == nil {
		return err
	}
	return w.report.Commit()
}

// jobs sets the jobs of the workload, and returns them as flags tell them.
func (w *workloadRun) jobs() ([]workloadJob, error) {
	if changed := w.base.flags.Changed; changed("rate") && (changed("load") || changed("link")) {
		return nil, cli.Usagef("expected --load and --link, or --rate")
	}
	var jobs []workloadJob
	for i, text := range w.mix {
		j, err := w.base.mixed(text, i)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		w.base.settle(w.base.flags.Changed)
		jobs = []workloadJob{w.base}
	}
	w.params.Jobs = nil
	for i := range jobs {
		j := &jobs[i]
		if err := cmp.Or(w.setSizes(j), j.setRate(w.params.Ranks)); err != nil {
			return nil, err
		}
		w.params.Jobs = append(w.params.Jobs, j.Job)
	}
	return jobs, nil
}

// setRate sets the rate of a job, from its load where it has one.
func (j *workloadJob) setRate(ranks int) error {
	if j.rate > 0 {
		j.Rate = float64(j.rate) * 1e9
		return nil
	}
	if !(j.load > 0 && j.load <= math.MaxFloat64) {
		return cli.Usagef("--load is %v, expected above 0", j.load)
	}
	j.linked = true
	j.Rate = j.load * float64(j.link) * 1e9 * float64(ranks)
	return nil
}

// setSizes sets the sizes of a job: of the name that they have, or else a size, or else of a file.
func (w *workloadRun) setSizes(j *workloadJob) error {
	var known bool
	if j.Sizes, known = sizes.Named(j.sizes); known {
		if j.flags.Changed("rule") {
			return cli.Usagef("--rule is for files: %s has its own, which is %v", j.sizes, j.Sizes.Rule)
		}
		return nil
	}
	if bytes, err := units.ParseSize(j.sizes); err == nil {
		if err := openloop.InRange("sizes", bytes, 1, openloop.MaxBytes); err != nil {
			return cli.Usagef("%v", flagError(err))
		}
		j.Sizes = sizes.Constant(bytes)
		return nil
	}
	in, err := w.p.Open(j.sizes, true, nil)
	if err != nil {
		return fmt.Errorf("--sizes: neither a name that tracegen workload --help lists, nor a size, nor a file: %w", err)
	}
	defer in.Close()
	j.Sizes, err = sizes.Read(in.Name, in.Reader, sizes.CSV, j.rule)
	var wrong *openloop.LineError
	if errors.As(err, &wrong) {
		return &format.SyntaxError{File: in.Name, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	} else if err != nil {
		return cli.InFile(in.Name, err)
	}
	input, err := in.Digest()
	w.inputs = append(w.inputs, input)
	return err
}

// writeReport writes the report, with the loads of links, for Commit to finish.
func (w *workloadRun) writeReport(r workloads.Report, jobs []workloadJob) (err error) {
	if w.reportFile == "" {
		return nil
	}
	for i, j := range jobs {
		if j.linked {
			of := &r.Jobs[i]
			links := float64(j.link) * 1e9 * float64(w.params.Ranks)
			load, wanted := of.Rate/links, of.WantedRate/links
			of.Load, of.WantedLoad = &load, &wanted
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if w.report, err = w.p.Create(w.reportFile, false); err != nil {
		return err
	}
	_, err = w.report.Write(append(text, '\n'))
	return w.report.Failed(err)
}

// namedVar defines a flag whose value is one of a list, by name.
func namedVar[T fmt.Stringer](flags *pflag.FlagSet, p *T, name string, values []T, usage string) {
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	flags.Var(&choice[T]{p, values, names}, name, usage+": "+strings.Join(names, ", "))
}
