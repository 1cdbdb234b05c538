//go:build unix

package loggops_test

import (
	"syscall"
	"time"
)

// processorTime returns the user and system time of this process so far.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
