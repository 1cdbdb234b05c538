package graph500

// Breadth-first searches from 64 roots at a time: each root has a bit in a word of each vertex.

import "math/bits"

// width is the number of searches at a time.
const width = 64

// bfs is the state of searches, by vertex.
type bfs struct {
	*graph
	visited, front, next []uint64 // roots that reached a vertex: ever, in this level, in the next one
	active, reached      []uint32 // vertices with bits in front, in next
}

func newBFS(g *graph) *bfs {
	n := g.vertices()
	return &bfs{graph: g, visited: make([]uint64, n), front: make([]uint64, n), next: make([]uint64, n)}
}

// run returns the ends of edges that the search from each root explores, by level: the sum of the degrees of the
// vertices at that distance.
func (b *bfs) run(roots []uint32) [][]int64 {
	levels := make([][]int64, len(roots))
	b.begin(roots)
	for {
		var sums [width]int64
		live, ends := b.advance(&sums)
		if live == 0 {
			return levels
		}
		for i := range levels {
			if live>>i&1 != 0 {
				levels[i] = append(levels[i], sums[i])
			}
		}
		b.expand(live, ends)
	}
}

// unreached is the distance of a vertex that a search does not reach.
const unreached = -1

// distances returns the distance of each vertex from a root, and the number of different distances.
func (g *graph) distances(root uint32) (of []int32, levels int) {
	of = make([]int32, g.vertices())
	for v := range of {
		of[v] = unreached
	}
	b := newBFS(g)
	for b.begin([]uint32{root}); ; levels++ {
		var sums [width]int64
		live, ends := b.advance(&sums)
		if live == 0 {
			return of, levels
		}
		for _, v := range b.active {
			of[v] = int32(levels)
		}
		b.expand(live, ends)
	}
}

// begin makes the roots the next level.
func (b *bfs) begin(roots []uint32) {
	clear(b.visited)
	b.reached = b.reached[:0]
	for i, root := range roots {
		if b.next[root] == 0 {
			b.reached = append(b.reached, root)
		}
		b.next[root] |= 1 << i
	}
}

// expand finds the next level of the live roots, given the ends of edges of the current one.
func (b *bfs) expand(live uint64, ends int64) {
	const few = 16 // exploring vertices that are reached is cheaper than asking all, which stops early
	if ends < int64(len(b.ends))/few {
		b.push()
	} else {
		b.pull(live)
	}
}

// advance makes the next level the current one. It returns the roots that reached a vertex, and the degrees of all
// reached vertices; sums gets those by root.
func (b *bfs) advance(sums *[width]int64) (live uint64, ends int64) {
	for _, v := range b.active {
		b.front[v] = 0
	}
	b.active, b.reached = b.reached, b.active[:0]
	for _, v := range b.active {
		fresh, degree := b.next[v], b.degree(int(v))
		b.next[v], b.front[v] = 0, fresh
		b.visited[v] |= fresh
		live |= fresh
		ends += degree
		for ; fresh != 0; fresh &= fresh - 1 {
			sums[bits.TrailingZeros64(fresh)] += degree
		}
	}
	return live, ends
}

// push visits the neighbors of active vertices.
func (b *bfs) push() {
	for _, v := range b.active {
		front := b.front[v]
		for _, w := range b.neighbors(int(v)) {
			fresh := front &^ b.visited[w]
			if fresh == 0 {
				continue
			}
			if b.next[w] == 0 {
				b.reached = append(b.reached, w)
			}
			b.next[w] |= fresh
		}
	}
}

// pull looks for active neighbors of all vertices that some live root has not reached.
func (b *bfs) pull(live uint64) {
	for v := range b.visited {
		missing := live &^ b.visited[v]
		if missing == 0 {
			continue
		}
		fresh := uint64(0)
		for _, w := range b.neighbors(v) {
			if fresh |= b.front[w]; fresh&missing == missing {
				break
			}
		}
		if fresh &= missing; fresh != 0 {
			b.next[v] = fresh
			b.reached = append(b.reached, uint32(v))
		}
	}
}
