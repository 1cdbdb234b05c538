// This file selects the paths of flows.

package flow

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Load-balancing policies; docs/reference/backends/flow.md defines them.
const (
	balanceFlow  = "flow"
	balanceSpray = "spray"
	balanceLeast = "least"
	balanceFixed = "fixed"
)

// paths has the paths of a network.
type paths interface {
	// find sets p to the path of a flow with the given number. It returns the path's ports, unless it has several. The
	// policy least keeps a path of ports that work.
	find(p *path, from, to, flow uint32, keep []uint32) (used []uint32, err error)
	// works reports whether a path of given ports works, which the policy least keeps.
	works(ports []uint32) bool
	// latencyBetween returns the largest latency of the paths between two hosts in picoseconds.
	latencyBetween(from, to uint32) float64
	// linksOf returns the links of the solver of both directions of a link.
	linksOf(link int) []uint32
	// fail changes the number of failures of links by 1 or -1.
	fail(ctx context.Context, links []int, change int) error
	// portRows returns the ports, without traffic, and the number of the link of each.
	portRows() (rows []portRow, links []uint32)
}

// selector selects the paths of flows.
type selector struct {
	net     *topology.Network
	routes  *topology.Routes
	ports   []topology.Port
	latency []float64 // by port: that of its link and of the switch at its end, in picoseconds
	balance string
	seed    int64
	entropy int            // entropy values of sprayed flows; 0: equal parts on all paths
	salts   []uint64       // by switch, for hashes of entropy values
	parts   map[uint32]int // by port: index in the hops of the path whose entropy values are hashed

	links  []link   // of the solver
	linkOf []uint32 // by port
	merged bool     // links are bundles of ports

	spreads map[[2]uint32]*path // by pair of edge switches: the links between them that sprayed flows use
	load    []uint64            // by port: bytes under way on it, with the policy least; nil: not counted
	visits  map[uint32]int      // by switch: index in nodes
	nodes   []node
	used    []uint32 // ports of the path found last

	down   []int                       // by link: number of failures; nil: there are none
	intact *selector                   // without failures; nil: this one
	tables map[string]*topology.Routes // by failed links
}

// node is a switch on shortest paths to a destination.
type node struct {
	sw      uint32
	part    float64 // of a sprayed flow
	latency float64 // largest from the source, in picoseconds
	load    uint64  // smallest to the destination, in bytes
	port    uint32  // first port of that path
}

// newSelector returns a selector. fails tells that links fail or change their rates, so that ports differ.
func newSelector(net *topology.Network, routes *topology.Routes, balance string, seed int64, entropy int,
	fails bool) *selector {
	s := &selector{net: net, routes: routes, ports: net.Ports(), balance: balance, seed: seed, entropy: entropy,
		spreads: make(map[[2]uint32]*path), visits: make(map[uint32]int)}
	var bundles []uint32
	if balance == balanceSpray && entropy > 0 {
		s.salts, s.parts = make([]uint64, net.Switches), make(map[uint32]int)
		for i := range s.salts {
			random := sim.NewRandom(seed, forSalt, uint64(i))
			s.salts[i] = random.Next()
		}
	}
	if balance == balanceSpray && entropy == 0 && !fails {
		bundles = net.Bundles()
	}
	s.merged = bundles != nil
	s.latency, s.linkOf = make([]float64, len(s.ports)), make([]uint32, len(s.ports))
	s.links = make([]link, 0, len(s.ports))
	for i, p := range s.ports {
		l := &net.Links[p.Link]
		s.latency[i] = float64(l.Latency)
		if int(p.To) >= net.Hosts {
			s.latency[i] += float64(net.SwitchLatency[int(p.To)-net.Hosts])
		}
		s.linkOf[i] = uint32(i)
		if s.merged {
			s.linkOf[i] = bundles[i]
		}
		capacity := float64(l.Rate) / 8
		if k := int(s.linkOf[i]); k < len(s.links) {
			s.links[k].capacity += capacity
			s.links[k].merged++
		} else {
			s.links = append(s.links, link{capacity: capacity})
		}
	}
	if balance == balanceLeast {
		s.load = make([]uint64, len(s.ports))
	}
	return s
}

