package sim

import (
	"unsafe"

	"github.com/tracedag/tracedag/internal/cpu"
)

// Distances of PrefetchOps, in elements: a few cache lines, found by measurement. Mostly they contain the rank's next
// ops.
const (
	opsAhead        = 16
	dependentsAhead = 32
)

// PrefetchOps prefetches the ops and dependents that follow op in memory. Replay loops call it for each op that they
// run: with many ranks, the processor does not detect that each rank is read sequentially.
func (p *Program) PrefetchOps(op *Op) {
	// Addresses beyond the arrays are harmless, since a prefetch never faults. They must stay uintptr, since the
	// garbage collector would follow pointers.
	ahead := uintptr(unsafe.Pointer(op)) + opsAhead*unsafe.Sizeof(*op)
	if op.first&listInOp != 0 {
		cpu.PrefetchLines(ahead, ahead)
		return
	}
	words := p.dependents
	list := op.Rank
	if w := p.windows; w != nil {
		at := uintptr(unsafe.Pointer(op)) - uintptr(unsafe.Pointer(unsafe.SliceData(p.Ops)))
		words, list = w.words, uint32(at/unsafe.Sizeof(*op))>>w.bits
	}
	cpu.PrefetchLines(ahead,
		uintptr(unsafe.Pointer(unsafe.SliceData(words[list])))+(uintptr(op.first)+dependentsAhead)*2)
}

// PrefetchDependents prefetches the first dependents of op i.
func (p *Program) PrefetchDependents(i uint32, op *Op) {
	near := uintptr(op.first & farthestInOp)
	switch {
	case p.windows != nil:
		return
	case op.first&listInOp == 0:
		near = uintptr(p.dependents[op.Rank][op.first] &^ lastDependent)
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(p.Ops))) + (uintptr(i)+near)*unsafe.Sizeof(*op)
	cpu.PrefetchLines(first, first+64)
}
