// Package profile measures a program for its developers: where it spends time and memory.
package profile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
)

// Output is a file written atomically: Commit makes it visible, Close without Commit discards it.
type Output interface {
	io.Writer
	Commit() error
	Close()
}

// While profiles work; see [Start].
func While(create func(path string) (Output, error), path string, work func() error) error {
	stop, err := Start(create, path)
	if err != nil {
		return err
	}
	return errors.Join(work(), stop())
}

// Start starts a profile of this process in the format of go tool pprof: of CPU time or, if the name of the file
// begins with mem, of the live heap at the end. stop writes it. Without a path, both do nothing.
func Start(create func(path string) (Output, error), path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	out, err := create(path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(filepath.Base(path), "mem") {
		return func() error {
			defer out.Close()
			runtime.GC() // garbage is not live
			if err := pprof.WriteHeapProfile(out); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return out.Commit()
		}, nil
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		out.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() error {
		defer out.Close()
		pprof.StopCPUProfile()
		return out.Commit()
	}, nil
}
