package study

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cluster"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
)

// ExitAgain is the exit status of a shard that ended before all of its runs, and that another call completes.
const ExitAgain = 75

// Flags are the flags of studies.
type Flags struct {
	File   string // the study file; "": no study
	Timing bool   // keeps wall-clock times

	flags *pflag.FlagSet

	folder                           string
	dryRun, status, merge, partial   bool
	retry, wait, strict              bool
	pack, stealing                   bool
	grace                            time.Duration
	slurm, kubernetes, atMost        int
	sbatch, image, volume, compareTo string
	shard                            cluster.Flags
}

// Register adds the flags to the command.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.StringVar(&f.File, "study", "", "run the study of a `file` (\"--help study\")")
	flags.StringVarP(&f.folder, "output", "o", "", "`folder` of the results of a study")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the runs of a study instead of running them")
	flags.BoolVar(&f.status, "status", false, "count the runs that are done, failed and to do")
	flags.BoolVar(&f.merge, "merge", false, "write the tables of a study from the runs of its folder")
	flags.BoolVar(&f.partial, "partial", false, "merge although runs are missing")
	flags.BoolVar(&f.wait, "wait", false, "with --merge, wait until all runs are there")
	flags.StringVar(&f.compareTo, "compare-to", "",
		"with --merge, add the ratios to the points with this `AXIS=VALUE` to the summary")
	flags.BoolVar(&f.strict, "strict-versions", false, "do not merge runs of different versions of the program")
	flags.BoolVar(&f.retry, "retry-failed", false, "run the failed runs of a study again")
	flags.DurationVar(&f.grace, "grace", time.Minute, "`time` that a run may take to end after SIGUSR1")
	flags.BoolVar(&f.pack, "pack", false, "keep up to 1,000 runs of a study per file, instead of one")
	flags.BoolVar(&f.stealing, "steal", false, "after the runs of the shard, run those that no other process runs")
	f.shard.Register(cmd, "runs of a study")
	flags.IntVar(&f.slurm, "slurm", 0, "print a script that runs a study as `N` shards on a Slurm cluster")
	flags.StringVar(&f.sbatch, "sbatch", "", "`options` of sbatch for the jobs of --slurm")
	flags.IntVar(&f.kubernetes, "kubernetes", 0, "print the Jobs that run a study as `N` shards on Kubernetes")
	flags.StringVar(&f.image, "image", "", "container `image` of the jobs of --kubernetes")
	flags.StringVar(&f.volume, "volume", "", "volume `claim` with the study and its folder, for --kubernetes")
	flags.IntVar(&f.atMost, "at-most", 0, "largest `number` of shards that run at the same time (default: no limit)")
	for _, name := range names {
		manual.InTopic(cmd, name, "study")
	}
	manual.Section(cmd, "Studies")
	manual.Topic(cmd, manual.Group{Owner: "study", Title: "studies: grids of runs in a folder, on many machines",
		Page: page, File: "docs/reference/studies.md"})
}

// names are the flags of studies, and allowed those of others that a study uses.
var (
	names = []string{"study", "output", "dry-run", "status", "merge", "partial", "wait", "compare-to",
		"strict-versions", "retry-failed",
		"pack", "steal", "grace", "shard", "shards", "shard-base", "slurm", "sbatch", "kubernetes", "image", "volume",
		"at-most"}
	allowed = []string{"threads", "points", "results", "summary", "report", "plot", "quiet", "verbose", "max-memory",
		"no-sync", "profile", "timing"}
)

// CheckUnused returns an error about flags of studies without a study.
func (f *Flags) CheckUnused() (err error) {
	f.flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(names, flag.Name) {
			err = cli.Usagef("--%s needs --study", flag.Name)
		}
	})
	return err
}

// page is the help of studies.
const page = `A study is a file that describes a grid of runs. Its results are in a folder, a file per run:

  simulate --study study.yml -o results/            # run what is missing
  simulate --study study.yml -o results/ --status   # count; --dry-run: list
  simulate --study study.yml -o results/ --merge    # write the tables

  name: websearch
  traces:
    - {name: llm, file: llm.parquet}
    - name: ws
      generate: workload --sizes websearch --load {load} --ranks 128
  set: {backend: packet, topology: "leafspine:hosts=128,tor=16,spines=8"}
  vary:
    transport: [ndp, dctcp]
    load: 0.2..0.8:4
  replicas: 5

Runs that are missing are those after a kill, or of a new value. The tables are points.parquet, results.parquet and
summary.csv.

--pack keeps up to 1,000 runs per file, for studies of many short runs. --timing keeps wall-clock times apart.

Shards divide the runs among machines: --shard 3/16, or --shard auto --shards 16 in tasks of Slurm and Kubernetes.
--steal lets a shard that is done run those of others. --slurm and --kubernetes print the script and the manifest that
start them.

The exit status is 0 if all runs of the shard are done, 1 if some failed and 75 if the shard ended early.`

