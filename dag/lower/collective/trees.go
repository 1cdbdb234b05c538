package collective

// Trees of the members 0..n-1, relative to the root, which is 0.

// shape returns the parent of member v > 0, and appends its children to those given, the one with the largest subtree
// first. What k means depends on the shape.
type shape func(v, n, k int, children []int32) (parent int, all []int32)

// knomial is the tree in which v's parent is v with its last digit other than 0 set to 0, by base k.
func knomial(v, n, k int, children []int32) (int, []int32) {
	unit := 1
	for unit < n && v/unit%k == 0 {
		unit *= k
	}
	parent := v - v/unit%k*unit
	for unit /= k; unit > 0; unit /= k {
		for child := v + unit; child < min(n, v+k*unit); child += unit {
			children = append(children, int32(child))
		}
	}
	return parent, children
}

// binomial is the binomial tree; the child with the largest subtree is the farthest.
func binomial(v, n, _ int, children []int32) (int, []int32) {
	return knomial(v, n, 2, children)
}

// binary is kary of two children.
func binary(v, n, _ int, children []int32) (int, []int32) {
	return kary(v, n, 2, children)
}

// kary is the tree in which every member has k children, numbered level by level.
func kary(v, n, k int, children []int32) (int, []int32) {
	for child := k*v + 1; child <= k*v+k && child < n; child++ {
		children = append(children, int32(child))
	}
	return (v - 1) / k, children
}

// chains is k chains of neighbours as equally long as can be, whose first members are the root's children.
func chains(v, n, k int, children []int32) (int, []int32) {
	k = min(k, n-1)
	if v == 0 {
		for i := range k {
			children = append(children, int32(1+start(int64(n-1), k, i)))
		}
		return 0, children
	}
	// The first long chains have one member more than the others.
	short, long := (n-1)/k, (n-1)%k
	place := (v - 1) % (short + 1)
	length := short + 1
	if first := long * length; v-1 >= first {
		place, length = (v-1-first)%short, short
	}
	if place+1 < length {
		children = append(children, int32(v+1))
	}
	if place == 0 {
		return 0, children
	}
	return v - 1, children
}

// branch is a member's place in a tree. Through it the data goes down from the root, or up to it and is reduced,
// segment by segment. Segments follow each other: a member receives one after the other, and sends one message after
// the other.
type branch struct {
	c          *Call
	s          *Schedule
	root       bool
	parent     int
	children   []int32
	sent, rcvd int32 // last step
}

// newBranch returns the member's place in a tree of the given shape.
func newBranch(c *Call, s *Schedule, form shape) branch {
	v := c.relative()
	parent, children := form(v, c.Members, c.K, s.children[:0])
	s.children = children
	for i, child := range children {
		children[i] = int32(c.absolute(int(child)))
	}
	return branch{c: c, s: s, root: v == 0, parent: c.absolute(parent), children: children, sent: None, rcvd: None}
}

// down passes x on from the parent to the children, the one with the largest subtree first. The root has it after the
// step after; others expect it only then.
func (b *branch) down(x span, after int32) {
	if !b.root {
		b.rcvd = b.s.recv(b.parent, x, b.rcvd, after)
		after = b.rcvd
	}
	for _, child := range b.children {
		b.sent = b.s.send(int(child), x, b.sent, after)
		after = None
	}
}

// up reduces x with that of the children, the one with the smallest subtree first, and hands it to the parent. It
// returns the last step of that.
func (b *branch) up(x span) int32 {
	for i := range b.children {
		b.rcvd = b.s.combine(int(b.children[len(b.children)-1-i]), x, b.rcvd)
	}
	if b.root {
		return b.rcvd
	}
	b.sent = b.s.send(b.parent, x, b.sent, b.rcvd)
	return b.sent
}

// bcastDown broadcasts x in a tree, segment by segment.
func bcastDown(c *Call, s *Schedule, form shape, x span) {
	b := newBranch(c, s, form)
	for i := range c.segments(x) {
		b.down(c.segment(x, i), None)
	}
}

// reduceUp reduces x in a tree, segment by segment.
func reduceUp(c *Call, s *Schedule, form shape, x span) {
	b := newBranch(c, s, form)
	for i := range c.segments(x) {
		b.up(c.segment(x, i))
	}
}

// reduceDown reduces x to the root of a tree and broadcasts the result in it, segment by segment.
func reduceDown(c *Call, s *Schedule, form shape, x span) {
	up := newBranch(c, s, form)
	down := up
	for i := range c.segments(x) {
		segment := c.segment(x, i)
		down.down(segment, up.up(segment))
	}
}

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
