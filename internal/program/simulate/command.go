// Package simulate is the program simulate: its flags and its output. Command simulate and package tracedag run it.
package simulate

import (
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/profile"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/runs"
	"github.com/tracedag/tracedag/internal/study"
	"github.com/tracedag/tracedag/internal/tables"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// options are the flags that are independent of the backend.
type options struct {
	runs.Options
	sweep                    string
	replicas                 int // runs of each point; 0: one, with --seed
	study                    study.Flags
	csv                      string // a table to print as CSV; "": none
	profile                  string
	compared                 bool // --diff
	fitting                  fitFlags
	fromResults              []string // files of kept results
	drawFlags                []string // flags of pages and pictures
	points, results, summary string   // files of tables
	lists                    []bool   // --list-* flags, by listing
	listings                 []sim.Listing
}

// registries are what the program can run and generate.
type registries struct {
	kinds     []sim.Kind
	generator func(*cli.Program) *cobra.Command // tracegen; nil: none
}

// New returns a function that returns the program's command with the given backends. generator is tracegen, for traces
// of studies; nil: studies have no generators.
func New(kinds []sim.Kind, generator func(*cli.Program) *cobra.Command) func(*cli.Program) *cobra.Command {
	reg := &registries{kinds, generator}
	return func(p *cli.Program) *cobra.Command { return newSimulate(p, reg) }
}

func newSimulate(p *cli.Program, reg *registries) *cobra.Command {
	kinds := reg.kinds
	cmd, o := buildCommand(p, kinds)
	p.AddCatalog(cmd, "backends", "list the simulation backends", func() []cli.Entry { return entries(kinds) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if i := slices.Index(o.lists, true); i >= 0 {
			return printListing(p, o.listings[i])
		}
		if len(o.fromResults) == 0 {
			if err := cli.KeepStdout(cmd.Flags(), "the result"); err != nil {
				return err
			}
		}
		if o.compared {
			return o.diff(p, args)
		}
		if o.fitting.wanted {
			return o.fit(p, args)
		}
		if err := o.fitting.checkUnused(o.Flags); err != nil {
			return err
		}
		if len(o.fromResults) > 0 {
			return o.drawKept(p, args)
		}
		if err := o.applyFitted(p); err != nil {
			return err
		}
		kind, err := runs.KindOf(kinds, o.Backend)
		if err == nil {
			err = o.CheckOwners(kind)
		}
		if err != nil {
			return err
		}
		o.Backend = kind.FullName()
		return start(p, o, kind, reg, args)
	}
	return cmd
}

// buildCommand returns the command with its flags, but without its work.
func buildCommand(p *cli.Program, kinds []sim.Kind) (*cobra.Command, *options) {
	o := new(options)
	cmd := &cobra.Command{
		Use:     "simulate [flags] [TRACE]",
		Short:   "run a trace on a simulation backend",
		Long:    long,
		Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.compared || o.fitting.wanted {
				return nil // diff and fit check them
			}
			if len(args) > 1 {
				return cli.Usagef("expected one trace, found %d; traceconv --job merges several", len(args))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.Flags = flags
	names := make([]string, len(kinds))
	for i := range kinds {
		if names[i] = kinds[i].Name; names[i] == "ideal" {
			o.Ideal = &kinds[i]
		}
	}
	flags.StringVar(&o.Backend, "backend", names[0], "`name` of the simulation backend")
	cli.CompleteWith(cmd, "backend", names)
	flags.StringVar(&o.Collective, "collective", "", "collective `algorithms`, such as allreduce=ring")
	cli.CompleteWith(cmd, "collective", collective.Completions())
	flags.Int64("seed", 1, "seed of all random choices")
	flags.IntVar(&o.Threads, "threads", runtime.GOMAXPROCS(0), "worker threads, same results")
	flags.Lookup("threads").DefValue = "all cores"
	flags.Var((*gridFlag)(&o.sweep), "sweep", "run a `grid` of parameters (\"--help sweep\")")
	flags.IntVar(&o.replicas, "replicas", 0, "run each point with `N` seeds; print means and 95 % intervals")
	manual.InTopic(cmd, "replicas", "sweep")
	flags.BoolVar(&o.Compare, "compare", false, "compare finish times of ranks with recorded ones")
	manual.InTopic(cmd, "compare", "result")
	flags.BoolVar(&o.ExcludeOutliers, "exclude-outliers", false, "with --compare: subtract the set-up of communicators")
	manual.InTopic(cmd, "exclude-outliers", "result")
	flags.StringVar(&o.Start, "start", runs.StartTogether, "`when` ranks start: together, or measured (recorded times)")
	manual.InTopic(cmd, "start", "result")
	cli.CompleteWith(cmd, "start", []string{runs.StartTogether, runs.StartMeasured})
	params := make([]param.Set, len(kinds)) // long, so each is made once
	var swept []string
	for i := range kinds {
		params[i] = kinds[i].New().Params()
		for _, name := range params[i].Swept() {
			if !slices.Contains(swept, name+"=") {
				swept = append(swept, name+"=")
			}
		}
	}
	cli.CompleteWith(cmd, "sweep", swept)
	manual.Section(cmd, "Common flags")
	flags.BoolVar(&o.JSON, "json", false, "print the result as JSON (\"--help result\")")
	flags.BoolVar(&o.Breakdown, "breakdown", false, "divide the time of each rank into parts")
	flags.BoolVar(&o.CriticalPath, "critical-path", false, "print the critical path and its composition")
	for _, name := range []string{"breakdown", "critical-path"} {
		manual.InTopic(cmd, name, "result")
	}
	flags.StringVar(&o.csv, "csv", "", "print a `table` as CSV: points, results or summary")
	flags.Lookup("csv").NoOptDefVal = tables.Names[0]
	cli.CompleteWith(cmd, "csv", tables.Names)
	flags.BoolVar(&o.Timing, "timing", false, "add wall-clock times to JSON")
	cli.OutputVar(flags, &o.points, "points", "write a table of runs, `FILE`.csv or .parquet")
	cli.OutputVar(flags, &o.results, "results", "write a table of all numbers of the runs, `FILE`.csv or .parquet")
	cli.OutputVar(flags, &o.summary, "summary", "write a table of means over replicas, `FILE`.csv or .parquet")
	flags.BoolVar(&o.compared, "diff", false, "compare two files of results; exit with 1 if they differ")
	for _, name := range []string{"timing", "diff", "points", "results", "summary"} {
		manual.InTopic(cmd, name, "result")
	}
	cli.OutputVar(flags, &o.Outputs.Page, "report", "write a page about the run, `FILE`.html")
	o.Outputs.Plots.Suggest = param.Suggest
	o.drawFlags = o.Outputs.Plots.Register(flags)
	for _, name := range o.drawFlags {
		manual.InTopic(cmd, name, "plot")
	}
	o.drawFlags = append(o.drawFlags, "report", "plot")
	flags.StringArrayVar(&o.fromResults, "from-result", nil,
		"draw --report or --plot of a kept JSON `FILE`; several are compared")
	manual.InTopic(cmd, "from-result", "plot")
	p.RegisterSync(flags)
	manual.InTopic(cmd, "no-sync", "result")
	o.Timeline.Register(cmd)
	cli.OutputVar(flags, &o.Accesses, "accesses", "write the latency of each storage access to a CSV `FILE`")
	manual.InTopic(cmd, "accesses", "result")
	cli.OutputVar(flags, &o.profile, "profile", "write a CPU profile `FILE`; mem*: of memory")
	manual.InTopic(cmd, "profile", "result")
	manual.Section(cmd, "Output")
	o.fitting.register(cmd, flags)
	o.Read.Simulators, o.Simulated = simulators(names, params)
	o.Read.Register(p, cmd)
	o.Jobs.Register(cmd)
	flags.BoolVar(&o.Alone, "alone", false, "also run each job alone, and print its slowdown")
	manual.Topic(cmd, manual.Group{Owner: "jobs", Title: "several jobs at the same time", Page: jobsPage,
		File: "docs/reference/compose.md"})
	o.Lower.Register(p, cmd)
	o.Own = cli.NewOptions(cmd)
	o.study.Register(cmd)
	o.listings = o.registerBackends(cmd, kinds, params)
	manual.Topic(cmd, manual.Group{
		Owner: "sweep", Title: "grids of parameters", Page: sweepPage, File: "docs/reference/simulate.md",
	})
	manual.Topic(cmd, manual.Group{Owner: "result", Title: "results, jobs and comparisons", Page: resultPage,
		File: "docs/reference/simulate.md"})
	manual.Topic(cmd, manual.Group{Owner: "plot", Title: "pictures of results", Page: report.PlotPage(false),
		File: "docs/reference/plots.md"})
	manual.Topic(cmd, manual.Group{Owner: "timeline", Title: "timelines for Perfetto and other viewers",
		Page: timelinePage, File: "docs/reference/simulate.md"})
	return cmd, o
}

// entries describes the backends.
func entries(kinds []sim.Kind) (all []cli.Entry) {
	for i := range kinds {
		backend := kinds[i].New()
		traits := backend.Traits()
		e := cli.Entry{
			Name: kinds[i].Name, Title: kinds[i].Title, Aliases: []string{}, Capabilities: []string{},
			Parameters: cli.Parameters(backend.Params(), ""),
		}
		for _, c := range []struct {
			name string
			has  bool
		}{
			{"timeline", true}, {"nodes", traits.Nodes},
			{"sweep", len(backend.Params().Swept()) > 0},
		} {
			if c.has {
				e.Capabilities = append(e.Capabilities, c.name)
			}
		}
		all = append(all, e)
	}
	return all
}

// registerBackends adds the flags and the help topics of the backends, and returns their listings.
func (o *options) registerBackends(cmd *cobra.Command, kinds []sim.Kind, tables []param.Set) (lists []sim.Listing) {
	for _, kind := range kinds {
		lists = append(lists, kind.Lists...)
	}
	o.lists = make([]bool, len(lists))
	at := 0
	for i, kind := range kinds {
		group := manual.Group{
			Owner: kind.Name, Title: kind.Title, Topic: true, Doc: "backends/" + kind.Name,
			List: `Backends (--backend NAME; "simulate --help NAME" shows the flags)`, Params: tables[i],
		}
		o.Own.Add(cmd, group)
		for _, list := range kind.Lists {
			manual.Of(cmd).Add(manual.Group{Owner: list.Name, Title: list.Help, Topic: true, Print: list.Print})
			cmd.Flags().BoolVar(&o.lists[at], "list-"+list.Name, false, list.Help)
			manual.InTopic(cmd, "list-"+list.Name, kind.Name)
			at++
		}
	}
	return lists
}

// simulators returns the simulators that backends can reproduce, and the names of these backends by simulator.
func simulators(backends []string, tables []param.Set) (all []string, by map[string][]string) {
	by = make(map[string][]string)
	for i, table := range tables {
		if compat := table.Find("compat"); compat != nil {
			for _, name := range compat.Choices {
				if by[name] == nil {
					all = append(all, name)
				}
				by[name] = append(by[name], backends[i])
			}
		}
	}
	return all, by
}

func printListing(p *cli.Program, list sim.Listing) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	list.Print(out)
	return out.Commit()
}

// start checks the flags and runs the simulation, with the profiler if --profile is set.
func start(p *cli.Program, o *options, kind *sim.Kind, reg *registries, args []string) error {
	create := func(name string) (profile.Output, error) { return p.Create(name, false) }
	if o.study.File != "" {
		return profile.While(create, o.profile, func() error { return runStudy(p, o, reg, args) })
	}
	if err := o.study.CheckUnused(); err != nil {
		return err
	}
	if o.sweep != "" || o.replicas > 0 {
		return profile.While(create, o.profile, func() error { return sweep(p, o, kind, reg, args) })
	}
	if o.Timing && !o.JSON && !o.Outputs.Any() && o.csv+o.points+o.results+o.summary == "" {
		p.Warn("--timing has no effect without --json or a file of results")
	}
	r, err := newRun(p, o, kind)
	if err != nil {
		return err
	}
	work := r.simulate
	if r.StandsAlone() {
		work = func() error { return r.withoutTrace(args) }
	} else {
		o.Read.CheckedComms = !o.Read.Lenient // checkGroups checks them
		if replicator, ok := r.Backend.(sim.Replicator); ok {
			o.Read.Ranks = replicator.Replicas()
		}
		if r.Jobs, err = o.Jobs.Jobs(p, args); err != nil {
			return err
		}
	}
	err = profile.While(create, o.profile, work)
	runtime.KeepAlive(r) // keeps its memory in the profile
	return err
}
