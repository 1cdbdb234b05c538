// This file reads and writes traces by the flags that the programs share.

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
)

// ReadFlags are the flags of a program that reads traces.
type ReadFlags struct {
	From    string // name of the input format; "": as the content shows
	Compat  bool
	Lenient bool
	Model   ModelFlags
}

// ModelFlags are the flags for inputs that describe a workload model.
type ModelFlags struct {
	seed               int64
	jitter, gaussSigma float64
	flags              *pflag.FlagSet // nil: not registered
}

// Register adds the flags to the command; a --seed that it has already serves for this, too.
func (f *ModelFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	if flags.Lookup("seed") == nil {
		flags.Int64Var(&f.seed, "seed", 1, "seed of every random choice, where the input describes a workload model")
	}
	flags.Float64Var(&f.jitter, "jitter", 0,
		"standard deviation of drawn times and sizes as a part of the mean, where the input describes a workload model "+
			"(default: the model's)")
	flags.Float64Var(&f.gaussSigma, "gauss-sigma-frac", 0,
		"standard deviation of Gaussian destinations as a part of the number of tasks, likewise (default: the model's)")
}

func (f *ModelFlags) options() format.ModelOptions {
	var o format.ModelOptions
	if f.flags == nil {
		return o
	}
	o.Seed, _ = f.flags.GetInt64("seed") // Register saw to it that it is there
	if f.flags.Changed("jitter") {
		o.Jitter = &f.jitter
	}
	if f.flags.Changed("gauss-sigma-frac") {
		o.GaussSigma = &f.gaussSigma
	}
	return o
}

// Register adds the flags to the command.
func (f *ReadFlags) Register(p *Program, cmd *cobra.Command) {
	flags := cmd.Flags()
	names := p.Formats.Readable().Names()
	flags.StringVar(&f.From, "from", "", "input `format`: "+strings.Join(names, ", ")+" (default: as the content shows)")
	flags.BoolVar(&f.Compat, "compat", false,
		"accept and do what the format's reference program does, its mistakes included")
	flags.BoolVar(&f.Lenient, "lenient", false, "skip what can be skipped in a faulty input, with a warning")
	CompleteWith(cmd, "from", names)
	f.Model.Register(cmd)
}

// Read is a trace that was read.
type Read struct {
	Trace  *dag.Trace
	Format *format.Format
	Name   string    // of the input, for messages
	Input  dag.Input // for the provenance, where asked for
}

// ReadOptions is what a program may ask of ReadTrace.
type ReadOptions struct {
	Digest   bool      // fill Read.Input
	Progress *Progress // counts the bytes read; nil: ReadTrace shows its own
}

// OpenTrace is a trace that is open and of known format, but not read.
type OpenTrace struct {
	Format *format.Format
	Name   string        // of the input, for messages
	Source format.Source // the trace, where the format lets it be read batch by batch; else nil

	p        *Program
	in       *Input
	flags    ReadFlags
	progress *Progress // its own; nil: the caller's
}

// OpenTrace opens the trace in the input called name, "-" for standard input.
func (p *Program) OpenTrace(name string, f ReadFlags, o ReadOptions) (_ *OpenTrace, err error) {
	t := &OpenTrace{p: p, flags: f}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	progress := o.Progress
	if progress == nil {
		progress = p.Progress("reading", p.StoredSize(name), "B")
		t.progress = progress
	}
	if t.in, err = p.Open(name, o.Digest, progress); err != nil {
		return nil, err
	}
	t.Name = t.in.Name
	if t.Format, err = p.Detect(t.in, f.From); err != nil {
		return nil, err
	}
	if t.Format.Open != nil {
		source, err := t.Format.Open(&t.in.Input, t.readOptions())
		if err != nil {
			return nil, InFile(t.Name, err)
		}
		t.Source = source
	}
	return t, nil
}

func (t *OpenTrace) readOptions() format.ReadOptions {
	return format.ReadOptions{Compat: t.flags.Compat, Lenient: t.flags.Lenient, Model: t.flags.Model.options(), Warn: t.p.Warn}
}

// Read reads the whole trace.
func (t *OpenTrace) Read() (trace *dag.Trace, err error) {
	start := time.Now()
	if t.Source != nil {
		trace, err = t.Source.Trace()
	} else {
		trace, err = t.Format.Read([]*format.Input{&t.in.Input}, t.readOptions())
	}
	if err != nil {
		return nil, InFile(t.Name, err)
	}
	t.WasRead(trace.Ops(), len(trace.Ranks), time.Since(start))
	return trace, nil
}

// WasRead tells the user, with -v, that the trace was read.
func (t *OpenTrace) WasRead(ops int64, ranks int, took time.Duration) {
	t.p.Explain("%s: read %d ops of %d ranks from %s in %v", t.Name, ops, ranks, t.Format.Name, took.Round(time.Millisecond))
}

