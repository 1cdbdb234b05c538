// This file reads and writes traces by the flags that the programs share.

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
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
	Format *format.Format
	Name   string     // of the input, for messages
	Source dag.Source // the trace, where the format lets it be read batch by batch; else nil

	p        *Program
	in       *Input
	others   []*laterInput // the files after the first, where the trace has many
	groups   *laterInput   // the communicators; nil: in none of these files
	options  format.ReadOptions
	flags    ReadFlags
	progress *Progress // its own; nil: the caller's
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
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if err := checkExist(names); err != nil {
		return nil, err
	}
	given := names[0]
	asked := given
	if len(names) == 1 {
		given = p.firstOfPrefix(given, f.From)
		if names, err = p.filesOfFolder(given, f.From); err != nil {
			return nil, err
		}
	}
	progress := o.Progress
	if progress == nil {
		progress = p.Progress("reading", p.TotalSize(names), "B")
		t.progress = progress
	}
	if t.in, err = p.Open(names[0], o.Digest, progress); err != nil {
		return nil, err
	}
	t.Name = t.in.Name
	if t.Format, err = p.Detect(t.in, f.From); err != nil {
		return nil, err
	}
	switch {
	case t.Format.Files != nil && len(names) == 1 && given == names[0] && given != "-":
		var missing *format.MissingError
		if names, err = siblings(given, t.Format); err != nil {
			if !errors.As(err, &missing) || given != asked && f.Ranks == 0 {
				return nil, err
			}
			if names = []string{given}; f.Ranks == 0 {
				p.Warn("%s: read alone, as a trace of one rank, for %v", given, missing)
			}
		}
	case t.Format.Files == nil && len(names) > 1:
		return nil, Usagef("%d inputs for one output: give a folder, as in -o out/", len(names))
	}
	for _, name := range names {
		if name == t.in.name || f.Ranks > 0 && sameButDigits(name, t.in.name) {
			continue
		}
		t.others = append(t.others, &laterInput{p: p, name: name, digest: o.Digest, progress: progress})
	}
	if t.options.Schedgen != nil && t.Format.Name != "mpi" {
		return nil, Usagef("--schedgen is for MPI traces, and %s is %s", t.Name, t.Format.Name)
	}
	if f.namesCommGroups() {
		t.groups = &laterInput{p: p, name: f.CommGroups, digest: o.Digest, progress: progress}
		t.options.CommGroups = &format.Input{Name: f.CommGroups, Reader: t.groups}
	}
	if t.Format.Open != nil && f.Ranks == 0 {
		source, err := t.Format.Open(&t.in.Input, t.options)
		if err != nil {
			return nil, InFile(t.Name, err)
		}
		if t.Source = source; source != nil {
			t.dropUnusedGroups()
		}
	}
	return t, nil
}

// checkExist returns an error if one of several inputs is not there: most often what was to be the output.
func checkExist(names []string) error {
	for _, name := range names[1:] {
		if _, err := os.Stat(name); name != "-" && err != nil {
			return fmt.Errorf("%s: %w; an output is named with -o", name, cause(err))
		}
	}
	return nil
}