// Runner is an engine that also knows the options of runs.
type Runner interface {
	Engine
	Numbers() grid.Numbers
	Check(option string) error // an error about a name that is no option
	// Probe sets the options of all points, on which tables of parameters depend, and the limit of memory of each point
	// in bytes; 0: that of the program.
	Probe(args []string, memory int64)
	Ops(in *Input) (ops int64, known bool)
}

// Outputs are files of --merge besides the tables.
type Outputs struct {
	Tables map[string]string // files by name of the table, instead of those in the folder
	Page   func(line func(w io.Writer) error) error
	Commit func() error // of the page
}

// Run does what the flags ask for.
func (f *Flags) Run(p *cli.Program, r Runner, args []string, threads int, out Outputs) error {
	if err := f.check(args); err != nil {
		return err
	}
	text, err := p.ReadFile(f.File, grid.MaxSize)
	if err != nil {
		return err
	}
	s, err := grid.Read(text, f.File, r.Numbers(), r.Check)
	if err != nil {
		return err
	}
	var base []string
	for _, set := range s.Set {
		if !strings.ContainsAny(set.Name, ".{") && !set.Absent {
			base = append(base, "--"+set.Name+"="+set.Text)
		}
	}
	r.Probe(base, s.Limits.Memory)
	folder := results.Folder(f.folder)
	plan, err := NewPlan(s, r, nil, nil, folder.Traces())
	if err == nil {
		err = plan.Identify(r)
	}
	if err != nil {
		if cli.IsUsage(err) {
			return cli.Usagef("%s: %v", f.File, err)
		}
		return fmt.Errorf("%s: %w", f.File, err)
	}
	switch {
	case f.dryRun:
		return f.list(p, r, plan)
	case f.slurm > 0 || f.kubernetes > 0:
		return f.submit(p, plan)
	case f.status:
		return f.tally(p, plan)
	case f.merge:
		return f.mergeTables(p, plan, out)
	}
	if err := keep(folder, text, s); err != nil {
		return err
	}
	return f.execute(p, r, plan, threads)
}

func (f *Flags) check(args []string) error {
	var foreign error
	f.flags.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(names, flag.Name) && !slices.Contains(allowed, flag.Name) &&
			manual.TopicOf(flag) != "plot" {
			foreign = cli.Usagef("--%s and --study exclude each other: options of runs are in the study file, under "+
				"set", flag.Name)
		}
	})
	if foreign != nil {
		return foreign
	}
	modes := 0
	for _, on := range []bool{f.dryRun, f.status, f.merge, f.slurm > 0, f.kubernetes > 0} {
		if on {
			modes++
		}
	}
	switch {
	case len(args) > 0:
		return cli.Usagef("--study needs no trace, found %q: name traces in the study file", args[0])
	case modes > 1:
		return cli.Usagef("--dry-run, --status, --merge, --slurm and --kubernetes exclude each other")
	case f.folder == "" && !f.dryRun:
		return cli.Usagef("--study: name the folder of the results with -o")
	case f.folder == "-":
		return cli.Usagef("-o: expected a folder, found standard output")
	case !f.merge && (f.flags.Changed("report") || f.flags.Changed("plot")):
		return cli.Usagef("--report and --plot of a study need --merge")
	case (f.partial || f.wait) && !f.merge:
		return cli.Usagef("--partial and --wait need --merge")
	case (f.strict || f.compareTo != "") && !f.merge && f.slurm+f.kubernetes < 1:
		return cli.Usagef("--strict-versions and --compare-to need --merge, --slurm or --kubernetes")
	case f.slurm < 1 && f.flags.Changed("slurm") || f.kubernetes < 1 && f.flags.Changed("kubernetes") ||
		f.atMost < 1 && f.flags.Changed("at-most"):
		return cli.Usagef("--slurm, --kubernetes and --at-most: expected a number above 0")
	case f.sbatch != "" && f.slurm == 0:
		return cli.Usagef("--sbatch needs --slurm")
	case f.image+f.volume != "" && f.kubernetes == 0:
		return cli.Usagef("--image and --volume need --kubernetes")
	case f.atMost > 0 && f.slurm+f.kubernetes == 0:
		return cli.Usagef("--at-most needs --slurm or --kubernetes")
	}
	return nil
}

