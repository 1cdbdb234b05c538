// This file converts dependencies on starts of ops, which Chakra lacks, to dependencies on ends as far as
// possible: an op that waits for the start of another waits for the other's dependencies.

package chakra

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// maxInherited limits the number of dependencies derived from starts, per op and dependency of the rank.
const maxInherited = 16

// inheritStarts returns, for each op of a rank, its additional dependencies because it waits for starts; nil if no
// op does.
func inheritStarts(r *dag.Rank) ([][]int32, error) {
	if len(r.StartDeps.Off) == 0 {
		return nil, nil
	}
	n := r.Len()
	const (
		open = iota
		visited
		done
	)
	state := make([]uint8, n)
	needs := make([][]int32, n) // ops to finish before the start, for ops in start dependencies
	inherited := make([][]int32, n)
	budget := maxInherited * (n + len(r.Deps.Off) + len(r.StartDeps.Off))
	var stack []int32
	for root := range n {
		if r.StartDeps.Count(root) == 0 {
			continue
		}
		stack = append(stack[:0], int32(root))
		for len(stack) > 0 {
			op := int(stack[len(stack)-1])
			if state[op] == open {
				state[op] = visited
				for _, off := range r.StartDeps.Of(op) {
					if on := op - int(off); state[on] == open {
						stack = append(stack, int32(on))
					}
				}
				continue
			}
			stack = stack[:len(stack)-1]
			if state[op] == done {
				continue
			}
			state[op] = done
			own := make([]int32, 0, r.Deps.Count(op))
			for _, off := range r.Deps.Of(op) {
				own = append(own, int32(op)-off)
			}
			slices.Sort(own)
			var added []int32
			for _, off := range r.StartDeps.Of(op) {
				added = append(added, needs[op-int(off)]...)
				if budget -= len(needs[op-int(off)]); budget < 0 {
					return nil, fmt.Errorf("op %d and others wait for chains of op starts with "+
						"too many dependencies to convert to dependencies on ends", op)
				}
			}
			slices.Sort(added)
			added = slices.DeleteFunc(slices.Compact(added), func(on int32) bool {
				_, direct := slices.BinarySearch(own, on)
				return direct || int(on) == op
			})
			inherited[op] = added
			needs[op] = append(own, added...)
		}
	}
	return inherited, nil
}
