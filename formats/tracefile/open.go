// Package tracefile opens, reads and writes the files of traces: it decompresses inputs, detects their format, finds
// the other files of a trace that is many files, and writes outputs that are there complete or not at all.
//
// It imports no format. Callers pass the list of the formats that they support; package formats passes all of them.
package tracefile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
)

// Options says how to open a trace. The zero value detects the format and discards warnings.
type Options struct {
	From    string // name of the format; "": as the content shows
	Compat  bool   // accept what the format's reference program accepts, its mistakes included
	Lenient bool   // continue after what can be skipped, with a warning

	// Ranks is the number of ranks that do what the file of rank 0 has, the only one that is read; 0: there is a file
	// for each rank.
	Ranks        int
	CheckedComms bool // the caller reports undefined communicators itself

	// Context ends Open, Read and reading from Opened.Source early, with an error that wraps the context's cause. nil:
	// never.
	Context context.Context
	Stdin   io.Reader                         // what "-" names; nil: that of the process
	Digest  bool                              // compute what Opened.Inputs returns
	Warn    func(message string, args ...any) // reports deviations that the user may not expect; nil: discards

	// Progress is told the size of all inputs in bytes, as stored, -1 if it is not known. The function that it returns
	// counts the bytes that are read; it may be called by several goroutines. nil: nobody counts.
	Progress func(total int64) (add func(n int64))

	// Own returns the own options of the format that was found, for the input of a name; nil: the format's defaults.
	Own func(f *format.Format, name string) (format.Options, error)

	Outputs *Outputs // registers unfinished files that options name; nil: nobody removes them on a signal
}

// Opened is a trace that is open and in a known format, but not read.
type Opened struct {
	Format *format.Format
	Name   string     // of the input, for messages
	Source dag.Source // reads the trace batch by batch; nil if the format cannot. Close closes it

	o       Options
	in      *Input
	opener  *opener
	others  []*laterInput // the files after the first, if the trace has many
	beside  []*laterInput // files that options name
	opened  dag.Source    // what the format returned; nil if it cannot
	options format.ReadOptions
}

// TooManyFilesError says that several files were named for a format whose traces are one file.
type TooManyFilesError struct {
	Files  int
	Format *format.Format
}

func (e *TooManyFilesError) Error() string {
	return fmt.Sprintf("a trace in %s is one file, found %d", e.Format.Name, e.Files)
}

// Open opens the trace that the named files are together. A single name is a file, "-" for standard input, or of a
// trace that is many files their folder, the file of rank 0, or what comes before its number. The caller must close the
// result. An error about a file is a [*format.SyntaxError], [*format.FileError] or [*fs.PathError]; one about an option
// is an [*OptionError].
func Open(formats format.List, names []string, o Options) (_ *Opened, err error) {
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	t := &Opened{o: o, opener: o.opener()}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if len(names) == 0 {
		return nil, errors.New("no file is named")
	}
	if err := cancelled(o.Context); err != nil {
		return nil, err
	}
	given := names[0]
	asked := given
	if len(names) == 1 {
		given = firstOfPrefix(formats, given, o.From)
		if names, err = filesOfFolder(formats, given, o.From); err != nil {
			return nil, err
		}
	}
	if o.Progress != nil {
		t.opener.add = o.Progress(TotalSize(names, o.Stdin))
	}
	t.Name = names[0]
	if t.in, err = t.opener.open(names[0]); err != nil {
		return nil, t.failed(err)
	}
	t.Name = t.in.Name
	if t.Format, err = Detect(formats, t.in, o.From); err != nil {
		return nil, err
	}
	if names, err = t.files(names, given, given != asked); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == t.in.name || o.Ranks > 0 && sameButDigits(name, t.in.name) {
			continue
		}
		t.others = append(t.others, &laterInput{o: t.opener, name: name})
	}
	if err := t.configure(); err != nil {
		return nil, err
	}
	if t.Format.Open != nil && o.Ranks == 0 {
		source, err := t.Format.Open(&t.in.Input, t.options)
		if err != nil {
			return nil, t.failed(err)
		}
		t.Source, t.opened = source, source
		if o.Context != nil && t.Generates() { // its inputs are read already
			t.Source = dag.WithContext(o.Context, source)
		}
	}
	return t, nil
}

