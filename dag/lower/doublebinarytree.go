package lower

// Two binary trees over the same members, in which hardly any member has children in both. Each carries one half of the
// data, so that every member can send as much as it receives.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009. NCCL builds its trees in nearly the same way (src/graph/trees.cc).

// inorder is a binary tree of the members 1..n-1, numbered in order, below the root 0: odd members are leaves.
func inorder(v, n, _ int, children []int32) (int, []int32) {
	if v == 0 {
		return 0, append(children, int32(floorPower(n-1)))
	}
	height := v & -v
	parent := v&^height | height<<1
	if parent >= n {
		parent = v &^ height
	}
	if height == 1 {
		return parent, children
	}
	children = append(children, int32(v-height/2))
	for right := height / 2; right > 0; right /= 2 {
		if v+right < n {
			children = append(children, int32(v+right))
			break
		}
	}
	return parent, children
}

// otherInorder is inorder with other members as leaves: mirrored, or shifted by one where that would change nothing.
func otherInorder(v, n, k int, children []int32) (int, []int32) {
	last := n - 1
	place := func(v int) int { return last + 1 - v } // its own inverse
	member := place
	if last%2 != 0 {
		place = func(v int) int { return (v+last-2)%last + 1 }
		member = func(p int) int { return p%last + 1 }
	}
	if v > 0 {
		v = place(v)
	}
	parent, children := inorder(v, n, k, children)
	for i, child := range children {
		children[i] = int32(member(int(child)))
	}
	if parent > 0 {
		parent = member(parent)
	}
	return parent, children
}

// bothTrees has carry move each half of the vector through its tree.
func bothTrees(c *Call, s *Schedule, carry func(c *Call, s *Schedule, form shape, x span)) {
	carry(c, s, inorder, c.parts(2, 0, 1))
	s.lane = 1
	carry(c, s, otherInorder, c.parts(2, 1, 2))
	s.lane = 0
}
