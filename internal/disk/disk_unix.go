//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// Supported returns nil for the error of a system call that the file system does not support, else err.
func Supported(err error) error {
	for _, number := range []syscall.Errno{
		syscall.EINVAL, syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK, syscall.EBADF,
	} {
		if errors.Is(err, number) {
			return nil
		}
	}
	return err
}

func lock(f *os.File, wait bool) (bool, error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return locked(err)
		}
	}
}

// locked returns the result of lock for that of flock.
func locked(err error) (bool, error) {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	err = Supported(err)
	return err == nil, err
}
