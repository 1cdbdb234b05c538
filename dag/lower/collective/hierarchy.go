package collective

// nodeMap maps the members of a communicator to nodes. Nodes are numbered in the order of their first members.
type nodeMap struct {
	of      []int32 // node of each position
	place   []int32 // index of each position among the members of its node
	starts  []int32 // first index of each node in members, then len(members)
	members []int32 // positions, node by node, ascending in each node
	spread  layout
}

// newNodeMap returns the node map of a communicator. nodes[i] identifies the node of the member at position i.
func newNodeMap(nodes []int32) *nodeMap {
	n := &nodeMap{of: make([]int32, len(nodes)), place: make([]int32, len(nodes)), members: make([]int32, len(nodes))}
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
	n.spread = n.count()
	return n
}

// hierarchy is the place of a member in a two-level communicator: its node, and the leaders of all nodes. The leader of
// the root's node is the root; the leader of another node is its first member.
type hierarchy struct {
	nodes  *nodeMap
	root   int32
	node   int32       // the member's node
	inside Participant // among the members of the node; the leader is the root
	across Participant // among the leaders; positions are node numbers
}

// setHierarchy sets s.hierarchy to the place of the participant and returns it. root is the root of the collective, or
// the member that takes its role in a collective without a root.
func (p *Participant) setHierarchy(s *Schedule, root int) *hierarchy {
	s.hierarchy.set(p, root)
	return &s.hierarchy
}

// set sets h to the place of the participant, as [Participant.setHierarchy] does.
func (h *hierarchy) set(p *Participant, root int) {
	*h = hierarchy{nodes: p.nodes, root: int32(root), inside: *p, across: *p}
	h.across.Root = root
	if p.nodes == nil {
		h.inside.Members = 1
		return
	}
	n := p.nodes
	h.node = n.of[p.Me]
	h.inside.Members, h.inside.Me, h.inside.Root = len(n.membersOf(h.node)), int(n.place[p.Me]), 0
	h.across.Members, h.across.Me, h.across.Root = len(n.starts)-1, int(h.node), int(n.of[root])
	if h.across.Me == h.across.Root {
		h.inside.Root = int(n.place[root])
	}
}

// membersOf returns the positions of the members of a node.
func (n *nodeMap) membersOf(node int32) []int32 {
	return n.members[n.starts[node]:n.starts[node+1]]
}

// withinNode appends a stage of the collective among the members of the node.
func (h *hierarchy) withinNode(s *Schedule, plan func(p *Participant, s *Schedule)) {
	if h.inside.Members > 1 {
		members := h.nodes.membersOf(h.node)
		s.stage(func(position int32) int32 { return members[position] }, func() { plan(&h.inside, s) })
	}
}

// amongLeaders appends a stage of the collective among the leaders, if the member is one.
func (h *hierarchy) amongLeaders(s *Schedule, plan func(p *Participant, s *Schedule)) {
	if h.across.Members == 1 || h.inside.Members > 1 && h.inside.Me != h.inside.Root {
		return
	}
	leader := func(node int32) int32 {
		switch {
		case h.nodes == nil:
			return node
		case node == h.nodes.of[h.root]:
			return h.root
		}
		return h.nodes.membersOf(node)[0]
	}
	s.stage(leader, func() { plan(&h.across, s) })
}
