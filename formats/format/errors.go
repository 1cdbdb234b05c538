package format

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tracedag/tracedag/internal/conf"
)

// FileError is an error about a file. Its message begins with the file's name.
type FileError struct {
	File string // as messages name it
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the error without the file.
func (e *FileError) Unwrap() error { return e.Err }

// FileErrorf returns a [*FileError] about a file. It formats the message as [fmt.Errorf] does.
func FileErrorf(file, message string, args ...any) error {
	return &FileError{file, fmt.Errorf(message, args...)}
}

// InFile returns err as a [*FileError], or err itself if it already names a file. A nil error stays nil.
func InFile(file string, err error) error {
	if err == nil || namesFile(err) {
		return err
	}
	return &FileError{file, err}
}

// namesFile reports whether an error names a file.
func namesFile(err error) bool {
	var syntax *SyntaxError
	var path *fs.PathError
	var file *FileError
	var conf *conf.Error
	return errors.As(err, &syntax) || errors.As(err, &path) || errors.As(err, &file) || errors.As(err, &conf)
}

// Cause returns the underlying error of an [*fs.PathError], and any other error unchanged.
func Cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// DamagedError reports compressed data that is damaged or truncated.
type DamagedError struct{ Err error }

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DamagedError) Unwrap() error { return e.Err }
