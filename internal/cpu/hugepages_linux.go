package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a transparent huge page on amd64 and on arm64 with 4 KiB pages, in bytes.
const hugePage = 2 << 20

// InHugePages advises the kernel to back a large unused array with huge pages, and returns s. Replays access such
// arrays at random; with small pages, address translation would dominate.
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
