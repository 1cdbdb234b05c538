package memory

import (
	"syscall"
	"testing"
)

// Memory that the Go runtime does not manage, such as that of SQLite, ends the watch too. Pages of files do not count.
func TestWatchCountsOtherMemory(t *testing.T) {
	const limit, size = 256 << 20, 512 << 20
	failed := make(chan error, 1)
	defer Watch(limit, func(err error) { failed <- err })()
	other, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(other)
	for i := 0; i < len(other); i += 4096 {
		other[i] = 1
	}
	if err := <-failed; err == nil {
		t.Error("no error")
	}
	r := newResident()
	defer r.close()
	if n := r.bytes(); n < size || n > size+limit {
		t.Errorf("%d bytes are resident, expected at least %d", n, size)
	}
}
