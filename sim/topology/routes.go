// This file computes shortest-path tables: the output ports of a switch towards an edge switch, and the number of
// paths.

package topology

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// NoPort is a port number that identifies no port. It also replaces a port whose link is down.
const NoPort = math.MaxUint32

// maxTable is the largest number of table entries, at 12 bytes each.
const maxTable = 1 << 28

// globalCost is the path cost of a dragonfly's global link, in local links. Minimal paths of a dragonfly use one global
// link (Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, section 4). With equal costs,
// paths with two global links through a third group would be shorter.
const globalCost = 256

// farAway is the cost to an unreachable switch.
const farAway = math.MaxUint16

// Routes contains the shortest paths of a network, in links, from every switch to every edge switch. In a dragonfly, a
// path with fewer global links is shorter. Hosts do not forward packets.
type Routes struct {
	edges uint32 // number of table columns: switches 0 to edges-1
	table []entry
	paths []uint32

	// pool starts with all ports, each at the index of its number, which serve as lists of single ports. The lists of
	// several ports follow. For each port of the latter, first has the lowest number of a path through it.
	pool  []uint32
	first []uint32

	ports          uint32
	edge           []uint32 // by host
	hostPort, nics []uint32 // by host
	diameter       int
}

// entry is a list of candidate ports: pool[at:at+count].
type entry struct {
	at    uint32
	count uint32 // may include the flag alike
}

// alike is a flag in count: all ports of the list have equal numbers of paths.
const alike = 1 << 31

// NewRoutes computes the paths over the links that are not down; nil means that no link is down. Unreachable switches
// are no error. It uses 12 bytes per pair of a switch and an edge switch, and returns an error for more than 2^28
// pairs. NewRoutes ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func NewRoutes(ctx context.Context, n *Network, down func(link int) bool) (*Routes, error) {
	if n.Given != nil {
		return givenRoutes(n, down), nil
	}
	if err := n.Validate(); err != nil {
		return nil, err
	}
	c := &compiler{ctx: ctx, n: n, r: &Routes{ports: uint32(2 * len(n.Links))}}
	c.connect(down)
	if entries := uint64(n.Switches) * uint64(c.r.edges); entries > maxTable {
		return nil, fmt.Errorf("routes: expected at most %d pairs of a switch and an edge switch, found %d",
			maxTable, entries)
	}
	if err := c.search(); err != nil {
		return nil, err
	}
	if err := c.tabulate(); err != nil {
		return nil, err
	}
	return c.r, nil
}

// Next returns the output ports of switch sw on shortest paths to edge switch edge, in ascending order. Both are switch
// numbers; edge must not exceed the last switch with hosts. The result is empty if sw is edge or edge is unreachable.
// Callers must not modify it.
func (r *Routes) Next(sw, edge uint32) []uint32 {
	e := r.table[sw*r.edges+edge]
	end := e.at + e.count&^alike
	return r.pool[e.at:end:end]
}

// Only returns the output port of switch sw on shortest paths to edge switch edge, if Next has exactly one. It reads
// the table alone.
func (r *Routes) Only(sw, edge uint32) (port uint32, ok bool) {
	e := r.table[sw*r.edges+edge]
	return e.at, e.count == 1
}

// Prefetch loads what Next accesses into the cache.
func (r *Routes) Prefetch(sw, edge uint32) {
	cpu.Prefetch(r.table, sw*r.edges+edge)
}

// Paths returns the number of shortest paths from switch sw to edge switch edge, at most 2^32-1. It is 1 if sw is edge,
// and 0 if edge is unreachable.
func (r *Routes) Paths(sw, edge uint32) uint32 {
	return r.paths[sw*r.edges+edge]
}

// Choose returns the output port at switch sw of the given path, numbered from 0 to Paths(sw, edge)-1, and the path's
// number at the next switch. Each candidate of Next, in order, has as many consecutive numbers as paths. The port is
// NoPort if Next is empty.
func (r *Routes) Choose(sw, edge, path uint32) (port, rest uint32) {
	e := r.table[sw*r.edges+edge]
	if e.count == 1 {
		return e.at, path
	}
	if e.count&alike != 0 {
		each := r.first[e.at-r.ports+1]
		i := path / each
		return r.pool[e.at+i], path - i*each
	}
	if e.count == 0 {
		return NoPort, path
	}
	first := r.first[e.at-r.ports:][:e.count]
	i := sort.Search(len(first), func(i int) bool { return first[i] > path }) - 1
	return r.pool[int(e.at)+i], path - first[i]
}

