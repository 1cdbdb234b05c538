//go:build !unix

package tracefile

// isDead reports whether no process has the number. It is unknown here.
func isDead(int64) bool { return false }

// unsupported returns nil: folders cannot be flushed here.
func unsupported(error) error { return nil }

// lockFolder does nothing: folders cannot be locked here.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }
