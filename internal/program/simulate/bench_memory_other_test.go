//go:build !linux

package simulate

import "os"

// peakMemory would return how much memory a child process had resident; 0 says that it is unknown.
func peakMemory(*os.ProcessState) int64 { return 0 }

func forgetPeak() {}
