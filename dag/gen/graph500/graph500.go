// Package graph500 generates traces of the "simple" breadth-first search of Graph500 by the traffic model of Fuentes et
// al., "A scalable synthetic traffic model of Graph500 for computer networks analysis": for every level of the search
// messages from each process to uniformly drawn others, notices of its end, and an all-reduce.
//
// docs/generators/graph500.md has the rules, and which of them are the paper's, which those of its reference program.
package graph500

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Source is the trace of a search, made rank by rank. It is a format.Source.
//
// How many ops a rank has depends on what all others draw for it. Of up to exactProcesses processes that is counted
// beforehand; of more, the Ops of batches are what is expected. NumOps is exact in any case.
type Source struct {
	*rankwise.Source
	ops int64
}

// exactProcesses is up to how many processes the ops of each rank are counted beforehand, which takes a time that grows
// with the square of their number.
const exactProcesses = 4096

// NewSource returns the trace of a search. The same parameters and seed give the same trace.
func NewSource(p Params, seed int64) (*Source, error) {
	return newSource(p, seed, exactProcesses)
}

func newSource(p Params, seed int64, exact int) (*Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	s := newSearch(&p, seed)
	count, total, err := s.counts(exact)
	if err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	ranks, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("Graph500 search, scale %d, edge factor %d, %d processes, root degree %d, %d levels",
			p.Scale, p.EdgeFactor, p.Nodes, s.rootDegree, len(s.levels)),
		Ranks: p.Nodes,
		Kinds: []dag.Kind{dag.Calc, dag.Send, dag.Recv},
		Count: count,
		Fill: func(rank int, b *dag.RankBuilder) {
			w := writer{search: s, rank: rank, b: b, began: -1, last: -1}
			w.write()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	return &Source{ranks, total}, nil
}

// NumOps returns how many ops the trace has.
func (s *Source) NumOps() int64 {
	return s.ops
}

// Generate returns the trace of a search.
func Generate(p Params, seed int64) (*dag.Trace, error) {
	s, err := NewSource(p, seed)
	if err != nil {
		return nil, err
	}
	return s.Trace()
}