func (f *ReadFlags) options(p *Program) (format.ReadOptions, error) {
	o := format.ReadOptions{Lenient: f.Lenient, Ranks: f.Ranks, CheckedComms: f.CheckedComms, Warn: p.Warn}
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

// later returns the files that are read after the first.
func (t *OpenTrace) later() []*laterInput {
	if t.groups == nil {
		return t.others
	}
	return append(slices.Clone(t.others), t.groups)
}

// inputs returns the files of the trace.
func (t *OpenTrace) inputs() []*format.Input {
	inputs := []*format.Input{&t.in.Input}
	for _, other := range t.others {
		inputs = append(inputs, &format.Input{Name: other.name, Reader: other})
	}
	return inputs
}

// Read reads the whole trace.
func (t *OpenTrace) Read() (trace *dag.Trace, err error) {
	start := time.Now()
	if t.Source != nil {
		trace, err = dag.ReadAll(t.Source)
	} else {
		var stopped []format.Place
		if schedgen := t.options.Schedgen; schedgen != nil {
			schedgen.Stopped = func(places []format.Place) { stopped = places }
		}
		trace, err = t.Format.Read(t.inputs(), t.options)
		if err == nil && stopped != nil {
			err = t.p.writePlaces(t.flags.Schedgen.start, stopped)
		}
	}
	if err == nil && t.flags.Ranks > 0 && len(trace.Ranks) != t.flags.Ranks {
		trace, err = t.replicate(trace)
	}
	if err != nil {
		return nil, t.inFile(err)
	}
	t.dropUnusedGroups()
	t.WasRead(trace.Ops(), len(trace.Ranks), time.Since(start))
	return trace, nil
}

// dropUnusedGroups forgets a file of communicators that was not looked at, and says so.
func (t *OpenTrace) dropUnusedGroups() {
	if t.groups == nil || t.groups.opened {
		return
	}
	t.p.Warn("%s: --comm-groups %s is not used: a trace in %s defines its communicators itself", t.Name, t.groups.name,
		t.Format.Name)
	t.groups = nil
}

// replicate returns the trace with its only rank done by all that there are to be.
func (t *OpenTrace) replicate(trace *dag.Trace) (*dag.Trace, error) {
	if n := len(trace.Ranks); n != 1 {
		return nil, fmt.Errorf("the trace has %d ranks, expected one that stands for all", n)
	}
	return compose.Replicate(trace, t.flags.Ranks)
}

// inFile is InFile for an error that may be about any of the trace's files.
func (t *OpenTrace) inFile(err error) error {
	for _, other := range t.later() {
		if strings.HasPrefix(err.Error(), other.name+":") {
			return err
		}
	}
	return InFile(t.Name, err)
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

// Digests returns what the provenance says of the input, file by file, where ReadOptions.Digest was set. It may be
// called once.
func (t *OpenTrace) Digests() ([]dag.Input, error) {
	first, err := t.in.Digest()
	if err != nil {
		return nil, err
	}
	digests := []dag.Input{first}
	for _, other := range t.later() {
		digest, err := other.Digest()
		if err != nil {
			return nil, err
		}
		digests = append(digests, digest)
	}
	if s, ok := t.Source.(interface{ Files() []string }); ok {
		for _, name := range s.Files() {
			digest, err := t.p.digestFile(name)
			if err != nil {
				return nil, err
			}
			digests = append(digests, digest)
		}
	}
	return digests, nil
}

// digestFile returns the digest of a file that a format has read by itself.
func (p *Program) digestFile(name string) (dag.Input, error) {
	in, err := p.Open(name, true, nil)
	if err != nil {
		return dag.Input{}, err
	}
	defer in.Close()
	return in.Digest()
}

// Generates reports whether the input describes a workload model, whose trace is generated while it is read.
func (t *OpenTrace) Generates() bool {
	return t.Source != nil && t.Format.Generates
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
	if t.Source != nil {
		t.Source.Close()
		t.Source = nil
	}
	if t.in != nil {
		t.in.Close()
		t.in = nil
	}
	for _, other := range t.later() {
		other.Close()
	}
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
		if r.Inputs, err = t.Digests(); err != nil {
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

	approx     bool // the default, said aloud
	vefVersion int
}

// Register adds the flags to the command. The help on -o is the program's.
func (f *WriteFlags) Register(p *Program, cmd *cobra.Command, outputUsage string) {
	flags := cmd.Flags()
	names := p.Formats.Writable().Names()
	flags.StringVarP(&f.Output, "output", "o", "", outputUsage)
	flags.StringVar(&f.To, "to", "", "output `format`: "+strings.Join(names, ", ")+
		" (default: as the output's name ends, else "+formats.Default+")")
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
	if err := to.refuse(losses); err != nil {
		return err
	}
	var err error
	if to.Format.WriteFiles != nil {
		err = p.writeFiles(to, t)
	} else {
		err = p.write(to, t.Ops(), func(w io.Writer, o format.WriteOptions) error { return to.Format.Write(w, t, o) })
	}
	if err != nil {
		return err
	}
	p.tell(losses, to)
	return nil
}

// WriteSource is WriteTrace for a trace that need not be in memory, and is not while it is written where the format
// takes it batch by batch.
func (p *Program) WriteSource(s dag.Source, to *Target) error {
	if to.Format.WriteSource == nil {
		t, err := dag.ReadAll(s)
		if err != nil {
			return err
		}
		return p.WriteTrace(t, to)
	}
	h, err := s.Header()
	if err != nil {
		return err
	}
	var losses []format.Loss
	err = p.write(to, h.Ops, func(w io.Writer, o format.WriteOptions) error {
		o.Losses = func(l []format.Loss) error {
			losses = l
			return to.refuse(losses)
		}
		return to.Format.WriteSource(w, s, o)
	})
	if err != nil {
		return err
	}
	p.tell(losses, to)
	return nil
}

// refuse returns an error if there are losses and there are to be none.
func (t *Target) refuse(losses []format.Loss) error {
	if len(losses) > 0 && t.Strict {
		return &lossError{t.Name(), losses}
	}
	return nil
}

// tell tells the user what was lost.
func (p *Program) tell(losses []format.Loss, to *Target) {
	for _, l := range losses {
		p.Info("%s: lost: %s", to.Name(), l)
	}
}

// write writes what the function writes, a trace of so many ops.
func (p *Program) write(to *Target, ops int64, write func(io.Writer, format.WriteOptions) error) error {
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
	err = write(w, to.options(p))
	if w.err != nil {
		return out.writeError(w.err)
	}
	if err != nil {
		return InFile(to.Name(), err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	p.Explain("%s: wrote %d ops as %s, %s, in %v", to.Name(), ops, to.Format.Name, units.FormatSize(w.n),
		time.Since(start).Round(time.Millisecond))
	return nil
}

// options returns what the format is told.
func (t *Target) options(p *Program) format.WriteOptions {
	return format.WriteOptions{Compat: t.Compat, Version: t.Version, Warn: p.Warn}
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
