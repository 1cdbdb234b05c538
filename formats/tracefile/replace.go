// This file replaces the files of a trace with many files.
//
// A marker beside the files says that they are being replaced. It is there before the first file changes and until
// the last one has, so that readers never take a mixture of two traces for one, even after a crash.

package tracefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

const (
	markerPrefix = ".tracedag-"
	markerSuffix = ".incomplete"
)

// marker returns the path of the marker for the trace whose first file is path.
func marker(path string) string {
	return filepath.Join(filepath.Dir(path), markerPrefix+filepath.Base(path)+markerSuffix)
}

// checkWhole returns an error if the files of a trace are being replaced, or if a program died while it replaced them.
func checkWhole(names []string) error {
	checked := map[string]bool{}
	for _, name := range names {
		folder := filepath.Dir(name)
		if name == "-" || checked[folder] {
			continue
		}
		checked[folder] = true
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // the files may be readable
		}
		for _, e := range entries {
			first, found := strings.CutPrefix(e.Name(), markerPrefix)
			first, marks := strings.CutSuffix(first, markerSuffix)
			if !found || !marks {
				continue
			}
			if path := filepath.Join(folder, first); slices.ContainsFunc(names, func(name string) bool {
				return filepath.Clean(name) == path
			}) {
				return format.FileErrorf(path, "expected all files of one trace, found files that a program is "+
					"replacing, or was when it died (%s); write the trace again", filepath.Join(folder, e.Name()))
			}
		}
	}
	return nil
}

// replacing is a replacement of files that may be undone.
type replacing struct {
	set  *Outputs
	undo []func() // in the order of the changes
	old  []string // temporary names of the old files
}

func (r *replacing) step() {
	if r.set.step != nil {
		r.set.step()
	}
}

// rename gives a file another name.
func (r *replacing) rename(from, to string) error {
	r.step()
	err := os.Rename(from, to)
	if err == nil {
		r.undo = append(r.undo, func() { os.Rename(to, from) })
	}
	return err
}

// keep gives the file called path, if there is one, a second name, so that it can be restored. On file systems without
// links it only has the second name then.
func (r *replacing) keep(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for {
		second := r.set.name(filepath.Dir(path))
		r.step()
		err := os.Link(path, second)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err == nil:
			r.undo = append(r.undo, func() {
				os.Rename(second, path) // does nothing if both are still the same file
				os.Remove(second)
			})
		default:
			if err := r.rename(path, second); err != nil {
				return err
			}
		}
		r.old = append(r.old, second)
		return nil
	}
}

// replace gives the outputs their names and removes the stale files. After an error, it undoes all changes.
func (s *Outputs) replace(done []*Output, stale []string) (err error) {
	s.mu.Lock() // held to the end, so that a signal handler waits
	defer s.mu.Unlock()
	first := done[0].final
	folder := filepath.Dir(first)
	r := &replacing{set: s}
	if len(done)+len(stale) > 1 {
		r.step()
		if err := s.mark(first); err != nil {
			return done[0].writeError(err)
		}
	}
	if err := s.replaceWith(r, done, stale); err != nil {
		for _, undo := range slices.Backward(r.undo) {
			undo()
		}
		os.Remove(marker(first))
		return err
	}
	r.step()
	if err := s.syncFolder(folder); err != nil {
		return done[0].writeError(err)
	}
	os.Remove(marker(first))
	for _, path := range r.old {
		r.step()
		os.Remove(path)
	}
	for _, out := range done {
		delete(s.paths, out.temp)
		out.temp = ""
	}
	if err := s.syncFolder(folder); err != nil {
		return done[0].writeError(err)
	}
	return nil
}

// mark writes the marker of the trace whose first file is path.
func (s *Outputs) mark(path string) error {
	if err := os.WriteFile(marker(path), nil, 0o666); err != nil {
		return err
	}
	return s.syncFolder(filepath.Dir(path))
}

func (s *Outputs) replaceWith(r *replacing, done []*Output, stale []string) error {
	for _, out := range done {
		if out.temp == "" {
			continue
		}
		if err := r.keep(out.final); err != nil {
			return out.writeError(renameCause(err))
		}
		if err := r.rename(out.temp, out.final); err != nil {
			return out.writeError(renameCause(err))
		}
	}
	for _, path := range stale {
		if err := r.keep(path); err != nil {
			return format.FileErrorf(path, "removing: %w", renameCause(err))
		}
		r.step()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return format.FileErrorf(path, "removing: %w", renameCause(err))
		}
	}
	return nil
}
