package platform

import (
	"container/heap"
	"math"
	"slices"
)

// graph is the routes of a zone whose longer routes consist of them: the shortest ones, by number of links.
type graph struct {
	nodes  []int32             // points, in the order of their first route
	index  map[int32]int32     // of points in nodes
	edges  [][]edge            // by node, in the order of the file
	routes map[[2]int32]*route // by source and destination
	table  [][]int32           // Floyd, by source and destination: node before the destination; -1: no path
}

// edge is a route.
type edge struct {
	to   int32 // node
	cost int32 // number of links
}

// maxFloyd is the largest number of points of a zone with the routing Floyd. The time is proportional to its cube.
const maxFloyd = 1024

// node returns the node of a point.
func (g *graph) node(at int32) int32 {
	i, known := g.index[at]
	if !known {
		i = int32(len(g.nodes))
		g.index[at] = i
		g.nodes, g.edges = append(g.nodes, at), append(g.edges, nil)
	}
	return i
}

// add adds a route.
func (g *graph) add(from, to int32, r *route) {
	a, b := g.node(from), g.node(to)
	g.edges[a] = append(g.edges[a], edge{b, int32(len(r.links))})
	g.routes[[2]int32{a, b}] = r
}

// floyd computes the table with the algorithm of Floyd and Warshall. The order of nodes decides between paths of equal
// length.
func (g *graph) floyd() {
	n := len(g.nodes)
	g.table = make([][]int32, n)
	cost := make([][]int32, n)
	for i := range n {
		g.table[i], cost[i] = make([]int32, n), make([]int32, n)
		for j := range n {
			g.table[i][j], cost[i][j] = -1, math.MaxInt32
		}
		for _, e := range g.edges[i] {
			g.table[i][e.to], cost[i][e.to] = int32(i), e.cost
		}
	}
	for c := range n {
		for a := range n {
			first := cost[a][c]
			if first == math.MaxInt32 {
				continue
			}
			from, through, before, last := cost[a], cost[c], g.table[a], g.table[c]
			for b, rest := range through {
				if rest != math.MaxInt32 && first+rest < from[b] {
					from[b], before[b] = first+rest, last[b]
				}
			}
		}
	}
}

// tree returns the node before each node on the shortest path from one node; -1: there is none. SimGrid's choice
// between paths of equal length is that of Dijkstra's algorithm with a queue ordered by cost and node.
func (g *graph) tree(from int32) []int32 {
	n := len(g.nodes)
	before, cost := make([]int32, n), make([]int64, n)
	for i := range n {
		before[i], cost[i] = -1, math.MaxInt64
	}
	cost[from] = 0
	queue := costQueue{{0, from}}
	for len(queue) > 0 {
		at := heap.Pop(&queue).(costOf)
		if at.cost > cost[at.node] {
			continue
		}
		for _, e := range g.edges[at.node] {
			if c := at.cost + int64(e.cost); c < cost[e.to] {
				cost[e.to], before[e.to] = c, at.node
				heap.Push(&queue, costOf{c, e.to})
			}
		}
	}
	return before
}

// costOf is the cost of the path to a node.
type costOf struct {
	cost int64
	node int32
}

type costQueue []costOf

func (q costQueue) Len() int { return len(q) }
func (q costQueue) Less(i, j int) bool {
	return q[i].cost < q[j].cost || q[i].cost == q[j].cost && q[i].node < q[j].node
}
func (q costQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *costQueue) Push(x any)   { *q = append(*q, x.(costOf)) }
func (q *costQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// shortest appends the shortest route between two points of a zone with the routing Floyd or Dijkstra.
func (r *Router) shortest(z *zone, from, to int32) (in, out int32, err error) {
	g := z.graph
	a, known := g.index[from]
	b, knownToo := g.index[to]
	if from == to && (!known || g.routes[[2]int32{a, a}] == nil) {
		if !z.nested {
			r.add(r.p.loopback)
		}
		return nobody, nobody, nil
	}
	if !known || !knownToo {
		return nobody, nobody, errNone
	}
	before := r.before(z, a)
	var parts []*route // from the last
	for at := b; ; {
		last := before[at]
		if at == a && from == to {
			last = a
		}
		if last < 0 || len(parts) > len(g.nodes) {
			return nobody, nobody, errNone
		}
		parts = append(parts, g.routes[[2]int32{last, at}])
		if at = last; at == a {
			break
		}
	}
	join := func(i int) error { // of a route and the one after it, by i
		if !z.nested || parts[i+1].to == parts[i].from {
			return nil
		}
		return r.global(parts[i+1].to, parts[i].from)
	}
	if z.kind == kindDijkstra {
		err = r.backwards(parts, join)
	} else {
		for i, part := range slices.Backward(parts) {
			if i < len(parts)-1 {
				if err := join(i); err != nil {
					return nobody, nobody, err
				}
			}
			r.add(part.links...)
		}
	}
	if err != nil {
		return nobody, nobody, err
	}
	return parts[len(parts)-1].from, parts[0].to, nil
}

// backwards appends routes that are listed from the last on, and what joins them. As in SimGrid, which prepends link by
// link, those of each route are in reverse order, and latencies are added from the last route on: rounding depends on
// both.
func (r *Router) backwards(parts []*route, join func(i int) error) error {
	at := len(r.path.Links)
	for i, part := range parts {
		if i > 0 {
			start := len(r.path.Links)
			if err := join(i - 1); err != nil {
				return err
			}
			slices.Reverse(r.path.Links[start:])
		}
		r.add(part.links...)
	}
	slices.Reverse(r.path.Links[at:])
	return nil
}

// before returns the node before each node on the paths from one.
func (r *Router) before(z *zone, from int32) []int32 {
	if z.graph.table != nil {
		return z.graph.table[from]
	}
	key := treeKey{z, from}
	tree, known := r.trees[key]
	if !known {
		tree = z.graph.tree(from)
		if r.kept += len(tree); r.kept > maxKept {
			clear(r.trees)
			r.kept = len(tree)
		}
		r.trees[key] = tree
	}
	return tree
}
