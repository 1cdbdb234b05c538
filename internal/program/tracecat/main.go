// Package tracecat is the program tracecat: its flags and its output. Command tracecat and package tracedag run it.
package tracecat

import (
	"bufio"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/formats/kineto/gpustats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// view is the output that the flags select.
type view struct {
	ops, matrix, check, stats, gpu, diff, json, csv, digest, verifies bool

	outputs report.Outputs // page and pictures

	filter   filter
	terminal terminal
	set      bool          // the argument is the folder of a published set
	gpuPath  bool          // find critical paths of GPU traces
	part     gpustats.Part // of critical paths
	quick    bool          // check names and sizes of a set only
	repair   bool          // finish or undo an interrupted publication
	head     int64         // maximum number of lines; -1 for all
}

// New returns the program's command.
func New(p *cli.Program) *cobra.Command {
	var v view
	read := cli.ReadFlags{FormatSeed: true}
	cmd := &cobra.Command{
		Use:   "tracecat [flags] [FILE...]",
		Short: "show traces",
		Long: `Print a summary of a trace, its ops, its traffic matrix or its errors, compare two traces, or list several.

FILE is a trace in any format that can be read, compressed or not, the folder of a trace of many files, or that of a
published set; the default is standard input. Lists have tab-separated columns below a line of headings; "-" is an
absent field. Dependencies are numbers of ops of the same rank. --json prints one object for the summary and one per
line of a list, with times in picoseconds and sizes in bytes; it may omit zero and empty fields.`,
		Example: `  tracecat x.parquet
  tracecat --stats --json x.goal | jq .stats.messages
  tracecat --ops --rank 0,4-7 --kind send --head 20 x.bin
  tracecat --diff x.goal x.parquet && echo equal`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			v.set = isSet(args)
			if err := v.checkFlags(p, cmd, len(args)); err != nil {
				return err
			}
			names, err := p.InputNames(args)
			if err != nil {
				return err
			}
			if v.outputs.AreMatrices() {
				if done, err := v.plotMatrices(p, names); done || err != nil {
					return err
				}
			}
			if v.outputs.IsTable() {
				return v.plotTable(p, names[0])
			}
			if v.set && !v.verifies {
				return v.showSet(p, cmd, names[0], read)
			}
			switch {
			case v.diff:
				return v.compare(p, names, read)
			case v.gpu:
				return v.showGPU(p, names[0], read)
			case v.digest:
				return v.printDigests(p, names, read)
			case v.verifies:
				return v.verify(p, names, read)
			case v.csv || len(names) > 1:
				return v.list(p, names, read)
			case v.ops:
				s, err := open(p, names[0], read)
				if err != nil {
					return err
				}
				defer s.Close()
				return v.listOps(p, s)
			}
			r, err := p.ReadTrace(names[0], read, cli.ReadOptions{})
			if err != nil {
				return err
			}
			return v.show(p, r)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&v.stats, "stats", false, "print all statistics")
	flags.BoolVar(&v.gpu, "gpu", false, "print statistics of a GPU trace; with --compat, those of HTA")
	flags.BoolVar(&v.gpuPath, "critical-path", false, "with --gpu, add the critical path of each rank")
	flags.Func("path-part", "`part` of the trace for --critical-path: the ranges whose name contains NAME, as NAME, "+
		"N:NAME or N-M:NAME, from 0 (default all)", func(text string) (err error) {
		v.part, err = gpustats.ParsePart(text)
		return err
	})
	flags.BoolVar(&v.ops, "ops", false, "list the ops")
	flags.BoolVar(&v.matrix, "matrix", false, "list messages and bytes by pair of ranks")
	flags.BoolVar(&v.check, "check", false, "list errors that keep the trace from completing")
	flags.BoolVar(&v.diff, "diff", false, "compare two traces; exit with 1 if they differ")
	flags.BoolVar(&v.digest, "digest", false, "print a SHA-256 of the ops, whatever the format")
	flags.BoolVar(&v.verifies, "verify", false, "list damage and errors in stores; exit with 1 if any")
	v.filter.register(cmd)
	flags.Int64Var(&v.head, "head", -1, "print only the first `n` lines of a list")
	flags.Lookup("head").DefValue = "0" // prints no default
	flags.BoolVar(&v.json, "json", false, "print JSON")
	flags.BoolVar(&v.csv, "csv", false, "print a list of traces as CSV")
	cli.OutputVar(flags, &v.outputs.Page, "report", "write a page about the trace, `FILE`.html")
	v.outputs.Plots.Suggest = param.Suggest
	for _, name := range v.outputs.Plots.Register(flags) {
		manual.InTopic(cmd, name, "plot")
	}
	flags.Func("min-bytes", "smallest message with an arrow in --plot timeline, a `size` (default 0)",
		func(text string) (err error) {
			v.outputs.Plots.MinBytes, err = units.ParseSize(text)
			if err == nil && v.outputs.Plots.MinBytes < 0 {
				err = errors.New("expected a size of at least 0")
			}
			return err
		})
	manual.InTopic(cmd, "min-bytes", "plot")
	flags.BoolVar(&v.quick, "quick", false, "--verify checks names and sizes only")
	flags.BoolVar(&v.repair, "repair", false, "--verify first finishes or undoes an interrupted publication")
	manual.InTopic(cmd, "quick", "sets")
	manual.InTopic(cmd, "repair", "sets")
	for _, name := range []string{"gpu", "critical-path", "path-part"} {
		manual.InTopic(cmd, name, "gpu")
	}
	v.terminal.register(cmd)
	cmd.MarkFlagsMutuallyExclusive("ops", "matrix", "check", "stats", "gpu", "diff", "csv", "digest", "verify")
	for _, name := range []string{"csv", "digest", "verify"} {
		cmd.MarkFlagsMutuallyExclusive("json", name)
	}
	manual.Section(cmd, "Output")
	manual.Topic(cmd, manual.Group{Owner: "plot", Title: "pictures of traces", Page: report.PlotPage(true),
		File: "docs/reference/plots.md"})
	manual.Topic(cmd, manual.Group{Owner: "sets", Title: "published sets", Page: setsPage,
		File: "docs/reference/datasets.md"})
	manual.Topic(cmd, manual.Group{Owner: "gpu", Title: "statistics of GPU traces", Page: gpuPage,
		File: "docs/reference/gpustats.md"})
	read.Register(p, cmd)
	p.AddFormats(cmd)
	return cmd
}

// setsPage is the help of sets.
const setsPage = `tracecat FOLDER prints the catalogue of a published set: a table, or all columns with --csv or --json.

  tracecat set/
  tracecat --json set/ | jq 'select(.ranks >= 64) | .path'
  tracecat --verify set/

--verify FOLDER reads every file of the set. It compares them with SHA256SUMS, every store with its row of the
catalogue, and the description with the files, and prints a line per finding. The set may be on read-only media.`

// checkFlags returns an error if the flags, or the number of files, do not fit the output.
func (v *view) checkFlags(p *cli.Program, cmd *cobra.Command, files int) error {
	for _, name := range filterFlags {
		if cmd.Flags().Changed(name) && !v.ops {
			return cli.Usagef("--%s needs --ops", name)
		}
	}
	if err := v.checkReport(p, files); err != nil {
		return err
	}
	if v.gpu {
		used := kineto.ProfileOptions(kineto.Events{Only: cmd.Flags().Changed("compat")})
		for _, name := range kineto.Format.Options.New().Params().Names() {
			if cmd.Flags().Changed(name) && !slices.Contains(used, name) {
				return cli.Usagef("--%s has no effect on --gpu, which prints statistics of the events as recorded",
					name)
			}
		}
	}
	if v.gpuPath && !v.gpu {
		return cli.Usagef("--critical-path needs --gpu")
	}
	if cmd.Flags().Changed("path-part") && !v.gpuPath {
		return cli.Usagef("--path-part needs --critical-path")
	}
	if (v.quick || v.repair) && !v.verifies {
		return cli.Usagef("--quick and --repair need --verify")
	}
	if v.diff && files != 2 {
		return cli.Usagef("--diff compares two traces, found %d", files)
	}
	if files > 1 {
		for _, name := range [...]string{"ops", "matrix", "check", "stats", "gpu"} {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("--%s reads one trace, found %d files", name, files)
			}
		}
	}
	if cmd.Flags().Changed("head") {
		if !v.ops && !v.matrix && !v.check && !v.verifies && !v.set {
			return cli.Usagef("--head needs --ops, --matrix, --check, --verify or the folder of a set")
		}
		if v.head < 0 {
			return cli.Usagef("--head: expected 0 or more, found %d", v.head)
		}
	}
	return nil
}

