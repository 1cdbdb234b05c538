// Sources and destinations of flows.
//
// The rule is that of TrafPy's packers, in particular the vectorised one: C. W. F. Parsonson et al., "A Vectorised
// Packing Algorithm for Efficient Generation of Custom Traffic Matrices", OFC 2023. Flows come in descending size.
// Among the pairs whose source and destination ports both have room for the flow, it goes to the one with the largest
// target minus the bytes that the pair has already; ties are broken uniformly at random. That packer visits all N(N-1)
// pairs for every flow. This one finds the same pair in O(log N):
//
//   - Every pair is in one of three places: in a heap by its key, the target minus the bytes that it has; in the
//     front, which holds pairs taken from the heap; or set aside at one of its two ports that had no room for the
//     current flow.
//   - The front is a stack of segments, each of pairs of one key, the largest key on top. Before a flow is placed,
//     pairs that tie with the top segment move there from the heap, or become a new top segment if their key is
//     larger. So the top segment has every pair of the largest key that is not set aside. A flow draws one of its
//     pairs uniformly; a pair that does not fit is set aside, and another is drawn. So the draw is uniform among
//     fitting pairs.
//   - A pair is set aside at a port with less room than the current flow needs. Sizes never grow, so no flow can use
//     the port, and its room does not change, until sizes have fallen to that room. Then the pairs set aside at the
//     port return to the heap. So no pair that is set aside fits, and the selection follows the rule.
//   - Every flow moves one pair from the heap to the front and back. A pair also moves when it is set aside and when
//     it returns, at most log2(largest size / smallest size) + 1 times for each of its two ports, whatever the number
//     of flows: a port that had less room than size a, then took a flow of size b, then has less room than size c and
//     later takes a flow of size d, had room b + d < a. With d <= b, d is less than half of a.
//
// Targets are kept in units of 2^-shift bytes, so that keys are exact: pairs tie if and only if their targets minus
// their bytes are equal, whatever the order of the flows.

package matrix

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// UnpackableError reports a flow for which no pair of ports has room.
type UnpackableError struct {
	Flow        int   // its index in the order of descending size, from 0
	Bytes       int64 // its size
	Port        int64 // the room of each port before the first flow, in bytes
	Source      int   // the source port with the most room left
	SourceRoom  int64
	Destination int // the destination port with the most room left
	DestRoom    int64
}

func (e *UnpackableError) Error() string {
	if e.Bytes > e.Port {
		return fmt.Sprintf("no port can take flow %d of %d bytes: each has room for %d bytes over the whole time; "+
			"expected smaller sizes, a lower load, or more flows", e.Flow, e.Bytes, e.Port)
	}
	return fmt.Sprintf("no pair of ports can take flow %d of %d bytes: source ports have at most %d bytes left (that "+
		"of node %d), destination ports at most %d (that of node %d), each of %d; expected smaller sizes, "+
		"a lower load, or more flows", e.Flow, e.Bytes, e.SourceRoom, e.Source, e.DestRoom, e.Destination, e.Port)
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

// newPacker returns a packer for flows of total bytes, with targets in bytes by pair. It ignores targets from a node to
// itself.
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

// place returns the pair for a flow of the given bytes, at most those of the previous flow; -1 if it fits none.
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

// refill moves all pairs with the largest key that are not set aside to the top segment. It returns false if there are
// none.
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

// unpackable returns the error that a flow fits no pair; port is the initial room of each port.
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
