package simulate

import (
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/profile"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/runs"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/timeline"
)

// run is one invocation of the program.
type run struct {
	*runs.Setup
	p *cli.Program
	o *options
}

// newRun returns the run that the flags describe. It makes the checks that need no trace.
func newRun(p *cli.Program, o *options, kind *sim.Kind) (*run, error) {
	s, err := runs.New(p.Context(), p, &o.Options, kind)
	if err != nil {
		return nil, err
	}
	return &run{Setup: s, p: p, o: o}, o.checkTables(p)
}

// simulate loads the traces, runs them and prints the result.
func (r *run) simulate() error {
	r.Phases = profile.NewPhases()
	l, err := r.Load()
	if err != nil {
		return err
	}
	defer l.Close()
	if r.About, err = r.Described(l); err != nil {
		return err
	}
	if r.o.Alone && l.Jobs == nil {
		return fmt.Errorf("%s: --alone: the trace has no jobs", l.Name)
	}
	out, err := r.p.Create("", false)
	if err != nil {
		return err
	}
	written, err := r.o.openTables(r.p, out, []*provenance.Run{r.About})
	if err != nil {
		return err
	}
	defer written.Close()
	result, err := r.once(l)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	r.Phases.Done("run")
	complete := result.Complete
	if r.o.Alone {
		allAlone, err := r.alone(l, result)
		if err != nil {
			return err
		}
		complete = complete && allAlone
		r.Phases.Done("alone")
	}
	r.About.Warnings = r.Warnings.List()
	r.About.AddTo(result, r.o.Timing)
	if err := written.AddFrom(result.WriteJSON); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	if err := written.Commit(); err != nil {
		return err
	}
	r.o.Outputs.Numbers = measure.Bound(result, l.Ideal)
	page, err := r.o.Outputs.Write(result.WriteJSON)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	if err := r.print(out, l, result, page); err != nil {
		return err
	}
	r.Phases.Done("report")
	r.Phases.Explain(r.p.Explain, l.Ops)
	if !result.Complete {
		result.Explain(r.p.Info, l.Name)
	}
	if !complete {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// createAccesses creates the file of storage accesses, nil without --accesses.
func (r *run) createAccesses(l *runs.Loaded) (*cli.Output, error) {
	switch {
	case r.o.Accesses == "":
		return nil, nil
	case l.Trace == nil || !measure.IsStorage(l.Trace.Meta):
		return nil, errors.New("--accesses: the trace has no lowered storage accesses; use a trace of storage " +
			"accesses and --lower directdrive")
	}
	return r.p.Create(r.o.Accesses, false)
}

// once runs the trace and writes the timeline, if any. A failed run leaves no timeline.
func (r *run) once(l *runs.Loaded) (*sim.Result, error) {
	progress := r.p.Progress("simulating", l.Ops, "ops")
	defer progress.Close()
	o := sim.RunOptions{Context: r.Env.Context, Threads: r.o.Threads, Progress: progress.Add, Files: true,
		Figures: r.o.Outputs.Wants(report.Figures)}
	if r.o.CriticalPath {
		o.Path = &sim.PathOptions{Steps: r.o.Flags.Changed("critical-path"), Names: l.Collectives.NamesIn(l.Trace)}
	}
	var out *cli.Output
	if r.o.Timeline.File != "" {
		var err error
		if out, err = r.p.Create(r.o.Timeline.File, false); err != nil {
			return nil, err
		}
		defer out.Close()
		if o.Timeline, err = r.NewTimeline(out, l); err != nil {
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
	result, err := measure.Run(l.Replay, o, r.Observers(l, list)...)
	if err == nil && accesses != nil {
		err = accesses.Commit()
	}
	if err != nil || out == nil {
		return result, err
	}
	if w, is := o.Timeline.(*timeline.Writer); is {
		r.About.Warnings = r.Warnings.List()
		r.About.AddTo(result, r.o.Timing)
		w.About = r.About
	}
	if err := o.Timeline.End(); err != nil {
		return nil, fmt.Errorf("writing the timeline: %w", out.Failed(err))
	}
	return result, out.Commit()
}

// alone runs each job alone.
func (r *run) alone(l *runs.Loaded, together *sim.Result) (complete bool, err error) {
	alone := measure.Alone{
		Jobs: l.Jobs, Backend: r.Backend, Context: r.Env.Context, Sharing: r.Env.Sharing,
		Trace: func(job int32) (*dag.Trace, error) { return compose.Only(r.Env.Context, l.Trace, job) },
		Begin: func(name string, ops int64) (sim.RunOptions, func()) {
			progress := r.p.Progress("simulating "+name, ops, "ops")
			return sim.RunOptions{Context: r.Env.Context, Threads: r.o.Threads, Progress: progress.Add}, progress.Close
		},
		Incomplete: func(name string, result *sim.Result) {
			result.Explain(r.p.Info, fmt.Sprintf("%s: job %s alone", l.Name, name))
		},
	}
	if complete, err = alone.Run(together); err != nil {
		err = fmt.Errorf("%s: %w", l.Name, err)
	}
	return complete, err
}

// withoutTrace runs a backend on synthetic traffic.
func (r *run) withoutTrace(args []string) error {
	if len(args) > 0 {
		return cli.Usagef("--synthetic needs no trace, found %q", args[0])
	}
	var err error
	if r.About, err = r.Command.Describe(nil, nil); err != nil {
		return err
	}
	out, err := r.p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	curve, err := r.Backend.(sim.Standalone).RunAlone(r.Env, sim.RunOptions{Context: r.Env.Context,
		Threads: r.o.Threads})
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
	r.About.Warnings = r.Warnings.List()
	runs := r.Command.Curve(r.About, points)
	written, err := r.o.openTables(r.p, out, runs)
	if err != nil {
		return err
	}
	defer written.Close()
	for i, a := range runs {
		line := func(w io.Writer) error { return a.WriteLine(w, points[i].Value) }
		if err := errors.Join(written.AddFrom(line), r.o.Outputs.AddPoint(line)); err != nil {
			return err
		}
		if r.o.JSON {
			if err := line(out); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(written.Commit(), r.o.Outputs.WritePoints()); err != nil || r.o.JSON || r.o.csv != "" {
		return err
	}
	return curve.WriteTable(out)
}
