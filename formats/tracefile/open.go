// Package tracefile opens, reads and writes trace files: it decompresses inputs, detects their format, finds the
// other files of a trace with many files, and writes outputs completely or not at all.
//
// It imports no format. Callers pass the list of formats that they support; package formats passes all of them.
package tracefile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// Options configures [Open] and [Read]. The zero value detects the format and discards warnings.
type Options struct {
	From    string // name of the format; "": detected from the content
	Compat  bool   // accept the inputs of the format's reference program, including its bugs
	Lenient bool   // warn about and skip errors that allow it

	// Ranks is the number of ranks that repeat the file of rank 0, the only file that is read; 0: each rank has a
	// file.
	Ranks        int
	CheckedComms bool // the caller reports undefined communicators itself

	// Context ends Open, Read and reading from Opened.Source early, with an error that wraps the context's cause. If
	// nil, reading cannot be cancelled.
	Context context.Context
	Stdin   io.Reader                         // reader for "-"; nil: standard input of the process
	Digest  bool                              // compute the digests that Opened.Inputs returns
	Warn    func(message string, args ...any) // reports deviations that may surprise the user; nil: discards

	// Progress receives the total size of the inputs in bytes, as stored, or -1 if it is unknown. The function that
	// it returns counts the bytes read; several goroutines may call it. If nil, nothing is counted.
	Progress func(total int64) (add func(n int64))

	// Own returns the options for the detected format and the input called name. If nil, the defaults apply.
	Own func(f *format.Format, name string) (format.Options, error)

	Outputs *Outputs // registers unfinished files that options name; nil: a signal does not remove them
}

// Opened is an open trace of a known format that is not read yet.
type Opened struct {
	Format *format.Format
	Name   string     // input name for messages
	Source dag.Source // reads the trace batch by batch; nil if the format cannot. Close closes it

	o       Options
	in      *Input
	opener  *opener
	others  []*laterInput // files after the first
	beside  []*laterInput // files that options name
	changed func() bool   // whether the trace has another number of files now; nil if the caller named all
	opened  dag.Source    // source that the format returned; nil if it cannot
	options format.ReadOptions
}

// TooManyFilesError reports several files for a format with one file per trace.
type TooManyFilesError struct {
	Files  int
	Format *format.Format
}

func (e *TooManyFilesError) Error() string {
	return fmt.Sprintf("a %s trace is one file, found %d files", e.Format.Name, e.Files)
}

// Open opens one trace from the named files. A single name is a file, "-" for standard input, or, for a format
// with many files per trace, their folder, the file of rank 0, or the part of the name before the rank number. The
// caller must close the result. An error about a file is a [*format.SyntaxError], [*format.FileError] or
// [*fs.PathError]; an error about an option is an [*OptionError].
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
		return nil, errors.New("expected the name of a trace, found none")
	}
	if err := cancelled(o.Context); err != nil {
		return nil, err
	}
	given := names[0]
	asked := given
	single := len(names) == 1
	if single {
		given = firstOfPrefix(formats, given, o.From)
		if names, err = filesOfFolder(formats, given, o.From, t.opener); err != nil {
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
	if t.in.damage != nil && !t.Format.Survives {
		return nil, t.in.damage
	}
	if names, err = t.files(names, given, given != asked); err != nil {
		return nil, err
	}
	if t.Format.Files != nil {
		if err := checkWhole(names); err != nil {
			return nil, err
		}
		if single && o.Ranks == 0 {
			t.changed = func() bool {
				now, err := filesOfFolder(formats, given, o.From, t.opener)
				if err == nil && len(now) == 1 && now[0] == given {
					now, err = siblings(given, t.Format)
				}
				return err != nil || len(now) != len(names)
			}
		}
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
		if source != nil {
			if err := t.in.finish(o.Context); err != nil {
				return nil, t.failed(err)
			}
		}
		if o.Context != nil && t.Generates() { // its inputs are read already
			t.Source = dag.WithContext(o.Context, source)
		}
	}
	return t, nil
}

// files returns all files of the trace that includes the named ones. given is the first name; found reports that
// it differs from the name that the caller gave.
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
			t.o.Warn("%s: %v: read as a trace of one rank", given, missing)
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
	} else if t.Generates() {
		trace, err = memory.ReadTrace(t.o.Context, t.Source)
	} else {
		trace, err = dag.ReadAll(t.Source) // checks its need for memory
	}
	if err == nil {
		err = t.finish()
	}
	if err == nil && t.Format.Paired && t.o.Ranks == 0 {
		t.warnEnds(dag.Disagreement(trace))
	}
	if err == nil && t.o.Ranks > 0 && len(trace.Ranks) != t.o.Ranks {
		trace, err = t.replicate(trace)
	}
	if err != nil {
		return nil, t.failed(err)
	}
	return trace, nil
}

// warnEnds warns about ends of messages that disagree; "": none do.
func (t *Opened) warnEnds(disagreement string) {
	if disagreement != "" {
		t.o.Warn("%s: %s; tracecat --check lists ops without a partner", t.Name, disagreement)
	}
}