// list prints a line per run.
func (f *Flags) list(p *cli.Program, r Runner, plan *Plan) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	total, unknown := int64(0), 0
	for i := range plan.Runs {
		run := &plan.Runs[i]
		a := run.About
		cost := "-"
		if in := plan.groups[run.group].input; in != nil {
			if ops, known := r.Ops(in); known {
				cost = strconv.FormatInt(ops, 10)
				total += ops
			} else {
				unknown++
			}
		}
		fmt.Fprintf(out, "%d\t%s\t%s\tseed=%d\tops=%s\n", i+1, a.ID, strings.Join(factors(a), " "), a.Seed, cost)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	text := fmt.Sprintf("%d runs of %d points, %d ops", len(plan.Runs), plan.points(), total)
	if unknown > 0 {
		text += fmt.Sprintf(" and those of %d runs of traces to generate", unknown)
	}
	p.Info("%s", text)
	return nil
}

// factors returns the factors of a run as words, by name.
func factors(a *provenance.Run) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Factors)) {
		words = append(words, name+"="+a.Factors[name])
	}
	return words
}

// points returns the number of points of a plan.
func (p *Plan) points() int {
	seen := make(map[string]bool)
	for i := range p.Runs {
		seen[p.Runs[i].About.Point] = true
	}
	return len(seen)
}

// tally prints the state of the folder.
func (f *Flags) tally(p *cli.Program, plan *Plan) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	store, err := results.Folder(f.folder).Open()
	if err != nil {
		return err
	}
	states, err := plan.states(store)
	if err != nil {
		return err
	}
	var t Tally
	t.Total = len(plan.Runs)
	var bad []string
	for run, s := range states {
		t.add(s)
		if len(bad) == 10 || !s.there || s.status != results.Failed && s.status != results.Limited {
			continue
		}
		a := plan.Runs[run].About
		k, err := store.Read(a.ID)
		if err != nil {
			return err
		}
		if k != nil {
			bad = append(bad, fmt.Sprintf("%s (%s): %s", a.ID, strings.Join(factors(a), " "), k.Error()))
		}
	}
	fmt.Fprintf(out, "%d runs: %d done, %d failed, %d to do", t.Total, t.Done, t.Failed+t.Limited, t.Todo)
	if t.Incomplete > 0 {
		fmt.Fprintf(out, "; %d of those done are incomplete", t.Incomplete)
	}
	if left := t.Remaining(); left > 0 {
		fmt.Fprintf(out, "; some %v at the rate so far", left.Round(max(time.Second, left/100)))
	}
	fmt.Fprintln(out)
	for _, line := range bad {
		fmt.Fprintln(out, line)
	}
	return out.Commit()
}

// Flags that a job script passes on.
var (
	passedToTasks = []string{"retry-failed", "pack", "steal", "timing", "grace", "threads", "max-memory", "no-sync"}
	passedToMerge = []string{"strict-versions", "compare-to", "timing", "max-memory", "no-sync"}
)

// given returns those of the flags that the command line has, as words.
func (f *Flags) given(names []string) (words []string) {
	for _, name := range names {
		switch flag := f.flags.Lookup(name); {
		case flag == nil || !flag.Changed:
		case name == "timing" && f.Timing: // the flag itself is reset
			words = append(words, "--timing")
		case flag.Value.Type() == "bool":
			words = append(words, "--"+name+map[string]string{"false": "=false"}[flag.Value.String()])
		default:
			words = append(words, "--"+name, flag.Value.String())
		}
	}
	return words
}

// submit prints what starts the shards on a cluster.
func (f *Flags) submit(p *cli.Program, plan *Plan) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	task := append([]string{"simulate", "--study", f.File, "-o", f.folder, "-q"}, f.given(passedToTasks)...)
	merge := append([]string{"simulate", "--study", f.File, "-o", f.folder, "--merge"}, f.given(passedToMerge)...)
	if f.kubernetes > 0 {
		k := cluster.Kubernetes{Name: plan.Study.Name, Count: f.kubernetes, Task: task, Merge: append(merge, "--wait"),
			AtMost: f.atMost, Image: f.image, Volume: f.volume}
		if err := k.Write(out); err != nil {
			return cli.Usagef("--kubernetes: %v", err)
		}
		return out.Commit()
	}
	store, err := results.Folder(f.folder).Open()
	if err != nil {
		return err
	}
	todo, _, err := f.todo(plan, store, plan.shard(cluster.Shard{Index: 0, Count: 1}))
	if err != nil {
		return err
	}
	left := make(map[int]bool)
	for place, run := range plan.byID() {
		if todo[run] {
			left[place%f.slurm] = true
		}
	}
	s := cluster.Slurm{Name: plan.Study.Name, Count: f.slurm, Left: slices.Sorted(maps.Keys(left)), Task: task,
		Merge: merge, Logs: filepath.Join(f.folder, "log"), AtMost: f.atMost, Options: f.sbatch}
	if err := s.Write(out); err != nil {
		return cli.Usagef("--slurm: %v", err)
	}
	return out.Commit()
}
