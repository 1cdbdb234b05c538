// This file reads and writes traces by the flags that the programs share.

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/units"
)

// ReadFlags are the flags of a program that reads traces.
type ReadFlags struct {
	From    string // name of the input format; "": as the content shows
	Compat  bool
	Lenient bool

	// Simulators are the names that may follow --compat, and Simulator is the one that did; "": none.
	Simulators []string
	Simulator  string

	// Ranks is the number of ranks that do what the file of rank 0, the only one that is read, has; 0: there is a file
	// for each. CheckedComms is that of format.ReadOptions. They have no flags of their own.
	Ranks        int
	CheckedComms bool

	formats *formatFlags // nil: not registered
}

// Register adds the flags to the command; a --seed that it has already serves formats, too.
func (f *ReadFlags) Register(p *Program, cmd *cobra.Command) {
	flags := cmd.Flags()
	names := p.Formats.Readable().Names()
	flags.StringVar(&f.From, "from", "", "input `format` (default: detected from the content)")
	f.registerCompat(cmd)
	flags.BoolVar(&f.Lenient, "lenient", false, "skip invalid parts of the input, and warn")
	flags.BoolVar(&f.Lenient, "skip-bad", false, "same as --lenient")
	flags.Lookup("skip-bad").Hidden = true
	if flags.Lookup("seed") == nil {
		flags.Int64("seed", 1, "seed of all random choices")
	}
	CompleteWith(cmd, "from", names)
	manual.Section(cmd, "Input")
	manual.Of(cmd).Add(formatsTopic(p.Formats))
	f.formats = newFormatFlags(cmd, p.Formats.Readable(), func(f *format.Format) *format.OptionTable {
		return f.Options
	})
}

// formatsTopic is the help topic that lists formats.
func formatsTopic(all format.List) manual.Group {
	var b strings.Builder
	b.WriteString("Formats that can be read (r) and written (w):\n\n")
	for _, f := range all {
		access := ""
		if f.Read != nil || f.Open != nil {
			access = "r"
		}
		if f.Write != nil || f.WriteFiles != nil {
			access += "w"
		}
		fmt.Fprintf(&b, "  %-14s %-2s %s\n", f.Name, access, f.Title)
	}
	return manual.Group{
		Owner: "formats", Title: "formats of traces", Topic: true, Page: b.String(), File: "docs/reference/formats",
	}
}

// Read is a trace that was read.
type Read struct {
	Trace  *dag.Trace
	Format *format.Format
	Name   string      // of the input, for messages
	Inputs []dag.Input // for the provenance, where asked for

	Unverified string // why the contents are not checked against a digest; "": they are, or the format has none
}

// ReadOptions is what a program may ask of ReadTrace.
type ReadOptions struct {
	Digest   bool      // fill Read.Inputs
	Progress *Progress // counts the bytes read; nil: ReadTrace shows its own
}

// OpenTrace is a trace that is open and of known format, but not read.
type OpenTrace struct {
	*tracefile.Opened

	p        *Program
	own      format.Options // of its format; nil: none
	warnings []string       // about flags for other formats
	progress *Progress      // its own; nil: the caller's
}

// OpenTrace opens the trace in the input called name: a file, "-" for standard input, or of a trace that is many files
// their folder, the file of rank 0, or what comes before its number.
func (p *Program) OpenTrace(name string, f ReadFlags, o ReadOptions) (*OpenTrace, error) {
	return p.OpenFiles([]string{name}, f, o)
}

// OpenFiles opens the trace that the named inputs are together.
func (p *Program) OpenFiles(names []string, f ReadFlags, o ReadOptions) (_ *OpenTrace, err error) {
	t := &OpenTrace{p: p}
	all, err := f.formats.apply()
	if err != nil {
		return nil, err
	}
	if err := checkExist(names); err != nil {
		return nil, err
	}
	t.Opened, err = tracefile.Open(p.Formats, names, tracefile.Options{
		From: f.From, Compat: f.Compat || all.imitates(), Lenient: f.Lenient, Ranks: f.Ranks,
		CheckedComms: f.CheckedComms,
		Stdin:        p.Stdin, Digest: o.Digest, Warn: p.Warn, Outputs: &p.outputs,
		Own: func(found *format.Format, name string) (own format.Options, err error) {
			if t.warnings, err = f.formats.misplaced(found.Options, name, found); err == nil {
				t.own = all.of(found.Options)
			}
			return t.own, err
		},
		Progress: func(total int64) func(int64) {
			progress := o.Progress
			if progress == nil {
				progress = p.Progress("reading", total, "B")
				t.progress = progress
			}
			return progress.Add
		},
	})
	var many *tracefile.TooManyFilesError
	switch {
	case errors.As(err, &many):
		err = Usagef("%d inputs for one output: give a folder, as in -o out/", many.Files)
	case err == nil && t.Source != nil:
		t.warn()
	}
	if err != nil {
		t.DoneReading()
		return nil, err
	}
	return t, nil
}

