// This file keeps track of unfinished outputs: those of this process, and those that dead processes left.

package tracefile

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/internal/disk"
)

// Outputs is the set of a program's unfinished output files, so that a signal handler can remove them. The zero
// value is an empty set. Its methods are safe for concurrent use.
type Outputs struct {
	// NoSync leaves outputs in the memory of the system, which writes them to the disk later. A crash of the system
	// may then lose or cut them.
	NoSync bool
	Info   func(message string, args ...any) // reports leftovers of interrupted programs; nil: discards

	mu    sync.Mutex
	paths map[string]bool
	swept map[string]bool // folders without leftovers
	names atomic.Int64    // number of names made so far
	step  func()          // called before each step of replacing files; nil except in tests

	onStop func() // called by Stop; may be nil
}

// name returns a path in a folder that no other output of the program has or had.
func (s *Outputs) name(folder string) string {
	return filepath.Join(folder, fmt.Sprintf(unfinishedName, machine(), os.Getpid(), s.names.Add(1)-1))
}

// unfinishedName is the name of an unfinished file: machine, process and number.
const unfinishedName = ".tracedag-%08x-%d-%d.tmp"

// machine identifies the machine, and the container, in which process numbers are unique.
var machine = sync.OnceValue(func() uint32 {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	space, err := os.Readlink("/proc/self/ns/pid") // absent except on Linux
	if err != nil {
		space = ""
	}
	sum := fnv.New32a()
	io.WriteString(sum, host+"\x00"+space)
	return sum.Sum32()
})

// leftoverAge is the age from which an unfinished file of an unknown process is reported.
const leftoverAge = 24 * time.Hour

// sweep removes the unfinished files that dead processes left in a folder, and reports old ones of processes that may
// live elsewhere. It looks once at each folder.
func (s *Outputs) sweep(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swept[folder] {
		return
	}
	if s.swept == nil {
		s.swept = map[string]bool{}
	}
	s.swept[folder] = true
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // creating the file reports it
	}
	removed, first := 0, ""
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".tracedag-") || filepath.Ext(e.Name()) != ".tmp" || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(folder, e.Name())
		var on uint32
		var pid, number int64
		_, err := fmt.Sscanf(e.Name(), unfinishedName, &on, &pid, &number)
		ours := err == nil && on == machine() && fmt.Sprintf(unfinishedName, on, pid, number) == e.Name()
		if ours && isDead(pid) {
			if os.Remove(path) == nil {
				if removed++; removed == 1 {
					first = path
				}
			}
			continue
		}
		if info, err := e.Info(); err == nil && !ours && time.Since(info.ModTime()) > leftoverAge {
			s.info("%s: unfinished output of an interrupted program; remove it if no program on another machine "+
				"writes it", path)
		}
	}
	switch {
	case removed == 1:
		s.info("%s: removed the unfinished output of an interrupted program", first)
	case removed > 1:
		s.info("%s: removed the unfinished outputs of an interrupted program, %d files", first, removed)
	}
}

func (s *Outputs) info(message string, args ...any) {
	if s.Info != nil {
		s.Info(message, args...)
	}
}

// syncFolder flushes the names in a folder to the disk.
func (s *Outputs) syncFolder(folder string) error {
	if s.NoSync {
		return nil
	}
	return disk.Sync(folder)
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
	return s.syncFolder(filepath.Dir(final))
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

// Stop removes the unfinished files of a process that is about to exit, and calls the functions of OnStop. Afterwards,
// calls that begin or finish an output block forever.
func (s *Outputs) Stop() {
	s.mu.Lock()
	s.removeAllLocked()
	if s.onStop != nil {
		s.onStop()
	}
}

// OnStop makes Stop call a function, which replaces an earlier one; nil: none. The function must not use s.
func (s *Outputs) OnStop(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onStop = do
}

func (s *Outputs) removeAllLocked() {
	for path := range s.paths {
		os.Remove(path)
	}
	clear(s.paths)
}
