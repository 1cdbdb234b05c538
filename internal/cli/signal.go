// This file removes unfinished outputs on signals and at the limit of memory.

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// limitMemory makes the limit of memory effective for a command. If the program has the process to itself, exceeding
// the limit removes unfinished outputs and ends the process at once, as a signal does.
func (p *Program) limitMemory(ctx context.Context) {
	var exceeded func(error)
	if p.process {
		exceeded = func(err error) {
			p.outputs.Stop()
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
		if p.messages.TryLock() { // a blocked write to stderr may hold the lock
			p.clearProgress()
		}
		os.Exit(128 + int(s.(syscall.Signal)))
	}()
}