// checkExist returns an error if one of several inputs is not there: most often it was meant as the output.
func checkExist(names []string) error {
	for _, name := range names[1:] {
		if _, err := os.Stat(name); name != "-" && err != nil {
			return format.FileErrorf(name, "%w; an output is named with -o", format.Cause(err))
		}
	}
	return nil
}

// Reference reports whether to do what the format's reference program does, its mistakes included. Errors in flags are
// left for OpenFiles.
func (f *ReadFlags) Reference() bool {
	all, err := f.formats.apply()
	return f.Compat || err == nil && all.imitates()
}

// Read reads the whole trace.
func (t *OpenTrace) Read() (*dag.Trace, error) {
	start := time.Now()
	trace, err := t.Opened.Read()
	if err != nil {
		return nil, err
	}
	if t.Source == nil {
		t.warn()
	}
	t.WasRead(trace.Ops(), len(trace.Ranks), time.Since(start))
	return trace, nil
}

// warn warns about flags for other formats.
func (t *OpenTrace) warn() {
	for _, warning := range t.warnings {
		t.p.Warn("%s", warning)
	}
	t.warnings = nil
}

// WasRead tells the user, with -v, that the trace was read.
func (t *OpenTrace) WasRead(ops int64, ranks int, took time.Duration) {
	t.p.Explain("%s: read %d ops of %d ranks from %s in %v", t.Name, ops, ranks, t.Format.Name,
		took.Round(time.Millisecond))
}

// DoneReading ends the display of progress, if that is the trace's own.
func (t *OpenTrace) DoneReading() {
	if t.progress != nil {
		t.progress.Close()
		t.progress = nil
	}
}

// Seed returns the seed for the provenance, nil if the input is a trace and not a model that generates one.
func (t *OpenTrace) Seed() *int64 {
	if !t.Generates() {
		return nil
	}
	random, ok := t.own.(format.Random)
	if !ok {
		return nil
	}
	seed := *random.RandomSeed()
	return &seed
}

// Close closes the input. It may be called again.
func (t *OpenTrace) Close() {
	t.DoneReading()
	t.Opened.Close()
}

