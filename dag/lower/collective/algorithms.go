package collective

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// algorithm is an algorithm for a collective.
type algorithm struct {
	kind      dag.Subkind
	name      string
	plan      func(p *Participant, s *Schedule) // appends the part of one member of two or more
	parameter parameter                         // Participant.k
	segments  bool                              // has the parameter segment: Participant.segmentSize
	nodes     bool                              // depends on the nodes of the ranks
	// divides the vector into parts of whole elements
	dividesElements bool
}

// parameter is an integer parameter of an algorithm.
type parameter struct {
	name     string // "": no parameter
	min      int
	standard int // default value
}

var (
	children = parameter{"k", 1, 4}
	radix    = parameter{"k", 2, 4}
	chains   = parameter{"chains", 1, 1}
	// groupSize is the number of members with which a member exchanges data at a time
	groupSize = parameter{"group", 1, 4}
)

var algorithms = []algorithm{
	{kind: dag.Barrier, name: "dissemination", plan: barrierDissemination},
	{kind: dag.Barrier, name: "recdoubling", plan: barrierRecdoubling},
	{kind: dag.Barrier, name: "recdoublinghigh", plan: barrierRecdoublinghigh},
	{kind: dag.Barrier, name: "binomial", plan: barrierBinomial},
	{kind: dag.Barrier, name: "linear", plan: barrierLinear},
	{kind: dag.Barrier, name: "fan", plan: barrierFan},
	{kind: dag.Barrier, name: "hierarchical", plan: barrierHierarchical, nodes: true},
	{kind: dag.Bcast, name: "binomial", plan: bcastBinomial, segments: true},
	{kind: dag.Bcast, name: "binary", plan: bcastBinary, segments: true},
	{kind: dag.Bcast, name: "kary", plan: bcastKary, parameter: children, segments: true},
	{kind: dag.Bcast, name: "knomial", plan: bcastKnomial, parameter: radix, segments: true},
	{kind: dag.Bcast, name: "knomiallevels", plan: bcastKnomiallevels, parameter: radix},
	{kind: dag.Bcast, name: "chain", plan: bcastChain, parameter: chains, segments: true},
	{kind: dag.Bcast, name: "chainnonblocking", plan: bcastChainnonblocking, segments: true},
	{kind: dag.Bcast, name: "relaybinomial", plan: bcastRelaybinomial, segments: true},
	{kind: dag.Bcast, name: "relaybinary", plan: bcastRelaybinary, segments: true},
	{kind: dag.Bcast, name: "relaychain", plan: bcastRelaychain, segments: true},
	{kind: dag.Bcast, name: "linear", plan: bcastLinear},
	{kind: dag.Bcast, name: "scatterallgather", plan: bcastScatterallgather},
	{kind: dag.Bcast, name: "scatterallgatherup", plan: bcastScatterallgatherup},
	{kind: dag.Bcast, name: "scatterrecdoubling", plan: bcastScatterrecdoubling},
	{kind: dag.Bcast, name: "scatterrecdoublingspread", plan: bcastScatterrecdoublingspread},
	{kind: dag.Bcast, name: "doublebinarytree", plan: bcastDoublebinarytree, segments: true},
	{kind: dag.Bcast, name: "blockbinomial", plan: bcastBlockbinomial, nodes: true},
	{kind: dag.Bcast, name: "blockbinary", plan: bcastBlockbinary, segments: true, nodes: true},
	{kind: dag.Bcast, name: "hierarchical", plan: bcastHierarchical, segments: true, nodes: true},
	{kind: dag.Reduce, name: "binomial", plan: reduceBinomial, segments: true},
	{kind: dag.Reduce, name: "binomialtuned", plan: reduceBinomialtuned},
	{kind: dag.Reduce, name: "binary", plan: reduceBinary, segments: true},
	{kind: dag.Reduce, name: "binaryinterleaved", plan: reduceBinaryinterleaved, segments: true},
	{kind: dag.Reduce, name: "kary", plan: reduceKary, parameter: children, segments: true},
	{kind: dag.Reduce, name: "knomial", plan: reduceKnomial, parameter: radix, segments: true},
	{kind: dag.Reduce, name: "knomialnonblocking", plan: reduceKnomialnonblocking, parameter: radix},
	{kind: dag.Reduce, name: "chain", plan: reduceChain, parameter: chains, segments: true},
	{kind: dag.Reduce, name: "chainbuffered", plan: reduceChainbuffered, parameter: chains, segments: true},
	{kind: dag.Reduce, name: "linear", plan: reduceLinear},
	{kind: dag.Reduce, name: "nonblocking", plan: reduceNonblocking},
	{kind: dag.Reduce, name: "sequential", plan: reduceSequential},
	{kind: dag.Reduce, name: "rabenseifner", plan: reduceRabenseifner},
	{kind: dag.Reduce, name: "rabenseifnernear", plan: reduceRabenseifnernear, dividesElements: true},
	{kind: dag.Reduce, name: "doublebinarytree", plan: reduceDoublebinarytree, segments: true},
	{kind: dag.Reduce, name: "twolevel", plan: reduceTwolevel, nodes: true},
	{kind: dag.Reduce, name: "hierarchical", plan: reduceHierarchical, segments: true, nodes: true},
	{kind: dag.Allreduce, name: "recdoubling", plan: allreduceRecdoubling},
	{kind: dag.Allreduce, name: "ring", plan: allreduceRing, segments: true},
	{kind: dag.Allreduce, name: "ringremainder", plan: allreduceRingremainder, dividesElements: true},
	{kind: dag.Allreduce, name: "reducebcast", plan: allreduceReducebcast, segments: true},
	{kind: dag.Allreduce, name: "reducethenbcast", plan: allreduceReducethenbcast},
	{kind: dag.Allreduce, name: "rabenseifner", plan: allreduceRabenseifner},
	{kind: dag.Allreduce, name: "rabenseifnernear", plan: allreduceRabenseifnernear, dividesElements: true},
	{kind: dag.Allreduce, name: "halvingthenallgather", plan: allreduceHalvingthenallgather, dividesElements: true},
	{kind: dag.Allreduce, name: "doublebinarytree", plan: allreduceDoublebinarytree, segments: true},
	{kind: dag.Allreduce, name: "twolevel", plan: allreduceTwolevel, nodes: true},
	{kind: dag.Allreduce, name: "hierarchical", plan: allreduceHierarchical, segments: true, nodes: true},
	{kind: dag.Gather, name: "binomial", plan: gatherBinomial},
	{kind: dag.Gather, name: "linear", plan: gatherLinear},
	{kind: dag.Gather, name: "nonblocking", plan: gatherNonblocking},
	{kind: dag.Gather, name: "sequential", plan: gatherSequential},
	{kind: dag.Gather, name: "linearsync", plan: gatherLinearsync},
	{kind: dag.Gatherv, name: "binomial", plan: gatherBinomial},
	{kind: dag.Gatherv, name: "linear", plan: gatherLinear},
	{kind: dag.Gatherv, name: "nonblocking", plan: gatherNonblocking},
	{kind: dag.Gatherv, name: "sequential", plan: gatherSequential},
	{kind: dag.Scatter, name: "binomial", plan: scatterBinomial},
	{kind: dag.Scatter, name: "binomialascending", plan: scatterBinomialascending},
	{kind: dag.Scatter, name: "linear", plan: scatterLinear},
	{kind: dag.Scatter, name: "nonblocking", plan: scatterNonblocking},
	{kind: dag.Scatter, name: "sequential", plan: scatterSequential},
	{kind: dag.Scatterv, name: "binomial", plan: scatterBinomial},
	{kind: dag.Scatterv, name: "binomialascending", plan: scatterBinomialascending},
	{kind: dag.Scatterv, name: "linear", plan: scatterLinear},
	{kind: dag.Scatterv, name: "nonblocking", plan: scatterNonblocking},
	{kind: dag.Scatterv, name: "sequential", plan: scatterSequential},
	{kind: dag.Allgather, name: "ring", plan: allgatherRing},
	{kind: dag.Allgather, name: "shift", plan: allgatherShift},
	{kind: dag.Allgather, name: "recdoubling", plan: allgatherRecdoubling},
	{kind: dag.Allgather, name: "recdoublingspread", plan: allgatherRecdoublingspread},
	{kind: dag.Allgather, name: "bruck", plan: allgatherBruck},
	{kind: dag.Allgather, name: "neighborexchange", plan: allgatherNeighborexchange},
	{kind: dag.Allgather, name: "gatherbcast", plan: allgatherGatherbcast, segments: true},
	{kind: dag.Allgather, name: "gatherthenbcast", plan: allgatherGatherthenbcast},
	{kind: dag.Allgather, name: "chosengatherthenbcast", plan: allgatherChosengatherthenbcast},
	{kind: dag.Allgather, name: "linear", plan: allgatherLinear},
	{kind: dag.Allgather, name: "ordered", plan: allgatherOrdered},
	{kind: dag.Allgatherv, name: "ring", plan: allgatherRing},
	{kind: dag.Allgatherv, name: "ringsegments", plan: allgatherRingsegments},
	{kind: dag.Allgatherv, name: "shift", plan: allgatherShift},
	{kind: dag.Allgatherv, name: "recdoubling", plan: allgatherRecdoubling},
	{kind: dag.Allgatherv, name: "recdoublingspread", plan: allgatherRecdoublingspread},
	{kind: dag.Allgatherv, name: "bruck", plan: allgatherBruck},
	{kind: dag.Allgatherv, name: "neighborexchange", plan: allgatherNeighborexchange},
	{kind: dag.Allgatherv, name: "gatherbcast", plan: allgatherGatherbcast, segments: true},
	{kind: dag.Allgatherv, name: "gatherthenbcast", plan: allgatherGatherthenbcast},
	{kind: dag.Allgatherv, name: "linear", plan: allgatherLinear},
	{kind: dag.Allgatherv, name: "ordered", plan: allgatherOrdered},
	{kind: dag.Alltoall, name: "pairwise", plan: alltoallPairwise},
	{kind: dag.Alltoall, name: "recdoublingspread", plan: alltoallRecdoublingspread},
	{kind: dag.Alltoall, name: "shift", plan: alltoallShift},
	{kind: dag.Alltoall, name: "bruck", plan: alltoallBruck},
	{kind: dag.Alltoall, name: "linear", plan: alltoallLinear},
	{kind: dag.Alltoall, name: "linearreverse", plan: alltoallLinearreverse},
	{kind: dag.Alltoall, name: "scattered", plan: alltoallScattered, parameter: groupSize},
	{kind: dag.Alltoall, name: "ordered", plan: alltoallOrdered},
	{kind: dag.Alltoallv, name: "pairwise", plan: alltoallPairwise},
	{kind: dag.Alltoallv, name: "shift", plan: alltoallShift},
	{kind: dag.Alltoallv, name: "linear", plan: alltoallLinear},
	{kind: dag.Alltoallv, name: "linearreverse", plan: alltoallLinearreverse},
	{kind: dag.Alltoallv, name: "scattered", plan: alltoallScattered, parameter: groupSize},
	{kind: dag.Alltoallv, name: "ordered", plan: alltoallOrdered},
	{kind: dag.ReduceScatter, name: "ring", plan: reducescatterRing},
	{kind: dag.ReduceScatter, name: "ringbuffered", plan: reducescatterRingbuffered},
	{kind: dag.ReduceScatter, name: "rechalving", plan: reducescatterRechalving},
	{kind: dag.ReduceScatter, name: "rechalvingbuffered", plan: reducescatterRechalvingbuffered},
	{kind: dag.ReduceScatter, name: "recdoubling", plan: reducescatterRecdoubling},
	{kind: dag.ReduceScatter, name: "pairwise", plan: reducescatterPairwise},
	{kind: dag.ReduceScatter, name: "butterfly", plan: reducescatterButterfly},
	{kind: dag.ReduceScatter, name: "reducescatterv", plan: reducescatterReducescatterv},
	{kind: dag.ReduceScatter, name: "linear", plan: reducescatterLinear},
	{kind: dag.Scan, name: "recdoubling", plan: scanRecdoubling},
	{kind: dag.Scan, name: "linear", plan: scanLinear},
	{kind: dag.Scan, name: "ordered", plan: scanOrdered},
	{kind: dag.Scan, name: "sequential", plan: scanSequential},
	{kind: dag.Exscan, name: "recdoubling", plan: scanRecdoubling},
	{kind: dag.Exscan, name: "linear", plan: scanLinear},
	{kind: dag.Exscan, name: "ordered", plan: scanOrdered},
	{kind: dag.Exscan, name: "sequential", plan: scanSequential},
}

