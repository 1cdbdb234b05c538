//go:build amd64 || arm64

package cpu

// PrefetchLines loads the two cache lines at addresses a and b into the cache. It never faults, whatever the addresses.
func PrefetchLines(a, b uintptr)
