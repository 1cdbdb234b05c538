package dag

import "math"

// graph is the dependencies, of both kinds, of the ops of a rank. It skips malformed lists and references that leave
// the rank, so every rank has a graph.
type graph struct {
	n           int
	deps, start Edges
}

func (r *Rank) graph() graph {
	n := r.Len()
	return graph{n: n, deps: r.Deps.wellFormed(n), start: r.StartDeps.wellFormed(n)}
}

// indexOrdered reports whether every op comes after its dependencies, as in most traces.
func (g *graph) indexOrdered() bool {
	for _, e := range []*Edges{&g.deps, &g.start} {
		used := uint32(0)
		if len(e.End) > 0 {
			used = e.End[len(e.End)-1]
		}
		for _, off := range e.Off[:used] {
			if off <= 0 {
				return false
			}
		}
	}
	return true
}

// dependency returns the k-th dependency of op: first those that must finish, then those that must start. It returns
// false beyond the last. A dependency that does not exist is -1.
func (g *graph) dependency(op, k int) (int, bool) {
	off := g.deps.Of(op)
	if k >= len(off) {
		k -= len(off)
		if off = g.start.Of(op); k >= len(off) {
			return 0, false
		}
	}
	p := op - int(off[k])
	if uint(p) >= uint(g.n) {
		p = -1
	}
	return p, true
}

// components finds the strongly connected components of a graph, by the algorithm of R. Tarjan, "Depth-first search
// and linear graph algorithms", SIAM J. Comput. 1 (1972), without recursion. It reuses its memory from rank to rank.
type components struct {
	// by op: 0 = not visited; positive while its component is incomplete; then the number of its component, negative
	number []int32
	low    []int32 // the lowest number that the op is known to reach
	open   []int32 // ops of incomplete components
	path   []visit // from the root of the search to the current op
}

type visit struct {
	op   int32
	next int // number of dependencies of op that were followed
}

// find calls found for each component of g, after the components on which it depends. The slice is valid during the
// call.
func (c *components) find(g *graph, found func(ops []int32)) {
	c.number = zeroed(c.number, g.n)
	c.low = zeroed(c.low, g.n)
	c.open, c.path = c.open[:0], c.path[:0]
	visited, complete := int32(0), int32(0)
	enter := func(op int) {
		visited++
		c.number[op], c.low[op] = visited, visited
		c.open = append(c.open, int32(op))
		c.path = append(c.path, visit{op: int32(op)})
	}
	for root := range g.n {
		if c.number[root] != 0 {
			continue
		}
		enter(root)
		for len(c.path) > 0 {
			top := &c.path[len(c.path)-1]
			op := int(top.op)
			p, more := g.dependency(op, top.next)
			if more {
				top.next++
				switch {
				case p < 0:
				case c.number[p] == 0:
					enter(p)
				case c.number[p] > 0:
					c.low[op] = min(c.low[op], c.number[p])
				}
				continue
			}
			c.path = c.path[:len(c.path)-1]
			if len(c.path) > 0 {
				above := c.path[len(c.path)-1].op
				c.low[above] = min(c.low[above], c.low[op])
			}
			if c.low[op] != c.number[op] {
				continue
			}
			complete++
			first := len(c.open) - 1
			for int(c.open[first]) != op {
				first--
			}
			for _, member := range c.open[first:] {
				c.number[member] = -complete
			}
			found(c.open[first:])
			c.open = c.open[:first]
		}
	}
}

// zeroed returns a slice of n zeros. It reuses the memory of s if that is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// cyclic reports whether the ops of a component of find lie on a cycle.
func (c *components) cyclic(g *graph, ops []int32) bool {
	if len(ops) > 1 {
		return true
	}
	op := int(ops[0])
	for k := 0; ; k++ {
		p, more := g.dependency(op, k)
		if !more {
			return false
		}
		if p == op {
			return true
		}
	}
}

// cycle returns a shortest cycle through the lowest op of a cyclic component, in the order of dependencies: each op
// depends on the next. It must be called in the found function of find, for that component.
func (c *components) cycle(g *graph, ops []int32) []int32 {
	lowest := int32(math.MaxInt32)
	for _, op := range ops {
		lowest = min(lowest, op)
		c.low[op] = -1 // from now on the predecessor of the op in the search
	}
	queue := []int32{lowest}
	for {
		op := queue[0]
		queue = queue[1:]
		for k := 0; ; k++ {
			p, more := g.dependency(int(op), k)
			if !more {
				break
			}
			if int32(p) == lowest {
				var back []int32
				for at := op; at != lowest; at = c.low[at] {
					back = append(back, at)
				}
				cycle := []int32{lowest}
				for i := len(back) - 1; i >= 0; i-- {
					cycle = append(cycle, back[i])
				}
				return cycle
			}
			if p >= 0 && c.number[p] == c.number[op] && c.low[p] < 0 {
				c.low[p] = op
				queue = append(queue, int32(p))
			}
		}
	}
}