// Plan appends the participant's part in the named algorithm of p.Kind to s. The name may have parameters in
// parentheses, as in a choice. Plan returns an error for an unknown algorithm or parameter, and for more than 2^20
// segments.
func Plan(p *Participant, algorithm string, s *Schedule) error {
	chosen, err := parseSelection(p.Kind, algorithm)
	if err != nil {
		return err
	}
	participant := *p
	return chosen.plan(&participant, s)
}

// selection is an algorithm with the values of its parameters.
type selection struct {
	*algorithm
	k       int
	segment int64 // bytes; 0: no segmentation
}

// plan sets the parameters of p and appends its part to s. It returns an error if p, or a phase of it, has too many
// segments.
func (sel *selection) plan(p *Participant, s *Schedule) error {
	if p.Members == 1 || s.err != nil {
		return s.err
	}
	p.k, p.segmentSize = sel.k, sel.segment
	if sel.segment > 0 {
		x := p.whole()
		if p.Kind == dag.Allgather || p.Kind == dag.Allgatherv {
			x = p.blocks(0, p.Members)
		}
		if (x.bytes-1)/sel.segment >= maxSegments {
			s.err = fmt.Errorf("%s of %d bytes by %s in segments of %d bytes, expected at most %d of them", sel.kind,
				x.bytes, sel.name, sel.segment, maxSegments)
			return s.err
		}
	}
	sel.algorithm.plan(p, s)
	return s.err
}

