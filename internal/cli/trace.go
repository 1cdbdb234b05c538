// This file reads and writes traces according to the flags that the programs share.

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/units"
)

// ReadFlags are the flags of a program that reads traces.
type ReadFlags struct {
	From    string // name of the input format; "" to detect it from the content
	Compat  bool
	Lenient bool

	// Simulators are the names that may follow --compat. Simulator is the one that followed; "" for none.
	Simulators []string
	Simulator  string

	// FormatSeed reports that the program has no other use of --seed than options of formats.
	FormatSeed bool

	// Ranks is the number of ranks that run the ops of rank 0, whose file is the only one read; 0 reads one file per
	// rank. CheckedComms is that of format.ReadOptions. Neither has a flag.
	Ranks        int
	CheckedComms bool

	formats *formatFlags // nil if not registered
	modes   *modes       // nil if not registered
}

// Register adds the flags to the command. Formats share an existing flag --seed.
func (f *ReadFlags) Register(p *Program, cmd *cobra.Command) {
	flags := cmd.Flags()
	names := p.Formats.Readable().Names()
	flags.StringVar(&f.From, "from", "", "input `format` (default: detected from the content)")
	f.registerCompat(cmd)
	flags.BoolVar(&f.Lenient, "lenient", false, "skip invalid parts of the input, with a warning")
	flags.BoolVar(&f.Lenient, "skip-bad", false, "same as --lenient")
	flags.Lookup("skip-bad").Hidden = true
	if flags.Lookup("seed") == nil {
		flags.Int64("seed", 1, "seed of all random choices")
	}
	CompleteWith(cmd, "from", names)
	manual.Section(cmd, "Input")
	manual.Of(cmd).Add(formatsTopic(p.Formats))
	f.formats = newFormatFlags(p, cmd, p.Formats.Readable(), func(f *format.Format) *format.OptionTable {
		return f.Options
	})
	f.formats.seed = f.FormatSeed
	f.modes = newModes(p, cmd, p.Formats.Readable())
}

// formatsTopic is the help topic that lists formats.
func formatsTopic(all format.List) manual.Group {
	var b strings.Builder
	b.WriteString("Formats with read (r) and write (w) support:\n\n")
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
		Owner: "formats", Title: "trace formats", Topic: true, Page: b.String(), File: "docs/reference/formats",
	}
}

// Read is a trace that was read.
type Read struct {
	Trace  *dag.Trace
	Format *format.Format
	Name   string      // name of the input, for messages
	Inputs []dag.Input // digests for the provenance, with ReadOptions.Digest

	Unverified string // reason for not checking the contents against a digest; "" if checked, or if the format has none
}

// ReadOptions are the options of ReadTrace and OpenTrace.
type ReadOptions struct {
	Digest   bool      // fill Read.Inputs
	Progress *Progress // counts the bytes read; nil to show an own progress
}

// OpenTrace is an open trace with a known format, not yet read.
type OpenTrace struct {
	*tracefile.Opened
	Size int64 // of its files in bytes, -1 if it is unknown

	p        *Program
	own      format.Options // options of its format, or nil
	warnings []string       // warnings about flags for other formats
	done     func()         // the trace is no longer in use
	flags    *formatFlags   // options of formats
	fixed    bool           // --ranks is set, but the format has no such option
	progress *Progress      // its own progress; nil if the caller has one
}

// OpenTrace opens the trace in the named input: a file, or "-" for standard input. The name of a trace with one file
// per rank is its folder, its file of rank 0, or the common prefix of its files.
func (p *Program) OpenTrace(name string, f ReadFlags, o ReadOptions) (*OpenTrace, error) {
	return p.OpenFiles([]string{name}, f, o)
}

