package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/jobs"
	"github.com/tracedag/tracedag/internal/profile"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/timeline"
)

// run is one invocation of the program.
type run struct {
	p       *cli.Program
	o       *options
	kind    *sim.Kind
	backend sim.Backend
	env     *sim.Env
	choice  collective.Choice
	jobs    *jobs.Jobs
	shared  *shared // the trace, if others use it, too
	phases  *profile.Phases

	command  provenance.Command
	about    *provenance.Run // what runs; nil before the trace is loaded
	warnings provenance.Warnings
}

// newRun returns the run that the flags describe. It makes the checks that need no trace.
func newRun(ctx context.Context, p *cli.Program, o *options, kind *sim.Kind) (*run, error) {
	r := &run{p: p, o: o, kind: kind, backend: kind.New()}
	p.Warned = func(message string) { r.warnings.Add(message) }
	r.command = provenance.Command{Program: p, Flags: o.flags, Options: o.own, Kind: kind}
	if err := r.checkReport(); err != nil {
		return nil, err
	}
	var err error
	if r.choice, err = collective.ParseChoice(o.collective); err != nil {
		return nil, cli.Usagef("--collective: %v", err)
	}
	if err := o.own.Apply(r.backend.Params()); err != nil {
		return nil, err
	}
	r.env = &sim.Env{
		Context: ctx, Warn: p.Warn, Threads: o.threads, Sweep: o.grid, JSON: o.json || o.outputs.Any(),
		Jobs:   o.alone || o.compare,
		Create: func(name string) (sim.Output, error) { return p.Create(name, false) }, Tensors: p.Formats.Tensors(),
		Read: r.readTrace, CheckOutput: p.CheckOutput, Explain: p.Explain, Given: o.own.Given,
		Progress: func(title string, total int64, unit string) sim.Meter { return p.Progress(title, total, unit) },
	}
	if cli.IsTerminal(p.Stderr) {
		r.env.Advise = p.Info
	}
	if o.jobs.ShareNIC != nil {
		if r.env.Sharing = sim.ShareNever; *o.jobs.ShareNIC {
			r.env.Sharing = sim.ShareAlways
		}
	}
	r.env.Path = o.criticalPath
	if err := r.backend.Check(r.env); err != nil {
		return nil, cli.FlagError(err)
	}
	if err := r.checkOutputs(o.grid, r.standsAlone()); err != nil {
		return nil, err
	}
	return r, r.check()
}

// readTrace reads a trace that the backend's configuration names.
func (r *run) readTrace(name, format string) (*dag.Trace, string, error) {
	read, err := r.p.ReadTrace(name, cli.ReadFlags{From: format}, cli.ReadOptions{})
	if err != nil {
		return nil, "", err
	}
	return read.Trace, read.Name, nil
}

// check returns an error if the common flags conflict with each other or the backend.
func (r *run) check() (err error) {
	o, traits := r.o, r.backend.Traits()
	if err := o.timeline.check(r.kind, traits); err != nil {
		return err
	}
	if o.criticalPath && !traits.Path {
		return cli.Usagef("--critical-path: the %s backend finds no critical path with these parameters",
			r.kind.Name)
	}
	o.criticalPath = o.criticalPath || o.outputs.Wants(report.CriticalPath) && traits.Path
	if o.collective != "" && r.backend.Lowers(nil) == nil {
		return cli.Usagef("--collective: the %s backend runs collectives itself, without an algorithm", r.kind.Name)
	}
	if o.threads < 1 {
		return cli.Usagef("--threads: expected 1 or more, found %d", o.threads)
	}
	o.threads = min(o.threads, runtime.GOMAXPROCS(0))
	return r.checkTables()
}

func (r *run) standsAlone() bool {
	s, ok := r.backend.(sim.Standalone)
	return ok && s.StandsAlone()
}

