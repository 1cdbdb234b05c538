// This file writes outputs that are there whole or not at all.

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const outputBuffer = 1 << 16

// Output is an output file or standard output. A file has its name only after Commit: until then it does not exist, or
// is what it was before.
type Output struct {
	*bufio.Writer
	name string // for messages

	p     *Program
	file  *os.File // nil: standard output
	temp  string   // the file's name until Commit; "": written in place, as devices and named pipes are
	final string
}

// Create begins the output called path, "" or "-" for standard output, which must not be a terminal where binary is
// set. The caller must call Close, and Commit before if all went well.
func (p *Program) Create(path string, binary bool) (*Output, error) {
	if err := p.CheckOutput(path, binary); err != nil {
		return nil, err
	}
	if isStdout(path) {
		return &Output{Writer: bufio.NewWriterSize(p.stdout, outputBuffer), name: "<stdout>", p: p}, nil
	}
	o := &Output{name: path, p: p}
	if err := o.open(path); err != nil {
		return nil, fmt.Errorf("%s: creating: %w", path, cause(err))
	}
	o.Writer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

// CheckOutput returns the error that Create would return if that can be known without creating anything, so that it
// comes before long work.
func (p *Program) CheckOutput(path string, binary bool) error {
	if isStdout(path) {
		if binary && isTerminal(p.Stdout) {
			return Usagef("not writing binary data to a terminal: name a file with -o, or pipe it on")
		}
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Usagef("-o: %s is a directory, expected a file", path)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return fmt.Errorf("%s: creating: folder %s: %w", path, folder, cause(err))
	} else if !info.IsDir() {
		return fmt.Errorf("%s: creating: %s is not a folder", path, folder)
	}
	return nil
}

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
		o.temp = o.p.temps.name(folder)
		o.file, err = o.p.temps.create(o.temp, func() (*os.File, error) {
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
	if err := o.p.temps.rename(o.temp, o.final); err != nil {
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
	return fmt.Errorf("%s: writing: %w", o.name, cause(err))
}

// Close removes the output unless it was committed.
func (o *Output) Close() {
	if o.file != nil {
		o.file.Close() // again, after Commit, which does no harm
	}
	if o.temp != "" {
		o.p.temps.remove(o.temp)
	}
}
