package compose

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Replicate returns a trace of n ranks that all do what rank 0 of t does, and share its columns. Communicator 0 is all
// of them, the others stay as they are, and rank i runs on node i. It changes nothing of t.
//
// It fails where not all n ranks are in a communicator that rank 0 uses, for then they cannot all do the same.
func Replicate(t *dag.Trace, n int) (*dag.Trace, error) {
	if len(t.Ranks) == 0 || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("rank 0 of %d ranks cannot stand for %d, expected 1..%d", len(t.Ranks), n, math.MaxInt32)
	}
	out := *t
	out.Nodes = nil
	out.Comms = append([]dag.Comm{dag.World(n)}, t.Comms[min(1, len(t.Comms)):]...)
	for i := range out.Comms {
		if err := out.Comms[i].Check(n); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	first := &t.Ranks[0]
	for i, kind := range first.Kind {
		comm := first.Comm.At(i)
		if !usesComm(kind) || comm == 0 {
			continue
		}
		if comm < 0 || int(comm) >= len(out.Comms) {
			return nil, fmt.Errorf("rank 0 op %d is of communicator %d, expected 0..%d", i, comm, len(out.Comms)-1)
		}
		if size := out.Comms[comm].Size(); size != n {
			return nil, fmt.Errorf("rank 0 op %d is of communicator %d, which has %d of the %d ranks that are to do "+
				"the same", i, comm, size, n)
		}
	}
	out.Ranks = slices.Repeat([]dag.Rank{*first}, n)
	return &out, nil
}
