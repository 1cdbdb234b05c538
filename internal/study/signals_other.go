//go:build !unix

package study

import "os"

// notifyStop does nothing: the system has no signal for it.
func notifyStop(chan<- os.Signal) {}

// lockFile does nothing: two processes may run the same runs, and write equal files.
func lockFile(*os.File) (bool, error) { return true, nil }