// ReadTrace reads the trace in the input called name, as OpenTrace has it.
func (p *Program) ReadTrace(name string, f ReadFlags, o ReadOptions) (*Read, error) {
	t, err := p.OpenTrace(name, f, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r := &Read{Format: t.Format, Name: t.Name, Unverified: t.Unverified()}
	if r.Trace, err = t.Read(); err != nil {
		return nil, err
	}
	if o.Digest {
		if r.Inputs, err = t.Inputs(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// WriteFlags are the flags of a program that writes traces.
type WriteFlags struct {
	Output string // "" or "-": standard output
	To     string // name of the output format; "": as the name of the output suggests
	Strict bool
	Compat bool // has no flag of its own

	approx  bool         // the default, said aloud
	formats *formatFlags // nil: not registered
}

// Register adds the flags to the command. The help on -o is the program's.
func (f *WriteFlags) Register(p *Program, cmd *cobra.Command, outputUsage string) {
	flags := cmd.Flags()
	names := p.Formats.Writable().Names()
	flags.VarP((*outputName)(&f.Output), "output", "o", outputUsage)
	flags.StringVar(&f.To, "to", "", "output `format` (default: by name, else "+format.Default+")")
	flags.BoolVar(&f.Strict, "strict", false, "exit with 3 and no output if the format loses data")
	flags.BoolVar(&f.approx, "approx", false,
		"approximate data that cannot be held (default)")
	cmd.MarkFlagsMutuallyExclusive("strict", "approx")
	CompleteWith(cmd, "to", names)
	manual.Section(cmd, "Output")
	manual.Of(cmd).Add(formatsTopic(p.Formats))
	f.formats = newFormatFlags(cmd, p.Formats.Writable(), func(f *format.Format) *format.OptionTable {
		return f.WriteOptions
	})
}

// CompleteWith makes the shell offer values for a flag.
func CompleteWith(cmd *cobra.Command, flag string, values []string) {
	complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // no such flag
	}
}

// Target is where and how to write a trace.
type Target struct {
	Path   string // "" or "-": standard output
	Format *format.Format
	Strict bool
	Compat bool

	own   format.Options // of the format; nil: none
	named bool           // Path is what the user calls the output
}

// Name returns the target's name for messages.
func (t *Target) Name() string {
	if isStdout(t.Path) {
		return "<stdout>"
	}
	return t.Path
}

// KeepsProvenance reports whether the provenance of a trace, digests of its inputs included, goes into the output.
func (t *Target) KeepsProvenance() bool {
	return t.Format.Name == format.Default
}

// OutputFormat returns the format for the flags and an output called path.
func (p *Program) OutputFormat(f WriteFlags, path string) (*format.Format, error) {
	return tracefile.OutputFormat(p.Formats, f.To, path)
}

// Target returns the output that the flags ask for, after the checks that need no trace.
func (p *Program) Target(f WriteFlags) (*Target, error) {
	output, err := p.OutputFormat(f, f.Output)
	if err != nil {
		return nil, err
	}
	if output.WriteFiles != nil {
		if info, err := os.Stat(f.Output); err == nil && info.IsDir() {
			return nil, Usagef("-o: %s is a directory, expected a name for the files, as in -o %s", f.Output,
				filepath.Join(f.Output, "NAME"))
		}
	}
	if err := p.CheckOutput(f.Output, output.Binary); err != nil {
		return nil, err
	}
	to, err := p.TargetIn(f.Output, output, f)
	if err == nil {
		to.named = true
	}
	return to, err
}

// TargetIn returns the target at a path in a format that OutputFormat gave for the flags.
func (p *Program) TargetIn(path string, output *format.Format, f WriteFlags) (*Target, error) {
	all, err := f.formats.apply()
	if err != nil {
		return nil, err
	}
	if _, err := f.formats.misplaced(output.WriteOptions, path, output); err != nil {
		return nil, err
	}
	own := all.of(output.WriteOptions)
	return &Target{Path: path, Format: output, Strict: f.Strict, Compat: f.Compat, own: own}, nil
}

// WriteTrace writes the trace, and tells the user what the format cannot keep of it. On an error no file is left, and
// one that was there before is still there.
func (p *Program) WriteTrace(t *dag.Trace, to *Target) error {
	return p.write(to, func(o tracefile.WriteOptions) (*tracefile.Written, error) {
		return tracefile.Write(p.Formats, to.Path, t, o)
	})
}

// WriteSource is WriteTrace for a trace that need not be in memory. The format takes it batch by batch if it can.
func (p *Program) WriteSource(s dag.Source, to *Target) error {
	return p.write(to, func(o tracefile.WriteOptions) (*tracefile.Written, error) {
		return tracefile.WriteSource(p.Formats, to.Path, s, o)
	})
}

// write writes a trace by the function, and tells the user about it.
func (p *Program) write(to *Target, write func(tracefile.WriteOptions) (*tracefile.Written, error)) error {
	var progress *Progress
	if !isStdout(to.Path) || !isTerminal(p.Stdout) {
		progress = p.Progress("writing", -1, "B")
		defer progress.Close()
	}
	start := time.Now()
	done, err := write(tracefile.WriteOptions{
		To: to.Format.Name, Strict: to.Strict, Compat: to.Compat, Own: to.own, Numbered: !to.named, Stdout: p.stdout,
		Outputs: &p.outputs, Warn: p.Warn, Info: p.Info, Progress: progress.Add,
	})
	var many *tracefile.ManyFilesError
	if errors.As(err, &many) {
		return Usagef("a trace in %s is many files: name them with -o, as in -o FOLDER/NAME%s", to.Format.Name,
			to.Format.Extensions[0])
	} else if err != nil {
		return err
	}
	if to.Format.WriteFiles != nil {
		p.Explain("%s: wrote %d ops as %d files in %s, %s, in %v", to.Name(), done.Ops, done.Files, to.Format.Name,
			units.FormatSize(done.Bytes), time.Since(start).Round(time.Millisecond))
	} else {
		p.Explain("%s: wrote %d ops as %s, %s, in %v", to.Name(), done.Ops, to.Format.Name,
			units.FormatSize(done.Bytes), time.Since(start).Round(time.Millisecond))
	}
	for _, l := range done.Losses {
		p.Info("%s: lost: %s", to.Name(), l)
	}
	return nil
}
