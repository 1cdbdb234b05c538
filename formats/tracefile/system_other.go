//go:build !unix

package tracefile

// isDead reports whether no process has the number. It is unknown here.
func isDead(int64) bool { return false }
