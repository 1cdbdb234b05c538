// This file writes traces. It writes all files of a trace or none.

package tracefile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/disk"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// WriteOptions configures [Write] and [WriteSource]. The zero value selects the format by the file name's ending.
type WriteOptions struct {
	To     string         // name of the format; "": by the ending of the path, else format.Default
	Strict bool           // write nothing and return a *LossError if the format loses data
	Compat bool           // write the output of the format's reference program, including its bugs
	Own    format.Options // of the type that the format's WriteOptions creates; nil: the defaults

	Frugal bool // prefer little memory to the use of all processors, as under a small limit of memory

	// Numbered numbers the only file of a trace with one rank, too, in a format with many files per trace. Otherwise
	// that file has the name of the path if the path has an ending of the format.
	Numbered bool

	// Context ends writing early, with an error that wraps the context's cause; no file remains then. If nil, writing
	// cannot be cancelled.
	Context context.Context

	Stdout   io.Writer                         // writer for "-"; nil: standard output of the process
	Outputs  *Outputs                          // registers unfinished files; nil: a signal does not remove them
	Warn     func(message string, args ...any) // reports deviations that may surprise the user; nil: discards
	Info     func(message string, args ...any) // reports facts that need no action; nil: discards
	Progress func(bytes int64)                 // counts the bytes written; nil: not counted
}

// Written reports the result of writing a trace.
type Written struct {
	Format *format.Format
	Losses []format.Loss // data that the format lost
	Ops    int64
	Bytes  int64
	Files  int
}

// LossError reports that a trace was not written because the format would lose data.
type LossError struct {
	Name   string // output name
	Losses []format.Loss
}

func (e *LossError) Error() string {
	parts := make([]string, len(e.Losses))
	for i, l := range e.Losses {
		parts[i] = l.String()
	}
	return fmt.Sprintf("%s: not written in strict mode; the format loses %s", e.Name, strings.Join(parts, "; "))
}

// OutputFormat returns the format called name, or, if that is empty, the format with the ending of path. A path
// without an ending selects format.Default. An unknown name or ending is an [*OptionError].
func OutputFormat(formats format.List, name, path string) (*format.Format, error) {
	writable := formats.Writable()
	if name != "" {
		return named(writable, name, "to")
	}
	if found := writable.ForPath(path); found != nil {
		return found, nil
	}
	if err := checkEnding(writable, path); err != nil {
		return nil, &OptionError{Option: "output", Value: path, Err: err}
	}
	return named(writable, format.Default, "to")
}