func (s *selector) find(p *path, from, to, flow uint32, keep []uint32) (used []uint32, err error) {
	nic, last := s.routes.NIC(from), s.routes.HostPort(to)
	sw, edge := s.routes.Edge(from), s.routes.Edge(to)
	if s.routes.Paths(sw, edge) == 0 || nic == topology.NoPort || last == topology.NoPort {
		return nil, fmt.Errorf("expected a path from %s to %s, found none in the topology", s.net.Name(from),
			s.net.Name(to))
	}
	p.hops, p.latency = p.hops[:0], 0
	if s.balance == balanceSpray && !s.merged {
		s.along(p, nic)
		var middle *path
		if s.entropy > 0 {
			middle = s.hashed(sw, edge, flow)
		} else {
			middle = s.spread(sw, edge)
		}
		p.hops, p.latency = append(p.hops, middle.hops...), p.latency+middle.latency
		s.along(p, last)
		return nil, nil
	}
	s.used = append(s.used[:0], nic)
	switch {
	case s.balance == balanceLeast && s.works(keep):
		s.used = append(s.used, keep[1:len(keep)-1]...)
		sw = edge
	case s.balance == balanceFlow:
		random := sim.NewRandom(s.seed, uint64(from)<<32|uint64(to), uint64(flow))
		number := random.Below(s.routes.Paths(sw, edge))
		for port := uint32(0); sw != edge; sw = s.after(port) {
			port, number = s.routes.Choose(sw, edge, number)
			s.used = append(s.used, port)
		}
	case s.balance == balanceLeast:
		s.leastLoaded(sw, edge)
	default: // fixed; sprayed flows use the same bundles on each path
		for rest := to; sw != edge; sw = s.after(s.used[len(s.used)-1]) {
			next := s.routes.Next(sw, edge)
			s.used = append(s.used, next[int(rest)%len(next)])
			rest /= uint32(len(next))
		}
	}
	s.used = append(s.used, last)
	for _, port := range s.used {
		s.along(p, port)
	}
	return s.used, nil
}

// works reports whether all ports of a path work. An empty path does not.
func (s *selector) works(ports []uint32) bool {
	for _, port := range ports {
		if s.down != nil && s.down[s.ports[port].Link] > 0 {
			return false
		}
	}
	return len(ports) > 0
}

func (s *selector) linksOf(link int) []uint32 { return []uint32{uint32(2 * link), uint32(2*link + 1)} }

func (s *selector) fail(ctx context.Context, links []int, change int) error {
	if s.down == nil {
		s.down, s.tables = make([]int, len(s.net.Links)), make(map[string]*topology.Routes)
		intact := *s
		intact.visits, intact.nodes, intact.used, intact.down = make(map[uint32]int), nil, nil, nil
		s.intact = &intact
	}
	for _, l := range links {
		s.down[l] += change
	}
	var key strings.Builder
	for l, n := range s.down {
		if n > 0 {
			fmt.Fprintf(&key, "%d ", l)
		}
	}
	s.spreads = make(map[[2]uint32]*path)
	routes := s.tables[key.String()]
	if routes == nil {
		var err error
		routes, err = topology.NewRoutes(ctx, s.net, func(l int) bool { return s.down[l] > 0 })
		if err != nil {
			return err
		}
		s.tables[key.String()] = routes
	}
	s.routes = routes
	return nil
}

// along appends a port to a path.
func (s *selector) along(p *path, port uint32) {
	p.hops = append(p.hops, hop{s.linkOf[port], 1})
	p.latency += s.latency[port]
}

// after returns the switch at the end of a port.
func (s *selector) after(port uint32) uint32 {
	return s.ports[port].To - uint32(s.net.Hosts)
}

// visit sets s.nodes to the switches on shortest paths between two, by distance from the first. All shortest paths to a
// switch have equally many links.
func (s *selector) visit(from, to uint32) {
	clear(s.visits)
	s.nodes = append(s.nodes[:0], node{sw: from, part: 1})
	s.visits[from] = 0
	for k := 0; k < len(s.nodes); k++ {
		for _, port := range s.routes.Next(s.nodes[k].sw, to) {
			sw := s.after(port)
			if _, known := s.visits[sw]; !known {
				s.visits[sw] = len(s.nodes)
				s.nodes = append(s.nodes, node{sw: sw})
			}
		}
	}
}