// OpenFiles opens one trace that consists of the named inputs.
func (p *Program) OpenFiles(names []string, f ReadFlags, o ReadOptions) (_ *OpenTrace, err error) {
	t := &OpenTrace{p: p, done: p.limits().Use(names[0]), flags: f.formats}
	all, err := f.formats.apply()
	if err != nil {
		return nil, err
	}
	if err := checkExist(names); err != nil {
		return nil, err
	}
	t.Opened, err = tracefile.Open(p.Formats, names, tracefile.Options{
		From: f.From, Compat: f.Compat || all.imitates(), Lenient: f.Lenient, Ranks: f.Ranks,
		CheckedComms: f.CheckedComms, Context: p.Context(),
		Stdin: p.Stdin, Digest: o.Digest, Warn: p.Warn, Outputs: p.outputs,
		Own: func(found *format.Format, name string) (own format.Options, err error) {
			f.modes.reads(found, &f)
			if t.warnings, err = f.formats.misplaced(found.Options, name, found); err == nil {
				t.own = all.of(found.Options)
				t.fixed = f.formats.ignoresRanks(found.Options)
			}
			return t.own, err
		},
		Progress: func(total int64) func(int64) {
			t.Size = total
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
		err = Usagef("%d inputs for one output: name a folder, as in -o out/", many.Files)
	case err == nil && t.Source != nil:
		t.warn()
		if t.fixed {
			var h *dag.Header
			if h, err = t.Source.Header(); err != nil {
				err = format.InFile(t.Name, err)
				break
			}
			t.warnRanks(h.Ranks)
		}
	}
	if err != nil {
		t.DoneReading()
		t.done()
		return nil, err
	}
	return t, nil
}

// checkExist returns an error if an input after the first does not exist: users often mean it as the output.
func checkExist(names []string) error {
	for _, name := range names[1:] {
		if _, err := os.Stat(name); name != "-" && err != nil {
			return format.FileErrorf(name, "%w; to name an output, use -o", format.Cause(err))
		}
	}
	return nil
}

// Reference reports whether the flags select the behavior of the format's reference program, including its bugs. It
// ignores errors in flags, which OpenFiles returns.
func (f *ReadFlags) Reference() bool {
	all, err := f.formats.apply()
	return f.Compat || err == nil && all.imitates()
}

// Imitate makes outputs those of the reference program if the flags select its behavior.
func (f *WriteFlags) Imitate(read *ReadFlags) {
	f.Compat, f.modes = read.Reference(), read.modes
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
		t.warnRanks(len(trace.Ranks))
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

// warnRanks warns about --ranks for a trace of a format without this option.
func (t *OpenTrace) warnRanks(ranks int) {
	if t.fixed {
		t.p.Warn("%s: --ranks has no effect: the trace has %d ranks", t.Name, ranks)
	}
	t.fixed = false
}

// WasRead reports with -v that the trace was read.
func (t *OpenTrace) WasRead(ops int64, ranks int, took time.Duration) {
	t.p.Explain("%s: read %d ops of %d ranks from %s in %v", t.Name, ops, ranks, t.Format.Name,
		took.Round(time.Millisecond))
}

// DoneReading closes the trace's own progress, if any.
func (t *OpenTrace) DoneReading() {
	if t.progress != nil {
		t.progress.Close()
		t.progress = nil
	}
}

// Seed returns the seed for the provenance, or nil if the input is not a generative model.
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

// Inputs returns the name and digest of each file read; see [tracefile.Opened.Inputs]. A program that writes traces
// gets the names of their provenance.
func (t *OpenTrace) Inputs() ([]dag.Input, error) {
	inputs, err := t.Opened.Inputs()
	if err != nil || !t.p.recordsOrigin {
		return inputs, err
	}
	named := t.p.Named(inputs[:t.OwnFiles()]...)
	for _, in := range inputs[t.OwnFiles():] {
		named = append(named, t.p.Named(in)...)
	}
	return named, nil
}

// Close closes the input. Further calls have no effect.
func (t *OpenTrace) Close() {
	t.DoneReading()
	t.done()
	t.Opened.Close()
}

// ReadTrace reads the trace in the named input; names are those of OpenTrace.
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
	Output string // "" or "-" for standard output
	To     string // name of the output format; "" to derive it from the name of the output
	Strict bool
	Compat bool // has no flag

	approx  bool           // explicit default
	formats *formatFlags   // nil if not registered
	flags   *pflag.FlagSet // of the command
	modes   *modes         // of reading; nil: none
}

// provenancePage is the help of the provenance.
const provenancePage = `A store records the program, its version, the flags that shape the trace, the seed, and the base name and
SHA-256 of each input. It records no folders, outputs or other inputs: the same trace gives the same bytes.`

// Register adds the flags to the command. outputUsage is the help of -o.
func (f *WriteFlags) Register(p *Program, cmd *cobra.Command, outputUsage string) {
	flags := cmd.Flags()
	names := p.Formats.Writable().Names()
	flags.VarP((*outputName)(&f.Output), "output", "o", outputUsage)
	p.RegisterSync(flags)
	flags.StringVar(&f.To, "to", "", "output `format` (default: by name, else "+format.Default+")")
	flags.BoolVar(&f.Strict, "strict", false, "exit with 3 and no output if the format loses data")
	flags.BoolVar(&f.approx, "approx", false,
		"approximate or drop unsupported data (default)")
	flags.BoolVar(&p.recordsPaths, "record-paths", false, "record paths as given in the provenance of the trace")
	cmd.MarkFlagsMutuallyExclusive("strict", "approx")
	manual.InTopic(cmd, "record-paths", "provenance")
	manual.Of(cmd).Add(manual.Group{Owner: "provenance", Title: "record of how a store was made", Topic: true,
		Quiet: true, Page: provenancePage, File: "docs/reference/store.md"})
	p.recordsOrigin, f.flags = true, flags
	Aside(flags, "output", "no-sync", "to", "strict", "approx", "record-paths")
	CompleteWith(cmd, "to", names)
	manual.Section(cmd, "Output")
	manual.Of(cmd).Add(formatsTopic(p.Formats))
	f.formats = newFormatFlags(p, cmd, p.Formats.Writable(), func(f *format.Format) *format.OptionTable {
		return f.WriteOptions
	})
}

// Target is the path, format and options of an output.
type Target struct {
	Path   string // "" or "-" for standard output
	Format *format.Format
	Strict bool
	Compat bool

	Frugal  bool  // prefer little memory to the use of all processors
	Written int64 // bytes of the files, after writing

	own   format.Options // options of the format, or nil
	named bool           // Path is the user's name of the output, not one derived from an input
}

// Name returns the target's name for messages.
func (t *Target) Name() string {
	if isStdout(t.Path) {
		return "<stdout>"
	}
	return t.Path
}

// KeepsProvenance reports whether the output holds the provenance of the trace, including digests of its inputs.
func (t *Target) KeepsProvenance() bool {
	return t.Format.Name == format.Default
}

// OutputFormat returns the format that the flags and the path of the output select.
func (p *Program) OutputFormat(f WriteFlags, path string) (*format.Format, error) {
	return tracefile.OutputFormat(p.Formats, f.To, path)
}

// Target returns the output that the flags describe. It makes the checks that need no trace.
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

// TargetIn returns the target at a path in a format returned by OutputFormat.
func (p *Program) TargetIn(path string, output *format.Format, f WriteFlags) (*Target, error) {
	all, err := f.formats.apply()
	if err != nil {
		return nil, err
	}
	if _, err := f.formats.misplaced(output.WriteOptions, path, output); err != nil {
		return nil, err
	}
	if f.Compat {
		f.modes.writes(output)
	}
	own := all.of(output.WriteOptions)
	return &Target{Path: path, Format: output, Strict: f.Strict, Compat: f.Compat, own: own}, nil
}

// WriteTrace writes the trace and prints the losses of the format. After an error, an existing file is unchanged and no
// new file remains.
func (p *Program) WriteTrace(t *dag.Trace, to *Target) error {
	return p.write(to, func(o tracefile.WriteOptions) (*tracefile.Written, error) {
		return tracefile.Write(p.Formats, to.Path, t, o)
	})
}

// WriteSource is WriteTrace for a source. Formats that support it write the source in batches, without holding the
// trace in memory.
func (p *Program) WriteSource(s dag.Source, to *Target) error {
	return p.write(to, func(o tracefile.WriteOptions) (*tracefile.Written, error) {
		return tracefile.WriteSource(p.Formats, to.Path, s, o)
	})
}

// WriteStream is WriteSource for a source of [tracefile.Opened.Stream] of a trace. describe sets the metadata of the
// trace.
func (p *Program) WriteStream(in *OpenTrace, s format.Stream, describe func(*dag.Meta) error, to *Target) error {
	start := time.Now()
	read := func() (dag.Source, error) {
		if err := in.Streamed(s); err != nil {
			return nil, err
		}
		h, err := s.Header()
		if err != nil {
			return nil, err
		}
		in.warn()
		in.warnRanks(h.Ranks)
		in.WasRead(h.Ops, h.Ranks, time.Since(start))
		in.DoneReading()
		header := *h
		if err := describe(&header.Meta); err != nil {
			return nil, err
		}
		return dag.WithHeader(s, &header), nil
	}
	return p.write(to, func(o tracefile.WriteOptions) (*tracefile.Written, error) {
		return tracefile.WriteStream(p.Formats, to.Path, s, read, o)
	})
}

// write calls the function and prints its losses.
func (p *Program) write(to *Target, write func(tracefile.WriteOptions) (*tracefile.Written, error)) error {
	var progress *Progress
	if !isStdout(to.Path) || !IsTerminal(p.Stdout) {
		progress = p.Progress("writing", -1, "B")
		defer progress.Close()
	}
	start := time.Now()
	done, err := write(tracefile.WriteOptions{
		Context: p.Context(), To: to.Format.Name, Strict: to.Strict, Compat: to.Compat, Own: to.own, Frugal: to.Frugal,
		Numbered: !to.named, Stdout: p.output,
		Outputs: p.outputs, Warn: p.Warn, Info: p.Info, Progress: progress.Add,
	})
	var many *tracefile.ManyFilesError
	if errors.As(err, &many) {
		return Usagef("%s has several files per trace: name them with -o, as in -o FOLDER/NAME%s", to.Format.Name,
			to.Format.Extensions[0])
	} else if err != nil {
		return err
	}
	to.Written = done.Bytes
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
