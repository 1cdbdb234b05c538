package tracegen

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef"
	"github.com/tracedag/tracedag/formats/vef/model"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// run is one run of a generator: its configuration and the output flags.
type run struct {
	p         *cli.Program
	generator *generator.Generator
	config    generator.Config
	params    param.Set
	options   *cli.Options
	write     cli.WriteFlags
	lower     cli.LowerFlags
	emitSpec  bool

	inputs   []dag.Input // files that the generator read
	inputErr error       // error of the last input
	report   *cli.Output // the generator's report, or nil
}

// commonFlags are the output flags that help lists for every generator. The others concern traces from other sources.
var commonFlags = []string{"output", "to", "strict", "approx", "lower", "report"}

// registerOutput adds the output flags.
func (r *run) registerOutput(cmd *cobra.Command) {
	r.write.Register(r.p, cmd, "output `file` (default: standard output)")
	if !r.generator.Lowered {
		r.lower.Register(r.p, cmd)
	}
	if random, ok := r.config.(generator.Random); ok {
		r.lower.Seed = random.RandomSeed()
	}
	manual.Section(cmd, "Output")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if manual.InSection(f, "Output") && !slices.Contains(commonFlags, f.Name) {
			f.Hidden = true
		}
	})
}

// run configures the generator and writes the trace, or the text that the flags select.
func (r *run) run(args []string) error {
	if err := r.options.Apply(r.params); err != nil {
		return err
	}
	if len(args) > 0 {
		if err := r.params.Find(r.generator.Argument).Set(args[0]); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	if r.p.Verbose {
		var texts []string
		for _, v := range generator.Values(r.params) {
			texts = append(texts, v.Name+"="+v.Value)
		}
		r.p.Explain("%s: %s", r.generator.Name, strings.Join(texts, " "))
	}
	if r.emitSpec {
		return r.writeSpec()
	}
	if printer, ok := r.config.(generator.Printer); ok {
		if name, prints := printer.Prints(); prints {
			return r.print(name, printer)
		}
	}
	return r.writeTrace(args)
}

func (r *run) writeTrace(args []string) error {
	to, err := r.p.Target(r.write)
	if err != nil {
		return err
	}
	if err := r.checkReport(); err != nil {
		return err
	}
	pass := func(s dag.Source, _ string) (dag.Source, error) { return s, nil }
	if !r.generator.Lowered {
		r.lower.For(to.Format)
		if pass, err = r.lower.Pass(); err != nil {
			return err
		}
	}
	generated, err := r.config.Source(r.env())
	if r.report != nil {
		defer r.report.Close()
	}
	if err != nil {
		return r.failed(err)
	}
	defer generated.Close()
	s, err := pass(generated, "")
	if err != nil {
		return err
	}
	h, err := s.Header()
	if err == nil {
		err = memory.CheckBatches(r.p.Context(), h)
	}
	if err != nil {
		return err
	}
	described := *h
	if to.KeepsProvenance() {
		described.Provenance = append(described.Provenance, r.p.Provenance(cli.Made{
			Words: append([]string{r.generator.Name}, args...), Seed: r.seed(), Inputs: r.inputs,
		}, &r.write))
	}
	if err := r.p.WriteSource(dag.WithHeader(s, &described), to); err != nil || r.report == nil {
		return err
	}
	return r.report.Commit()
}

// seed returns the seed, or nil for a generator without random choices.
func (r *run) seed() *int64 {
	if random, ok := r.config.(generator.Random); ok {
		return random.RandomSeed()
	}
	return nil
}

// failed converts the error of a generator to a usage error, unless an input causes it or no parameter does.
func (r *run) failed(err error) error {
	var failure *generator.Failure
	var memory *memory.Error
	if r.inputErr != nil && errors.Is(err, r.inputErr) || errors.As(err, &failure) || errors.As(err, &memory) {
		return err
	}
	suggestion := ""
	if argument := r.params.Find(r.generator.Argument); argument != nil {
		if name := argument.Value.String(); !slices.Contains(argument.Choices, name) {
			suggestion = param.Suggest(name, argument.Choices)
		}
	}
	return cli.Usagef("%v%s", openloop.FlagError(err), suggestion)
}

// checkReport returns an error if the generator's report cannot be written, so that it precedes long work.
func (r *run) checkReport() error {
	reporter, ok := r.config.(generator.Reporter)
	if !ok || reporter.ReportFile() == "" {
		return nil
	}
	if reporter.ReportFile() == "-" && (r.write.Output == "" || r.write.Output == "-") {
		return cli.Usagef("--report: the trace already uses standard output; name a file for one of them")
	}
	return r.p.CheckOutput(reporter.ReportFile(), false)
}

// print writes a text of the generator instead of a trace; the named flag selects it.
func (r *run) print(name string, printer generator.Printer) error {
	if !r.generator.Lowered && r.lower.Asked() || r.write.To != "" {
		return cli.Usagef("--%s prints no trace and excludes --to and --lower", name)
	}
	var text bytes.Buffer
	if err := printer.Print(r.env(), &text); err != nil {
		return r.failed(err)
	}
	return r.writeText(text.Bytes())
}

// writeSpec writes the extended VEF trace of the model. It warns about flags that the file cannot hold.
func (r *run) writeSpec() error {
	if r.lower.Asked() || r.write.To != "" && r.write.To != vef.Format.Name {
		return cli.Usagef("--emit-spec writes an extended VEF trace and excludes --to and --lower; " +
			"apply them when you read it")
	}
	m, missing, err := model.Describe(r.config, r.env(), r.write.Output)
	if err != nil {
		return r.failed(err)
	}
	if err := r.writeText(m.Spec()); err != nil {
		return err
	}
	for _, flag := range append(missing, "seed") {
		if r.options.Given(flag) {
			r.p.Warn("the file cannot hold --%s: repeat it in the command that reads the file", flag)
		}
	}
	return nil
}

// writeText writes an output other than a trace.
func (r *run) writeText(text []byte) error {
	out, err := r.p.Create(r.write.Output, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(text); err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}

// env returns the services of the program for the generator.
func (r *run) env() *generator.Env {
	return &generator.Env{
		Context: r.p.Context(), Warn: r.p.Warn, Explain: r.p.Explain, Open: r.open, Read: r.read,
		Report: r.createReport,
		Progress: func(title, unit string) (func(int64), func()) {
			progress := r.p.Progress(title, -1, unit)
			return progress.Add, progress.Close
		},
	}
}

func (r *run) open(name string, read func(name string, r io.Reader) error) (err error) {
	defer func() { r.inputErr = err }()
	in, err := r.p.Open(name, true)
	if err != nil {
		return err
	}
	defer in.Close()
	err = read(in.Name, in.Reader)
	var wrong *openloop.LineError
	if errors.As(err, &wrong) {
		return &format.SyntaxError{File: in.Name, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	} else if err != nil {
		return format.InFile(in.Name, err)
	}
	if err := in.Finish(); err != nil {
		return err
	}
	input, err := in.Digest()
	r.inputs = append(r.inputs, r.p.Named(input)...)
	return err
}

func (r *run) read(name string, use func(t *dag.Trace) error) (err error) {
	defer func() { r.inputErr = err }()
	read, err := r.p.ReadTrace(name, cli.ReadFlags{}, cli.ReadOptions{Digest: true})
	if err != nil {
		return err
	}
	r.inputs = read.Inputs
	if err := use(read.Trace); err != nil {
		return format.InFile(read.Name, err)
	}
	return nil
}

// createReport writes the report. writeTrace commits it after the trace is written.
func (r *run) createReport(report any) (err error) {
	file := r.config.(generator.Reporter).ReportFile()
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if r.report, err = r.p.Create(file, false); err != nil {
		return err
	}
	_, err = r.report.Write(append(text, '\n'))
	return r.report.Failed(err)
}
