//go:build unix

package disk

import (
	"syscall"
	"testing"
)

// TestLocked checks that locks are accepted on file systems without locks, as some clusters have.
func TestLocked(t *testing.T) {
	for _, c := range []struct {
		err  error
		mine bool
		want error
	}{
		{nil, true, nil},
		{syscall.EWOULDBLOCK, false, nil},
		{syscall.ENOLCK, true, nil}, // NFS without its lock service
		{syscall.ENOSYS, true, nil}, // Lustre mounted without flock
		{syscall.EOPNOTSUPP, true, nil},
		{syscall.EIO, false, syscall.EIO},
	} {
		if mine, err := locked(c.err); mine != c.mine || err != c.want {
			t.Errorf("%v: %t, %v", c.err, mine, err)
		}
	}
}
