// This file keeps track of unfinished outputs.

package tracefile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Outputs is the set of a program's unfinished output files, so that a signal handler can remove them. The zero
// value is an empty set. Its methods are safe for concurrent use.
type Outputs struct {
	mu    sync.Mutex
	paths map[string]bool
	names atomic.Int64 // number of names made so far
}

// name returns a path in a folder that no other output of the program has or had.
func (s *Outputs) name(folder string) string {
	return filepath.Join(folder, fmt.Sprintf(".tracedag-%d-%d.tmp", os.Getpid(), s.names.Add(1)-1))
}

// create opens a file with the function create, which must fail if the file exists.
func (s *Outputs) create(path string, create func() (*os.File, error)) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := create()
	if err != nil {
		return nil, err
	}
	if s.paths == nil {
		s.paths = map[string]bool{}
	}
	s.paths[path] = true
	return f, nil
}

// rename gives the file its final name.
func (s *Outputs) rename(path, final string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Rename(path, final); err != nil {
		return err
	}
	delete(s.paths, path)
	return nil
}

// remove removes the file if it is unfinished.
func (s *Outputs) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paths[path] {
		os.Remove(path)
		delete(s.paths, path)
	}
}

// RemoveAll removes the unfinished files.
func (s *Outputs) RemoveAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeAllLocked()
}

// Stop removes the unfinished files of a process that is about to exit. Afterwards, calls that begin or finish an
// output block forever.
func (s *Outputs) Stop() {
	s.mu.Lock()
	s.removeAllLocked()
}

func (s *Outputs) removeAllLocked() {
	for path := range s.paths {
		os.Remove(path)
	}
	clear(s.paths)
}
