// This file keeps signals from leaving unfinished outputs behind.

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

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
		p.outputs.Stop()
		if p.messages.TryLock() { // or else stderr may be what it hangs on
			p.clearProgress()
		}
		os.Exit(128 + int(s.(syscall.Signal)))
	}()
}
