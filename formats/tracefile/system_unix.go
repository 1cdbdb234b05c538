//go:build unix

package tracefile

import (
	"errors"
	"os"
	"syscall"
)

// isDead reports whether no process has the number.
func isDead(pid int64) bool {
	return pid > 0 && int64(int(pid)) == pid && syscall.Kill(int(pid), 0) == syscall.ESRCH
}

// unsupported returns nil for the error of a system call that the file system does not support, else err.
func unsupported(err error) error {
	for _, number := range []syscall.Errno{
		syscall.EINVAL, syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK, syscall.EBADF,
	} {
		if errors.Is(err, number) {
			return nil
		}
	}
	return err
}

// lockFolder waits until no other program replaces files in the folder. The lock ends with the process or with the
// returned function. On file systems without locks, and in folders that cannot be read, nothing is locked.
func lockFolder(folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}, nil
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err := unsupported(err); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
