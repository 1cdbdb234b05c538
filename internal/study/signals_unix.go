//go:build unix

package study

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyStop passes on the signal that ends a shard after the runs at hand.
func notifyStop(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR1) }
