// This file gives flows their sources and destinations.
//
// The rule is that of TrafPy's packers, in particular the vectorised one: C. W. F. Parsonson et al., "A Vectorised
// Packing Algorithm for Efficient Generation of Custom Traffic Matrices", OFC 2023. Flows come in descending size. Of
// the pairs whose source and destination ports both have room for the flow, it goes to one whose target, less what the
// pair has already, is largest: any of those that tie, with the same probability. That packer looks at all N(N-1) pairs
// for every flow. This one finds the same pair in O(log N):
//
//   - Every pair is in one of three places: in a heap by its key, the target less what it has; in the front, which
//     holds pairs taken from the heap; or set aside at one of its two ports, because that had no room for the flow at
//     hand.
//   - The front is a stack of segments, each of pairs of one key, the largest key on top. Before a flow is placed,
//     what ties with the top segment moves there from the heap, or becomes a new top segment if its key is
//     larger. So the top segment has every pair of the largest key, but for those set aside. A flow draws one of its
//     pairs, uniformly; if that does not fit it is set aside, and another is drawn. So the draw is uniform among those
//     that fit.
//   - A pair is set aside at a port that has less room than the flow at hand needs. Sizes never grow, so no flow can
//     use the port, and its room stays as it is, until sizes have fallen to that room. That is when the pairs set aside
//     at it return to the heap. So no pair that is set aside fits, and the choice is that of the rule.
//   - Every flow moves one pair from the heap to the front and back. A pair is moved besides when it is set aside and
//     when it returns, which happens at most log2(largest size / smallest size) + 1 times for each of its two ports,
//     however many flows there are: a port that had less room than size a, then took a flow of size b, and then has
//     less room than size c and yet is to take a flow again, of size d, had room b + d < a. With d <= b, d is less than
//     a half of a.
//
// Targets are held in units of 2^-shift bytes, so that keys are exact and pairs tie exactly if they have the same
// target and the same bytes, in whatever order these came.

package matrix

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// UnpackableError says which flow found no pair whose ports have room for it.
type UnpackableError struct {
	Flow        int   // its place in the order of descending size, from 0
	Bytes       int64 // its size
	Port        int64 // the room of each port before the first flow, in bytes
	Source      int   // the source port with the most room left
	SourceRoom  int64
	Destination int // the destination port with the most room left
	DestRoom    int64
}

func (e *UnpackableError) Error() string {
	if e.Bytes > e.Port {
		return fmt.Sprintf("no port can take flow %d of %d bytes: each has room for %d bytes over the whole time; expected "+
			"smaller sizes, a lower load, or more flows", e.Flow, e.Bytes, e.Port)
	}
	return fmt.Sprintf("no pair of ports can take flow %d of %d bytes: source ports have at most %d bytes left (that of "+
		"node %d), destination ports at most %d (that of node %d), each of %d; expected smaller sizes, a lower load, or "+
		"more flows",
		e.Flow, e.Bytes, e.SourceRoom, e.Source, e.DestRoom, e.Destination, e.Port)
}

// packer is the state of packing: a pair is source*n + destination, a port its node if it sends, n + its node if it
// receives.
type packer struct {
	n      int
	shift  int // keys are in units of 2^-shift bytes
	heap   maxHeap
	front  []int32
	segs   []segment
	room   []int64   // of each port, in bytes
	aside  [][]entry // pairs set aside at each port
	closed maxHeap   // the ports with pairs set aside, by room
	ties   *rand.Rand
}

// segment is the pairs of one key in the front, from a place in it to where the next segment begins.
type segment struct {
	key   int64
	start int
}

type entry struct {
	key  int64
	pair int32
}

// newPacker returns a packer for flows of total bytes, with targets in bytes by pair. Those from a node to itself are
// not looked at.
func newPacker(n int, targets func(pair int) float64, total, room int64, ties *rand.Rand) *packer {
	p := &packer{
		n: n, shift: 60 - bits.Len64(uint64(total)), ties: ties, heap: newMaxHeap(n * (n - 1)),
		room: make([]int64, 2*n), aside: make([][]entry, 2*n),
	}
	unit := math.Ldexp(1, p.shift)
	for pair := range n * n {
		if pair/n != pair%n {
			p.heap.keys = append(p.heap.keys, int64(math.Round(targets(pair)*unit)))
			p.heap.items = append(p.heap.items, int32(pair))
		}
	}
	p.heap.order()
	for port := range p.room {
		p.room[port] = room
	}
	return p
}

// place returns the pair for a flow of so many bytes, at most those of the flow before; -1 if it fits none.
func (p *packer) place(bytes int64) int32 {
	for p.closed.len() > 0 && p.closed.top() >= bytes {
		p.reopen(p.closed.pop())
	}
	for p.refill() {
		top := &p.segs[len(p.segs)-1]
		at := top.start
		if n := len(p.front) - at; n > 1 {
			at += p.ties.IntN(n)
		}
		pair := p.front[at]
		last := len(p.front) - 1
		p.front[at] = p.front[last]
		p.front = p.front[:last]
		source, destination := int(pair)/p.n, p.n+int(pair)%p.n
		switch {
		case p.room[source] < bytes:
			p.setAside(source, entry{top.key, pair})
		case p.room[destination] < bytes:
			p.setAside(destination, entry{top.key, pair})
		default:
			p.room[source] -= bytes
			p.room[destination] -= bytes
			p.heap.push(top.key-bytes<<p.shift, pair)
			return pair
		}
	}
	return -1
}

// refill makes the top segment that of all pairs with the largest key, set aside ones excepted. It returns false if
// there are no others.
func (p *packer) refill() bool {
	for len(p.segs) > 0 && p.segs[len(p.segs)-1].start == len(p.front) {
		p.segs = p.segs[:len(p.segs)-1]
	}
	if p.heap.len() > 0 && (len(p.segs) == 0 || p.heap.top() > p.segs[len(p.segs)-1].key) {
		p.segs = append(p.segs, segment{p.heap.top(), len(p.front)})
	}
	if len(p.segs) == 0 {
		return false
	}
	for key := p.segs[len(p.segs)-1].key; p.heap.len() > 0 && p.heap.top() == key; {
		p.front = append(p.front, p.heap.pop())
	}
	return true
}

func (p *packer) setAside(port int, e entry) {
	if len(p.aside[port]) == 0 {
		p.closed.push(p.room[port], int32(port))
	}
	p.aside[port] = append(p.aside[port], e)
}

func (p *packer) reopen(port int32) {
	for _, e := range p.aside[port] {
		p.heap.push(e.key, e.pair)
	}
	p.aside[port] = nil
}

// unpackable returns the error that a flow fits no pair, where each port had so much room at first.
func (p *packer) unpackable(flow int, bytes, room int64) error {
	e := &UnpackableError{Flow: flow, Bytes: bytes, Port: room}
	for node := range p.n {
		if p.room[node] > p.room[e.Source] {
			e.Source = node
		}
		if p.room[p.n+node] > p.room[p.n+e.Destination] {
			e.Destination = node
		}
	}
	e.SourceRoom, e.DestRoom = p.room[e.Source], p.room[p.n+e.Destination]
	return e
}
