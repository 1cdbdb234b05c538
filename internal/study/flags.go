package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cluster"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/tables"
)

// ExitAgain is the exit status of a shard that ended before all of its runs, and that another call completes.
const ExitAgain = 75

// Flags are the flags of studies.
type Flags struct {
	File string // the study file; "": no study

	flags *pflag.FlagSet

	folder                           string
	dryRun, status, merge, partial   bool
	retry, wait, strict              bool
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
		"grace", "shard", "shards", "shard-base", "slurm", "sbatch", "kubernetes", "image", "volume", "at-most"}
	allowed = []string{"threads", "points", "results", "summary", "report", "plot", "quiet", "verbose", "max-memory",
		"no-sync", "profile"}
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

  simulate --study study.yml -o results/            run what is not there yet, also after a kill or a new value
  simulate --study study.yml -o results/ --status   count runs; --dry-run lists them
  simulate --study study.yml -o results/ --merge    write points.parquet, results.parquet and summary.csv

  name: websearch
  traces:
    - {name: llm, file: llm.parquet}
    - {name: ws, generate: "workload --sizes websearch --load {load} --ranks 128 --flows 10000"}
  set: {backend: packet, topology: "leafspine:hosts=128,tor=16,spines=8,rate=100Gbps"}
  vary:
    transport: [ndp, dctcp]
    load: 0.2..0.8:4
  replicas: 5