// files returns the files of the trace of which those of the names are some. given is the name of the first; found says
// that it is not the one that the caller named.
func (t *Opened) files(names []string, given string, found bool) ([]string, error) {
	switch {
	case t.Format.Files != nil && len(names) == 1 && given == names[0] && given != "-":
		files, err := siblings(given, t.Format)
		if err == nil {
			return files, nil
		}
		var missing *format.MissingError
		if !errors.As(err, &missing) || found && t.o.Ranks == 0 {
			return nil, err
		}
		if t.o.Ranks == 0 {
			t.o.Warn("%s: read alone, as a trace of one rank, for %v", given, missing)
		}
		return []string{given}, nil
	case t.Format.Files == nil && len(names) > 1:
		return nil, &TooManyFilesError{len(names), t.Format}
	}
	return names, nil
}

// configure sets the options of the format.
func (t *Opened) configure() error {
	t.options = format.ReadOptions{
		Compat: t.o.Compat, Lenient: t.o.Lenient, Ranks: t.o.Ranks, CheckedComms: t.o.CheckedComms, Warn: t.o.Warn,
		Context: t.o.Context, OpenFile: t.openFile, WriteFile: t.writeFile,
	}
	if t.o.Own == nil {
		return nil
	}
	var err error
	t.options.Own, err = t.o.Own(t.Format, t.Name)
	return err
}

// writeFile writes a file beside the trace.
func (t *Opened) writeFile(name string, content []byte) error {
	outputs := t.o.Outputs
	if outputs == nil {
		outputs = new(Outputs)
	}
	out, err := outputs.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(content); err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}

// openFile returns an input beside the trace.
func (t *Opened) openFile(name string) *format.Input {
	in := &laterInput{o: t.opener, name: name}
	t.beside = append(t.beside, in)
	return &format.Input{Name: name, Reader: in}
}

// inputs returns the files of the trace.
func (t *Opened) inputs() []*format.Input {
	inputs := []*format.Input{&t.in.Input}
	for _, other := range t.others {
		inputs = append(inputs, &format.Input{Name: other.name, Reader: other})
	}
	return inputs
}

// Read reads the whole trace.
func (t *Opened) Read() (trace *dag.Trace, err error) {
	if t.Source == nil {
		trace, err = t.Format.Read(t.inputs(), t.options)
	} else {
		trace, err = dag.ReadAll(t.Source)
	}
	if err == nil && t.o.Ranks > 0 && len(trace.Ranks) != t.o.Ranks {
		trace, err = t.replicate(trace)
	}
	if err != nil {
		return nil, t.failed(err)
	}
	return trace, nil
}

// failed returns the error of an input: the reason if reading was cancelled, and else err, which gets the trace's name
// unless it names a file already.
func (t *Opened) failed(err error) error {
	if ended := cancelled(t.o.Context); ended != nil {
		err = ended
	}
	return format.InFile(t.Name, err)
}

// replicate returns the trace with its only rank done by all that there are to be.
func (t *Opened) replicate(trace *dag.Trace) (*dag.Trace, error) {
	if n := len(trace.Ranks); n != 1 {
		return nil, fmt.Errorf("the trace has %d ranks, expected one that stands for all", n)
	}
	return compose.Replicate(trace, t.o.Ranks)
}

// Inputs returns the name and digest of each file that was read, for the provenance. It needs Options.Digest and may be
// called once, after the trace was read.
func (t *Opened) Inputs() ([]dag.Input, error) {
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
	if s, ok := t.opened.(interface{ Files() []string }); ok {
		for _, name := range s.Files() {
			digest, err := t.digestFile(name)
			if err != nil {
				return nil, err
			}
			digests = append(digests, digest)
		}
	}
	return digests, nil
}

// later returns the files after the first, without those that options name and the format did not read.
func (t *Opened) later() []*laterInput {
	later := t.others[:len(t.others):len(t.others)]
	for _, in := range t.beside {
		if in.opened {
			later = append(later, in)
		}
	}
	return later
}

// digestFile returns the digest of a file that a format has read by itself.
func (t *Opened) digestFile(name string) (dag.Input, error) {
	o := opener{ctx: t.o.Context, stdin: t.o.Stdin, digest: true}
	in, err := o.open(name)
	if err != nil {
		return dag.Input{}, err
	}
	defer in.Close()
	return in.Digest()
}

// Generates reports whether the input describes a workload model, whose trace is generated while it is read.
func (t *Opened) Generates() bool {
	return t.Source != nil && t.Format.Generates
}

// Close closes the inputs. It may be called again.
func (t *Opened) Close() {
	if t.Source != nil {
		t.Source.Close()
		t.Source, t.opened = nil, nil
	}
	if t.in != nil {
		t.in.Close()
		t.in = nil
	}
	for _, other := range t.later() {
		other.Close()
	}
}

// Read reads the trace in the file called name, as [Open] names it.
func Read(formats format.List, name string, o Options) (*dag.Trace, error) {
	t, err := Open(formats, []string{name}, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Read()
}
