// This file reads and writes traces by the flags that the programs share.

package cli

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/units"
)

// ReadFlags are the flags of a program that reads traces.
type ReadFlags struct {
	From       string // name of the input format; "": as the content shows
	Compat     bool
	Lenient    bool
	CommGroups string // file that defines the communicators of a trace; "": none

	// Simulators are what may follow --compat, and Simulator is what did; "": nothing.
	Simulators []string
	Simulator  string

	Model    ModelFlags
	Schedgen SchedgenFlags
	Storage  StorageFlags
	NSys     NSysFlags

	// Ranks is how many ranks do what the file of rank 0, the only one that is read, has; 0: there is a file for each.
	// CheckedComms is that of format.ReadOptions. They have no flags of their own.
	Ranks        int
	CheckedComms bool
}

// ModelFlags are the flags for inputs that describe a workload model.
type ModelFlags struct {
	seed               int64
	jitter, gaussSigma float64
	timeStep           dag.Time
	ranks, passes      int
	cycle              dag.Time
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
	TimeVar(flags, &f.timeStep, "time-step", 0, 0, "what drawn times are multiples of, likewise (default: the model's)")
	flags.IntVar(&f.ranks, "ranks", 0, "how many ranks to make, where the input describes a workload for any number of them")
	flags.IntVar(&f.passes, "passes", 0, "how many times to run through the workload, likewise (default: once)")
	TimeVar(flags, &f.cycle, "cycle", 0, 0, "how long a cycle is, where the workload counts in them (default: the model's)")
	for _, name := range []string{"ranks", "passes"} {
		flags.Lookup(name).DefValue = "0" // prints no default
	}
}

func (f *ModelFlags) options() (format.ModelOptions, error) {
	var o format.ModelOptions
	if f.flags == nil {
		return o, nil
	}
	o.Seed, _ = f.flags.GetInt64("seed") // Register saw to it that it is there
	o.TimeStep, o.Ranks, o.Passes, o.Cycle = f.timeStep, f.ranks, f.passes, f.cycle
	for _, count := range []struct {
		name  string
		value int
	}{{"ranks", f.ranks}, {"passes", f.passes}} {
		if count.value < 0 || count.value > math.MaxInt32 {
			return o, Usagef("--%s: expected 0..%d, found %d", count.name, math.MaxInt32, count.value)
		}
	}
	if f.flags.Changed("jitter") {
		if !(f.jitter >= 0 && f.jitter <= 1) {
			return o, Usagef("--jitter: expected 0 to 1, found %v", f.jitter)
		}
		o.Jitter = &f.jitter
	}
	if f.flags.Changed("gauss-sigma-frac") {
		if !(f.gaussSigma > 0 && f.gaussSigma <= math.MaxFloat64) {
			return o, Usagef("--gauss-sigma-frac: expected a number above 0, found %v", f.gaussSigma)
		}
		o.GaussSigma = &f.gaussSigma
	}
	return o, nil
}

// Register adds the flags to the command.
func (f *ReadFlags) Register(p *Program, cmd *cobra.Command) {
	flags := cmd.Flags()
	names := p.Formats.Readable().Names()
	flags.StringVar(&f.From, "from", "", "input `format`: "+strings.Join(names, ", ")+" (default: as the content shows)")
	f.registerCompat(cmd)
	flags.BoolVar(&f.Lenient, "lenient", false, "skip what can be skipped in a faulty input, with a warning")
	flags.BoolVar(&f.Lenient, "skip-bad", false, "another name of --lenient")
	flags.StringVar(&f.CommGroups, "comm-groups", "",
		"`file` that defines the communicators by name, as ASTRA-sim has it for Chakra traces; one called empty is none")
	CompleteWith(cmd, "from", names)
	f.Model.Register(cmd)
	f.Schedgen.Register(cmd)
	f.Storage.Register(cmd)
	f.NSys.Register(cmd)
}

// Read is a trace that was read.
type Read struct {
	Trace  *dag.Trace
	Format *format.Format
	Name   string      // of the input, for messages
	Inputs []dag.Input // for the provenance, where asked for
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
	options  format.ReadOptions
	flags    ReadFlags
	stopped  []format.Place // where a schedule of Schedgen ends in the files
	progress *Progress      // its own; nil: the caller's
}

// OpenTrace opens the trace in the input called name: a file, "-" for standard input, or of a trace that is many files
// their folder, the file of rank 0, or what comes before its number.
func (p *Program) OpenTrace(name string, f ReadFlags, o ReadOptions) (*OpenTrace, error) {
	return p.OpenFiles([]string{name}, f, o)
}

