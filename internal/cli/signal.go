// This file removes unfinished outputs on signals and at the limit of memory.

package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// limitMemory makes the limit of memory effective for a command. If the program has the process to itself, exceeding
// the limit removes unfinished outputs and ends the process at once, as a signal does.
func (p *Program) limitMemory(ctx context.Context) {
	var exceeded func(error)
	if p.process {
		exceeded = func(err error) {
			p.outputs.Stop()
			p.exits.run()
			os.Exit(p.report(err))
		}
	}
	p.memory.Limit(ctx, exceeded)
}

// Context returns the context for calls of the library. It carries the limit of memory.
func (p *Program) Context() context.Context { return p.limits().Context() }

// handleSignals makes SIGINT, SIGTERM and SIGHUP remove unfinished outputs and end the process at once. A write to a
// closed pipe becomes an error instead of a signal.
func (p *Program) handleSignals() {
	signal.Ignore(syscall.SIGPIPE)
	stop := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup ignores SIGHUP
			signal.Notify(stop, s)
		}
	}
	go func() {
		s := <-stop
		p.outputs.Stop()
		p.exits.run()
		if p.messages.TryLock() { // a blocked write to stderr may hold the lock
			p.clearProgress()
		}
		os.Exit(128 + int(s.(syscall.Signal)))
	}()
}

// exits are the functions to call before a signal or the limit of memory ends the process.
type exits struct {
	lock sync.Mutex
	all  map[int]func()
	next int
}

// AtExit registers a function that is called before a signal or the limit of memory ends the process, such as one that
// ends a child process. It returns a function that removes it.
func (p *Program) AtExit(stop func()) (remove func()) {
	e := p.exits
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.all == nil {
		e.all = make(map[int]func())
	}
	id := e.next
	e.all[id] = stop
	e.next++
	return func() {
		e.lock.Lock()
		defer e.lock.Unlock()
		delete(e.all, id)
	}
}

// run calls all functions at the same time and waits for them.
func (e *exits) run() {
	e.lock.Lock()
	var wait sync.WaitGroup
	for _, stop := range e.all {
		wait.Add(1)
		go func() {
			defer wait.Done()
			stop()
		}()
	}
	e.lock.Unlock()
	wait.Wait()
}
