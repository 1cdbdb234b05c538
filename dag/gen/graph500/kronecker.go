package graph500

// Kronecker graphs of the specification of Graph500, in compressed sparse rows.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// graph is an undirected graph without self-loops. Edges that occur several times are kept, unless removed.
type graph struct {
	offsets []uint32 // of each vertex in ends, and of the end
	ends    []uint32 // neighbors, in arbitrary order
	loops   int64    // self-loops that were dropped
}

// Limits of graphs in memory.
const (
	maxGraphScale = 24
	maxGraphEnds  = 1 << 31
)

// checkGraph returns an error if a graph is too large for memory.
func (p *Params) checkGraph() error {
	ends := p.totalEdges()
	switch {
	case p.Scale > maxGraphScale:
		return fmt.Errorf("scale is %d, expected 1..%d for a graph in memory", p.Scale, maxGraphScale)
	case ends > maxGraphEnds:
		return fmt.Errorf("scale %d and edge-factor %d give %d ends of edges, expected at most 2^31 for a graph in "+
			"memory", p.Scale, p.EdgeFactor, ends)
	}
	return memory.Check(p.Context, "ends of edges", 4, ends)
}

func (g *graph) vertices() int { return len(g.offsets) - 1 }

func (g *graph) degree(v int) int64 { return int64(g.offsets[v+1] - g.offsets[v]) }

func (g *graph) neighbors(v int) []uint32 { return g.ends[g.offsets[v]:g.offsets[v+1]] }

// edges generates edges in blocks, each from its own random numbers.
type edges struct {
	scale  int
	number int64
	keys   [2]uint64
}

const edgesOfBlock = 1 << 14

// newEdges returns the edges of a graph. The specification permutes vertices and edges; no count depends on that.
func (p *Params) newEdges(seed int64) *edges {
	r := draws(seed, 0, 0, "edges")
	return &edges{p.Scale, int64(p.EdgeFactor) << p.Scale, [2]uint64{r.Uint64(), r.Uint64()}}
}

// each calls visit for all edges, on several goroutines.
func (e *edges) each(ctx context.Context, visit func(from, to uint32)) error {
	blocks := int((e.number + edgesOfBlock - 1) / edgesOfBlock)
	return par.Each(blocks, func(block int) error {
		var r rand.PCG
		r.Seed(mix(e.keys[0]^uint64(block)), mix(e.keys[1]+uint64(block)))
		for range min(edgesOfBlock, e.number-int64(block)*edgesOfBlock) {
			visit(e.draw(&r))
		}
		return par.Interrupted(ctx)
	})
}

// draw draws one quadrant per level, from 32 random bits.
func (e *edges) draw(r *rand.PCG) (from, to uint32) {
	const (
		first  = (1 << 32) * 57 / 100 // edgeA of all numbers
		second = (1 << 32) * 76 / 100 // edgeA + edgeB
		third  = (1 << 32) * 95 / 100 // edgeA + edgeB + edgeC
	)
	bits := uint64(0)
	for level := range e.scale {
		if level%2 == 0 {
			bits = r.Uint64()
		}
		u := uint32(bits)
		bits >>= 32
		from, to = from<<1, to<<1
		if u >= second {
			from |= 1
		}
		if u >= first && u < second || u >= third {
			to |= 1
		}
	}
	return from, to
}

// newGraph generates the graph of a seed: the edges are generated twice, to count and to store their ends.
func (p *Params) newGraph(seed int64) (*graph, error) {
	edges := p.newEdges(seed)
	vertices := 1 << p.Scale
	g := &graph{offsets: make([]uint32, vertices+1)}
	degrees := g.offsets[1:]
	err := edges.each(p.Context, func(from, to uint32) {
		if from == to {
			atomic.AddInt64(&g.loops, 1)
			return
		}
		atomic.AddUint32(&degrees[from], 1)
		atomic.AddUint32(&degrees[to], 1)
	})
	if err != nil {
		return nil, err
	}
	for v := range vertices {
		g.offsets[v+1] += g.offsets[v]
	}
	g.ends = make([]uint32, g.offsets[vertices])
	next := slices.Clone(g.offsets[:vertices])
	err = edges.each(p.Context, func(from, to uint32) {
		if from != to {
			g.ends[atomic.AddUint32(&next[from], 1)-1] = to
			g.ends[atomic.AddUint32(&next[to], 1)-1] = from
		}
	})
	return g, err
}

// removeDuplicates keeps one of several edges between two vertices.
func (g *graph) removeDuplicates() {
	par.For(g.vertices(), func(v int) { slices.Sort(g.neighbors(v)) })
	kept := uint32(0)
	for v := range g.vertices() {
		from, last := g.offsets[v], uint32(math.MaxUint32)
		to := g.offsets[v+1]
		g.offsets[v] = kept
		for _, end := range g.ends[from:to] {
			if end != last {
				g.ends[kept], last = end, end
				kept++
			}
		}
	}
	g.offsets[g.vertices()], g.ends = kept, g.ends[:kept]
}
