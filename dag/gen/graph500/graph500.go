// Package graph500 generates traces of the "simple" breadth-first search of Graph500 by the traffic model of Fuentes et
// al., "A scalable synthetic traffic model of Graph500 for computer networks analysis": for every level of the search
// messages from each process to uniformly drawn others, notices of its end, and an all-reduce.
//
// docs/reference/generators/graph500.md has the rules and their sources, the paper or its reference program.
package graph500

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// exactProcesses is the largest number of processes for which the ops of each rank are counted beforehand. The time for
// that grows with the square of the number.
const exactProcesses = 4096

// NewSource returns the trace of a search. The same parameters and seed give the same trace.
//
// The number of ops of a rank depends on the draws of all others. For up to exactProcesses processes it is counted
// beforehand; above, the Ops of batches are expected values. Header.Ops is exact in any case.
func NewSource(p Params, seed int64) (*rankwise.Source, error) {
	return newSource(p, seed, exactProcesses)
}

func newSource(p Params, seed int64, exact int) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	return newSearch(&p, seed).source("Graph500 search", exact)
}

// source returns the trace of a search. With more than exact processes, ops are counted as they are generated.
func (s *search) source(title string, exact int) (*rankwise.Source, error) {
	p := s.p
	if first, end := s.written(); first >= end {
		return nil, fmt.Errorf("graph500: levels are %v, but this search has the levels 0-%d", *p.Levels,
			len(s.levels)-1)
	}
	count, total, err := s.counts(exact)
	if err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	ranks, err := rankwise.NewSource(rankwise.Model{
		Title:   s.title(title),
		Ranks:   p.Nodes,
		Context: p.Context,
		Kinds:   []dag.Kind{dag.Calc, dag.Send, dag.Recv},
		Count:   count,
		Ops:     total,
		Fill: func(rank int, b *dag.RankBuilder) {
			w := writer{search: s, rank: rank, pace: p.paceOf(rank), b: b, began: -1, last: -1}
			w.write()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	return ranks, nil
}

// title returns the title of the trace, which begins with the given one.
func (s *search) title(begin string) string {
	p := s.p
	title := fmt.Sprintf("%s, scale %d, edge factor %d, %d processes, root degree %d, %d levels",
		begin, p.Scale, p.EdgeFactor, p.Nodes, s.rootDegree, len(s.levels))
	if first, end := s.written(); end-first < len(s.levels) {
		title += fmt.Sprintf(", of which %v", Span{first, end - 1})
	}
	if groups := p.differing(); len(groups) > 0 {
		title += fmt.Sprintf(", query time %v,%s", p.QueryTime, strings.Join(groups, ","))
	}
	const longest = 300 // of a title: the provenance has all groups
	if len(title) > longest {
		title = title[:longest] + "..."
	}
	return title
}
