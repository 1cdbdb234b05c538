// This file measures the memory of child processes, as Linux does.

package simulate

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// peakMemory returns the largest amount of memory that a child process, which has ended, had resident, in bytes; 0 if
// that is unknown. Linux counts from before the child executes its program, when it still has the memory of this
// process, so nothing is known of a child that needed less than this process ever did: see forgetPeak.
func peakMemory(child *os.ProcessState) int64 {
	usage, ok := child.SysUsage().(*syscall.Rusage)
	own, err := ownPeak()
	if !ok || err != nil || usage.Maxrss*1024 <= own {
		return 0
	}
	return usage.Maxrss * 1024
}

// ownPeak returns the largest amount of memory that this process had resident since the last forgetPeak.
func ownPeak() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, peak, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	kib := int64(0)
	_, err = fmt.Sscanf(string(peak), "%d", &kib)
	return kib * 1024, err
}

// forgetPeak gives the memory that this process no longer needs back, and makes Linux forget that it had it.
func forgetPeak() {
	debug.FreeOSMemory()
	// See proc_pid_clear_refs(5). If it fails, peakMemory returns 0.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
