//go:build !linux

package simulate

import "os"

// peakMemory returns 0: the peak resident memory of a child process is unknown on this system.
func peakMemory(*os.ProcessState) int64 { return 0 }

func forgetPeak() {}