// spread returns the links between two switches that a sprayed flow uses, and their largest latency: each shortest path
// has an equal part of the flow.
func (s *selector) spread(from, to uint32) *path {
	if p := s.spreads[[2]uint32{from, to}]; p != nil {
		return p
	}
	p := &path{}
	s.spreads[[2]uint32{from, to}] = p
	s.visit(from, to)
	for k := range s.nodes {
		n := s.nodes[k]
		next := s.routes.Next(n.sw, to)
		paths := 0.0
		for _, port := range next {
			paths += float64(s.routes.Paths(s.after(port), to))
		}
		for _, port := range next {
			sw := s.after(port)
			part := n.part * float64(s.routes.Paths(sw, to)) / paths
			p.hops = append(p.hops, hop{s.linkOf[port], part})
			then := &s.nodes[s.visits[sw]]
			then.part += part
			then.latency = max(then.latency, n.latency+s.latency[port])
		}
	}
	p.latency = s.nodes[s.visits[to]].latency
	return p
}

// forSalt is the purpose of the random numbers of switches. It differs from those of flows, which are pairs of hosts.
const forSalt = 1 << 63

// hashed returns the links between two switches that a sprayed flow with a given number uses, and their largest
// latency. Each of the flow's entropy values takes the path that a hash at each switch selects, and carries an equal
// part.
func (s *selector) hashed(from, to, flow uint32) *path {
	p, parts := &path{}, s.parts
	clear(parts)
	for value := range uint32(s.entropy) {
		label, latency := sim.Mix(uint64(flow)<<32|uint64(value))>>32, 0.0
		for sw := from; sw != to; {
			next := s.routes.Next(sw, to)
			port := next[0]
			if n := uint64(len(next)); n > 1 {
				port = next[(sim.Mix(label<<32^s.salts[sw])>>32)*n>>32]
			}
			k, known := parts[port]
			if !known {
				k = len(p.hops)
				parts[port] = k
				p.hops = append(p.hops, hop{s.linkOf[port], 0})
			}
			p.hops[k].part++
			latency += s.latency[port]
			sw = s.after(port)
		}
		p.latency = max(p.latency, latency)
	}
	for k := range p.hops {
		p.hops[k].part /= float64(s.entropy)
	}
	return p
}

// leastLoaded appends, to s.used, the ports of the path between two switches with the fewest bytes under way: the first
// of several such paths.
func (s *selector) leastLoaded(from, to uint32) {
	s.visit(from, to)
	for k, n := range slices.Backward(s.nodes) {
		load, best := uint64(math.MaxUint64), uint32(0)
		for _, port := range s.routes.Next(n.sw, to) {
			if l := saturating(s.load[port], s.nodes[s.visits[s.after(port)]].load); l < load {
				load, best = l, port
			}
		}
		if n.sw != to {
			s.nodes[k].load, s.nodes[k].port = load, best
		}
	}
	for sw := from; sw != to; {
		port := s.nodes[s.visits[sw]].port
		s.used = append(s.used, port)
		sw = s.after(port)
	}
}

// saturating returns a sum, less than math.MaxUint64.
func saturating(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return min(sum, math.MaxUint64-1)
	}
	return math.MaxUint64 - 1
}

func (s *selector) portRows() ([]portRow, []uint32) {
	rows, names := make([]portRow, len(s.ports)), s.net.PortNames()
	for i, p := range s.ports {
		rows[i] = portRow{port: i, name: names[i], capacity: float64(s.net.Links[p.Link].Rate) / 8,
			tier: slices.Index(topology.Tiers, s.net.TierOf(p))}
	}
	return rows, s.linkOf
}

func (s *selector) latencyBetween(from, to uint32) float64 {
	if from == to {
		return 0
	}
	if s.intact != nil { // announcements are not lost
		return s.intact.latencyBetween(from, to)
	}
	return s.latency[s.routes.NIC(from)] + s.spread(s.routes.Edge(from), s.routes.Edge(to)).latency +
		s.latency[s.routes.HostPort(to)]
}
