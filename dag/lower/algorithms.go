package lower

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// algorithm is one way to carry out a collective. plan appends one member's part, nothing where it is the only one.
type algorithm struct {
	kind dag.Subkind
	name string
	plan func(c *Call, s *Schedule)
}

var algorithms = []algorithm{
	{dag.Barrier, "dissemination", barrierDissemination},
	{dag.Barrier, "linear", barrierLinear},
	{dag.Bcast, "binomial", bcastBinomial},
	{dag.Bcast, "linear", bcastLinear},
	{dag.Bcast, "scatterallgather", bcastScatterallgather},
	{dag.Reduce, "binomial", reduceBinomial},
	{dag.Reduce, "linear", reduceLinear},
	{dag.Allreduce, "recdoubling", allreduceRecdoubling},
	{dag.Allreduce, "ring", allreduceRing},
	{dag.Allreduce, "reducebcast", allreduceReducebcast},
	{dag.Gather, "binomial", gatherBinomial},
	{dag.Gather, "linear", gatherLinear},
	{dag.Gatherv, "binomial", gatherBinomial},
	{dag.Gatherv, "linear", gatherLinear},
	{dag.Scatter, "binomial", scatterBinomial},
	{dag.Scatter, "linear", scatterLinear},
	{dag.Scatterv, "binomial", scatterBinomial},
	{dag.Scatterv, "linear", scatterLinear},
	{dag.Allgather, "ring", allgatherRing},
	{dag.Allgather, "recdoubling", allgatherRecdoubling},
	{dag.Allgather, "bruck", allgatherBruck},
	{dag.Allgather, "linear", allgatherLinear},
	{dag.Allgatherv, "ring", allgatherRing},
	{dag.Allgatherv, "recdoubling", allgatherRecdoubling},
	{dag.Allgatherv, "bruck", allgatherBruck},
	{dag.Allgatherv, "linear", allgatherLinear},
	{dag.Alltoall, "pairwise", alltoallPairwise},
	{dag.Alltoall, "linear", alltoallLinear},
	{dag.Alltoallv, "pairwise", alltoallPairwise},
	{dag.Alltoallv, "linear", alltoallLinear},
	{dag.ReduceScatter, "ring", reducescatterRing},
	{dag.Scan, "recdoubling", scanRecdoubling},
	{dag.Exscan, "recdoubling", scanRecdoubling},
}

// Defaults is the choice, in the language of [ParseChoice], that holds wherever another one says nothing.
const Defaults = "barrier=dissemination; bcast=binomial; reduce=binomial; allreduce=ring:>1MiB,recdoubling; " +
	"gather=binomial; gatherv=linear; scatter=binomial; scatterv=linear; allgather=ring; allgatherv=ring; " +
	"alltoall=pairwise; alltoallv=pairwise; reducescatter=ring; scan=recdoubling; exscan=recdoubling"

// Plan appends to s what c's member does in the algorithm of that name for c.Kind.
func Plan(c *Call, algorithm string, s *Schedule) error {
	a, err := find(c.Kind, algorithm)
	if err != nil {
		return err
	}
	a.plan(c, s)
	return nil
}

func find(kind dag.Subkind, name string) (*algorithm, error) {
	var names []string
	for i := range algorithms {
		a := &algorithms[i]
		if a.kind != kind {
			continue
		}
		if a.name == name {
			return a, nil
		}
		names = append(names, a.name)
	}
	return nil, fmt.Errorf("no algorithm %q for %s, expected %s", name, kind, strings.Join(names, " or "))
}
