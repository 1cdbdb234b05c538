// This file replaces markers, which Chakra lacks, by dependencies.

package chakra

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// withoutMarkers returns the rank without the markers that only join dependencies, and their number: ops that wait for
// one wait for its dependencies instead. It keeps markers that carry other data, that come from Chakra files, and whose
// replacement would need many more dependencies; and all markers of a rank in which ops wait for starts or for later
// ops, or have an order of dependents.
func withoutMarkers(r *dag.Rank) (out dag.Rank, removed int64) {
	if !slices.Contains(r.Subkind, dag.Marker) || len(r.StartDeps.Off)+len(r.Order.Off)+len(r.StartOrder.Off) > 0 ||
		slices.ContainsFunc(r.Deps.Off, func(off int32) bool { return off <= 0 }) {
		return *r, 0
	}
	n := r.Len()
	dependents := make([]int32, n)
	for i := range n {
		for _, off := range r.Deps.Of(i) {
			dependents[i-int(off)]++
		}
	}
	replaced := make([][]int32, n) // by op: what ops wait for instead of it; nil: the op itself
	at := make([]int32, n)         // by op: its new number
	var kept []int32
	var deps dag.Edges
	var waits []int32
	for i := range n {
		waits = waits[:0]
		for _, off := range r.Deps.Of(i) {
			on := int32(i) - off
			switch instead := replaced[on]; {
			case instead == nil:
				waits = append(waits, on)
			default:
				for _, on := range instead {
					if !slices.Contains(waits[max(0, len(waits)-len(instead)):], on) {
						waits = append(waits, on)
					}
				}
			}
		}
		// The product of both numbers of dependencies replaces their sum.
		before, after := int64(len(waits)), int64(dependents[i])
		if onlyJoins(r, i) && before*after <= 4*(before+after)+64 {
			replaced[i] = append([]int32{}, waits...)
			removed++
			continue
		}
		at[i] = int32(len(kept))
		for _, on := range waits {
			deps.Append(len(kept), at[i]-at[on])
		}
		kept = append(kept, int32(i))
	}
	if removed == 0 {
		return *r, 0
	}
	out, ok := r.Gather(kept)
	if !ok {
		return *r, 0
	}
	out.Deps = deps
	return out, removed
}

// onlyJoins reports whether an op is a marker without data of its own.
func onlyJoins(r *dag.Rank, i int) bool {
	if r.Kind[i] != dag.Calc || r.Subkind.At(i) != dag.Marker {
		return false
	}
	start, end := r.Measured(i)
	return r.Duration.At(i)|dag.Time(r.Bytes.At(i)|r.Flops.At(i)) == 0 && r.Name.At(i) == "" && r.Attrs.At(i) == "" &&
		r.Host.At(i) == 0 && start == dag.Unmeasured && end == dag.Unmeasured
}