// show prints the selected output.
func (v *view) show(p *cli.Program, r *cli.Read) error {
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	sound := true
	switch {
	case v.matrix:
		err = v.listMatrix(out.Writer, r.Trace)
	case v.check:
		sound, err = v.listProblems(p, out.Writer, r)
	default:
		s := summarize(r)
		if v.outputs.Any() {
			if s.reported, err = v.writeReport(p, s, r.Trace); err != nil {
				return err
			}
		}
		if v.json {
			err = s.writeJSON(out)
		} else {
			err = s.writeText(out, v.stats)
		}
	}
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !sound {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// limit returns the number of lines to print out of n.
func (v *view) limit(n int) int {
	if v.head >= 0 && v.head < int64(n) {
		return int(v.head)
	}
	return n
}

// listMatrix prints the messages and bytes of each pair of ranks that communicates.
func (v *view) listMatrix(out *bufio.Writer, t *dag.Trace) error {
	pairs := dag.Matrix(t)
	if v.json {
		return writeJSONLines(out, pairs[:v.limit(len(pairs))])
	}
	out.WriteString("src\tdst\tmessages\tbytes\n")
	var line []byte
	for _, pair := range pairs[:v.limit(len(pairs))] {
		line = appendInts(line[:0], '\t', int64(pair.Src), int64(pair.Dst), pair.Messages)
		line = append(append(line, '\t'), pair.Bytes.String()...)
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// listProblems prints the errors of the trace and reports whether it has none.
func (v *view) listProblems(p *cli.Program, out *bufio.Writer, r *cli.Read) (sound bool, err error) {
	if r.Unverified != "" {
		p.Info("%s: %s", r.Name, r.Unverified)
	}
	limit := int(^uint(0) >> 1)
	problems, total := dag.ValidateLimit(r.Trace, v.limit(limit))
	if total == 0 {
		p.Explain("%s: no problems", r.Name)
		return true, nil
	}
	if v.json {
		err = writeJSONLines(out, problems)
	} else {
		for _, problem := range problems {
			out.WriteString(plain(problem.String()))
			if err = out.WriteByte('\n'); err != nil {
				break
			}
		}
	}
	p.Info("%s: problems: %d", r.Name, total)
	return false, err
}
