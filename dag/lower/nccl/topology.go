package nccl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag/attr"
)

// topology is the connections of a communicator. Ranks are positions in the communicator.
type topology struct {
	rings []ringOrder // by channel
	trees []treeOrder
	given bool // the trace states the number of channels

	groups [][]int32 // the ranks of each node, nodes in ascending order
	node   []int32   // index of the node of each rank in groups
	place  []int32   // index of each rank among those of its node

	headTrees []treeOrder // of the ranks at the same place of their nodes; set by connectHeads
}

// nodes returns the number of nodes of the ranks.
func (t *topology) nodes() int { return len(t.groups) }

// ringOrder is a ring.
type ringOrder struct {
	order    []int32 // ranks from rank 0 on
	position []int32 // index of each rank in order
}

func (o *ringOrder) next(rank int32) int32 { return o.order[(int(o.position[rank])+1)%len(o.order)] }

func (o *ringOrder) prev(rank int32) int32 {
	return o.order[(int(o.position[rank])+len(o.order)-1)%len(o.order)]
}

// treeOrder is a tree.
type treeOrder struct {
	parent   []int32   // parent of each rank; none at the root
	children [][]int32 // children of each rank
}

const none = -1

func newRing(order []int32, n int) (ringOrder, error) {
	o := ringOrder{order: order, position: slices.Repeat([]int32{none}, n)}
	if len(order) != n || n > 0 && order[0] != 0 {
		return o, fmt.Errorf("a ring of %d ranks, expected all %d from rank 0 on", len(order), n)
	}
	for i, rank := range order {
		if rank < 0 || int(rank) >= n || o.position[rank] != none {
			return o, fmt.Errorf("a ring that does not contain rank %d exactly once", rank)
		}
		o.position[rank] = int32(i)
	}
	return o, nil
}

func newTree(parent []int32, n int) (treeOrder, error) {
	o := treeOrder{parent: parent, children: make([][]int32, n)}
	if len(parent) != n {
		return o, fmt.Errorf("a tree of %d ranks, expected %d", len(parent), n)
	}
	roots := 0
	for rank, up := range parent {
		switch {
		case up == none:
			roots++
		case up < 0 || int(up) >= n || int(up) == rank:
			return o, fmt.Errorf("a tree in which the parent of rank %d is %d", rank, up)
		default:
			o.children[up] = append(o.children[up], int32(rank))
		}
	}
	// With one root, every rank is below it unless some ranks form a cycle.
	reached, next := 0, []int32{}
	if roots == 1 {
		next = append(next, int32(slices.Index(parent, none)))
	}
	for len(next) > 0 {
		rank := next[len(next)-1]
		next = append(next[:len(next)-1], o.children[rank]...)
		reached++
	}
	if reached != n {
		return o, fmt.Errorf("a tree that does not connect all %d ranks to one root", n)
	}
	return o, nil
}

// newTopology returns the connections of a communicator as the trace states them, or else the default connections that
// [Regroup] describes. members has the rank of each position in the trace, nodes its node.
func newTopology(a attr.NCCLTopology, members, nodes []int32) (*topology, error) {
	n := len(members)
	t := &topology{groups: byNodes(members, nodes), node: make([]int32, n), place: make([]int32, n)}
	for node, ranks := range t.groups {
		for place, rank := range ranks {
			t.node[rank], t.place[rank] = int32(node), int32(place)
		}
	}
	channels := max(len(a.Rings), len(a.Trees), a.Channels)
	if channels > maxChannels {
		return nil, fmt.Errorf("%d channels, expected at most %d", channels, maxChannels)
	}
	if t.given = channels > 0; !t.given {
		channels = 1
	}
	for _, order := range a.Rings {
		r, err := newRing(order, n)
		if err != nil {
			return nil, err
		}
		t.rings = append(t.rings, r)
	}
	for _, parent := range a.Trees {
		r, err := newTree(parent, n)
		if err != nil {
			return nil, err
		}
		t.trees = append(t.trees, r)
	}
	if len(t.rings) == 0 {
		r, err := newRing(rotated(slices.Concat(t.groups...)), n)
		if err != nil {
			return nil, err
		}
		t.rings = slices.Repeat([]ringOrder{r}, channels)
	}
	if len(t.trees) == 0 {
		trees := doubleTree(t.groups)
		for ch := range max(channels, 2) {
			t.trees = append(t.trees, trees[ch%2])
		}
	}
	return t, nil
}

