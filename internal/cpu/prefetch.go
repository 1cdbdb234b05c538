// Package cpu gives memory hints to the processor and the operating system: prefetches and huge pages. Hints change
// only the speed of a program.
package cpu

import "unsafe"

// Prefetch loads array[i] into the cache, of large elements the first two cache lines. It never faults, even if i is
// out of range.
func Prefetch[T any](array []T, i uint32) {
	const line = 64
	size := unsafe.Sizeof(*new(T))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(array))) + uintptr(i)*size
	if size > 0 && line%size == 0 { // an element of an aligned array is in one line
		PrefetchLine(at)
		return
	}
	PrefetchLines(at, at+line)
}
