package memory

import (
	"math"

	"golang.org/x/sys/unix"
)

// machine returns the memory in bytes that the process may use, [NoLimit] if it is unknown.
func machine() int64 {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil || size == 0 || size > math.MaxInt64 {
		return NoLimit
	}
	return int64(size)
}