// OpenFiles opens the trace that the named inputs are together.
func (p *Program) OpenFiles(names []string, f ReadFlags, o ReadOptions) (_ *OpenTrace, err error) {
	t := &OpenTrace{p: p, flags: f}
	if t.options, err = f.options(p); err != nil {
		return nil, err
	}
	if err := checkExist(names); err != nil {
		return nil, err
	}
	t.Opened, err = tracefile.Open(p.Formats, names, tracefile.Options{
		From: f.From, Compat: t.options.Compat, Lenient: f.Lenient, Ranks: f.Ranks, CheckedComms: f.CheckedComms,
		Stdin: p.Stdin, Digest: o.Digest, Warn: p.Warn, Configure: t.configure,
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
		t.warnUnusedGroups()
	}
	if err != nil {
		t.DoneReading()
		return nil, err
	}
	return t, nil
}

// configure gives the options of the flags to the format that was found.
func (t *OpenTrace) configure(f *format.Format, name string, o *format.ReadOptions) error {
	if t.options.Schedgen != nil && f.Name != "mpi" {
		return Usagef("--schedgen is for MPI traces, and %s is %s", name, f.Name)
	}
	o.Model, o.Storage, o.NSys, o.Schedgen = t.options.Model, t.options.Storage, t.options.NSys, t.options.Schedgen
	if o.Schedgen != nil {
		o.Schedgen.Stopped = func(places []format.Place) { t.stopped = places }
	}
	if t.flags.namesCommGroups() {
		o.CommGroups = o.OpenFile(t.flags.CommGroups)
	}
	return nil
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

func (f *ReadFlags) options(p *Program) (format.ReadOptions, error) {
	var o format.ReadOptions
	var err error
	if o.Model, err = f.Model.options(); err != nil {
		return o, err
	}
	if o.Storage, err = f.Storage.options(); err != nil {
		return o, err
	}
	if o.NSys, err = f.NSys.options(); err != nil {
		return o, err
	}
	o.Schedgen, err = f.Schedgen.options()
	o.Compat = f.Reference()
	return o, err
}

// namesCommGroups reports whether there is a file of communicators. As with ASTRA-sim, a name with the word "empty" in it
// stands for none, unless there is such a file.
func (f *ReadFlags) namesCommGroups() bool {
	if f.CommGroups == "" || !strings.Contains(f.CommGroups, "empty") {
		return f.CommGroups != ""
	}
	_, err := os.Stat(f.CommGroups)
	return err == nil
}

// Reference reports whether to do what the format's reference program does, its mistakes included.
func (f *ReadFlags) Reference() bool {
	return f.Compat || f.Schedgen.variant != ""
}

// Read reads the whole trace.
func (t *OpenTrace) Read() (*dag.Trace, error) {
	start := time.Now()
	trace, err := t.Opened.Read()
	if err == nil && t.stopped != nil {
		err = format.InFile(t.Name, t.p.writePlaces(t.flags.Schedgen.start, t.stopped))
	}
	if err != nil {
		return nil, err
	}
	if t.Source == nil {
		t.warnUnusedGroups()
	}
	t.WasRead(trace.Ops(), len(trace.Ranks), time.Since(start))
	return trace, nil
}

// warnUnusedGroups warns about a file of communicators that the format does not read.
func (t *OpenTrace) warnUnusedGroups() {
	if name := t.flags.CommGroups; t.flags.namesCommGroups() && !t.Uses(name) {
		t.p.Warn("%s: --comm-groups %s is not used: a trace in %s defines its communicators itself", t.Name, name, t.Format.Name)
	}
}

// WasRead tells the user, with -v, that the trace was read.
func (t *OpenTrace) WasRead(ops int64, ranks int, took time.Duration) {
	t.p.Explain("%s: read %d ops of %d ranks from %s in %v", t.Name, ops, ranks, t.Format.Name, took.Round(time.Millisecond))
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
	seed := t.options.Model.Seed
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
	r := &Read{Format: t.Format, Name: t.Name}
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

	approx     bool // the default, said aloud
	vefVersion int
}

// Register adds the flags to the command. The help on -o is the program's.
func (f *WriteFlags) Register(p *Program, cmd *cobra.Command, outputUsage string) {
	flags := cmd.Flags()
	names := p.Formats.Writable().Names()
	flags.StringVarP(&f.Output, "output", "o", "", outputUsage)
	flags.StringVar(&f.To, "to", "", "output `format`: "+strings.Join(names, ", ")+
		" (default: as the output's name ends, else "+format.Default+")")
	flags.BoolVar(&f.Strict, "strict", false, "write nothing and exit with 3 if the output format would lose something")
	flags.BoolVar(&f.approx, "approx", false,
		"write what the output format cannot hold exactly as nearly as it can, and say what is lost: the default")
	cmd.MarkFlagsMutuallyExclusive("strict", "approx")
	flags.IntVar(&f.vefVersion, "vef-version", 3, "write VEF of this version: 3, or 1 for readers that know no clock")
	CompleteWith(cmd, "to", names)
}

// version returns the version of the output format to write, 0 for the newest.
func (f *WriteFlags) version(output *format.Format) (int, error) {
	switch {
	case f.vefVersion == 1 && output.Name == "vef":
		return 1, nil
	case f.vefVersion == 3 || f.vefVersion == 0: // 0 where the flags were not registered
		return 0, nil
	case f.vefVersion == 1:
		return 0, Usagef("--vef-version is for outputs in VEF, not in %s", output.Name)
	}
	return 0, Usagef("--vef-version: expected 1 or 3, found %d", f.vefVersion)
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
	Path    string // "" or "-": standard output
	Format  *format.Format
	Strict  bool
	Compat  bool
	Version int // of the format; 0: the newest

	named bool // Path is what the user calls the output
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
	version, err := f.version(output)
	if err != nil {
		return nil, err
	}
	return &Target{Path: path, Format: output, Strict: f.Strict, Compat: f.Compat, Version: version}, nil
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
		To: to.Format.Name, Strict: to.Strict, Compat: to.Compat, Version: to.Version, Numbered: !to.named, Stdout: p.stdout,
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
		p.Explain("%s: wrote %d ops as %s, %s, in %v", to.Name(), done.Ops, to.Format.Name, units.FormatSize(done.Bytes),
			time.Since(start).Round(time.Millisecond))
	}
	for _, l := range done.Losses {
		p.Info("%s: lost: %s", to.Name(), l)
	}
	return nil
}
