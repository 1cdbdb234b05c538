package collective

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// algorithm is one way to carry out a collective. plan appends one member's part; it is not called where that is the
// only one.
type algorithm struct {
	kind      dag.Subkind
	name      string
	plan      func(c *Call, s *Schedule)
	parameter parameter // Call.K
	segments  bool      // whether it has the parameter segment: Call.Segment
}

// parameter is a number that an algorithm takes.
type parameter struct {
	name      string // "": it takes none
	least     int
	otherwise int // where the choice says nothing
}

var (
	none      = parameter{}
	children  = parameter{"k", 1, 4}
	radix     = parameter{"k", 2, 4}
	howMany   = parameter{"chains", 1, 1}
	segmented = true
	atOnce    = false
)

var algorithms = []algorithm{
	{dag.Barrier, "dissemination", barrierDissemination, none, atOnce},
	{dag.Barrier, "recdoubling", barrierRecdoubling, none, atOnce},
	{dag.Barrier, "binomial", barrierBinomial, none, atOnce},
	{dag.Barrier, "linear", barrierLinear, none, atOnce},
	{dag.Barrier, "hierarchical", barrierHierarchical, none, atOnce},
	{dag.Bcast, "binomial", bcastBinomial, none, segmented},
	{dag.Bcast, "binary", bcastBinary, none, segmented},
	{dag.Bcast, "kary", bcastKary, children, segmented},
	{dag.Bcast, "knomial", bcastKnomial, radix, segmented},
	{dag.Bcast, "chain", bcastChain, howMany, segmented},
	{dag.Bcast, "linear", bcastLinear, none, atOnce},
	{dag.Bcast, "scatterallgather", bcastScatterallgather, none, atOnce},
	{dag.Bcast, "scatterrecdoubling", bcastScatterrecdoubling, none, atOnce},
	{dag.Bcast, "doublebinarytree", bcastDoublebinarytree, none, segmented},
	{dag.Bcast, "hierarchical", bcastHierarchical, none, segmented},
	{dag.Reduce, "binomial", reduceBinomial, none, segmented},
	{dag.Reduce, "binary", reduceBinary, none, segmented},
	{dag.Reduce, "kary", reduceKary, children, segmented},
	{dag.Reduce, "knomial", reduceKnomial, radix, segmented},
	{dag.Reduce, "chain", reduceChain, howMany, segmented},
	{dag.Reduce, "linear", reduceLinear, none, atOnce},
	{dag.Reduce, "rabenseifner", reduceRabenseifner, none, atOnce},
	{dag.Reduce, "doublebinarytree", reduceDoublebinarytree, none, segmented},
	{dag.Reduce, "hierarchical", reduceHierarchical, none, segmented},
	{dag.Allreduce, "recdoubling", allreduceRecdoubling, none, atOnce},
	{dag.Allreduce, "ring", allreduceRing, none, segmented},
	{dag.Allreduce, "reducebcast", allreduceReducebcast, none, segmented},
	{dag.Allreduce, "rabenseifner", allreduceRabenseifner, none, atOnce},
	{dag.Allreduce, "doublebinarytree", allreduceDoublebinarytree, none, segmented},
	{dag.Allreduce, "hierarchical", allreduceHierarchical, none, segmented},
	{dag.Gather, "binomial", gatherBinomial, none, atOnce},
	{dag.Gather, "linear", gatherLinear, none, atOnce},
	{dag.Gatherv, "binomial", gatherBinomial, none, atOnce},
	{dag.Gatherv, "linear", gatherLinear, none, atOnce},
	{dag.Scatter, "binomial", scatterBinomial, none, atOnce},
	{dag.Scatter, "linear", scatterLinear, none, atOnce},
	{dag.Scatterv, "binomial", scatterBinomial, none, atOnce},
	{dag.Scatterv, "linear", scatterLinear, none, atOnce},
	{dag.Allgather, "ring", allgatherRing, none, atOnce},
	{dag.Allgather, "recdoubling", allgatherRecdoubling, none, atOnce},
	{dag.Allgather, "bruck", allgatherBruck, none, atOnce},
	{dag.Allgather, "neighborexchange", allgatherNeighborexchange, none, atOnce},
	{dag.Allgather, "gatherbcast", allgatherGatherbcast, none, segmented},
	{dag.Allgather, "linear", allgatherLinear, none, atOnce},
	{dag.Allgatherv, "ring", allgatherRing, none, atOnce},
	{dag.Allgatherv, "recdoubling", allgatherRecdoubling, none, atOnce},
	{dag.Allgatherv, "bruck", allgatherBruck, none, atOnce},
	{dag.Allgatherv, "neighborexchange", allgatherNeighborexchange, none, atOnce},
	{dag.Allgatherv, "gatherbcast", allgatherGatherbcast, none, segmented},
	{dag.Allgatherv, "linear", allgatherLinear, none, atOnce},
	{dag.Alltoall, "pairwise", alltoallPairwise, none, atOnce},
	{dag.Alltoall, "bruck", alltoallBruck, none, atOnce},
	{dag.Alltoall, "linear", alltoallLinear, none, atOnce},
	{dag.Alltoallv, "pairwise", alltoallPairwise, none, atOnce},
	{dag.Alltoallv, "linear", alltoallLinear, none, atOnce},
	{dag.ReduceScatter, "ring", reducescatterRing, none, atOnce},
	{dag.ReduceScatter, "rechalving", reducescatterRechalving, none, atOnce},
	{dag.ReduceScatter, "pairwise", reducescatterPairwise, none, atOnce},
	{dag.ReduceScatter, "reducescatterv", reducescatterReducescatterv, none, atOnce},
	{dag.Scan, "recdoubling", scanRecdoubling, none, atOnce},
	{dag.Scan, "linear", scanLinear, none, atOnce},
	{dag.Exscan, "recdoubling", scanRecdoubling, none, atOnce},
	{dag.Exscan, "linear", scanLinear, none, atOnce},
}

