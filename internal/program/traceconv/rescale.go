// This file rescales traces.

package traceconv

import (
	"encoding/json"
	"errors"

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
	second  string // the same program on another number of ranks
	report  string // JSON file
	inputs  []dag.Input
}

// register adds the flags.
func (r *rescaling) register(cmd *cobra.Command) {
	r.flags = cli.NewOptions(cmd)
	flags := cmd.Flags()
	flags.StringVar(&r.second, "second-trace", "", "trace `FILE` of the same program on another number of ranks, "+
		"which decides between assumptions")
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
	if cmd.Flags().Changed("rescale") {
		return true, nil
	}
	for _, name := range []string{"scaling", "new-grid", "old-grid", "fixed-rounds", "second-trace", "rescale-report"} {
		if cmd.Flags().Changed(name) {
			return false, cli.Usagef("--%s is for --rescale, such as --rescale 64", name)
		}
	}
	return false, nil
}

// edit returns an edit that follows another one, which may be nil.
func (r *rescaling) edit(p *cli.Program, read cli.ReadFlags, seed int64, first func(*dag.Trace, string) (*dag.Trace,
	error)) func(t *dag.Trace, name string) (*dag.Trace, error) {
	r.options.Seed = seed
	return func(t *dag.Trace, name string) (_ *dag.Trace, err error) {
		if first != nil {
			if t, err = first(t, name); err != nil {
				return nil, err
			}
		}
		out, report, err := r.rescale(p, read, t)
		if err != nil {
			return nil, format.InFile(name, err)
		}
		for _, line := range report.Summary() {
			p.Info("%s: rescale: %s", name, line)
		}
		return out, r.write(p, report)
	}
}

func (r *rescaling) rescale(p *cli.Program, read cli.ReadFlags, t *dag.Trace) (*dag.Trace,
	*rescale.Report, error) {
	if r.second == "" {
		return rescale.Rescale(p.Context(), t, r.options)
	}
	in, err := p.OpenFiles([]string{r.second}, read, cli.ReadOptions{Digest: true})
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	second, err := in.Read()
	if err == nil {
		r.inputs, err = in.Inputs()
	}
	if err != nil {
		return nil, nil, err
	}
	decided, err := rescale.Decide(p.Context(), t, second, r.options, r.flags.Given("scaling"))
	if err != nil {
		return nil, nil, format.InFile(in.Name, err)
	}
	return rescale.Rescale(p.Context(), t, decided.Options)
}

// write writes the report, if it was asked for.
func (r *rescaling) write(p *cli.Program, report *rescale.Report) error {
	if r.report == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return errors.New("unreachable: a report has an encoding")
	}
	out, err := p.Create(r.report, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(append(text, '\n')); err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}
