//go:build unix

package tracefile

import "syscall"

// isDead reports whether no process has the number.
func isDead(pid int64) bool {
	return pid > 0 && int64(int(pid)) == pid && syscall.Kill(int(pid), 0) == syscall.ESRCH
}
