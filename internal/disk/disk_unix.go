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
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK) && !wait:
			return false, nil
		}
		err = Supported(err)
		return err == nil, err
	}
}
