package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page on the machines that matter.
const hugePage = 2 << 20

// InHugePages asks the system to back a large array, not used yet, with huge pages: replays touch it all over, and with
// small pages the processor would spend its time looking up where they are. It is advice; nothing is lost where it is not
// followed.
func InHugePages[T any](s []T) []T {
	if cap(s) == 0 {
		return s
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	skip := -start & (hugePage - 1)
	size := uintptr(cap(s)) * unsafe.Sizeof(*new(T))
	if size < skip+hugePage {
		return s
	}
	size = (size - skip) &^ (hugePage - 1)
	bytes := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), skip)), size)
	unix.Madvise(bytes, unix.MADV_HUGEPAGE)
	return s
}