// Plan appends to s what c's member does in the algorithm of that name for c.Kind. The name may have parameters in
// parentheses, as in a choice; they take the place of those in c.
func Plan(c *Call, algorithm string, s *Schedule) error {
	u, err := parseUse(c.Kind, algorithm)
	if err != nil {
		return err
	}
	call := *c
	return u.plan(&call, s)
}

// use is an algorithm with its parameters.
type use struct {
	*algorithm
	k       int
	segment int64
}

// plan sets the parameters of the call and appends the member's part.
func (u *use) plan(c *Call, s *Schedule) error {
	if c.Members == 1 {
		return nil
	}
	c.K, c.Segment = u.k, u.segment
	if u.segment > 0 {
		x := c.whole()
		if c.Kind == dag.Allgather || c.Kind == dag.Allgatherv {
			x = c.blocks(0, c.Members)
		}
		if (x.bytes-1)/u.segment >= maxSegments {
			return fmt.Errorf("%s of %d bytes by %s in segments of %d bytes, expected at most %d of them", u.kind, x.bytes,
				u.name, u.segment, maxSegments)
		}
	}
	u.algorithm.plan(c, s)
	return nil
}

func find(kind dag.Subkind, name string) (*algorithm, error) {
	for i := range algorithms {
		if a := &algorithms[i]; a.kind == kind && a.name == name {
			return a, nil
		}
	}
	var names []string
	for i := range algorithms {
		if a := &algorithms[i]; a.kind == kind {
			names = append(names, a.name)
		}
	}
	return nil, fmt.Errorf("no algorithm %q for %s, expected %s", name, kind, strings.Join(names, " or "))
}

// parseUse reads an algorithm with parameters, such as "chain(chains=2,segment=64KiB)".
func parseUse(kind dag.Subkind, text string) (use, error) {
	name, rest, open := strings.Cut(text, "(")
	a, err := find(kind, strings.TrimSpace(name))
	if err != nil {
		return use{}, err
	}
	u := use{algorithm: a, k: a.parameter.otherwise}
	if !open {
		return u, nil
	}
	list, after, closed := strings.Cut(rest, ")")
	if !closed || strings.TrimSpace(after) != "" {
		return use{}, fmt.Errorf("expected an algorithm such as chain(segment=64KiB), found %q", text)
	}
	set := map[string]bool{}
	for assignment := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, found := strings.Cut(assignment, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found {
			return use{}, fmt.Errorf("expected an algorithm such as chain(segment=64KiB), found %q", text)
		}
		if set[name] {
			return use{}, fmt.Errorf("%q: %s is there twice", text, name)
		}
		set[name] = true
		if err := u.set(name, value); err != nil {
			return use{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return u, nil
}

// set gives a parameter its value.
func (u *use) set(name, value string) (err error) {
	switch {
	case name == "segment" && u.segments:
		if u.segment, err = parseSize(value); err != nil {
			return fmt.Errorf("segment %q: %w", value, err)
		}
		return nil
	case name == u.parameter.name && name != "":
		if u.k, err = parseCount(value); err != nil || u.k < u.parameter.least {
			return fmt.Errorf("%s is %q, expected a whole number of %d or more", name, value, u.parameter.least)
		}
		return nil
	}
	var names []string
	if u.parameter.name != "" {
		names = append(names, u.parameter.name)
	}
	if u.segments {
		names = append(names, "segment")
	}
	if names == nil {
		return fmt.Errorf("%s by %s has no parameters, found %q", u.kind, u.name, name)
	}
	return fmt.Errorf("no parameter %q, expected %s", name, strings.Join(names, " or "))
}