// compressors are the programs that write files with these endings.
var compressors = map[string]string{".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}

// checkEnding returns an error if path has an ending that no format has. Devices, pipes and folders may have any name.
func checkEnding(writable format.List, path string) error {
	ending := filepath.Ext(path)
	if ending == "" || ending == "." || ending == filepath.Base(path) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if program := compressors[strings.ToLower(ending)]; program != "" {
		to := format.Default
		if f := writable.ForPath(strings.TrimSuffix(path, ending)); f != nil {
			to = f.Name
		}
		return fmt.Errorf("outputs are not compressed; compress it in a pipe, as in %q",
			fmt.Sprintf("... --to %s | %s > %s", to, program, path))
	}
	var known []string
	for _, f := range writable {
		known = append(known, f.Extensions...)
	}
	return fmt.Errorf("no format has the ending %s: expected %s, or a format named with --to", ending,
		strings.Join(known, ", "))
}

// Write writes the trace to path; "" and "-" are standard output. After an error, a file that existed before is
// unchanged and no new file remains.
func Write(formats format.List, path string, t *dag.Trace, o WriteOptions) (*Written, error) {
	w, err := newWriter(formats, path, o)
	if err != nil {
		return nil, err
	}
	if w.done.Format.WriteSource != nil { // its losses depend on the options
		return WriteSource(formats, path, dag.FromTrace(t), o)
	}
	w.done.Ops = t.Ops()
	if losses := w.done.Format.Losses; losses != nil && w.done.Format.WriteFiles == nil {
		w.done.Losses = losses(t)
	}
	if err := cmp.Or(par.Interrupted(o.Context), w.refuse()); err != nil {
		return nil, err
	}
	if w.done.Format.WriteFiles != nil {
		err = w.writeFiles(t)
	} else {
		err = w.write(func(out io.Writer, o format.WriteOptions) error { return w.done.Format.Write(out, t, o) })
	}
	if err != nil {
		return nil, err
	}
	return w.done, nil
}

// WriteSource is [Write] for a trace that need not fit in memory. It writes batch by batch if the format supports
// that.
func WriteSource(formats format.List, path string, s dag.Source, o WriteOptions) (*Written, error) {
	w, err := newWriter(formats, path, o)
	if err != nil {
		return nil, err
	}
	if o.Context != nil {
		s = dag.WithContext(o.Context, s)
	}
	if w.done.Format.WriteSource == nil {
		t, err := memory.ReadTrace(o.Context, s)
		if err != nil {
			return nil, err
		}
		return Write(formats, path, t, o)
	}
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	w.done.Ops = h.Ops
	err = w.write(func(out io.Writer, o format.WriteOptions) error {
		o.Losses = w.take
		return w.done.Format.WriteSource(out, s, o)
	})
	if err != nil {
		return nil, err
	}
	return w.done, nil
}

// WriteStream is [WriteSource] for a source of [Opened.Stream]. It calls read after the first pass over the trace and
// before the output is complete. read returns the source to write if a second pass is necessary; an error leaves no
// output.
func WriteStream(formats format.List, path string, s format.Stream, read func() (dag.Source, error),
	o WriteOptions) (*Written, error) {
	w, err := newWriter(formats, path, o)
	if err != nil {
		return nil, err
	}
	if w.done.Format.WriteOnce != nil && rewritable(path) {
		err := w.write(func(out io.Writer, o format.WriteOptions) (err error) {
			if o.Rewrite == nil { // the path names another file now
				return format.ErrTwice
			}
			o.Losses = func(losses []format.Loss) error {
				if _, err := read(); err != nil {
					return err
				}
				return w.take(losses)
			}
			w.done.Ops, err = w.done.Format.WriteOnce(out, s, o)
			return err
		})
		if !errors.Is(err, format.ErrTwice) {
			if err != nil {
				return nil, err
			}
			return w.done, nil
		}
	}
	if _, err := s.Header(); err != nil {
		return nil, err
	}
	described, err := read()
	if err != nil {
		return nil, err
	}
	return WriteSource(formats, path, described, o)
}

// take takes the losses of the format, and returns an error if they are not allowed.
func (w *writer) take(losses []format.Loss) error {
	w.done.Losses = losses
	return w.refuse()
}

// writer writes a trace to a path.
type writer struct {
	path string
	o    WriteOptions
	done *Written
}

func newWriter(formats format.List, path string, o WriteOptions) (*writer, error) {
	f, err := OutputFormat(formats, o.To, path)
	if err != nil {
		return nil, err
	}
	discard := func(string, ...any) {}
	if o.Warn == nil {
		o.Warn = discard
	}
	if o.Info == nil {
		o.Info = discard
	}
	if o.Outputs == nil {
		o.Outputs = new(Outputs)
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return &writer{path: path, o: o, done: &Written{Format: f, Files: 1}}, nil
}

// name returns the name of the output for messages.
func (w *writer) name() string {
	if isStdout(w.path) {
		return "<stdout>"
	}
	return w.path
}

// smallLimit is a limit of memory, in bytes, that writing on all processors may exceed.
const smallLimit = 256 << 20

// options returns the options for the format.
func (w *writer) options() format.WriteOptions {
	frugal := w.o.Frugal || memory.Limit(w.o.Context) < smallLimit
	return format.WriteOptions{Compat: w.o.Compat, Own: w.o.Own, Frugal: frugal, Warn: w.warn}
}

// warn reports a warning about the output.
func (w *writer) warn(message string, args ...any) {
	w.o.Warn("%s: "+message, append([]any{w.name()}, args...)...)
}

// refuse returns an error if the format loses data and o.Strict forbids that.
func (w *writer) refuse() error {
	if len(w.done.Losses) > 0 && w.o.Strict {
		return &LossError{w.name(), w.done.Losses}
	}
	return nil
}

// inFile adds the name of the output to an error; a [*LossError] already has it.
func (w *writer) inFile(err error) error {
	var loss *LossError
	if errors.As(err, &loss) {
		return err
	}
	return format.InFile(w.name(), err)
}

// create begins an output.
func (w *writer) create(path string) (*Output, error) {
	if isStdout(path) {
		return Stdout(w.o.Stdout), nil
	}
	return w.o.Outputs.Create(path)
}

// write writes one file with the function.
func (w *writer) write(write func(io.Writer, format.WriteOptions) error) error {
	out, err := w.create(w.path)
	if err != nil {
		return err
	}
	defer out.Close()
	counted := &countingWriter{w: out, o: &w.o}
	o := w.options()
	if out.Rewrites() {
		o.Rewrite = &rewriter{out, counted}
	}
	err = write(counted, o)
	if counted.err != nil {
		return out.writeError(counted.err)
	}
	if err != nil {
		return w.inFile(err)
	}
	w.done.Bytes = counted.n
	return out.Commit()
}

// writeFiles writes a trace in a format with many files per trace. The file of a trace with one rank has the name
// that the caller gives if that names a file: it has an ending of the format or is standard output.
func (w *writer) writeFiles(t *dag.Trace) error {
	f := w.done.Format
	out := &outputs{w: w, prefix: filesPrefix(w.path, f), format: f}
	switch stdout := isStdout(w.path); {
	case len(t.Ranks) == 1 && !w.o.Numbered && (stdout || out.prefix != w.path):
		if out.only = w.path; stdout {
			out.only = "-"
		}
	case stdout:
		return &ManyFilesError{f}
	}
	defer out.close()
	o := w.options()
	o.Losses = w.take
	err := f.WriteFiles(out.create, t, o)
	if out.err == nil {
		out.err = out.finish()
	}
	if out.err != nil {
		return out.err
	}
	if err != nil {
		return w.inFile(err)
	}
	w.done.Files, w.done.Bytes = len(out.done), out.size
	return out.commit()
}

// ManyFilesError reports that a trace with many files cannot be written to standard output.
type ManyFilesError struct{ Format *format.Format }

func (e *ManyFilesError) Error() string {
	return fmt.Sprintf("a %s trace has many files: name them, as in FOLDER/NAME%s", e.Format.Name,
		e.Format.Extensions[0])
}

// outputs are the files of a trace. commit gives them their names.
type outputs struct {
	w      *writer
	prefix string // common prefix of the names
	only   string // name of rank 0's file if there is no other rank and the caller names it; else ""
	format *format.Format

	done    []*Output // complete, except the last
	current *countingWriter
	size    int64 // bytes in the files before the last
	err     error // first error of creating or completing a file
}

// filesPrefix returns the common prefix of the file names of a trace written to path: path without the ending of
// the format, and without the rank number of rank 0's file.
func filesPrefix(path string, f *format.Format) string {
	ending := filepath.Ext(path)
	if !slices.Contains(f.Extensions, strings.ToLower(ending)) {
		return path
	}
	folder, base := filepath.Split(strings.TrimSuffix(path, ending))
	switch base {
	case "":
		return path
	case RankZero:
		return folder + base
	}
	return folder + strings.TrimSuffix(base, RankZero)
}

// create begins the next file, whose name ends with suffix.
func (o *outputs) create(suffix string) (io.Writer, error) {
	if err := o.finish(); err != nil {
		o.err = err
		return nil, err
	}
	name := o.prefix + suffix
	if o.only != "" {
		if strings.HasPrefix(suffix, RankZero) {
			name = o.only
		} else if isStdout(o.only) {
			o.w.warn("NAME%s, a further file of the trace, is not written; write to a named file to keep it", suffix)
			return io.Discard, nil
		}
	}
	out, err := o.w.create(name)
	if err != nil {
		o.err = err
		return nil, err
	}
	o.done = append(o.done, out)
	o.current = &countingWriter{w: out, o: &o.w.o}
	return o.current, nil
}

// finish completes the last file without giving it its name.
func (o *outputs) finish() error {
	if o.current == nil {
		return nil
	}
	out := o.done[len(o.done)-1]
	if o.current.err != nil {
		return out.writeError(o.current.err)
	}
	if err := out.finish(); err != nil {
		return err
	}
	o.size += o.current.n
	o.current, out.Writer = nil, nil
	return nil
}

// commit gives all files, which must be complete, their names, and removes the surplus files of a previous trace
// of the same name. After an error, all files are as before. Programs that write the same trace take turns.
func (o *outputs) commit() error {
	if len(o.done) == 0 || o.done[0].temp == "" { // standard output, devices and pipes
		return nil
	}
	unlock, err := lockFolder(filepath.Dir(o.done[0].final))
	if err != nil {
		return o.done[0].writeError(err)
	}
	defer unlock()
	stale, err := o.stale()
	if err != nil {
		return err
	}
	if err := o.w.o.Outputs.replace(o.done, stale); err != nil {
		return err
	}
	if n := len(stale); n > 0 {
		o.w.o.Info("%s: removed the surplus files of the previous trace: %s to %s, %d files", o.prefix,
			stale[0], stale[n-1], n)
	}
	return nil
}

// lockFolder waits until no other program replaces files in the folder. The lock ends with the process or with the
// returned function. Nothing is locked in folders that cannot be read.
func lockFolder(folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}, nil
	}
	if _, err := disk.Lock(f, true); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// stale returns files of a previous trace that readers would take for files of this one.
func (o *outputs) stale() ([]string, error) {
	if len(o.done) == 0 || o.format.Files == nil || o.only != "" {
		return nil, nil
	}
	folder, first := filepath.Split(o.done[0].name)
	names, err := plainNames(filepath.Clean(folder + "."))
	if err != nil {
		return nil, err
	}
	written := make(map[string]bool, len(o.done))
	for _, out := range o.done {
		name := filepath.Base(out.name)
		written[name] = true
		names = append(names, name)
	}
	slices.Sort(names)
	found, err := o.format.Files(first, slices.Compact(names))
	if err != nil {
		return nil, format.InFile(o.done[0].name, err)
	}
	found = slices.DeleteFunc(found, func(name string) bool { return written[name] })
	for i := range found {
		found[i] = folder + found[i]
	}
	return found, nil
}

// close removes uncommitted files.
func (o *outputs) close() {
	for _, out := range o.done {
		out.Close()
	}
}

// renameCause returns the error of a renaming without file names.
func renameCause(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return format.Cause(err)
}

// countingWriter counts written bytes and keeps the first error. It fails once the context has ended.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
	o   *WriteOptions
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.o.Progress(int64(n))
	if err == nil {
		err = par.Interrupted(c.o.Context)
	}
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// rewriter changes bytes of an output that were written.
type rewriter struct {
	out     *Output
	counted *countingWriter // keeps the first error
}

func (r *rewriter) WriteAt(b []byte, at int64) (int, error) {
	n, err := r.out.WriteAt(b, at)
	if r.counted.err == nil {
		r.counted.err = err
	}
	return n, err
}
