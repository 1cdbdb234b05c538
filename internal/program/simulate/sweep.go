// This file runs the grids of --sweep and --study.

package simulate

import (
	"errors"
	"io"
	"slices"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/internal/runs"
	"github.com/tracedag/tracedag/internal/study"
	"github.com/tracedag/tracedag/sim"
)

// gridFlag is the value of --sweep. Given several times, it has the axes of all.
type gridFlag string

func (g *gridFlag) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *gridFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (g *gridFlag) Set(text string) error {
	if *g != "" {
		text = string(*g) + ";" + text
	}
	*g = gridFlag(text)
	return nil
}

// sweep runs the points of --sweep and prints a line per point.
func sweep(p *cli.Program, o *options, kind *sim.Kind, reg *registries, args []string) error {
	if err := o.checkSweep(p, kind); err != nil {
		return err
	}
	e := newEngine(p, o, reg, args)
	base, err := e.BaseArgs()
	if err != nil {
		return err
	}
	e.Probe(base, 0)
	axes, err := o.axes(e, kind)
	if err != nil {
		return cli.Usagef("--sweep: %v", err)
	}
	for _, name := range grid.OptionsOf(axes) {
		if err := e.Check(name); err != nil {
			return cli.Usagef("--sweep: %v", err)
		}
	}
	plan, err := study.NewPlan(&grid.Study{Axes: axes, Threads: 1}, e, base, &study.Input{Main: true}, "")
	if err != nil {
		return cli.Usagef("--sweep: %v", err)
	}
	if err := plan.Identify(e); err != nil {
		return err
	}
	return o.runSweep(p, e, plan)
}

// axes returns the axes of --sweep and --replicas.
func (o *options) axes(e *runs.Engine, kind *sim.Kind) (axes []grid.Axis, err error) {
	if o.sweep != "" {
		if axes, err = grid.ParseSweep(o.sweep, e.NumbersOf(kind.Name)); err != nil {
			return nil, err
		}
	}
	if o.replicas == 0 {
		return axes, nil
	}
	if slices.Contains(grid.OptionsOf(axes), "seed") {
		return nil, errors.New("the axis seed and --replicas exclude each other")
	}
	first, err := o.Flags.GetInt64("seed")
	if err != nil {
		return nil, err
	}
	seeds := make([]int64, o.replicas)
	for i := range seeds {
		seeds[i] = first + int64(i)
	}
	return append(axes, grid.Seeds(seeds)), nil
}

// checkSweep returns an error if flags of outputs conflict with --sweep.
func (o *options) checkSweep(p *cli.Program, kind *sim.Kind) error {
	if err := o.CheckReport(); err != nil {
		return err
	}
	if err := o.CheckOutputs(p, kind, true, false); err != nil {
		return err
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"accesses", o.Accesses != ""}, {"timeline", o.Timeline.File != ""}, {"alone", o.Alone},
	} {
		if flag.set {
			return cli.Usagef("--%s and --sweep exclude each other", flag.name)
		}
	}
	if err := o.CheckThreads(); err != nil {
		return err
	}
	if o.Flags.Changed("replicas") && (o.replicas < 1 || o.replicas > grid.MaxRuns) {
		return cli.Usagef("--replicas: expected 1 to %d, found %d", grid.MaxRuns, o.replicas)
	}
	return o.checkTables(p)
}

// runSweep runs the points of a plan in order.
func (o *options) runSweep(p *cli.Program, e *runs.Engine, plan *study.Plan) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	progress := p.Progress("sweeping", int64(len(plan.Runs)), "points")
	defer progress.Close()
	written, err := o.openTables(p, out, plan.Abouts())
	if err != nil {
		return err
	}
	defer written.Close()
	lines := o.csv == "" && (o.replicas == 0 || o.JSON)
	if o.csv == "" && !lines {
		written.WriteText(out)
	}
	failed, incomplete := 0, 0
	err = plan.Execute(study.Execution{
		Context: p.Context(), Engine: e, Threads: o.Threads, Ordered: true, Done: func() { progress.Add(1) },
		Each: func(run int, line []byte, status results.Status, failure error) error {
			switch {
			case failure != nil:
				failed++
				p.Error("%s: point %d: %v", e.Label(), run+1, failure)
			case status == results.Incomplete:
				incomplete++
			}
			write := func(w io.Writer) error {
				_, err := w.Write(line)
				return err
			}
			if err := errors.Join(written.AddFrom(write), o.Outputs.AddPoint(write)); err != nil {
				return err
			}
			if lines {
				out.Write(line)
			}
			return out.Flush()
		},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(written.Commit(), o.Outputs.WritePoints(), out.Flush()); err != nil {
		return err
	}
	if failed+incomplete > 0 {
		p.Info("%s: %d of %d points failed, %d are incomplete", e.Label(), failed, len(plan.Runs), incomplete)
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// runStudy runs the study of --study.
func runStudy(p *cli.Program, o *options, reg *registries, args []string) error {
	if err := o.checkSweep(p, &sim.Kind{}); err != nil { // the points have their backends
		return err
	}
	o.study.Timing, o.Timing = o.Timing, false // times are not in results
	return o.study.Run(p, newEngine(p, o, reg, nil), args, o.Threads, study.Outputs{
		Tables: o.tableFiles(), Page: o.Outputs.AddPoint, Commit: o.Outputs.WritePoints,
	})
}

// newEngine returns the engine that runs points of the traces of the command line.
func newEngine(p *cli.Program, o *options, reg *registries, args []string) *runs.Engine {
	return runs.NewEngine(p, &o.Options, reg.kinds, reg.generator, args,
		func(p *cli.Program, args []string) (*runs.Options, error) {
			cmd, o := buildCommand(p, reg.kinds)
			if err := cmd.ParseFlags(args); err != nil {
				return nil, err
			}
			return &o.Options, o.applyFitted(p)
		})
}
