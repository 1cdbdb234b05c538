// This file writes outputs that are there complete or not at all.

package tracefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracedag/tracedag/formats/format"
)

const outputBuffer = 1 << 16

// Output is an output file or standard output. A file has its name only after Commit: until then it does not exist, or
// is the one that was there before.
type Output struct {
	*bufio.Writer
	name string // for messages

	set   *Outputs
	file  *os.File // nil: standard output
	temp  string   // the file's name until Commit; "": written in place, as devices and named pipes are
	final string
}

// Create begins the output file called path. The caller must call Close, and Commit before that if all went well.
func (s *Outputs) Create(path string) (*Output, error) {
	if err := CheckOutput(path); err != nil {
		return nil, err
	}
	o := &Output{name: path, set: s}
	if err := o.open(path); err != nil {
		return nil, format.FileErrorf(path, "creating: %w", format.Cause(err))
	}
	o.Writer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

// Stdout returns standard output as an output. Its errors are those of w.
func Stdout(w io.Writer) *Output {
	return &Output{Writer: bufio.NewWriterSize(w, outputBuffer), name: "<stdout>"}
}

// CheckOutput returns the error that Outputs.Create would return if it is known without creating anything, so that it
// precedes long work. A path that names a folder is an [*OptionError].
func CheckOutput(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &OptionError{Option: "output", Err: fmt.Errorf("%s is a directory, expected a file", path)}
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return format.FileErrorf(path, "creating: folder %s: %w", folder, format.Cause(err))
	} else if !info.IsDir() {
		return format.FileErrorf(path, "creating: %s is not a folder", folder)
	}
	return nil
}

// isStdout reports whether a path names standard output.
func isStdout(path string) bool {
	return path == "" || path == "-"
}

func (o *Output) open(path string) (err error) {
	o.final = path
	replaced, err := os.Stat(path)
	if err == nil {
		if !replaced.Mode().IsRegular() {
			o.file, err = os.OpenFile(path, os.O_WRONLY, 0)
			return err
		}
		if o.final, err = filepath.EvalSymlinks(path); err != nil { // what a link leads to is replaced, not the link
			return err
		}
	}
	folder := filepath.Dir(o.final)
	for {
		o.temp = o.set.name(folder)
		o.file, err = o.set.create(o.temp, func() (*os.File, error) {
			return os.OpenFile(o.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		})
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil && replaced != nil {
			err = o.file.Chmod(replaced.Mode().Perm()) // what was private stays so
		}
		return err
	}
}

// Commit finishes the output: what was written is all there is to be.
func (o *Output) Commit() error {
	if err := o.finish(); err != nil || o.temp == "" {
		return err
	}
	if err := o.set.rename(o.temp, o.final); err != nil {
		return o.writeError(renameCause(err))
	}
	o.temp = ""
	return nil
}

// finish writes what is left to write, but does not give a file its name.
func (o *Output) finish() error {
	if err := o.Flush(); err != nil {
		return o.writeError(err)
	}
	if o.file == nil {
		return nil
	}
	if err := o.file.Close(); err != nil {
		return o.writeError(err)
	}
	return nil
}

// Failed returns the error of a failed write with the output's name instead of that of a temporary file.
func (o *Output) Failed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return o.writeError(err)
	}
	return err
}

func (o *Output) writeError(err error) error {
	if o.file == nil {
		return err // standard output's, which names it
	}
	return format.FileErrorf(o.name, "writing: %w", format.Cause(err))
}

// Close removes the output unless it was committed.
func (o *Output) Close() {
	if o.file != nil {
		o.file.Close() // again, after Commit, which does no harm
	}
	if o.temp != "" {
		o.set.remove(o.temp)
	}
}
