//go:build amd64 || arm64

package cpu

// PrefetchLine loads the cache line at an address into the cache. It never faults, whatever the address.
func PrefetchLine(at uintptr)

// PrefetchLines loads the two cache lines at addresses a and b into the cache. It never faults, whatever the addresses.
func PrefetchLines(a, b uintptr)
