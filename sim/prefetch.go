package sim

import (
	"unsafe"

	"github.com/tracedag/tracedag/internal/cpu"
)

// Distances of PrefetchOps, in elements: a few cache lines, found by measurement. Mostly they contain the rank's next
// ops.
const (
	opsAhead        = 16
	dependentsAhead = 16
)

// PrefetchOps prefetches the ops and dependents that follow op in memory. Replay loops call it for each op that they
// run: with many ranks, the processor does not detect that each rank is read sequentially.
func (p *Program) PrefetchOps(op *Op) {
	// Addresses beyond the arrays are harmless, since a prefetch never faults. They must stay uintptr, since the
	// garbage collector would follow pointers.
	cpu.PrefetchLines(uintptr(unsafe.Pointer(op))+opsAhead*unsafe.Sizeof(*op),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.dependents)))+(uintptr(op.first)+dependentsAhead)*4)
}

// PrefetchDependents prefetches the first and last dependents of op.
func (p *Program) PrefetchDependents(op *Op) {
	if op.count > 0 {
		ops := uintptr(unsafe.Pointer(unsafe.SliceData(p.Ops)))
		cpu.PrefetchLines(ops+uintptr(p.dependents[op.first])*unsafe.Sizeof(*op),
			ops+uintptr(p.dependents[op.first+op.count-1])*unsafe.Sizeof(*op))
	}
}
