package collective

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// treeShape defines a tree of the members 0..n-1, whose root is member 0. It returns the parent of member v > 0, and
// appends v's children to the given slice in descending order of subtree size. k is the shape's parameter.
type treeShape func(v, n, k int, children []int32) (parent int, all []int32)

// knomial is the k-nomial tree: the parent of v is v with its last nonzero digit in base k set to 0.
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

// binomial is the binomial tree, knomial with k = 2.
func binomial(v, n, _ int, children []int32) (int, []int32) {
	return knomial(v, n, 2, children)
}

// binomialAscending is binomial with the children in ascending order of subtree size.
func binomialAscending(v, n, k int, children []int32) (int, []int32) {
	parent, children := binomial(v, n, k, children)
	slices.Reverse(children)
	return parent, children
}

// binary is kary with k = 2.
func binary(v, n, _ int, children []int32) (int, []int32) {
	return kary(v, n, 2, children)
}

// kary is the complete tree with k children per member, numbered level by level.
func kary(v, n, k int, children []int32) (int, []int32) {
	for child := k*v + 1; child <= k*v+k && child < n; child++ {
		children = append(children, int32(child))
	}
	return (v - 1) / k, children
}

// binaryInterleaved is a binary tree numbered level by level, in which the children of member v of level l, whose first
// member is 2^l - 1, are v + 2^l and v + 2^(l+1).
func binaryInterleaved(v, n, _ int, children []int32) (int, []int32) {
	level := floorPower(v + 1)
	for child := v + level; child <= v+2*level && child < n; child += level {
		children = append(children, int32(child))
	}
	parent := v - level/2
	if parent >= level-1 {
		parent -= level / 2
	}
	return parent, children
}

