//go:build unix

package study

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// notifyStop passes on the signal that ends a shard after the runs at hand.
func notifyStop(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR1) }

// lockFile locks a file until it is closed. It reports false if another process has the lock.
func lockFile(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
