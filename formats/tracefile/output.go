// This file writes output files completely or not at all.

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
	"github.com/tracedag/tracedag/internal/disk"
)

const outputBuffer = 1 << 16

// Output is an output file or standard output. Commit gives a file its name; before that, the name is unused or
// belongs to the previous file.
type Output struct {
	*bufio.Writer
	name string // for messages

	set   *Outputs
	file  *os.File // nil: standard output
	temp  string   // the file's name until Commit; "": written in place, as devices and named pipes are
	final string
}

// Create begins the output file called path. The caller must call Close, and before that Commit on success.
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

// CheckOutput returns the error that Outputs.Create would return, as far as it can tell without creating a file.
// Call it before long work. If path names a directory, the error is an [*OptionError].
func CheckOutput(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &OptionError{Option: "output", Err: fmt.Errorf("expected an output file, found the directory %s",
			path)}
	}
	final, err := linkTarget(path)
	if err != nil {
		return format.FileErrorf(path, "creating: %w", err)
	}
	folder := filepath.Dir(final)
	if info, err := os.Stat(folder); err != nil {
		return format.FileErrorf(path, "creating: directory %s: %w", folder, format.Cause(err))
	} else if !info.IsDir() {
		return format.FileErrorf(path, "creating: %s is not a directory", folder)
	}
	return nil
}

// linkTarget returns the path that the symbolic link called path points to, through further links, or path itself if it
// is no link. The target need not exist.
func linkTarget(path string) (string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	const most = 40 // as Linux
	for range most {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", format.Cause(err)
			}
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return "", fmt.Errorf("more than %d symbolic links", most)
}

// isStdout reports whether a path names standard output.
func isStdout(path string) bool {
	return path == "" || path == "-"
}

func (o *Output) open(path string) (err error) {
	replaced, err := os.Stat(path)
	if err == nil && !replaced.Mode().IsRegular() {
		o.final = path
		o.file, err = os.OpenFile(path, os.O_WRONLY, 0)
		return err
	}
	if o.final, err = linkTarget(path); err != nil { // replace the target of a link, not the link
		return err
	}
	folder := filepath.Dir(o.final)
	o.set.sweep(folder)
	for {
		o.temp = o.set.name(folder)
		o.file, err = o.set.create(o.temp, func() (*os.File, error) {
			return os.OpenFile(o.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		})
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil && replaced != nil {
			err = o.file.Chmod(replaced.Mode().Perm()) // keep private files private
		}
		return err
	}
}

// rewritable reports whether [Output.Rewrites] holds for an output called path. It opens nothing: a program that reads
// a named pipe sees the end of the file once a writer closes it.
func rewritable(path string) bool {
	info, err := os.Stat(path)
	return !isStdout(path) && (err != nil || info.Mode().IsRegular())
}

// Rewrites reports whether WriteAt can change written bytes: nobody sees the file before Commit.
func (o *Output) Rewrites() bool { return o.temp != "" }

// WriteAt overwrites written bytes at an offset.
func (o *Output) WriteAt(b []byte, at int64) (int, error) {
	if err := o.Flush(); err != nil {
		return 0, err
	}
	return o.file.WriteAt(b, at)
}

// Commit completes the output and gives it its name.
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

// finish flushes and closes the file, but does not give it its name.
func (o *Output) finish() error {
	if err := o.Flush(); err != nil {
		return o.writeError(err)
	}
	if o.file == nil {
		return nil
	}
	if o.temp != "" && !o.set.NoSync {
		if err := disk.Supported(o.file.Sync()); err != nil {
			return o.writeError(err)
		}
	}
	if err := o.file.Close(); err != nil {
		return o.writeError(err)
	}
	return nil
}

// Failed returns the error of a failed write with the output's name in place of the temporary file's name.
func (o *Output) Failed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return o.writeError(err)
	}
	return err
}

func (o *Output) writeError(err error) error {
	if o.file == nil {
		return err // the error of standard output names it
	}
	return format.FileErrorf(o.name, "writing: %w", format.Cause(err))
}

// Close removes the output unless it was committed.
func (o *Output) Close() {
	if o.file != nil {
		o.file.Close() // harmless after Commit
	}
	if o.temp != "" {
		o.set.remove(o.temp)
	}
}