func findAlgorithm(kind dag.Subkind, name string) (*algorithm, error) {
	names := AlgorithmNames(kind)
	meant := param.Resolve(name, names, algorithmSynonyms...)
	for i := range algorithms {
		if a := &algorithms[i]; a.kind == kind && a.name == meant {
			return a, nil
		}
	}
	return nil, fmt.Errorf("no algorithm %q for %s, expected %s%s", name, kind, strings.Join(names, " or "),
		param.Suggest(name, names))
}

// AlgorithmNames returns the names of the algorithms of a collective.
func AlgorithmNames(kind dag.Subkind) (names []string) {
	for i := range algorithms {
		if a := &algorithms[i]; a.kind == kind {
			names = append(names, a.name)
		}
	}
	return names
}

// algorithmSynonyms are further names of algorithms in papers and in the parameters of MPI libraries.
var algorithmSynonyms = []param.Synonym{
	{Choice: "recdoubling", Names: []string{"recursive-doubling"}},
	{Choice: "rechalving", Names: []string{"recursive-halving"}},
	{
		Choice: "rabenseifner",
		Names:  []string{"halving-doubling", "recursive-halving-doubling", "reduce-scatter-allgather"},
	},
	{Choice: "doublebinarytree", Names: []string{"double-tree", "dbt"}},
	{Choice: "pairwise", Names: []string{"pairwise-exchange"}},
	{Choice: "binomial", Names: []string{"binomial-tree"}},
	{Choice: "binary", Names: []string{"binary-tree"}},
	{Choice: "chain", Names: []string{"pipeline"}},
}

