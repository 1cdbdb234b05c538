package compose

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// SeparateNICs returns the merged trace of the placed jobs, in which jobs that share a node have separate NICs: the
// NICs of each job are numbered after those of the previous jobs on the node. It does not change t. SeparateNICs ends
// early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func SeparateNICs(ctx context.Context, t *dag.Trace, jobs []Job) (*dag.Trace, error) {
	out := *t
	out.Ranks = dag.CopyRanks(t.Ranks)
	taken := make(map[int32]int64) // by node: NICs of the jobs so far
	rank := 0
	for i := range jobs {
		used := make(map[int32]int64)
		for range jobs[i].Trace.Ranks {
			if err := par.Interrupted(ctx); err != nil {
				return nil, err
			}
			node := t.Nodes[rank]
			n, err := shiftNICs(out.Ranks[rank], taken[node])
			if err != nil {
				return nil, fmt.Errorf("rank %d: %w", rank, err)
			}
			used[node] = max(used[node], n)
			rank++
		}
		for node, n := range used {
			taken[node] += n
		}
	}
	return &out, nil
}

// shiftNICs adds first to the NICs of a rank, and returns the number of its NICs: one more than the highest.
func shiftNICs(r *dag.Rank, first int64) (n int64, err error) {
	nic := make([]int32, r.Len())
	r.NIC.Copy(nic, 0)
	for i := range nic {
		n = max(n, int64(nic[i])+1)
		if n+first > math.MaxInt32 {
			return 0, fmt.Errorf("op %d: NIC %d after those of other jobs, expected below %d", i,
				n-1+first, math.MaxInt32)
		}
		nic[i] += int32(first)
	}
	if first > 0 && len(nic) > 0 {
		r.NIC = dag.Narrow{}
		r.NIC.SetRange(0, nic)
	}
	return n, nil
}
