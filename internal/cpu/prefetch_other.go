//go:build !amd64 && !arm64

package cpu

// PrefetchLines does nothing on this architecture.
func PrefetchLines(_, _ uintptr) {}