// FirstPath returns the ports on the first of the shortest paths from one host to another over some routes of the
// network, or on the given route. It ends before a missing link; it is complete if the head of its last port is the
// destination or the route is given.
func (n *Network) FirstPath(r *Routes, from, to uint32) iter.Seq[uint32] {
	return slices.Values(n.AppendFirstPath(nil, r, from, to))
}

// AppendFirstPath appends the ports of FirstPath.
func (n *Network) AppendFirstPath(ports []uint32, r *Routes, from, to uint32) []uint32 {
	if n.Given != nil {
		if number, ok := n.Given.Number(from, to); ok {
			ports = append(ports, n.Given.Route(number)...)
		}
		return ports
	}
	edge := r.Edge(to)
	for port := r.NIC(from); port != NoPort; {
		ports = append(ports, port)
		at := n.Head(port)
		if at == to {
			break
		}
		if sw := at - uint32(n.Hosts); sw == edge {
			port = r.HostPort(to)
		} else {
			port, _ = r.Choose(sw, edge, 0)
		}
	}
	return ports
}

// Edge returns the number of the host's edge switch.
func (r *Routes) Edge(host uint32) uint32 { return r.edge[host] }

// HostPort returns the port from the edge switch to the host, or NoPort if the link is down.
func (r *Routes) HostPort(host uint32) uint32 { return r.hostPort[host] }

// NIC returns the port from the host to its edge switch, or NoPort if the link is down.
func (r *Routes) NIC(host uint32) uint32 { return r.nics[host] }

// Connects reports whether there is a path from one host to another.
func (r *Routes) Connects(from, to uint32) bool {
	return r.nics[from] != NoPort && r.hostPort[to] != NoPort && r.Paths(r.edge[from], r.edge[to]) > 0
}

// Diameter returns the number of links of the longest shortest path between two hosts, including the hosts' links.
func (r *Routes) Diameter() int { return r.diameter }

// compiler is the state of computing the tables.
type compiler struct {
	ctx context.Context // ends the work early; nil: never
	n   *Network
	r   *Routes

	// Links between switches that are not down: those of switch s are hops[start[s]:start[s+1]], ordered by port.
	start []uint32
	hops  []hop
	cost  []uint16 // from each switch (row) to each edge switch (column); farAway: unreachable
	most  int      // largest cost of a link
}

// hop is a link from a switch to a neighbor.
type hop struct {
	to   uint32 // switch number
	port uint32
	cost uint16
}

// connect collects the ports of the hosts and the links between switches.
func (c *compiler) connect(down func(link int) bool) {
	n, r := c.n, c.r
	hosts := uint32(n.Hosts)
	r.edge = make([]uint32, hosts)
	r.hostPort = make([]uint32, hosts)
	r.nics = make([]uint32, hosts)
	c.start = make([]uint32, n.Switches+1)
	c.most = 1
	works := make([]bool, len(n.Links))
	for l, link := range n.Links {
		works[l] = down == nil || !down(l)
		host, sw, nic := link.A, link.B, uint32(2*l)
		if sw < hosts {
			host, sw, nic = sw, host, nic+1
		}
		if host >= hosts {
			if works[l] {
				c.start[link.A-hosts+1]++
				c.start[link.B-hosts+1]++
			}
			continue
		}
		r.edge[host] = sw - hosts
		r.edges = max(r.edges, sw-hosts+1)
		r.nics[host], r.hostPort[host] = nic, nic^1
		if !works[l] {
			r.nics[host], r.hostPort[host] = NoPort, NoPort
		}
	}
	for s := range n.Switches {
		c.start[s+1] += c.start[s]
	}
	c.hops = make([]hop, c.start[n.Switches])
	free := append([]uint32(nil), c.start...)
	for l, link := range n.Links {
		if !works[l] || link.A < hosts || link.B < hosts {
			continue
		}
		a, b, port, cost := link.A-hosts, link.B-hosts, uint32(2*l), 1
		if n.Dragonfly != nil && n.Dragonfly.Group(int(a)) != n.Dragonfly.Group(int(b)) {
			cost = globalCost
		}
		c.most = max(c.most, cost)
		c.hops[free[a]] = hop{b, port, uint16(cost)}
		c.hops[free[b]] = hop{a, port + 1, uint16(cost)}
		free[a]++
		free[b]++
	}
}