// chain is k chains of consecutive members. Their lengths differ by at most one; the longer chains come first. The
// first member of each chain is a child of the root.
func chain(v, n, k int, children []int32) (int, []int32) {
	k = min(k, n-1)
	if v == 0 {
		for i := range k {
			children = append(children, int32(1+partStart(int64(n-1), k, i)))
		}
		return 0, children
	}
	// The first `long` chains have short+1 members, the others have short.
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

// treeNode is a member's position in a tree, through which segments move down from the root or up to it. A member
// sends one message at a time, and receives one message at a time.
type treeNode struct {
	p          *Participant
	s          *Schedule
	root       bool
	parent     int
	children   []int32
	sent, rcvd int32 // last step of each direction
}

// newTreeNode returns the participant's position in a tree.
func newTreeNode(p *Participant, s *Schedule, shape treeShape) treeNode {
	v := p.relative()
	parent, children := shape(v, p.Members, p.k, s.children[:0])
	s.children = children
	for i, child := range children {
		children[i] = int32(p.absolute(int(child)))
	}
	return treeNode{p: p, s: s, root: v == 0, parent: p.absolute(parent), children: children, sent: noStep,
		rcvd: noStep}
}

// bcast receives x from the parent and sends it to the children in order. At the root, x is available after the step
// after; other members post the receive after that step.
func (t *treeNode) bcast(x span, after int32) {
	if !t.root {
		t.rcvd = t.s.recv(t.parent, x, t.rcvd, after)
		after = t.rcvd
	}
	for _, child := range t.children {
		t.sent = t.s.send(int(child), x, t.sent, after)
		after = noStep
	}
}

// reduce receives x from the children in reverse order, reduces it, and sends the result to the parent. It returns the
// last step.
func (t *treeNode) reduce(x span) int32 {
	for i := range t.children {
		t.rcvd = t.s.combine(int(t.children[len(t.children)-1-i]), x, t.rcvd)
	}
	if t.root {
		return t.rcvd
	}
	t.sent = t.s.send(t.parent, x, t.sent, t.rcvd)
	return t.sent
}

// bcastTree appends a broadcast of x in a tree, segment by segment.
func bcastTree(p *Participant, s *Schedule, shape treeShape, x span) {
	t := newTreeNode(p, s, shape)
	for i := range p.segments(x) {
		t.bcast(p.segment(x, i), noStep)
	}
}

// bcastLevels appends a broadcast of x in the k-nomial tree: the messages to the children of one level are concurrent,
// and the next level follows when they have been sent.
func bcastLevels(p *Participant, s *Schedule, x span) {
	v, n, unit := p.relative(), p.Members, 1
	rcvd := noStep
	for unit < n && v/unit%p.k == 0 {
		unit *= p.k
	}
	if v > 0 {
		rcvd = s.recv(p.absolute(v-v/unit%p.k*unit), x)
	}
	begin := rcvd
	for unit /= p.k; unit > 0; unit /= p.k {
		from, until := begin, len(s.Steps)
		for child := v + unit; child < min(n, v+p.k*unit); child += unit {
			if from == rcvd {
				s.post(p.absolute(child), x, rcvd)
			} else {
				s.post(p.absolute(child), x, steps(int(from), until)...)
			}
		}
		if len(s.Steps) > until {
			begin = int32(until)
		}
	}
}

// steps returns the numbers of the steps first to last-1.
func steps(first, last int) (numbers []int32) {
	for i := first; i < last; i++ {
		numbers = append(numbers, int32(i))
	}
	return numbers
}

// relay makes member 0 the root of a broadcast: it receives x from the root, unless it is the root. It returns the last
// step, and the participant in the broadcast from member 0.
func relay(p *Participant, s *Schedule, x span) (from0 Participant, last int32) {
	from0, last = *p, noStep
	from0.Root = 0
	switch {
	case p.Root == 0:
	case p.Me == p.Root:
		last = s.send(0, x)
	case p.Me == 0:
		last = s.recv(p.Root, x)
	}
	return from0, last
}

// relayTree appends a broadcast of x in a tree from member 0, after a message from the root to member 0. If x has more
// than one segment, a member sends a segment to all children as soon as it has arrived; what remains after the last
// full segment is broadcast from the root by the algorithm that the choice selects. A member posts the receives of all
// segments at once.
func relayTree(p *Participant, s *Schedule, shape treeShape, x span) {
	from0, last := relay(p, s, x)
	t := newTreeNode(&from0, s, shape)
	relayDown(p, s, t, x, last, false)
}

// relayDown appends the part of relayTree after the message to member 0, which last is the last step of. Sends of
// segments are blocking, or all posted before the member waits for the first one.
func relayDown(p *Participant, s *Schedule, t treeNode, x span, last int32, blocking bool) {
	t.rcvd = last // a send of the root precedes its receive, and thus its further sends
	if t.root {
		t.sent = last
	}
	if p.segments(x) == 1 {
		t.bcast(x, noStep)
		return
	}
	full := int(x.bytes / p.segmentSize)
	first := int32(len(s.Steps)) // of the receives, which are all posted at once
	for i := range full {
		if t.root {
			break
		}
		if r := s.expect(t.parent, p.segment(x, i), last); i > 0 {
			s.follow(r)
		}
	}
	for i := range full {
		segment := p.segment(x, i)
		arrived := last
		if !t.root {
			arrived = first + int32(i)
		}
		if !t.root && !blocking && len(t.children) > 0 {
			if arrived = s.await(arrived, noStep); i > 0 {
				s.follow(arrived)
			}
		}
		for k, child := range t.children {
			switch {
			case !blocking:
				sent := s.post(int(child), segment, arrived)
				if k > 0 || i > 0 && t.root {
					s.follow(sent)
				}
			case k == 0 && !t.root:
				t.sent = s.send(int(child), segment, t.sent, arrived)
			default:
				t.sent = s.send(int(child), segment, t.sent)
			}
		}
	}
	if rest := x.bytes % p.segmentSize; rest > 0 {
		part := *p
		part.base, part.Bytes = p.base+x.bytes-rest, rest
		part.phase(dag.Bcast, p.Root, rest, s)
	}
}

// reduceTree appends a reduction of x in a tree, segment by segment.
func reduceTree(p *Participant, s *Schedule, shape treeShape, x span) {
	t := newTreeNode(p, s, shape)
	for i := range p.segments(x) {
		t.reduce(p.segment(x, i))
	}
}

// reduceBuffered appends a reduction of x in a tree, segment by segment. A member receives from the children in order,
// with two buffers: it posts a receive, waits for the one before, then posts the next one. The blocking send of a
// segment follows the wait for its last receive, and the first receive of the next segment is posted before that wait.
func reduceBuffered(p *Participant, s *Schedule, shape treeShape, x span) {
	t := newTreeNode(p, s, shape)
	last := noStep // of the member, other than receives
	before := noStep
	wait := func(follows bool) {
		if before != noStep {
			last = s.wait(before, last, follows)
		}
	}
	for i := range p.segments(x) {
		segment := p.segment(x, i)
		for k, child := range t.children {
			posted := s.add(dag.Recv, int(child), segment, reduce, []int32{last})
			if last == noStep && before != noStep {
				s.follow(posted)
			}
			wait(true)
			if before = posted; k == 0 && i > 0 && !t.root {
				last = s.send(t.parent, p.segment(x, i-1), last)
			}
		}
		if len(t.children) == 0 {
			last = s.send(t.parent, segment, last)
		}
	}
	if wait(false); !t.root && len(t.children) > 0 {
		s.send(t.parent, p.segment(x, p.segments(x)-1), last)
	}
}

// reduceBcastTree appends a reduction of x in a tree and the broadcast of the result, segment by segment.
func reduceBcastTree(p *Participant, s *Schedule, shape treeShape, x span) {
	up := newTreeNode(p, s, shape)
	down := up
	for i := range p.segments(x) {
		segment := p.segment(x, i)
		down.bcast(segment, up.reduce(segment))
	}
}

// inorder is a binary tree of the members 1..n-1 in in-order numbering, below the root 0. Odd members are leaves.
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

// complementaryInorder is inorder with other leaves: mirrored if n is odd, otherwise shifted by one.
func complementaryInorder(v, n, k int, children []int32) (int, []int32) {
	last := n - 1
	place := func(v int) int { return last + 1 - v } // is its own inverse
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

// doubleTree calls move for each half of the vector with one of two complementary binary trees. Almost no member has
// children in both trees, so that every member can send as much data as it receives.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009. NCCL builds nearly the same trees (src/graph/trees.cc).
func doubleTree(p *Participant, s *Schedule, move func(p *Participant, s *Schedule, shape treeShape, x span)) {
	move(p, s, inorder, p.parts(2, 0, 1))
	s.lane = 1
	move(p, s, complementaryInorder, p.parts(2, 1, 2))
	s.lane = 0
}
