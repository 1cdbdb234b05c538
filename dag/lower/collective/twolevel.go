package collective

import "github.com/tracedag/tracedag/dag"

// levels is a set of levels of a collective.
type levels uint8

const (
	levelWhole   levels = 1 << iota // all members
	levelNode                       // the members of a node, in a collective of two levels
	levelLeaders                    // the leaders of the nodes, in a collective of two levels
)

// fits reports whether the set has a level or is empty.
func (l levels) fits(level levels) bool {
	return l == 0 || l&max(level, levelWhole) != 0
}

// layout is the distribution of the members of a communicator over nodes. The zero value is one member per node.
type layout struct {
	size   int  // members per node; -1: nodes differ in it; 0: 1
	shared bool // a node has several members
}

// perNode returns the number of members of each node, 0 if nodes differ in it.
func (l layout) perNode() int {
	switch l.size {
	case -1:
		return 0
	case 0:
		return 1
	}
	return l.size
}

// distribution returns the layout of the members over the nodes. A nil map is that of one member per node.
func (n *nodeMap) distribution() layout {
	if n == nil {
		return layout{}
	}
	return n.spread
}

// count returns the distribution of the members over the nodes.
func (n *nodeMap) count() layout {
	l := layout{size: int(n.starts[1])}
	for node := range len(n.starts) - 1 {
		members := n.membersOf(int32(node))
		if len(members) != l.size {
			l.size = -1
		}
		l.shared = l.shared || len(members) > 1
	}
	return l
}

// layout returns the distribution of the members over the nodes.
func (p *Participant) layout() layout {
	switch {
	case p.level == levelNode:
		return layout{size: p.Members, shared: p.Members > 1}
	case p.level == levelLeaders:
		return layout{}
	}
	return p.nodes.distribution()
}

// twoLevels is the place of a member in a communicator of nodes, each led by its first member.
type twoLevels struct {
	*hierarchy
	leader int // position of the leader of the root's node
}

// newTwoLevels returns the place of the participant. root is the root of the collective, or 0.
func (p *Participant) newTwoLevels(root int) twoLevels {
	leader := root
	if p.nodes != nil {
		leader = int(p.nodes.membersOf(p.nodes.of[root])[0])
	}
	t := twoLevels{hierarchy: new(hierarchy), leader: leader}
	t.set(p, leader)
	t.inside.level, t.across.level = levelNode, levelLeaders
	return t
}

// inNode appends a collective of the members of the node by the algorithm that the choice selects, as a stage. The
// leader is the root.
func (t twoLevels) inNode(kind dag.Subkind, s *Schedule) {
	t.withinNode(s, func(p *Participant, s *Schedule) { p.phase(kind, p.Root, p.Bytes, s) })
}

// amongNodes appends a collective of the leaders by the algorithm that the choice selects, as a stage.
func (t twoLevels) amongNodes(kind dag.Subkind, s *Schedule) {
	t.amongLeaders(s, func(p *Participant, s *Schedule) { p.phase(kind, p.Root, p.Bytes, s) })
}

// allreduceTwolevel is an allreduce in each node, one of the first members of the nodes, then a bcast in each node, by
// the algorithms that the choice selects for these levels.
//
// SimGrid 3.32, src/smpi/colls/allreduce/allreduce-mvapich-two-level.cpp.
func allreduceTwolevel(p *Participant, s *Schedule) {
	t := p.newTwoLevels(0)
	t.inNode(dag.Allreduce, s)
	t.amongNodes(dag.Allreduce, s)
	t.inNode(dag.Bcast, s)
}

// reduceTwolevel is a reduce in each node to its first member, one of these to the first member of the root's node, by
// the algorithms that the choice selects for these levels, then a message to the root. If there is one node only, it is
// reduceSequential to the first member and a message to the root up to 2 KiB, reduceKnomialnonblocking above.
//
// SimGrid 3.32, src/smpi/colls/reduce/reduce-mvapich-two-level.cpp.
func reduceTwolevel(p *Participant, s *Schedule) {
	t := p.newTwoLevels(p.Root)
	switch {
	case t.across.Members > 1:
		t.inNode(dag.Reduce, s)
		t.amongNodes(dag.Reduce, s)
	case p.Bytes > 2048:
		part := *p
		part.k = 4
		reduceKnomialnonblocking(&part, s)
		return
	default:
		t.withinNode(s, reduceSequential)
	}
	if t.leader == p.Root {
		return
	}
	s.stage(samePosition, func() {
		switch p.Me {
		case t.leader:
			s.send(p.Root, p.whole())
		case p.Root:
			s.recv(t.leader, p.whole())
		}
	})
}

// bcastBlockbinomial sends from the root to member 0, from there down a binomial tree of the first members of blocks,
// then down one in each block. The blocks are consecutive members, as many as a node has, if the nodes have equally
// many.
//
// SimGrid 3.32, src/smpi/colls/bcast/bcast-SMP-binomial.cpp.
func bcastBlockbinomial(p *Participant, s *Schedule) {
	k := max(p.layout().perNode(), 1)
	from0, _ := relay(p, s, p.whole())
	first := p.Me / k * k
	down := func(me, members, begin, stride int) {
		part := from0
		part.Me, part.Members = me, members
		s.stage(func(v int32) int32 { return int32(begin) + v*int32(stride) }, func() { bcastBinomial(&part, s) })
	}
	if p.Me == first {
		down(p.Me/k, p.Members/k, 0, k)
	}
	down(p.Me-first, k, first, 1)
}

// bcastBlockbinary sends from the root to member 0, from there down a binary tree of the first members of the blocks of
// bcastBlockbinomial, and down one in each block. A first member sends to those of other blocks first; sends are
// blocking.
//
// SimGrid 3.32, src/smpi/colls/bcast/bcast-SMP-binary.cpp.
func bcastBlockbinary(p *Participant, s *Schedule) {
	k := max(p.layout().perNode(), 1)
	_, last := relay(p, s, p.whole())
	block, i, first := p.Me/k, p.Me%k, p.Me/k*k
	t := treeNode{p: p, s: s, root: p.Me == 0, parent: first + (i-1)/2, sent: noStep, rcvd: noStep}
	if i == 0 {
		t.parent = (block - 1) / 2 * k
		for child := 2*block + 1; child <= 2*block+2 && child < p.Members/k; child++ {
			t.children = append(t.children, int32(child*k))
		}
	}
	for child := 2*i + 1; child <= 2*i+2 && child < k; child++ {
		t.children = append(t.children, int32(first+child))
	}
	relayDown(p, s, t, p.whole(), last, true)
}
