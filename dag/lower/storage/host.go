package storage

import (
	"math"

	"github.com/tracedag/tracedag/dag"
)

// host is a rank that issues storage accesses.
type host struct {
	rank   int32 // in the lowered trace
	stream int32 // stream of the timer chain; none: no stream is free

	records int       // records so far
	ends    dag.Edges // ending ops of each record
	mount   int32     // last op of the mount, or none
	tick    int32     // last calc of the timer chain, or none
	now     int64     // time of the timer chain, ns

	mixed       bool // the source has other ops than accesses, or dependencies; otherwise the rest is unused
	source      *dag.Rank
	copied      int         // ops of the source before this one are written
	first, last []int32     // new ops at which each op of the source starts and ends
	rest        *dag.Copier // of the fields of the source that few ops use; nil until the first op is written
}

// setSource sets the rank of the source that the host lowers.
func (h *host) setSource(r *dag.Rank) {
	h.source, h.mixed = r, !isPlain(r)
	last := int32(0)
	for i := range r.Stream.Len() {
		last = max(last, r.Stream.At(i))
	}
	if h.stream = none; last < math.MaxInt32 {
		h.stream = last + 1
	}
}

// isPlain reports whether a rank has only io ops without dependencies.
func isPlain(r *dag.Rank) bool {
	for _, kind := range r.Kind {
		if kind != dag.IO {
			return false
		}
	}
	return len(r.Deps.Off) == 0 && len(r.StartDeps.Off) == 0
}

// begin prepares the host for its first record. The counting pass computes ends, first and last for the writing pass.
func (h *host) begin(filling bool) {
	h.records, h.copied, h.now = 0, 0, 0
	h.mount, h.tick = none, none
	if h.mixed && !filling {
		h.first, h.last = make([]int32, h.source.Len()), make([]int32, h.source.Len())
	}
}