Shards divide the runs among machines: --shard 3/16, or --shard auto --shards 16 in tasks of Slurm and Kubernetes.
--slurm and --kubernetes print the script and the manifest that start them.

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
	text, err := f.read(p)
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
	folder := Folder(f.folder)
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
		return f.tally(p, plan, threads)
	case f.merge:
		return f.mergeTables(p, plan, out)
	}
	if err := folder.Keep(text, s); err != nil {
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
	case (f.partial || f.wait || f.strict || f.compareTo != "") && !f.merge:
		return cli.Usagef("--partial, --wait, --strict-versions and --compare-to need --merge")
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

// read reads the study file.
func (f *Flags) read(p *cli.Program) ([]byte, error) {
	in, err := p.Open(f.File, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in.Reader, grid.MaxSize+1))
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
func (f *Flags) tally(p *cli.Program, plan *Plan, threads int) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	var t Tally
	t.Total = len(plan.Runs)
	var bad []string
	err = Folder(f.folder).Each(plan, func(run int, k *Kept) error {
		t.add(k)
		if k != nil && k.Error != "" && len(bad) < 10 {
			a := plan.Runs[run].About
			bad = append(bad, fmt.Sprintf("%s (%s): %s", a.ID, strings.Join(factors(a), " "), k.Error))
		}
		return nil
	})
	if err != nil {
		return err
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

// errAgain ends a shard early.
var errAgain = errors.New("stopped before all runs are done; run the command again")

// execute runs what is not done yet.
func (f *Flags) execute(p *cli.Program, r Runner, plan *Plan, threads int) error {
	shard, err := f.shard.Shard(os.Getenv)
	if err != nil {
		return err
	}
	folder := Folder(f.folder)
	unlock, err := folder.Lock(strings.ReplaceAll(shard.String(), "/", "-of-"))
	var locked *LockedError
	if errors.As(err, &locked) {
		p.Error("%v", err)
		return cli.Reported(ExitAgain)
	}
	if err != nil {
		return err
	}
	defer unlock()
	todo, tally, err := f.todo(plan, shard)
	if err != nil {
		return err
	}
	count := tally.Todo
	ctx, stopping, done := f.signals(p.Context())
	defer done()
	progress := p.Progress("running", int64(count), "runs")
	log := !cli.IsTerminal(p.Stderr)
	var lock sync.Mutex
	ended, failed, incomplete := 0, tally.Failed+tally.Limited, tally.Incomplete
	err = plan.Execute(Execution{
		Context: ctx, Engine: r, Threads: threads, Bare: true, Done: func() { progress.Add(1) },
		Todo: func(run int) bool { return todo[run] }, Stop: func() bool { return stopping.Load() },
		Each: func(run int, line []byte, status Status, failure error) error {
			a := plan.Runs[run].About
			if len(plan.Study.Keep) > 0 {
				var err error
				if line, err = folder.keepFlows(a.ID, line); err != nil {
					return err
				}
			}
			if err := folder.Write(a.ID, line, status); err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			ended++
			text := fmt.Sprintf("run %s (%d of %d): %s seed=%d", a.ID, ended, count, strings.Join(factors(a), " "),
				a.Seed)
			switch {
			case failure != nil:
				failed++
				p.Error("%s: %v", text, failure)
			case status == Incomplete:
				incomplete++
				p.Info("%s: incomplete", text)
			case log:
				p.Info("%s", text)
			}
			return nil
		},
	})
	progress.Close()
	switch {
	case errors.Is(err, errAgain) || err != nil && stopping.Load():
		p.Info("%v", errAgain)
		return cli.Reported(ExitAgain)
	case err != nil:
		return err
	}
	p.Info("%s: %d runs of this shard are done, %d failed, %d are incomplete", f.File, tally.Total-failed, failed,
		incomplete)
	if failed+incomplete > 0 {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// todo selects the runs of a shard that are not done, and counts the runs of the shard.
func (f *Flags) todo(plan *Plan, shard cluster.Shard) (todo []bool, t Tally, err error) {
	mine := make([]bool, len(plan.Runs))
	for place, run := range plan.byID() {
		if mine[run] = shard.Has(place); mine[run] {
			t.Total++
		}
	}
	todo = make([]bool, len(plan.Runs))
	folder := Folder(f.folder)
	err = folder.Each(plan, func(run int, k *Kept) error {
		if !mine[run] {
			return nil
		}
		if f.retry && k != nil && (k.Status == Failed || k.Status == Limited) {
			k = nil
		}
		if k != nil && len(plan.Study.Keep) > 0 && folder.lacksFlows(plan.Runs[run].About.ID, k) {
			k = nil
		}
		todo[run] = k == nil
		t.add(k)
		return nil
	})
	return todo, t, err
}

// byID returns the runs in the order of their identities, which does not change when a study grows otherwise.
func (p *Plan) byID() []int {
	order := make([]int, len(p.Runs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(p.Runs[a].About.ID, p.Runs[b].About.ID) })
	return order
}

// signals makes SIGUSR1 end the shard after the runs at hand, or after the grace.
func (f *Flags) signals(parent context.Context) (ctx context.Context, stopping *atomic.Bool, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stopping = new(atomic.Bool)
	notified := make(chan os.Signal, 1)
	notifyStop(notified)
	gone := make(chan struct{})
	go func() {
		select {
		case <-notified:
		case <-gone:
			return
		}
		stopping.Store(true)
		select {
		case <-time.After(f.grace):
			cancel(errAgain)
		case <-gone:
		}
	}()
	return ctx, stopping, func() {
		signal.Stop(notified)
		close(gone)
		cancel(nil)
	}
}

// mergeTables writes the tables of the folder.
func (f *Flags) mergeTables(p *cli.Program, plan *Plan, o Outputs) error {
	folder := Folder(f.folder)
	for f.wait {
		t, err := folder.Count(plan)
		if err != nil {
			return err
		}
		if t.Todo == 0 {
			break
		}
		select {
		case <-time.After(5 * time.Second):
		case <-p.Context().Done():
			return context.Cause(p.Context())
		}
	}
	axes := make(map[string]bool)
	for i := range plan.Runs {
		for name := range plan.Runs[i].About.Factors {
			axes[name] = true
		}
	}
	t := tables.New(slices.Sorted(maps.Keys(axes)), provenance.Replicas(plan.Abouts()))
	t.Measure(plan.Study.Measure)
	if f.compareTo != "" {
		axis, value, _ := strings.Cut(f.compareTo, "=")
		known := func(a *provenance.Run) bool { return a.Factors[axis] == value && axes[axis] }
		if !slices.ContainsFunc(plan.Abouts(), known) {
			return cli.Usagef("--compare-to: expected AXIS=VALUE with an axis out of %s and one of its values, found "+
				"%q", strings.Join(slices.Sorted(maps.Keys(axes)), ", "), f.compareTo)
		}
		t.CompareTo(tables.Reference{Axis: axis, Value: value})
	}
	defer t.Close()
	for _, table := range tables.Names {
		name := o.Tables[table]
		if name == "" {
			name = filepath.Join(f.folder, table+map[bool]string{true: ".csv", false: ".parquet"}[table == "summary"])
		}
		file, err := p.Create(name, false)
		if err != nil {
			return err
		}
		t.WriteFile(table, strings.EqualFold(filepath.Ext(name), ".parquet"), file)
	}
	var missing []string
	versions := make(map[string]string) // a run by version
	failed := 0
	type merged struct {
		kept     *Kept
		line     []byte
		version  string
		document tables.Document
	}
	read := func(run int, k *Kept) (m merged, err error) {
		if m.kept = k; k == nil {
			return m, nil
		}
		a := plan.Runs[run].About
		if m.line, m.version, err = place(k.Line, a); err == nil {
			m.document, err = tables.Parse(bytes.NewReader(m.line))
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", folder.path(a.ID), err)
		}
		return m, err
	}
	err := eachOf(folder, plan, read, func(run int, m merged) error {
		a := plan.Runs[run].About
		if m.kept == nil {
			missing = append(missing, fmt.Sprintf("%s (%s seed=%d)", a.ID, strings.Join(factors(a), " "), a.Seed))
			return nil
		}
		if m.kept.Error != "" {
			failed++
		}
		if versions[m.version] == "" {
			versions[m.version] = a.ID
		}
		if o.Page != nil {
			if err := o.Page(func(w io.Writer) error { _, err := w.Write(m.line); return err }); err != nil {
				return err
			}
		}
		return t.AddParsed(m.document)
	})
	if err != nil {
		return err
	}
	if err := f.checkMerge(p, missing, versions); err != nil {
		return err
	}
	if err := t.Commit(); err != nil {
		return err
	}
	folder.clean()
	if o.Commit != nil {
		if err := o.Commit(); err != nil {
			return err
		}
	}
	p.Info("%s: merged %d runs, %d of them failed", f.File, len(plan.Runs)-len(missing), failed)
	return nil
}

// checkMerge reports missing runs and different versions.
func (f *Flags) checkMerge(p *cli.Program, missing []string, versions map[string]string) error {
	if len(versions) > 1 {
		var list []string
		for _, version := range slices.Sorted(maps.Keys(versions)) {
			list = append(list, version+", such as run "+versions[version])
		}
		text := fmt.Sprintf("the runs are of %d versions of the program: %s", len(list), strings.Join(list, "; "))
		if f.strict {
			return errors.New(text)
		}
		p.Warn("%s", text)
	}
	if len(missing) == 0 {
		return nil
	}
	for _, run := range missing[:min(len(missing), 10)] {
		p.Error("missing: %s", run)
	}
	if !f.partial {
		return fmt.Errorf("%d runs are missing: run them, or merge with --partial", len(missing))
	}
	p.Info("%d runs are missing", len(missing))
	return nil
}

// submit prints what starts the shards on a cluster.
func (f *Flags) submit(p *cli.Program, plan *Plan) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	task := []string{"simulate", "--study", f.File, "-o", f.folder, "-q"}
	if f.retry {
		task = append(task, "--retry-failed")
	}
	merge := []string{"simulate", "--study", f.File, "-o", f.folder, "--merge"}
	if f.kubernetes > 0 {
		k := cluster.Kubernetes{Name: plan.Study.Name, Count: f.kubernetes, Task: task, Merge: append(merge, "--wait"),
			AtMost: f.atMost, Image: f.image, Volume: f.volume}
		if err := k.Write(out); err != nil {
			return cli.Usagef("--kubernetes: %v", err)
		}
		return out.Commit()
	}
	todo, _, err := f.todo(plan, cluster.Shard{Index: 0, Count: 1})
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