// parseCollective returns the collective of a name or synonym, such as all-reduce or broadcast.
func parseCollective(name string) (dag.Subkind, bool) {
	kind, ok := dag.ParseSubkind(param.Resolve(name, collectiveNames(),
		param.Synonym{Choice: "bcast", Names: []string{"broadcast"}}))
	return kind, ok && kind.Of(dag.Coll)
}

func collectiveNames() []string {
	names := make([]string, len(allCollectives))
	for i, k := range allCollectives {
		names[i] = k.String()
	}
	return names
}

// parseSelection parses an algorithm with parameters, such as "chain(chains=2,segment=64KiB)".
func parseSelection(kind dag.Subkind, text string) (selection, error) {
	name, rest, open := strings.Cut(text, "(")
	a, err := findAlgorithm(kind, strings.TrimSpace(name))
	if err != nil {
		return selection{}, err
	}
	sel := selection{algorithm: a, k: a.parameter.standard}
	if !open {
		return sel, nil
	}
	list, after, closed := strings.Cut(rest, ")")
	if !closed || strings.TrimSpace(after) != "" {
		return selection{}, fmt.Errorf("expected an algorithm such as chain(segment=64KiB), found %q", text)
	}
	set := map[string]bool{}
	for assignment := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, found := strings.Cut(assignment, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found {
			return selection{}, fmt.Errorf("expected an algorithm such as chain(segment=64KiB), found %q", text)
		}
		if set[name] {
			return selection{}, fmt.Errorf("%q: %s is listed twice", text, name)
		}
		set[name] = true
		if err := sel.set(name, value); err != nil {
			return selection{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return sel, nil
}

// set sets a parameter.
func (sel *selection) set(name, value string) (err error) {
	switch {
	case name == "segment" && sel.segments:
		if sel.segment, err = parseSize(value); err != nil {
			return fmt.Errorf("segment %q: %w", value, err)
		}
		return nil
	case name == sel.parameter.name && name != "":
		if sel.k, err = parseCount(value); err != nil || sel.k < sel.parameter.min {
			return fmt.Errorf("%s is %q, expected a whole number of %d or more", name, value, sel.parameter.min)
		}
		return nil
	}
	names := sel.parameters()
	if names == nil {
		return fmt.Errorf("%s by %s has no parameters, found %q", sel.kind, sel.name, name)
	}
	return fmt.Errorf("no parameter %q, expected %s", name, strings.Join(names, " or "))
}

// parameters returns the names of the algorithm's parameters.
func (a *algorithm) parameters() (names []string) {
	if a.parameter.name != "" {
		names = append(names, a.parameter.name)
	}
	if a.segments {
		names = append(names, "segment")
	}
	return names
}

// signature returns the algorithm as a choice names it, with the defaults of its parameters, such as
// "kary(k=4,segment=SIZE)".
func (a *algorithm) signature() string {
	names := a.parameters()
	for i, name := range names {
		if name == a.parameter.name {
			names[i] += "=" + strconv.Itoa(a.parameter.standard)
		} else {
			names[i] += "=SIZE"
		}
	}
	if names == nil {
		return a.name
	}
	return a.name + "(" + strings.Join(names, ",") + ")"
}
