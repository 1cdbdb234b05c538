// This file rescales traces.

package traceconv

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/rescale"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
)

// rescaling is the flags that extrapolate a trace to another number of ranks.
type rescaling struct {
	options rescale.Options
	flags   *cli.Options
	second  []string     // the same program on other numbers of ranks
	report  string       // JSON file
	traces  []*dag.Trace // those of second
}

// register adds the flags.
func (r *rescaling) register(cmd *cobra.Command) {
	r.flags = cli.NewOptions(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&r.second, "second-trace", nil, "trace `FILE` of the same program on another number of "+
		"ranks, which decides between rules; several: give it again")
	cli.OutputVar(flags, &r.report, "rescale-report", "write what was inferred to the JSON `FILE`")
	cli.Aside(flags, "rescale-report")
	for _, name := range []string{"second-trace", "rescale-report"} {
		manual.InTopic(cmd, name, "rescale")
	}
	r.flags.Add(cmd, manual.Group{Owner: "rescale", Title: "extrapolation of a trace to another number of ranks",
		Topic: true, Doc: "rescale", Params: r.options.Params()})
}

// asked returns whether the trace is to be rescaled. The error is about flags without effect.
func (r *rescaling) asked(cmd *cobra.Command) (bool, error) {
	if err := r.flags.Apply(r.options.Params()); err != nil {
		return false, err
	}
	if r.options.FixedRounds && r.options.GrowingRounds {
		return false, cli.Usagef("--fixed-rounds and --growing-rounds exclude each other")
	}
	if len(r.second) > 0 && r.options.Growth != rescale.Unknown {
		return false, cli.Usagef("--growth is for a single trace; --second-trace shows the growth")
	}
	if cmd.Flags().Changed("rescale") {
		return true, nil
	}
	for _, name := range []string{"scaling", "new-grid", "old-grid", "fixed-rounds", "growing-rounds", "likeliest",
		"growth", "second-trace", "rescale-report"} {
		if cmd.Flags().Changed(name) {
			return false, cli.Usagef("--%s is for --rescale, such as --rescale 64", name)
		}
	}
	return false, nil
}

// open reads the other traces, if there are any, and returns their inputs for the provenance.
func (r *rescaling) open(p *cli.Program, read cli.ReadFlags) (inputs []dag.Input, err error) {
	for _, name := range r.second {
		t, err := p.ReadTrace(name, read, cli.ReadOptions{Digest: true})
		if err != nil {
			return nil, err
		}
		r.traces = append(r.traces, t.Trace)
		inputs = append(inputs, t.Inputs...)
	}
	return inputs, nil
}

// edit returns an edit that follows another one, which may be nil. Calls of it may be concurrent.
func (r *rescaling) edit(p *cli.Program, first func(*dag.Trace, string) (*dag.Trace, error)) func(t *dag.Trace,
	name string) (dag.Source, error) {
	return func(t *dag.Trace, name string) (_ dag.Source, err error) {
		if first != nil {
			if t, err = first(t, name); err != nil {
				return nil, err
			}
		}
		out, report, err := r.rescale(p, t)
		if err != nil {
			return nil, format.InFile(name, err)
		}
		for _, line := range report.Summary() {
			p.Info("%s: rescale: %s", name, line)
		}
		for _, line := range report.Warnings {
			p.Warn("%s: rescale: %s", name, line)
		}
		return out, r.write(p, report)
	}
}

func (r *rescaling) rescale(p *cli.Program, t *dag.Trace) (dag.Source, *rescale.Report, error) {
	o := r.options
	if len(r.traces) > 0 {
		decided, err := rescale.Decide(p.Context(), t, r.traces, o, r.flags.Given("scaling"))
		if err != nil {
			return nil, nil, err
		}
		o = decided.Options
	}
	return rescale.Source(p.Context(), t, o)
}

// write writes the report, if it was asked for.
func (r *rescaling) write(p *cli.Program, report *rescale.Report) error {
	if r.report == "" {
		return nil
	}
	return p.WriteOutput(r.report, report.WriteJSON)
}
