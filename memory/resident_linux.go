package memory

import (
	"bytes"
	"os"
	"strconv"
)

// resident measures the memory of the process, without code and other parts of files.
type resident struct {
	file *os.File // nil: unknown
	text [128]byte
	page int64
}

func newResident() *resident {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return &resident{}
	}
	return &resident{file: f, page: int64(os.Getpagesize())}
}

// bytes returns the memory, 0 if it is unknown.
func (r *resident) bytes() int64 {
	if r.file == nil {
		return 0
	}
	n, _ := r.file.ReadAt(r.text[:], 0)
	fields := bytes.Fields(r.text[:n]) // size, resident, shared, ..., in pages
	if len(fields) < 3 {
		return 0
	}
	all, err := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, sharedErr := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil || sharedErr != nil {
		return 0
	}
	return (all - shared) * r.page
}

func (r *resident) close() {
	if r.file != nil {
		r.file.Close()
	}
}
