// Package results keeps the results of a study in a folder that several processes fill at the same time: a file per run
// or packs of runs, tables of messages, wall-clock times, and claims of runs in progress. docs/reference/studies.md
// describes it.
package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/internal/disk"
)

// Folder is the folder of a study's results: study.yml, a copy of the study file; runs/RR/RUN.json, a file per run, or
// packs, files of up to 1,000 runs; traces, those that the study generates; flows, tables of messages.
//
// The file of a run is a line of JSON, as simulate --json prints it but without its place in the study, and a line with
// the SHA-256 of the first. All files appear under their names when they are complete, so killing a process at any
// moment leaves whole files only. Processes that run the same run write the same bytes.
type Folder string

// Traces returns the folder of generated traces.
func (f Folder) Traces() string { return filepath.Join(string(f), "traces") }

// path returns the name of the file of a run.
func (f Folder) path(id string) string {
	return filepath.Join(string(f), "runs", id[:2], id+".json")
}

// temporary makes names of files to rename different.
var temporary atomic.Int64

// createBeside creates a file to write beside the one that will replace it.
func createBeside(name string) (*os.File, error) {
	folder, base := filepath.Split(name)
	for {
		beside := fmt.Sprintf("%s.%s.%d-%d", folder, base, os.Getpid(), temporary.Add(1))
		out, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		// A killed process of the same number, as in containers, may have left one.
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return out, err
		}
	}
}

// replace writes a file that appears complete or not at all. It creates the folder if necessary.
func replace(name string, text []byte) error {
	out, err := createBeside(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o777); err == nil {
			out, err = createBeside(name)
		}
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(out.Name(), name)
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return err
}

// Replace writes a file of the folder, which appears complete or not at all.
func (f Folder) Replace(name string, text []byte) error {
	return replace(filepath.Join(string(f), name), text)
}

// Write stores the line of a run, without its place in the study, in a file.
func (f Folder) Write(id string, line []byte, status Status) error {
	return replace(f.path(id), appendRecord(nil, line, id, status))
}

// Clean removes files that killed processes left unfinished. It spares files of the last hour, which may be of a
// process that runs.
func (f Folder) Clean() {
	for _, pattern := range []string{"runs/*/.*.json.*", "packs/.pack.*", "timing/.*.csv.*", "runs/*/*.claim",
		"runs/.clock.*"} {
		left, _ := filepath.Glob(filepath.Join(string(f), filepath.FromSlash(pattern)))
		for _, name := range left {
			if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
				os.Remove(name)
			}
		}
	}
}

// Lock gives the process the only right to run a shard, until it ends. If another process has it, the error names that.
func (f Folder) Lock(shard string) (unlock func(), err error) {
	folder := filepath.Join(string(f), "locks")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, shard+".lock")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	mine, err := disk.Lock(file, false) // without locks, two processes may do the same runs, and write equal files
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: locking: %w", name, err)
	}
	if !mine {
		holder, _ := os.ReadFile(name)
		file.Close()
		return nil, &LockedError{name, strings.TrimSpace(string(holder))}
	}
	host, _ := os.Hostname()
	file.Truncate(0)
	fmt.Fprintf(file, "process %d on %s\n", os.Getpid(), host)
	return func() { file.Close() }, nil
}

// LockedError is the error of a shard that another process runs.
type LockedError struct{ File, Holder string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: %s runs this shard; wait for it, or run another shard", e.File, e.Holder)
}
