// This file runs the grid of --sweep.

package simulate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/study"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// sweep runs the points of --sweep and prints a line per point.
func sweep(p *cli.Program, o *options, kind *sim.Kind, reg *registries, args []string) error {
	r := &run{p: p, o: o, kind: kind}
	if err := r.checkSweep(); err != nil {
		return err
	}
	e := newEngine(p, o, reg, args)
	base, err := e.baseArgs()
	if err != nil {
		return err
	}
	e.probe = base
	axes, err := r.axes(e)
	if err != nil {
		return cli.Usagef("--sweep: %v", err)
	}
	for _, name := range study.OptionsOf(axes) {
		if err := e.Check(name); err != nil {
			return cli.Usagef("--sweep: %v", err)
		}
	}
	plan, err := study.NewPlan(&study.Study{Axes: axes, Threads: 1}, e, base, &study.Input{Main: true}, "")
	if err != nil {
		return cli.Usagef("--sweep: %v", err)
	}
	if err := plan.Identify(e); err != nil {
		return err
	}
	return r.runSweep(e, plan)
}

// axes returns the axes of --sweep and --replicas.
func (r *run) axes(e *engine) (axes []study.Axis, err error) {
	if r.o.sweep != "" {
		if axes, err = study.ParseSweep(r.o.sweep, e.numbers(r.kind.Name)); err != nil {
			return nil, err
		}
	}
	if r.o.replicas == 0 {
		return axes, nil
	}
	if slices.Contains(study.OptionsOf(axes), "seed") {
		return nil, errors.New("the axis seed and --replicas exclude each other")
	}
	first, err := r.o.flags.GetInt64("seed")
	if err != nil {
		return nil, err
	}
	seeds := make([]int64, r.o.replicas)
	for i := range seeds {
		seeds[i] = first + int64(i)
	}
	return append(axes, study.Seeds(seeds)), nil
}

// checkSweep returns an error if flags of outputs conflict with --sweep.
func (r *run) checkSweep() error {
	o := r.o
	if err := r.checkReport(); err != nil {
		return err
	}
	if err := r.checkOutputs(true, false); err != nil {
		return err
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"accesses", o.accesses != ""}, {"timeline", o.timeline.file != ""}, {"alone", o.alone},
	} {
		if flag.set {
			return cli.Usagef("--%s and --sweep exclude each other", flag.name)
		}
	}
	switch {
	case o.threads < 1:
		return cli.Usagef("--threads: expected 1 or more, found %d", o.threads)
	case o.flags.Changed("replicas") && (o.replicas < 1 || o.replicas > study.MaxRuns):
		return cli.Usagef("--replicas: expected 1 to %d, found %d", study.MaxRuns, o.replicas)
	}
	return r.checkTables()
}

// runSweep runs the points of a plan in order.
func (r *run) runSweep(e *engine, plan *study.Plan) error {
	out, err := r.p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	progress := r.p.Progress("sweeping", int64(len(plan.Runs)), "points")
	defer progress.Close()
	written, err := r.openTables(out, plan.Abouts())
	if err != nil {
		return err
	}
	defer written.Close()
	lines := r.o.csv == "" && (r.o.replicas == 0 || r.o.json)
	if r.o.csv == "" && !lines {
		written.WriteText(out)
	}
	failed, incomplete := 0, 0
	err = plan.Execute(study.Execution{
		Context: r.p.Context(), Engine: e, Threads: r.o.threads, Ordered: true, Done: func() { progress.Add(1) },
		Each: func(run int, line []byte, status study.Status, failure error) error {
			switch {
			case failure != nil:
				failed++
				r.p.Error("%s: point %d: %v", e.label(), run+1, failure)
			case status == study.Incomplete:
				incomplete++
			}
			write := func(w io.Writer) error {
				_, err := w.Write(line)
				return err
			}
			if err := errors.Join(written.AddFrom(write), r.o.outputs.AddPoint(write)); err != nil {
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
	if err := errors.Join(written.Commit(), r.o.outputs.WritePoints(), out.Flush()); err != nil {
		return err
	}
	if failed+incomplete > 0 {
		r.p.Info("%s: %d of %d points failed, %d are incomplete", e.label(), failed, len(plan.Runs), incomplete)
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// label names the traces of the command line in messages.
func (e *engine) label() string {
	if len(e.args) == 0 {
		return "<stdin>"
	}
	return strings.Join(e.args, " + ")
}

// numbers returns the parameters of options of a backend, or of others if it has none with the name.
func (e *engine) numbers(backend string) study.Numbers {
	tables := []param.Set{e.Table(backend)}
	for i := range e.kinds {
		tables = append(tables, e.kinds[i].New().Params())
	}
	return func(name string) param.Number {
		for _, table := range tables {
			if p := table.Find(strings.TrimPrefix(name, "set.")); p != nil {
				if n, is := p.Value.(param.Number); is {
					return n
				}
			}
		}
		return nil
	}
}

// Check returns an error about a name that is no option of a run.
func (e *engine) Check(name string) error {
	flag, key, isKey := strings.Cut(name, ".")
	switch {
	case name == "trace" || name == "generator.seed" || name == "simulate.seed" || name == "seed" || name == "backend":
		return nil
	case flag == "set" && isKey && key != "":
		return nil
	}
	own := e.Table(e.common.backend)
	names := append(own.Swept(), "trace", "seed", "backend")
	numbered := strings.TrimRight(flag, "0123456789") // as in bw0, the bandwidth of dimension 0
	for i := range e.kinds {
		table := e.kinds[i].New().Params()
		for _, name := range []string{flag, numbered} {
			if p := table.Find(name); p != nil && (p.Key && !isKey ||
				provenance.Shapes(&pflag.Flag{Name: name}, table)) {
				return nil
			}
		}
	}
	found := false
	e.common.flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || !provenance.Shapes(f, nil) || slices.Contains(forwarded, f.Name) {
			return
		}
		found = found || f.Name == flag
		names = append(names, f.Name)
	})
	if found {
		return nil
	}
	return fmt.Errorf("expected one of the parameters %s, or another option that changes results, found %q%s",
		strings.Join(own.Swept(), ", "), name, param.Suggest(name, names))
}

// forwarded are flags that do not describe the run itself but what is reported about it.
var forwarded = []string{"seed", "backend", "compare", "breakdown", "critical-path"}

// baseArgs returns the flags of the command line that belong to each point, one argument each.
func (e *engine) baseArgs() (args []string, err error) {
	table := e.Table(e.common.backend)
	err = e.common.flags.ParseAll(e.p.Args[1:], func(f *pflag.Flag, value string) error {
		if f.Name == "compat" && value == f.NoOptDefVal && e.common.read.Simulator != "" {
			value = e.common.read.Simulator
		}
		if provenance.Shapes(f, table) || slices.Contains(forwarded, f.Name) || table.Find(f.Name) != nil {
			args = append(args, "--"+f.Name+"="+value)
		}
		return nil
	})
	return args, err
}