// Stream returns a source for a conversion that need not have the trace in memory, of a trace without Source. It is nil
// if the trace has to be read as a whole. Call Streamed after its first pass, instead of Read.
func (t *Opened) Stream() (format.Stream, error) {
	if t.Source != nil || t.Format.Stream == nil || t.o.Ranks > 0 || len(t.others) > 0 {
		return nil, nil
	}
	s, err := t.Format.Stream(&t.in.Input, t.options)
	return s, t.failed(err)
}

// Streamed makes the checks of Read that follow reading.
func (t *Opened) Streamed(s format.Stream) error {
	err := t.finish()
	if err == nil && t.Format.Paired {
		var what string
		if what, err = s.Disagreement(); err == nil {
			t.warnEnds(what)
		}
	}
	return t.failed(err)
}

// survived reports whether an error is damage that the reader reported.
func (t *Opened) survived(err error) bool {
	var damaged *format.DamagedError
	return t.Format.Survives && errors.As(err, &damaged)
}

// finish verifies the rest of the inputs. Readers stop at the end of a trace's content, which may precede that of the
// input.
func (t *Opened) finish() error {
	if len(t.in.Head) == 0 { // the reader gives the better error, if it does
		return t.in.empty()
	}
	if err := t.in.finish(t.o.Context); err != nil && !t.survived(err) {
		return err
	}
	cut, count := "", 0
	if t.in.endsInNumber() {
		cut, count = t.in.Name, 1
	}
	for _, other := range t.later() {
		if err := other.finish(); err != nil && !t.survived(err) {
			return err
		}
		if other.number {
			cut, count = cmp.Or(cut, other.name), count+1
		}
	}
	if len(t.others) > 0 && (t.in.replaced() || t.changed != nil && t.changed()) {
		return format.FileErrorf(t.in.Name, "expected the same files from begin to end, found that this one was "+
			"replaced or removed while the trace was read; read it again")
	}
	if t.Format.Binary {
		return nil
	}
	const message = "%s: the last line ends in a number and has no line end; the number may be cut"
	if count > 1 {
		t.o.Warn(message+" (%d files in all)", cut, count)
	} else if count == 1 {
		t.o.Warn(message, cut)
	}
	return nil
}

// failed returns the error of an input: the cause if reading was cancelled, else err. It adds the trace's name
// unless the error names a file.
func (t *Opened) failed(err error) error {
	if err == nil {
		return nil
	}
	if ended := cancelled(t.o.Context); ended != nil {
		err = ended
	}
	return format.InFile(t.Name, err)
}

// replicate copies the only rank of the trace to all ranks.
func (t *Opened) replicate(trace *dag.Trace) (*dag.Trace, error) {
	if n := len(trace.Ranks); n != 1 {
		return nil, fmt.Errorf("expected a trace with one rank, to copy to all ranks, found %d ranks", n)
	}
	if err := memory.CheckRanks(t.o.Context, int64(t.o.Ranks)); err != nil {
		return nil, err
	}
	return compose.Replicate(trace, t.o.Ranks)
}

// Inputs returns the name and digest of each file read, for the provenance. It needs Options.Digest. Call it at
// most once, after reading the trace.
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

// OwnFiles returns the number of files of the trace itself, which precede in Inputs those that it or an option names.
func (t *Opened) OwnFiles() int { return 1 + len(t.others) }

// later returns the files after the first, without unread files that options name.
func (t *Opened) later() []*laterInput {
	later := t.others[:len(t.others):len(t.others)]
	for _, in := range t.beside {
		if in.opened {
			later = append(later, in)
		}
	}
	return later
}

// digestFile returns the digest of a file that a format opened by itself.
func (t *Opened) digestFile(name string) (dag.Input, error) {
	o := opener{ctx: t.o.Context, stdin: t.o.Stdin, digest: true}
	in, err := o.open(name)
	if err != nil {
		return dag.Input{}, err
	}
	defer in.Close()
	return in.Digest()
}

// Unverified returns why the contents of the file are not checked against a digest, although those of other files of
// the format are; "" if they are, or if the format has no digest.
func (t *Opened) Unverified() string {
	if s, ok := t.opened.(interface{ Unverified() string }); ok {
		return s.Unverified()
	}
	return ""
}

// Generates reports whether the input describes a workload model, whose trace is generated during reading.
func (t *Opened) Generates() bool {
	return t.Source != nil && t.Format.Generates
}

// Streams reports whether Source may replace Read: it reads the trace batch by batch, and Read would make no checks
// beyond, such as those of the ends of messages and of texts.
func (t *Opened) Streams() bool {
	return t.Source != nil && (t.Format.Generates || t.Format.Binary && !t.Format.Paired)
}

// IsFile reports whether the path names a file of the trace.
func (t *Opened) IsFile(path string) bool {
	if t.in.file == nil {
		return false
	}
	opened, err := t.in.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// Close closes the inputs. Further calls do nothing.
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

// Read reads the trace from the input called name; [Open] lists the accepted names.
func Read(formats format.List, name string, o Options) (*dag.Trace, error) {
	t, err := Open(formats, []string{name}, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Read()
}
