package compose

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
)

// junction stands in the list of ops to gather for one that is none of the rank's: a calc, until more is said of it.
const junction = -1

// gather returns a rank of the ops of r in the list, all of their columns but the dependencies.
func gather(r *dag.Rank, ops []int32) (dag.Rank, error) {
	out, ok := r.Gather(ops)
	if !ok {
		return dag.Rank{}, errors.New("has more than 4 GiB of names or attributes")
	}
	return out, nil
}
