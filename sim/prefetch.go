package sim

import "unsafe"

// How far ahead of an op that runs the ops and dependents of its rank are asked for: a few cache lines, which the next
// ops of the rank to run most often lie in. Found by measuring.
const (
	opsAhead        = 16
	dependentsAhead = 16
)

// Ahead has the memory behind op, and behind its dependents, brought into the cache. Replay loops call it for each op
// that they run: with many ranks, the processor does not find out by itself that each is read front to back.
func (p *Program) Ahead(op *Op) {
	// Addresses beyond the arrays do no harm: nothing is read, and the processor ignores those that do not exist. They
	// must not become pointers, though, which the garbage collector would look into.
	prefetch(uintptr(unsafe.Pointer(op))+opsAhead*unsafe.Sizeof(*op),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.dependents)))+(uintptr(op.first)+dependentsAhead)*4)
}

// AheadOf has the first and the last op that wait for the end of op brought into the cache.
func (p *Program) AheadOf(op *Op) {
	if op.count > 0 {
		ops := uintptr(unsafe.Pointer(unsafe.SliceData(p.Ops)))
		prefetch(ops+uintptr(p.dependents[op.first])*unsafe.Sizeof(*op),
			ops+uintptr(p.dependents[op.first+op.count-1])*unsafe.Sizeof(*op))
	}
}
