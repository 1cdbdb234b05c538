package slots

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/tracedag/tracedag/sim/event"
)

// slot is the work of a scheduler in one slot: the queued flows with their paths, and the packets that each of them
// sends. Positions are indices of the flows in queue order: by source host, destination host and arrival. Edges are
// numbered densely in the order of their first use in the slot.
type slot struct {
	queues
	net  *network
	draw *rand.Rand

	take []int64 // result by position: packets sent

	starts []uint32 // by position: start of its edges in edges, and the end of the last
	edges  []uint32 // dense numbers
	used   []uint32 // by dense number: edge
	wants  []uint32 // by dense number: flows whose path has the edge
	room   []int64  // by dense number: packets left of the budget

	dense []uint32 // by edge: 1 + its dense number; 0: not in use
	load  []uint32 // by port: flows whose path has it
	turns []uint32 // by channel: flows
	part  int      // of the capacity, in room

	compat bool // as of policy

	// Memory of schedulers.
	packets []int64  // by position: proposed packets
	keys    []sorted // flows in some order
	order   []uint32 // positions in that order
	rank    []uint32 // by position: its index in order
	lists   []uint32 // positions by edge
	begins  []uint32 // by dense number: start and end of its list
	ends    []uint32
	levels  []int64         // by dense number: packets per flow
	counts  []int64         // by dense number: unfinished flows
	heaps   []event.MinHeap // by dense number: ranks of flows
	removed []removal
	filling []saturation // heap
	fixed   []bool       // by position
	shared  []int64      // by position: packets sent in the first part of the capacity
}

// queues are the queued flows by position.
type queues struct {
	flows    []uint32 // numbers
	need     []int64  // packets left
	from, to []uint32 // hosts
	pairs    []pathRange
}

// resize sets the number of flows. It keeps those at lower positions if there are not more flows than before.
func (q *queues) resize(n int) {
	q.flows, q.need, q.pairs = resized(q.flows, n), resized(q.need, n), resized(q.pairs, n)
	q.from, q.to = resized(q.from, n), resized(q.to, n)
}

// set copies the flow at position k of p to position i.
func (q *queues) set(i int, p *queues, k int) {
	q.flows[i], q.need[i], q.pairs[i] = p.flows[k], p.need[k], p.pairs[k]
	q.from[i], q.to[i] = p.from[k], p.to[k]
}

// pair returns a number of the queue of a flow, ascending in queue order.
func (q *queues) pair(i int) uint64 { return uint64(q.from[i])<<32 | uint64(q.to[i]) }

// sorted is a flow with its sorting keys.
type sorted struct {
	key      int64
	flow, at uint32
}

func newSlot(n *network, draw *rand.Rand) *slot {
	ports := 2 * len(n.topology.Links)
	return &slot{net: n, draw: draw, dense: make([]uint32, ports*n.channels), load: make([]uint32, ports),
		turns: make([]uint32, n.channels)}
}

// resized returns a slice of the given length, with the memory of s if it suffices. Its elements are undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// zeroed is resized with elements of 0.
func zeroed[T any](s []T, n int) []T {
	s = resized(s, n)
	clear(s)
	return s
}

// place gives each flow the path whose edges have the fewest flows so far, and the channel with the fewest.
func (s *slot) place() {
	for _, edge := range s.used {
		s.dense[edge] = 0
		s.load[int(edge)/s.net.channels] = 0
	}
	clear(s.turns)
	s.used, s.wants, s.edges = s.used[:0], s.wants[:0], s.edges[:0]
	s.starts = append(s.starts[:0], 0)
	table := s.net.routes.table
	for i := range s.flows {
		channel := uint32(0)
		for c := range s.turns {
			if s.turns[c] < s.turns[channel] {
				channel = uint32(c)
			}
		}
		s.turns[channel]++
		s.cross(table.NIC(s.from[i]), channel)
		for _, port := range s.net.routes.path(s.leastLoaded(s.pairs[i])) {
			s.cross(port, channel)
		}
		s.cross(table.HostPort(s.to[i]), channel)
		s.starts = append(s.starts, uint32(len(s.edges)))
	}
	s.take = zeroed(s.take, len(s.flows))
}

// leastLoaded returns the first path with the lowest sum of flows over its edges. The edges of the hosts are equal.
func (s *slot) leastLoaded(pair pathRange) (best uint32) {
	if best = pair.first; pair.count == 1 {
		return best
	}
	least := uint64(1) << 63
	for p := pair.first; p < pair.first+pair.count; p++ {
		sum := uint64(0)
		for _, port := range s.net.routes.path(p) {
			sum += uint64(s.load[port])
		}
		if sum < least {
			best, least = p, sum
		}
	}
	return best
}

// cross adds an edge to the path of the current flow.
func (s *slot) cross(port, channel uint32) {
	edge := port*uint32(s.net.channels) + channel
	s.load[port]++
	d := s.dense[edge]
	if d == 0 {
		s.used, s.wants = append(s.used, edge), append(s.wants, 0)
		d = uint32(len(s.used))
		s.dense[edge] = d
	}
	s.wants[d-1]++
	s.edges = append(s.edges, d-1)
}

// path returns the dense edges of the flow at a position.
func (s *slot) path(i int) []uint32 { return s.edges[s.starts[i]:s.starts[i+1]] }

// open sets the room of all edges to their budgets in a part of the capacity.
func (s *slot) open(part int) {
	s.room, s.part = resized(s.room, len(s.used)), part
	budgets := s.net.budgets[part]
	for d, edge := range s.used {
		s.room[d] = budgets[int(edge)/s.net.channels]
	}
}

// fits returns the packets that fit on all edges of a path.
func (s *slot) fits(path []uint32) int64 {
	least := s.room[path[0]]
	for _, d := range path[1:] {
		least = min(least, s.room[d])
	}
	return least
}

// occupy takes packets out of the room of a path.
func (s *slot) occupy(path []uint32, packets int64) {
	for _, d := range path {
		s.room[d] -= packets
	}
}

// sort orders the flows that have packets left by a key, ties by arrival, and fills order.
func (s *slot) sort(key func(i int) int64) {
	s.keys = s.keys[:0]
	for i, flow := range s.flows {
		if s.need[i] > 0 {
			s.keys = append(s.keys, sorted{key(i), flow, uint32(i)})
		}
	}
	s.sortKeys()
	s.order = resized(s.order, len(s.keys))
	for k := range s.keys {
		s.order[k] = s.keys[k].at
	}
}

// sortKeys sorts keys.
func (s *slot) sortKeys() {
	slices.SortFunc(s.keys, func(a, b sorted) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.flow, b.flow))
	})
}

// list lists the flows of each edge that have packets left, in the given order of positions.
func (s *slot) list(order []uint32) {
	s.begins, s.ends = resized(s.begins, len(s.used)), resized(s.ends, len(s.used))
	sum := uint32(0)
	for d, n := range s.wants {
		s.begins[d], s.ends[d] = sum, sum
		sum += n
	}
	s.lists = resized(s.lists, int(sum))
	for _, i := range order {
		for _, d := range s.path(int(i)) {
			s.lists[s.ends[d]] = i
			s.ends[d]++
		}
	}
}

// listed returns the list of an edge.
func (s *slot) listed(d uint32) []uint32 { return s.lists[s.begins[d]:s.ends[d]] }

// inOrder returns all positions, for list.
func (s *slot) inOrder() []uint32 {
	s.order = resized(s.order, len(s.flows))[:0]
	for i := range s.flows {
		if s.need[i] > 0 {
			s.order = append(s.order, uint32(i))
		}
	}
	return s.order
}