// ring returns the ring of a channel, modulo the number of rings.
func (t *topology) ring(channel int32) *ringOrder { return &t.rings[int(channel)%len(t.rings)] }

func (t *topology) tree(channel int32) *treeOrder { return &t.trees[int(channel)%len(t.trees)] }

// even reports whether all nodes have equal numbers of ranks.
func (t *topology) even() bool {
	return !slices.ContainsFunc(t.groups, func(g []int32) bool { return len(g) != len(t.groups[0]) })
}

// connectHeads sets the trees between nodes of NVLS Tree: the ranks at the same place of their nodes form NCCL's two
// binary trees. The nodes have equal numbers of ranks.
func (t *topology) connectHeads() {
	if t.headTrees != nil {
		return
	}
	for which := range 2 {
		o := treeOrder{parent: make([]int32, len(t.node)), children: make([][]int32, len(t.node))}
		for i, ranks := range t.groups {
			up := nodeParent(which, len(t.groups), i)
			for place, rank := range ranks {
				if o.parent[rank] = none; up != none {
					parent := t.groups[up][place]
					o.parent[rank] = parent
					o.children[parent] = append(o.children[parent], rank)
				}
			}
		}
		t.headTrees = append(t.headTrees, o)
	}
}

// headTree returns the tree between nodes of a channel of NVLS Tree.
func (t *topology) headTree(channel int32) *treeOrder { return &t.headTrees[channel%2] }

// byNodes returns the ranks of each node in ascending order of node, then of rank in the trace.
func byNodes(members, nodes []int32) (groups [][]int32) {
	ranks := make([]int32, len(nodes))
	for i := range ranks {
		ranks[i] = int32(i)
	}
	slices.SortFunc(ranks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(nodes[a], nodes[b]), cmp.Compare(members[a], members[b]))
	})
	first := 0
	for i, rank := range ranks {
		if i+1 == len(ranks) || nodes[ranks[i+1]] != nodes[rank] {
			groups = append(groups, ranks[first:i+1])
			first = i + 1
		}
	}
	return groups
}

// rotated returns a ring rotated to start at rank 0.
func rotated(order []int32) []int32 {
	zero := max(slices.Index(order, 0), 0)
	return append(slices.Clone(order[zero:]), order[:zero]...)
}

// doubleTree returns two trees. Each has a chain inside every node, from the lowest to the highest rank, and one of
// NCCL's two complementary binary trees between nodes, from the highest rank of a node to the lowest rank of its parent
// node.
func doubleTree(groups [][]int32) [2]treeOrder {
	n := 0
	for _, ranks := range groups {
		n += len(ranks)
	}
	var trees [2]treeOrder
	for which := range trees {
		parent := make([]int32, n)
		for i, ranks := range groups {
			for k, rank := range ranks {
				switch up := nodeParent(which, len(groups), i); {
				case k+1 < len(ranks):
					parent[rank] = ranks[k+1]
				case up == none:
					parent[rank] = none
				default:
					parent[rank] = groups[up][0]
				}
			}
		}
		trees[which], _ = newTree(parent, n) // always a tree
	}
	return trees
}

// nodeParent returns the parent of node i of n in the first (which = 0) or the second of NCCL's trees between nodes.
// The second tree is the first one mirrored if n is even, otherwise shifted by one node (S. Jeaugey, "Massively scale
// your deep learning training with NCCL 2.4", 2019; P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", 2009).
func nodeParent(which, n, i int) int {
	switch {
	case which == 0:
		return binaryParent(n, i)
	case n%2 == 0:
		if up := binaryParent(n, n-1-i); up != none {
			return n - 1 - up
		}
	default:
		if up := binaryParent(n, (i+n-1)%n); up != none {
			return (up + 1) % n
		}
	}
	return none
}

// binaryParent returns the parent of node i of n in the binary tree with root 0 and odd leaves.
func binaryParent(n, i int) int {
	if i == 0 {
		return none
	}
	low := i & -i
	up := i&^low | low<<1
	if up >= n {
		up = i &^ low
	}
	return up
}

// nodesOf returns the node of each of the ranks.
func nodesOf(members, nodes []int32) []int32 {
	of := make([]int32, len(members))
	for i, rank := range members {
		of[i] = rank
		if nodes != nil {
			of[i] = nodes[rank]
		}
	}
	return of
}
