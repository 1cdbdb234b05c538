//go:build unix

package results

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. It reports false if another process has the lock. A file system without
// locks has none: two processes may then run the same runs, and write equal files.
func lockFile(file *os.File) (bool, error) {
	return locked(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}

// locked returns the result of lockFile for that of flock.
func locked(err error) (bool, error) {
	for _, without := range []error{syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK, syscall.EINVAL} {
		if errors.Is(err, without) {
			return true, nil
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
