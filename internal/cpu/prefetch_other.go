//go:build !amd64 && !arm64

package cpu

// PrefetchLine does nothing on this architecture.
func PrefetchLine(_ uintptr) {}

// PrefetchLines does nothing on this architecture.
func PrefetchLines(_, _ uintptr) {}
