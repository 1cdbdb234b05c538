package collective

// Nodes says which members of a communicator share a node. Nodes are numbered in the order of their first members.
type Nodes struct {
	of      []int32 // node of each position
	place   []int32 // of each position among the members of its node
	starts  []int32 // where the members of each node begin in members, and where the last node's end
	members []int32 // positions, node by node, ascending in each
}

// NewNodes returns the nodes of a communicator, given for each position the number of its node in some numbering.
func NewNodes(nodes []int32) *Nodes {
	n := &Nodes{of: make([]int32, len(nodes)), place: make([]int32, len(nodes)), members: make([]int32, len(nodes))}
	numbers := map[int32]int32{}
	for i, node := range nodes {
		number, known := numbers[node]
		if !known {
			number = int32(len(numbers))
			numbers[node] = number
			n.starts = append(n.starts, 0)
		}
		n.of[i], n.place[i] = number, n.starts[number]
		n.starts[number]++
	}
	n.starts = append(n.starts, 0)
	sum := int32(0)
	for i, size := range n.starts {
		n.starts[i] = sum
		sum += size
	}
	for i, node := range n.of {
		n.members[n.starts[node]+n.place[i]] = int32(i)
	}
	return n
}

// levels is the place of a member in a communicator of two levels: its node, and the leaders of all nodes. A node's
// leader is its first member; that of the root's node is the root.
type levels struct {
	nodes  *Nodes
	root   int32
	node   int32
	inside Call // in the member's node, with the leader as root
	across Call // among the leaders, who have the numbers of their nodes, with the root as root
}

// setLevels sets s.levels to the member's place and returns it. The root is that of the collective, or a member that
// takes its part.
func (c *Call) setLevels(s *Schedule, root int) *levels {
	l := &s.levels
	*l = levels{nodes: c.Nodes, root: int32(root), inside: *c, across: *c}
	l.across.Root = root
	if c.Nodes == nil {
		l.inside.Members = 1
		return l
	}
	n := c.Nodes
	l.node = n.of[c.Me]
	l.inside.Members, l.inside.Me, l.inside.Root = len(n.mates(l.node)), int(n.place[c.Me]), 0
	l.across.Members, l.across.Me, l.across.Root = len(n.starts)-1, int(l.node), int(n.of[root])
	if l.across.Me == l.across.Root {
		l.inside.Root = int(n.place[root])
	}
	return l
}

// mates returns the members of a node.
func (n *Nodes) mates(node int32) []int32 {
	return n.members[n.starts[node]:n.starts[node+1]]
}

// within has the members of the node carry out a part of the collective.
func (l *levels) within(s *Schedule, plan func(c *Call, s *Schedule)) {
	if l.inside.Members > 1 {
		mates := l.nodes.mates(l.node)
		s.stage(func(p int32) int32 { return mates[p] }, func() { plan(&l.inside, s) })
	}
}

// among has the leaders carry out a part of the collective.
func (l *levels) among(s *Schedule, plan func(c *Call, s *Schedule)) {
	if l.across.Members == 1 || l.inside.Members > 1 && l.inside.Me != l.inside.Root {
		return
	}
	leader := func(node int32) int32 {
		switch {
		case l.nodes == nil:
			return node
		case node == l.nodes.of[l.root]:
			return l.root
		}
		return l.nodes.mates(node)[0]
	}
	s.stage(leader, func() { plan(&l.across, s) })
}
