//go:build !amd64 && !arm64

package sim

func prefetch(_, _ uintptr) {}
