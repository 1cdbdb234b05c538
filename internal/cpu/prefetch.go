// Package cpu gives memory hints to the processor and the operating system: prefetches and huge pages. Hints change
// only the speed of a program.
package cpu

import "unsafe"

// Prefetch loads the first two cache lines of array[i] into the cache. It never faults, even if i is out of range.
func Prefetch[T any](array []T, i uint32) {
	const line = 64
	at := uintptr(unsafe.Pointer(unsafe.SliceData(array))) + uintptr(i)*unsafe.Sizeof(*new(T))
	PrefetchLines(at, at+line)
}
