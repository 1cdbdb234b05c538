// This file removes unfinished outputs on signals.

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

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