// search computes the costs and the numbers of paths from every switch to every edge switch.
func (c *compiler) search() error {
	n, r := c.n, c.r
	entries := n.Switches * int(r.edges)
	if err := memory.Check(c.ctx, "pairs of switches in tables of routes", 6+int64(unsafe.Sizeof(entry{})),
		int64(entries)); err != nil {
		return err
	}
	r.paths = make([]uint32, entries)
	c.cost = make([]uint16, entries)
	var tooFar atomic.Bool
	var longest atomic.Int64
	hostsAt := make([]int, r.edges)
	for _, edge := range r.edge {
		hostsAt[edge]++
	}
	// A block fills a cache line of costs, so that goroutines write to different lines.
	par.Blocks(int(r.edges), 32, func() func(from, to int) {
		s := newSearcher(c)
		return func(from, to int) {
			for edge := from; edge < to && par.Interrupted(c.ctx) == nil; edge++ {
				if !s.from(uint32(edge)) {
					tooFar.Store(true)
					return
				}
				for sw, cost := range s.cost {
					c.cost[sw*int(r.edges)+edge] = cost
					r.paths[sw*int(r.edges)+edge] = s.paths[sw]
				}
				for sw, hosts := range hostsAt {
					if hosts == 0 || hostsAt[edge] == 0 || s.cost[sw] == farAway || sw == edge && hosts == 1 {
						continue
					}
					for old := longest.Load(); int64(s.length[sw])+2 > old; old = longest.Load() {
						longest.CompareAndSwap(old, int64(s.length[sw])+2)
					}
				}
			}
		}
	})
	if err := par.Interrupted(c.ctx); err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	if tooFar.Load() {
		return fmt.Errorf("routes: expected paths of at most %d links, found a longer one", (farAway-1)/c.most)
	}
	r.diameter = int(longest.Load())
	return nil
}

// searcher computes the shortest paths to one edge switch at a time with Dijkstra's algorithm and one bucket per cost
// (Dial, Algorithm 360: Shortest-path forest with topological ordering, CACM 12(11), 1969).
type searcher struct {
	c       *compiler
	cost    []uint16
	paths   []uint32
	length  []uint16   // number of links of the longest shortest path
	buckets [][]uint32 // switches by cost modulo the number of buckets
}

func newSearcher(c *compiler) *searcher {
	return &searcher{c: c, cost: make([]uint16, c.n.Switches), paths: make([]uint32, c.n.Switches),
		length: make([]uint16, c.n.Switches), buckets: make([][]uint32, c.most+1)}
}

// from computes the costs to edge. It returns false if they are out of range.
func (s *searcher) from(edge uint32) bool {
	for i := range s.cost {
		s.cost[i] = farAway
	}
	clear(s.paths)
	clear(s.length)
	s.cost[edge], s.paths[edge] = 0, 1
	s.buckets[0] = append(s.buckets[0], edge)
	waiting := 1
	for cost, b := 0, 0; waiting > 0; cost, b = cost+1, b+1 {
		if b == len(s.buckets) {
			b = 0
		}
		if len(s.buckets[b]) == 0 {
			continue
		}
		if cost+s.c.most >= farAway {
			return false
		}
		waiting -= len(s.buckets[b])
		for _, sw := range s.buckets[b] {
			if int(s.cost[sw]) == cost {
				waiting += s.expand(sw)
			}
		}
		s.buckets[b] = s.buckets[b][:0]
	}
	return true
}

// expand updates the neighbors of a switch with final cost and paths. It returns the number of switches added to
// buckets.
func (s *searcher) expand(sw uint32) (put int) {
	cost, paths, length := s.cost[sw], s.paths[sw], s.length[sw]+1
	for _, h := range s.c.hops[s.c.start[sw]:s.c.start[sw+1]] {
		switch to := cost + h.cost; {
		case to < s.cost[h.to]:
			s.cost[h.to], s.paths[h.to], s.length[h.to] = to, paths, length
			b := int(to) % len(s.buckets)
			s.buckets[b] = append(s.buckets[b], h.to)
			put++
		case to == s.cost[h.to]:
			s.paths[h.to] = addSaturating(s.paths[h.to], paths)
			s.length[h.to] = max(s.length[h.to], length)
		}
	}
	return put
}

func addSaturating(a, b uint32) uint32 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint32
}

