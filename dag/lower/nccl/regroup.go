package nccl

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// Regroup returns the trace with its ranks dealt to nodes in ascending order: counts has how many each node gets, all
// together as many as there are ranks. It works on any trace, and shares all else with t.
//
// Where the trace says how NCCL connects communicators, it no longer does: the ranks of each are connected anew when they
// are lowered. A ring goes through the nodes in ascending order, and inside each through its ranks. In a tree the ranks of
// a node form a chain, in which data goes up from the lowest to the highest, and the nodes NCCL's double binary tree: the
// highest rank of a node sends to the lowest of its parent's; even channels have the first of the two trees, odd ones the
// second. How many channels there are stays, and so do all calls.
func Regroup(t *dag.Trace, counts []int) (*dag.Trace, error) {
	total := 0
	for node, n := range counts {
		if n < 1 {
			return nil, fmt.Errorf("regrouping: node %d gets %d ranks, expected 1 or more", node, n)
		}
		if total += n; total > len(t.Ranks) {
			break
		}
	}
	if total != len(t.Ranks) {
		return nil, fmt.Errorf("regrouping: the nodes get %d ranks together, expected the %d of the trace", total, len(t.Ranks))
	}
	out := *t
	out.Nodes = make([]int32, 0, total)
	for node, n := range counts {
		for range n {
			out.Nodes = append(out.Nodes, int32(node))
		}
	}
	var err error
	out.Attrs, err = attr.EditNCCLTopologies(t.Attrs, func(c attr.NCCLTopology) attr.NCCLTopology {
		return attr.NCCLTopology{Channels: max(len(c.Rings), len(c.Trees), c.Channels)}
	})
	if err != nil {
		return nil, fmt.Errorf("regrouping: the attributes of the trace: %w", err)
	}
	return &out, nil
}
