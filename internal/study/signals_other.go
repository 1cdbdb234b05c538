//go:build !unix

package study

import "os"

// notifyStop does nothing: the system has no signal for it.
func notifyStop(chan<- os.Signal) {}
