package compose

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Replicate returns a trace of n ranks that all run the ops of rank 0 of t and share its columns. Communicator 0 is
// all n ranks, the others do not change, and rank i runs on node i. Replicate does not change t.
//
// It returns an error unless all n ranks are in each communicator that rank 0 uses, because they could not run the
// same ops.
func Replicate(t *dag.Trace, n int) (*dag.Trace, error) {
	if len(t.Ranks) == 0 || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("rank 0 of %d ranks for %d ranks, expected 1..%d", len(t.Ranks), n, math.MaxInt32)
	}
	out := *t
	out.Nodes = nil
	out.Comms = append([]dag.Comm{dag.World(n)}, t.Comms[min(1, len(t.Comms)):]...)
	for i := range out.Comms {
		if err := out.Comms[i].Check(n); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	first := t.Ranks[0]
	for i, kind := range first.Kind {
		comm := first.Comm.At(i)
		if !usesComm(kind) || comm == 0 {
			continue
		}
		if comm < 0 || int(comm) >= len(out.Comms) {
			return nil, fmt.Errorf("rank 0: op %d: communicator %d, expected 0..%d", i, comm, len(out.Comms)-1)
		}
		if size := out.Comms[comm].Size(); size != n {
			return nil, fmt.Errorf("rank 0: op %d: communicator %d has %d members, expected %d", i, comm,
				size, n)
		}
	}
	out.Ranks = slices.Repeat([]*dag.Rank{first}, n)
	return &out, nil
}
