package storage

import (
	"math"

	"github.com/tracedag/tracedag/dag"
)

// host is a rank that may access storage.
type host struct {
	rank   int32 // in the lowered trace
	stream int32 // on which its chain of times is; below 0: none is left

	records int       // so far
	ends    dag.Edges // of each record, the ops that end it
	mount   int32     // the op that ends the mount, or none
	tick    int32     // the last calc of its chain of times, or none
	now     int64     // where the chain is, in nanoseconds

	// Where the source has other ops than accesses, or dependencies:
	mixed       bool
	source      *dag.Rank
	copied      int     // ops of the source before this one are written
	first, last []int32 // for each op of the source, the ops that stand for its start and its end
}

// of makes r the rank that the host is in the source.
func (h *host) of(r *dag.Rank) {
	h.source, h.mixed = r, !isPlain(r)
	last := int32(0)
	for i := range r.Stream.Len() {
		last = max(last, r.Stream.At(i))
	}
	if h.stream = none; last < math.MaxInt32 {
		h.stream = last + 1
	}
}

// isPlain reports whether a rank has only io ops, which do not wait for each other.
func isPlain(r *dag.Rank) bool {
	for _, kind := range r.Kind {
		if kind != dag.IO {
			return false
		}
	}
	return len(r.Deps.Off) == 0 && len(r.StartDeps.Off) == 0
}

// begin makes the host ready for its first record. What it finds out while writing only counts stays for the next time.
func (h *host) begin(filling bool) {
	h.records, h.copied, h.now = 0, 0, 0
	h.mount, h.tick = none, none
	if h.mixed && !filling {
		h.first, h.last = make([]int32, h.source.Len()), make([]int32, h.source.Len())
	}
}
