package compose

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
)

// junction, in a list of ops to gather, is a new op: a calc without values.
const junction = -1

// gather returns a rank of the listed ops of r, with all columns except dependencies.
func gather(r *dag.Rank, ops []int32) (dag.Rank, error) {
	out, ok := r.Gather(ops)
	if !ok {
		return dag.Rank{}, errors.New("more than 4 GiB of names or attributes")
	}
	return out, nil
}
