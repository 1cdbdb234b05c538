package graph500

// Searches of a generated graph, whose vertices are divided among processes.

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag/gen/rankwise"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// NewGraphSource returns the trace of a search of a generated Kronecker graph, from one of its vertices. Without
// duplicates, one of several edges between two vertices is kept. The parameters that shape amounts of the model
// (Degrees other than their weight, Variation, Eq7, HIntDiv, MaxLevels and Rest) have no effect.
func NewGraphSource(p Params, dedup bool, seed int64) (*rankwise.Source, error) {
	if err := p.checkGraphSearch(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	s, err := newGraphSearch(&p, dedup, seed)
	if err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	return s.source("Graph500 search of a graph", exactProcesses)
}

// checkGraphSearch returns an error about a parameter, or about memory.
func (p *Params) checkGraphSearch() error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Nodes > exactProcesses {
		return fmt.Errorf("ranks is %d, expected 2..%d to search a graph", p.Nodes, exactProcesses)
	}
	return p.checkGraph()
}

// newGraphSearch generates the graph, draws the owner of each vertex and the root, and searches.
func newGraphSearch(p *Params, dedup bool, seed int64) (*search, error) {
	g, err := p.newGraph(seed)
	if err != nil {
		return nil, err
	}
	if dedup {
		g.removeDuplicates()
	}
	o := p.divide(g.vertices(), seed)
	root, err := p.chooseRoot(g, o, seed)
	if err != nil {
		return nil, err
	}
	distances, levels := g.distances(root)
	s := &search{p: p, seed: seed, root: int(o.owner[root]), rootDegree: g.degree(int(root))}
	n := int64(p.Nodes)
	if err := memory.Check(p.Context, "queries between processes", 4*int64(levels), n*n); err != nil {
		return nil, err
	}
	e := &explored{processes: p.Nodes, coalescing: p.Coalescing, seed: seed, queries: make([][]uint32, levels)}
	for level := range e.queries {
		e.queries[level] = make([]uint32, n*n)
	}
	err = par.Each(p.Nodes, func(process int) error {
		for _, v := range o.vertices(process) {
			if distances[v] == unreached {
				continue
			}
			row := e.row(int(distances[v]), process)
			for _, w := range g.neighbors(int(v)) {
				if to := o.owner[w]; int(to) != process {
					row[to]++
				}
			}
		}
		return par.Interrupted(p.Context)
	})
	if err != nil {
		return nil, err
	}
	s.levels = make([][]amount, levels)
	for level := range s.levels {
		s.levels[level] = make([]amount, n)
		par.For(p.Nodes, func(process int) { s.levels[level][process] = e.amount(level, process) })
	}
	s.targets = e
	return s, nil
}

// division is the vertices of each process: a part of a random order of all vertices.
type division struct {
	owner  []uint32 // of each vertex
	order  []uint32
	bounds []int // of the parts in order
}

// divide deals vertices in random order; the first processes have one more than the last if need be.
func (p *Params) divide(vertices int, seed int64) *division {
	d := &division{owner: make([]uint32, vertices), order: make([]uint32, vertices)}
	for v := range d.order {
		d.order[v] = uint32(v)
	}
	draws(seed, 0, 0, "vertices").Shuffle(vertices, func(i, k int) { d.order[i], d.order[k] = d.order[k], d.order[i] })
	each, more := vertices/p.Nodes, vertices%p.Nodes
	for process := range p.Nodes + 1 {
		d.bounds = append(d.bounds, process*each+min(process, more))
	}
	for process := range p.Nodes {
		for _, v := range d.vertices(process) {
			d.owner[v] = uint32(process)
		}
	}
	return d
}

func (d *division) vertices(process int) []uint32 {
	return d.order[d.bounds[process]:d.bounds[process+1]]
}

// chooseRoot draws a vertex with edges, or an end of an edge, among those of the given degree and process.
func (p *Params) chooseRoot(g *graph, d *division, seed int64) (uint32, error) {
	candidates := d.order
	if p.RootProcess >= 0 {
		candidates = d.vertices(p.RootProcess)
	}
	weight := func(v uint32) int64 {
		switch degree := g.degree(int(v)); {
		case degree == 0 || p.RootDegree > 0 && degree != p.RootDegree:
			return 0
		case p.Degrees.Weighted:
			return degree
		}
		return 1
	}
	sum := int64(0)
	for _, v := range candidates {
		sum += weight(v)
	}
	if sum == 0 {
		return 0, p.noRoot(g, candidates)
	}
	at := draws(seed, 0, 0, "root vertex").Int64N(sum)
	for _, v := range candidates {
		if at -= weight(v); at < 0 {
			return v, nil
		}
	}
	panic("graph500: the sum of weights has changed")
}

// noRoot returns the error if no candidate has the degree.
func (p *Params) noRoot(g *graph, candidates []uint32) error {
	below, above := int64(0), int64(math.MaxInt64)
	for _, v := range candidates {
		switch degree := g.degree(int(v)); {
		case degree < p.RootDegree:
			below = max(below, degree)
		case degree > 0:
			above = min(above, degree)
		}
	}
	of := "of the graph"
	if p.RootProcess >= 0 {
		of = fmt.Sprintf("of process %d", p.RootProcess)
	}
	var nearest string
	switch {
	case below > 0 && above < math.MaxInt64:
		nearest = fmt.Sprintf("%d or %d", below, above)
	case below > 0:
		nearest = fmt.Sprint(below)
	case above < math.MaxInt64:
		nearest = fmt.Sprint(above)
	default:
		return fmt.Errorf("no vertex %s has edges, expected a larger --scale or --edge-factor", of)
	}
	return fmt.Errorf("no vertex %s has degree %d, expected such as --root-degree %s", of, p.RootDegree, nearest)
}