// tabulate builds the candidate lists of each switch, without duplicates.
func (c *compiler) tabulate() error {
	n, r := c.n, c.r
	r.table = cpu.InHugePages(make([]entry, n.Switches*int(r.edges)))
	lists := make([]portLists, n.Switches)
	var total atomic.Int64
	par.Blocks(n.Switches, 4, func() func(from, to int) {
		t := tabulator{c: c, known: make(map[uint64]entry)}
		return func(from, to int) {
			for sw := from; sw < to && total.Load() <= maxTable && par.Interrupted(c.ctx) == nil; sw++ {
				lists[sw] = t.lists(uint32(sw))
				total.Add(int64(len(lists[sw].ports)))
			}
		}
	})
	if err := par.Interrupted(c.ctx); err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	size := total.Load()
	if size > maxTable {
		return fmt.Errorf("routes: expected at most %d ports in lists of equal-cost ports, found more", maxTable)
	}
	r.pool = make([]uint32, r.ports, int64(r.ports)+size)
	for port := range r.pool {
		r.pool[port] = uint32(port)
	}
	r.first = make([]uint32, 0, size)
	for sw := range lists {
		base := uint32(len(r.pool))
		for i := range r.row(uint32(sw)) {
			if e := &r.row(uint32(sw))[i]; e.count > 1 {
				e.at += base
			}
		}
		r.pool = append(r.pool, lists[sw].ports...)
		r.first = append(r.first, lists[sw].first...)
	}
	return nil
}

func (r *Routes) row(sw uint32) []entry {
	return r.table[sw*r.edges:][:r.edges]
}

// portLists is the concatenated candidate lists of several ports of a switch.
type portLists struct {
	ports, first []uint32
}

// tabulator builds the candidate lists of one switch at a time.
type tabulator struct {
	c     *compiler
	known map[uint64]entry // existing lists by hash; on a collision, at the next free hash
	made  portLists
	// near has a bit per hop of the switch that is on a shortest path: a row of edge switches per 64 hops.
	near []uint64
}

// lists fills the row of sw and returns its lists of several ports. The row refers to them by index.
func (t *tabulator) lists(sw uint32) portLists {
	c, r := t.c, t.c.r
	hops := c.hops[c.start[sw]:c.start[sw+1]]
	row := r.row(sw)
	costs := c.cost[sw*r.edges:][:r.edges]
	words := t.compare(hops, costs)
	clear(t.known)
	t.made = portLists{}
	var ports, first []uint32
	var before entry
	for edge, here := range costs {
		if here == 0 || here == farAway {
			continue
		}
		ports, first = ports[:0], first[:0]
		paths, each, same := uint32(0), uint32(0), true
		for word := range words {
			for near := t.near[word*len(costs)+edge]; near != 0; near &= near - 1 {
				h := hops[word*64+bits.TrailingZeros64(near)]
				more := r.paths[h.to*r.edges+uint32(edge)]
				if len(ports) == 0 {
					each = more
				}
				same = same && more == each
				ports, first = append(ports, h.port), append(first, paths)
				paths = addSaturating(paths, more)
			}
		}
		list := entry{0, uint32(len(ports))}
		switch {
		case len(ports) == 1:
			row[edge] = entry{ports[0], 1}
			continue
		case same:
			list.count |= alike
		}
		list.at = before.at
		if list != before || !t.holds(before.at, ports, first) { // adjacent entries are mostly equal
			before = t.find(list.count, ports, first)
		}
		row[edge] = before
	}
	return t.made
}

// compare sets near from the costs of a switch, and returns the number of its rows. It compares a hop with all edge
// switches before the next, since costs of a switch are adjacent.
func (t *tabulator) compare(hops []hop, costs []uint16) (words int) {
	words = (len(hops) + 63) / 64
	t.near = slices.Grow(t.near[:0], words*len(costs))[:words*len(costs)]
	clear(t.near)
	for i, h := range hops { // all of them reach the edge switches that the switch reaches
		near := t.near[i/64*len(costs):][:len(costs)]
		there := t.c.cost[int(h.to)*len(costs):][:len(costs)]
		for edge, here := range costs {
			differ := uint64((there[edge] + h.cost) ^ here)
			near[edge] |= (differ - 1) >> 63 << (i % 64) // without a branch, which would often be mispredicted
		}
	}
	return words
}

// holds reports whether the existing lists have these ports at index at.
func (t *tabulator) holds(at uint32, ports, first []uint32) bool {
	return slices.Equal(t.made.ports[at:][:len(ports)], ports) && slices.Equal(t.made.first[at:][:len(first)], first)
}

// find returns the list of these ports. It creates the list if it is new.
func (t *tabulator) find(count uint32, ports, first []uint32) entry {
	hash := uint64(14695981039346656037) // FNV-1a, one port at a time
	for i := range ports {
		hash = (hash ^ uint64(ports[i])<<32 ^ uint64(first[i])) * 1099511628211
	}
	for ; ; hash++ {
		e, taken := t.known[hash]
		if !taken {
			e = entry{uint32(len(t.made.ports)), count}
			t.made.ports = append(t.made.ports, ports...)
			t.made.first = append(t.made.first, first...)
			t.known[hash] = e
			return e
		}
		if e.count == count && t.holds(e.at, ports, first) {
			return e
		}
	}
}
