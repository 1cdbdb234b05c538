// This file keeps signals from leaving unfinished outputs behind.

package cli

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// temporaries is the set of unfinished output files, so that a signal can remove them.
type temporaries struct {
	mu    sync.Mutex
	paths map[string]bool
	names atomic.Int64 // how many names there were so far
}

// name returns a name in a folder that no other output of the program has or had.
func (t *temporaries) name(folder string) string {
	return filepath.Join(folder, fmt.Sprintf(".tracedag-%d-%d.tmp", os.Getpid(), t.names.Add(1)-1))
}

// create makes a file with create, which must fail if it exists already.
func (t *temporaries) create(path string, create func() (*os.File, error)) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := create()
	if err != nil {
		return nil, err
	}
	if t.paths == nil {
		t.paths = map[string]bool{}
	}
	t.paths[path] = true
	return f, nil
}

// rename gives the file its final name.
func (t *temporaries) rename(path, final string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := os.Rename(path, final); err != nil {
		return err
	}
	delete(t.paths, path)
	return nil
}

// remove removes the file, if it is still there.
func (t *temporaries) remove(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paths[path] {
		os.Remove(path)
		delete(t.paths, path)
	}
}

func (t *temporaries) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeAllLocked()
}

func (t *temporaries) removeAllLocked() {
	for path := range t.paths {
		os.Remove(path)
	}
	clear(t.paths)
}

// handleSignals arranges that a signal to stop removes unfinished outputs and ends the process at once, whatever it is
// busy with, and that writing to a closed pipe is an error rather than the end.
func (p *Program) handleSignals() {
	signal.Ignore(syscall.SIGPIPE)
	stop := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup asks
			signal.Notify(stop, s)
		}
	}
	go func() {
		s := <-stop
		p.temps.mu.Lock() // and keep it: no output may be begun or finished from here on
		p.temps.removeAllLocked()
		if p.messages.TryLock() { // or else stderr may be what it hangs on
			p.clearProgress()
		}
		os.Exit(128 + int(s.(syscall.Signal)))
	}()
}