// DoneReading ends the display of progress, where that is the trace's own.
func (t *OpenTrace) DoneReading() {
	if t.progress != nil {
		t.progress.Close()
		t.progress = nil
	}
}

// Close closes the input.
func (t *OpenTrace) Close() {
	t.DoneReading()
	if t.Source != nil {
		t.Source.Close()
	}
	if t.in != nil {
		t.in.Close()
	}
}

// ReadTrace reads the trace in the input called name, "-" for standard input.
func (p *Program) ReadTrace(name string, f ReadFlags, o ReadOptions) (*Read, error) {
	t, err := p.OpenTrace(name, f, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r := &Read{Format: t.Format, Name: t.Name}
	if r.Trace, err = t.Read(); err != nil {
		return nil, err
	}
	if o.Digest {
		if r.Input, err = t.in.Digest(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// InFile returns err with the file's name before its message, unless it names a file already.
func InFile(name string, err error) error {
	var syntax *format.SyntaxError
	var path *fs.PathError
	if errors.As(err, &syntax) || errors.As(err, &path) || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// WriteFlags are the flags of a program that writes traces.
type WriteFlags struct {
	Output string // "" or "-": standard output
	To     string // name of the output format; "": as the name of the output suggests
	Strict bool
	Compat bool // has no flag of its own
}

// Register adds the flags to the command. The help on -o is the program's.
func (f *WriteFlags) Register(p *Program, cmd *cobra.Command, outputUsage string) {
	flags := cmd.Flags()
	names := p.Formats.Writable().Names()
	flags.StringVarP(&f.Output, "output", "o", "", outputUsage)
	flags.StringVar(&f.To, "to", "", "output `format`: "+strings.Join(names, ", ")+
		" (default: as the output's name ends, else "+formats.Default+")")
	flags.BoolVar(&f.Strict, "strict", false, "write nothing and exit with 3 if the output format would lose something")
	CompleteWith(cmd, "to", names)
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
	return t.Format.Name == formats.Default
}

// OutputFormat returns the format for the flags, where the output is called path.
func (p *Program) OutputFormat(f WriteFlags, path string) (*format.Format, error) {
	writable := p.Formats.Writable()
	if f.To != "" {
		return p.named(f.To, "--to", writable)
	}
	if found := writable.ForPath(path); found != nil {
		return found, nil
	}
	if strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst") {
		return nil, Usagef("-o %s: outputs are not compressed; write to standard output and pipe it into the compressor",
			path)
	}
	return p.named(formats.Default, "--to", writable)
}

// Target returns what the flags ask for, after the checks that need no trace.
func (p *Program) Target(f WriteFlags) (*Target, error) {
	output, err := p.OutputFormat(f, f.Output)
	if err != nil {
		return nil, err
	}
	if err := p.CheckOutput(f.Output, output.Binary); err != nil {
		return nil, err
	}
	return &Target{Path: f.Output, Format: output, Strict: f.Strict, Compat: f.Compat}, nil
}

// lossError says that a trace was not written because of what that would have lost.
type lossError struct {
	name   string
	losses []format.Loss
}

func (e *lossError) Error() string {
	parts := make([]string, len(e.losses))
	for i, l := range e.losses {
		parts[i] = l.String()
	}
	return fmt.Sprintf("%s: not written, would lose %s", e.name, strings.Join(parts, "; "))
}

// WriteTrace writes the trace, and tells the user what the format cannot keep of it. On an error no file is left, and
// the one that was there before is still there.
func (p *Program) WriteTrace(t *dag.Trace, to *Target) error {
	var losses []format.Loss
	if to.Format.Losses != nil {
		losses = to.Format.Losses(t)
	}
	if len(losses) > 0 && to.Strict {
		return &lossError{to.Name(), losses}
	}
	var progress *Progress
	if !isStdout(to.Path) || !isTerminal(p.Stdout) {
		progress = p.Progress("writing", -1, "B")
		defer progress.Close()
	}
	start := time.Now()
	out, err := p.Create(to.Path, to.Format.Binary)
	if err != nil {
		return err
	}
	defer out.Close()
	w := &countingWriter{w: out, progress: progress}
	err = to.Format.Write(w, t, format.WriteOptions{Compat: to.Compat, Warn: p.Warn})
	if w.err != nil {
		return out.writeError(w.err)
	}
	if err != nil {
		return InFile(to.Name(), err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	for _, l := range losses {
		p.Info("%s: lost: %s", to.Name(), l)
	}
	p.Explain("%s: wrote %d ops as %s, %s, in %v", to.Name(), t.Ops(), to.Format.Name, FormatSize(w.n),
		time.Since(start).Round(time.Millisecond))
	return nil
}

type countingWriter struct {
	w        io.Writer
	n        int64
	err      error // the first
	progress *Progress
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.progress.Add(int64(n))
	if c.err == nil {
		c.err = err
	}
	return n, err
}
