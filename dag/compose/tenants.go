package compose

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// SeparateNICs returns the merged trace of the jobs, placed on nodes, with network interfaces of their own for jobs
// that share a node: those of each job are numbered after those of the jobs before it there. It changes nothing of t.
// SeparateNICs ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func SeparateNICs(ctx context.Context, t *dag.Trace, jobs []Job) (*dag.Trace, error) {
	out := *t
	out.Ranks = slices.Clone(t.Ranks)
	taken := make(map[int32]int64) // by node: how many interfaces the jobs so far use
	rank := 0
	for i := range jobs {
		used := make(map[int32]int64)
		for range jobs[i].Trace.Ranks {
			if err := par.Interrupted(ctx); err != nil {
				return nil, err
			}
			node := t.Nodes[rank]
			n, err := shiftNICs(&out.Ranks[rank], taken[node])
			if err != nil {
				return nil, fmt.Errorf("rank %d %w", rank, err)
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

// shiftNICs makes a rank use the interfaces from first on, and returns how many it uses: one more than its highest.
func shiftNICs(r *dag.Rank, first int64) (n int64, err error) {
	nic := make([]int32, r.Len())
	r.NIC.Copy(nic, 0)
	for i := range nic {
		n = max(n, int64(nic[i])+1)
		if n+first > math.MaxInt32 {
			return 0, fmt.Errorf("op %d uses network interface %d after those of other jobs, expected less than %d", i,
				n-1+first, math.MaxInt32)
		}
		nic[i] += int32(first)
	}
	if first > 0 {
		r.NIC = dag.Narrow{}
		r.NIC.SetRange(0, nic)
	}
	return n, nil
}
