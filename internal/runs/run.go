package runs

import (
	"context"
	"io"
	"runtime"

	"github.com/tracedag/tracedag/dag"
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

// Setup is a checked configuration of a backend and of what it measures.
type Setup struct {
	Program  *cli.Program
	Options  *Options
	Kind     *sim.Kind
	Backend  sim.Backend
	Env      *sim.Env
	Jobs     *jobs.Jobs // traces; nil before the caller sets them
	Phases   *profile.Phases
	Command  provenance.Command
	About    *provenance.Run // what runs; nil before the trace is loaded
	Warnings provenance.Warnings

	choice collective.Choice
	shared *shared // the trace, if others use it, too
}

// New returns the setup that options describe. It makes the checks that need no trace.
func New(ctx context.Context, p *cli.Program, o *Options, kind *sim.Kind) (*Setup, error) {
	r := &Setup{Program: p, Options: o, Kind: kind, Backend: kind.New()}
	p.Warned = func(message string) { r.Warnings.Add(message) }
	r.Command = provenance.Command{Program: p, Flags: o.Flags, Options: o.Own, Kind: kind}
	if err := o.CheckReport(); err != nil {
		return nil, err
	}
	var err error
	if r.choice, err = collective.ParseChoice(o.Collective); err != nil {
		return nil, cli.Usagef("--collective: %v", err)
	}
	if err := o.Own.Apply(r.Backend.Params()); err != nil {
		return nil, err
	}
	r.Env = &sim.Env{
		Context: ctx, Warn: p.Warn, Threads: o.Threads, Sweep: o.Grid, JSON: o.JSON || o.Outputs.Any(),
		Jobs:   o.Alone || o.Compare,
		Create: func(name string) (sim.Output, error) { return p.Create(name, false) }, Tensors: p.Formats.Tensors(),
		Read: reader(p), CheckOutput: p.CheckOutput, Explain: p.Explain, Given: o.Own.Given, Log: p.Relay,
		AtExit:   p.AtExit,
		Progress: func(title string, total int64, unit string) sim.Meter { return p.Progress(title, total, unit) },
	}
	if cli.IsTerminal(p.Stderr) {
		r.Env.Advise = p.Info
	}
	if o.Jobs.ShareNIC != nil {
		if r.Env.Sharing = sim.ShareNever; *o.Jobs.ShareNIC {
			r.Env.Sharing = sim.ShareAlways
		}
	}
	r.Env.Path = o.CriticalPath
	if err := r.Backend.Check(r.Env); err != nil {
		return nil, cli.FlagError(err)
	}
	if err := o.CheckOutputs(p, kind, o.Grid, r.StandsAlone()); err != nil {
		return nil, err
	}
	return r, r.check()
}

// reader returns the function that reads the traces that a backend's configuration names.
func reader(p *cli.Program) func(name, format string) (*dag.Trace, string, error) {
	return func(name, format string) (*dag.Trace, string, error) {
		read, err := p.ReadTrace(name, cli.ReadFlags{From: format}, cli.ReadOptions{})
		if err != nil {
			return nil, "", err
		}
		return read.Trace, read.Name, nil
	}
}

// check returns an error if the common flags conflict with each other or the backend.
func (r *Setup) check() (err error) {
	o, traits := r.Options, r.Backend.Traits()
	if err := o.Timeline.check(r.Kind, traits); err != nil {
		return err
	}
	if o.CriticalPath && !traits.Path {
		return cli.Usagef("--critical-path: the %s backend finds no critical path with these parameters",
			r.Kind.Name)
	}
	o.CriticalPath = o.CriticalPath || o.Outputs.Wants(report.CriticalPath) && traits.Path
	if o.Collective != "" && r.Backend.Lowers(nil) == nil {
		return cli.Usagef("--collective: the %s backend runs collectives itself, without an algorithm", r.Kind.Name)
	}
	if err := o.CheckThreads(); err != nil {
		return err
	}
	o.Threads = min(o.Threads, runtime.GOMAXPROCS(0))
	return nil
}

// StandsAlone reports whether the backend runs synthetic traffic instead of a trace.
func (r *Setup) StandsAlone() bool {
	s, ok := r.Backend.(sim.Standalone)
	return ok && s.StandsAlone()
}

// Described describes the run of a trace.
func (r *Setup) Described(l *Loaded) (*provenance.Run, error) {
	inputs, err := l.Inputs()
	if err != nil {
		return nil, err
	}
	return r.Command.Describe(&provenance.Trace{Name: l.Name, Title: l.Title, Format: l.Format, Ranks: l.Ranks,
		Ops: l.Ops, Command: l.Command}, inputs)
}

// Observers returns the observers of one run. That of storage accesses lists them in accesses, unless it is nil.
func (r *Setup) Observers(l *Loaded, accesses io.Writer) (all []measure.Observer) {
	if l.Trace != nil && r.measuresIO(l.Trace.Meta) {
		all = append(all, measure.Accesses(l.Trace, accesses, r.Options.Outputs.Wants(report.Figures)))
	}
	if l.Jobs != nil {
		all = append(all, l.Jobs.Recorder())
	}
	if r.BreaksDown() {
		all = append(all, measure.Breakdown(l.Jobs, l.Steps))
	}
	if r.Options.Outputs.Wants(report.Traffic) {
		all = append(all, measure.Traffic())
	}
	if r.Options.Outputs.Wants(report.Spans) {
		collector := timeline.NewCollector(l.timelineOptions())
		r.Options.Outputs.Timeline = collector.Report
		all = append(all, collector)
	}
	if l.Measured != nil {
		all = append(all, l.Measured.Compare(l.Parts, l.Steps))
	}
	return all
}

// BreaksDown reports whether the result has a breakdown.
func (r *Setup) BreaksDown() bool {
	return r.Options.Breakdown || r.Options.Outputs.Wants(report.Breakdown)
}

// writeLine writes a result as a line of JSON.
func (r *Setup) writeLine(w io.Writer, a *provenance.Run, result *sim.Result, failed error) error {
	if failed != nil {
		return a.WriteLine(w, measure.FailureOf(r.Kind.Name, result, failed))
	}
	if err := result.WriteJSON(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
