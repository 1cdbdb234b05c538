//go:build amd64 || arm64

package sim

// prefetch asks the processor to bring two cache lines into the cache. It never fails, whatever the addresses.
func prefetch(a, b uintptr)
