// Package disk locks and flushes files and folders. File systems without locks or without flushing folders are
// accepted: there, nothing is locked or flushed.
package disk

import (
	"os"
)

// Lock locks a file or folder until it is closed. With wait, it waits for the lock; otherwise it reports false if
// another process has it.
func Lock(f *os.File, wait bool) (bool, error) {
	return lock(f, wait)
}

// Sync flushes the names in a folder. A folder that cannot be read is accepted.
func Sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	return Supported(f.Sync())
}