// simulate loads the traces, runs them and prints the result.
func (r *run) simulate() error {
	r.phases = profile.NewPhases()
	l, err := r.load()
	if err != nil {
		return err
	}
	defer l.close()
	if r.about, err = r.described(l); err != nil {
		return err
	}
	if r.o.alone && l.jobs == nil {
		return fmt.Errorf("%s: --alone: the trace has no jobs", l.name)
	}
	out, err := r.p.Create("", false)
	if err != nil {
		return err
	}
	written, err := r.openTables(out, []*provenance.Run{r.about})
	if err != nil {
		return err
	}
	defer written.Close()
	result, err := r.once(l)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	r.phases.Done("run")
	complete := result.Complete
	if r.o.alone {
		allAlone, err := r.alone(l, result)
		if err != nil {
			return err
		}
		complete = complete && allAlone
		r.phases.Done("alone")
	}
	r.about.Warnings = r.warnings.List()
	r.about.AddTo(result, r.o.timing)
	if err := written.AddFrom(result.WriteJSON); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	if err := written.Commit(); err != nil {
		return err
	}
	r.o.outputs.Numbers = measure.Bound(result, l.ideal)
	page, err := r.o.outputs.Write(result.WriteJSON)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	if err := r.print(out, l, result, page); err != nil {
		return err
	}
	r.phases.Done("report")
	r.phases.Explain(r.p.Explain, l.ops)
	if !result.Complete {
		result.Explain(r.p.Info, l.name)
	}
	if !complete {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// described describes the run of a trace.
func (r *run) described(l *loaded) (*provenance.Run, error) {
	inputs, err := l.inputs()
	if err != nil {
		return nil, err
	}
	return r.command.Describe(&provenance.Trace{Name: l.name, Title: l.title, Format: l.format, Ranks: l.ranks,
		Ops: l.ops, Command: l.command}, inputs)
}

// observers returns the observers of one run. That of storage accesses lists them in accesses, unless it is nil.
func (r *run) observers(l *loaded, accesses io.Writer) (all []measure.Observer) {
	if l.trace != nil && r.measuresIO(l.trace.Meta) {
		all = append(all, measure.Accesses(l.trace, accesses, r.o.outputs.Wants(report.Figures)))
	}
	if l.jobs != nil {
		all = append(all, l.jobs.Recorder())
	}
	if r.breaksDown() {
		all = append(all, measure.Breakdown(l.jobs, l.steps))
	}
	if r.o.outputs.Wants(report.Traffic) {
		all = append(all, measure.Traffic())
	}
	if r.o.outputs.Wants(report.Spans) {
		collector := timeline.NewCollector(l.timelineOptions())
		r.o.outputs.Timeline = collector.Report
		all = append(all, collector)
	}
	if l.measured != nil {
		all = append(all, l.measured.Compare(l.parts))
	}
	return all
}

// breaksDown reports whether the result has a breakdown.
func (r *run) breaksDown() bool {
	return r.o.breakdown || r.o.outputs.Wants(report.Breakdown)
}

// createAccesses creates the file of storage accesses, nil without --accesses.
func (r *run) createAccesses(l *loaded) (*cli.Output, error) {
	switch {
	case r.o.accesses == "":
		return nil, nil
	case l.trace == nil || !measure.IsStorage(l.trace.Meta):
		return nil, errors.New("--accesses: the trace has no lowered storage accesses; use a trace of storage " +
			"accesses and --lower directdrive")
	}
	return r.p.Create(r.o.accesses, false)
}

// once runs the trace and writes the timeline, if any. A failed run leaves no timeline.
func (r *run) once(l *loaded) (*sim.Result, error) {
	progress := r.p.Progress("simulating", l.ops, "ops")
	defer progress.Close()
	o := sim.RunOptions{Context: r.env.Context, Threads: r.o.threads, Progress: progress.Add, Files: true,
		Figures: r.o.outputs.Wants(report.Figures)}
	if r.o.criticalPath {
		o.Path = &sim.PathOptions{Steps: r.o.flags.Changed("critical-path"), Names: l.collectives.NamesIn(l.trace)}
	}
	var out *cli.Output
	if r.o.timeline.file != "" {
		var err error
		if out, err = r.p.Create(r.o.timeline.file, false); err != nil {
			return nil, err
		}
		defer out.Close()
		if o.Timeline, err = r.newTimeline(out, l); err != nil {
			return nil, err
		}
	}
	accesses, err := r.createAccesses(l)
	if err != nil {
		return nil, err
	}
	var list io.Writer
	if accesses != nil {
		defer accesses.Close()
		list = accesses
	}
	result, err := measure.Run(l.replay, o, r.observers(l, list)...)
	if err == nil && accesses != nil {
		err = accesses.Commit()
	}
	if err != nil || out == nil {
		return result, err
	}
	if w, is := o.Timeline.(*timeline.Writer); is {
		r.about.Warnings = r.warnings.List()
		r.about.AddTo(result, r.o.timing)
		w.About = r.about
	}
	if err := o.Timeline.End(); err != nil {
		return nil, fmt.Errorf("writing the timeline: %w", out.Failed(err))
	}
	return result, out.Commit()
}

// alone runs each job alone.
func (r *run) alone(l *loaded, together *sim.Result) (complete bool, err error) {
	alone := measure.Alone{
		Jobs: l.jobs, Backend: r.backend, Context: r.env.Context, Sharing: r.env.Sharing,
		Trace: func(job int32) (*dag.Trace, error) { return compose.Only(r.env.Context, l.trace, job) },
		Begin: func(name string, ops int64) (sim.RunOptions, func()) {
			progress := r.p.Progress("simulating "+name, ops, "ops")
			return sim.RunOptions{Context: r.env.Context, Threads: r.o.threads, Progress: progress.Add}, progress.Close
		},
		Incomplete: func(name string, result *sim.Result) {
			result.Explain(r.p.Info, fmt.Sprintf("%s: job %s alone", l.name, name))
		},
	}
	if complete, err = alone.Run(together); err != nil {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return complete, err
}

// writeLine writes a result as a line of JSON.
func (r *run) writeLine(w io.Writer, a *provenance.Run, result *sim.Result, failed error) error {
	if failed != nil {
		return a.WriteLine(w, measure.FailureOf(r.kind.Name, result, failed))
	}
	if err := result.WriteJSON(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// withoutTrace runs a backend on synthetic traffic.
func (r *run) withoutTrace(args []string) error {
	if len(args) > 0 {
		return cli.Usagef("--synthetic needs no trace, found %q", args[0])
	}
	var err error
	if r.about, err = r.command.Describe(nil, nil); err != nil {
		return err
	}
	out, err := r.p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	curve, err := r.backend.(sim.Standalone).RunAlone(r.env, sim.RunOptions{Context: r.env.Context,
		Threads: r.o.threads})
	if err != nil {
		return err
	}
	points, failed := curve.Points(), false
	for i := range points {
		if pt := &points[i]; pt.Failed != "" {
			failed = true
			r.p.Error("%s: %s", pt.Name, pt.Failed)
		}
	}
	if err := r.writeCurve(out, curve, points); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if failed {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// writeCurve writes the result of synthetic traffic in the forms that the flags select.
func (r *run) writeCurve(out *cli.Output, curve sim.Curve, points []sim.CurvePoint) error {
	r.about.Warnings = r.warnings.List()
	runs := r.command.Curve(r.about, points)
	written, err := r.openTables(out, runs)
	if err != nil {
		return err
	}
	defer written.Close()
	for i, a := range runs {
		line := func(w io.Writer) error { return a.WriteLine(w, points[i].Value) }
		if err := errors.Join(written.AddFrom(line), r.o.outputs.AddPoint(line)); err != nil {
			return err
		}
		if r.o.json {
			if err := line(out); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(written.Commit(), r.o.outputs.WritePoints()); err != nil || r.o.json || r.o.csv != "" {
		return err
	}
	return curve.WriteTable(out)
}
