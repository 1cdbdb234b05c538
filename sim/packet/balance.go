// This file implements load balancing: the selection among equal-cost paths.

package packet

import (
	"math/bits"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Balance is a load-balancing policy.
type Balance uint8

// Load-balancing policies.
const (
	// ByFlow selects by a hash of the flow at each switch: ECMP.
	ByFlow Balance = iota
	// ByHost selects by a hash of the pair of hosts at each switch, so that all flows between two hosts share a path.
	ByHost
	// Spray selects by a hash of the flow and an entropy value at each switch. The sender changes the entropy value
	// with each packet.
	Spray
	// Permute is source routing over a random permutation of all paths; after the last path, a new permutation starts.
	Permute
	// Random is source routing over a random path per packet.
	Random
	// Fixed is source routing over a random path per flow, with another path for its ACKs.
	Fixed
	// RoundRobin cycles through the ports of each switch, in an order that is shuffled periodically.
	RoundRobin
	// Adaptive selects the port with the shortest queue for each packet.
	Adaptive
	// Flowlet selects the port with the shortest queue for the first packet after a gap in the flow. The following
	// packets use the same port.
	Flowlet
	// Valiant routes each packet through a random router of another group, in dragonflies (Kim et al., ISCA 2008,
	// section 4.1).
	Valiant
	// UGAL selects the minimal or the Valiant path at the first router, in dragonflies: the Valiant path if queue
	// length times hops of the minimal path exceeds queue length times hops of the Valiant path (UGAL-L, section 4.2).
	UGAL
)

// loadBalancer is the load-balancing state of the network.
type loadBalancer struct {
	policy    Balance
	entropies uint32 // number of entropy values
	shuffle   bool   // shuffle the order of entropy values each round
	seed      int64
	paths     Paths // for Fixed

	salts     []uint64 // by switch
	rounds    []rounds // for RoundRobin, by switch
	random    []sim.Random
	dragonfly *topology.DragonflyInfo // for Valiant and UGAL
	// For Flowlet: a direct-mapped table by switch and flow. A collision only ends a flowlet early.
	flowlets []flowlet
	gap      uint64 // shortest gap between flowlets in picoseconds
}

// flowLabels labels the packets of one end of a flow.
type flowLabels struct {
	key   uint64 // key of the current permutation
	count uint32 // number of entropy values or paths
	next  uint32
	fixed uint32
}

// labelsOf returns the labels of the end of the flow that sends a packet.
func (fl *flow) labelsOf(pk *packet) *flowLabels {
	if pk.dst == fl.src {
		return &fl.labels[1]
	}
	return &fl.labels[0]
}

// flowlet is the current port of a flow at a switch.
type flowlet struct {
	flow, sw uint32
	port     uint32
	at       uint64
}

type rounds struct {
	next, count uint32
	key         uint64
}

const flowletTable = 1 << 16

func (b *loadBalancer) sourceRouted() bool {
	return b.policy == Permute || b.policy == Random || b.policy == Fixed
}

func newBalance(policy Balance, entropies uint32, seed int64, switches int, gap uint64) loadBalancer {
	b := loadBalancer{
		policy: policy, entropies: max(entropies, 1), shuffle: true, seed: seed, gap: gap,
		salts: make([]uint64, switches), random: make([]sim.Random, switches),
	}
	for i := range b.salts {
		b.random[i] = sim.NewRandom(seed, forSwitch, uint64(i))
		b.salts[i] = b.random[i].Next()
	}
	switch policy {
	case RoundRobin:
		b.rounds = make([]rounds, switches)
	case Flowlet:
		b.flowlets = make([]flowlet, flowletTable)
	}
	return b
}

// open initializes the labels of a flow.
func (b *loadBalancer) open(n *network, f uint32) {
	fl := &n.flows[f]
	if n.given != nil {
		fl.labels[0].fixed, _ = n.given.Number(fl.src, fl.dst) // messages are between hosts with routes
		fl.labels[1].fixed, _ = n.given.Number(fl.dst, fl.src)
		return
	}
	random := sim.NewRandom(b.seed, forFlow, uint64(fl.id))
	for end := range fl.labels {
		l := &fl.labels[end]
		l.key = random.Next()
		switch b.policy {
		case Spray:
			l.count, l.next = b.entropies, 1%b.entropies
		case Permute, Random, Fixed:
			from, to := n.routes.Edge(fl.src), n.routes.Edge(fl.dst)
			if end == 1 {
				from, to = to, from
			}
			l.count = 1
			if from != to {
				l.count = max(1, n.routes.Paths(from, to))
			}
			l.fixed = uint32((l.key >> 32) * uint64(l.count) >> 32)
		case ByHost:
			l.fixed = fl.src ^ bits.RotateLeft32(fl.dst, 16)
		}
	}
	if given, ok := b.paths[[2]uint32{fl.src, fl.dst}]; ok && b.policy == Fixed {
		fl.labels[0].fixed, fl.labels[1].fixed = given.Forward%fl.labels[0].count, given.Reverse%fl.labels[1].count
	}
}

// label sets the path or the hash of a packet that leaves its host.
func (b *loadBalancer) label(n *network, pk *packet) {
	if n.given != nil {
		return
	}
	fl := &n.flows[pk.flow]
	l := fl.labelsOf(pk)
	switch b.policy {
	case Spray, Permute:
		if pk.kind == pull { // NDP sends all pulls of a flow over one path
			b.spread(pk, fl.id, l.fixed)
			return
		}
		value := l.next
		if b.shuffle || b.policy == Permute {
			value = shuffled(l.next, l.count, l.key)
		}
		if l.next++; l.next >= l.count {
			l.next = 0
			l.key = sim.Mix(l.key + 0x9e3779b97f4a7c15)
		}
		b.spread(pk, fl.id, value)
	case Random:
		g := sim.Random(l.key)
		pk.path = g.Below(l.count)
		l.key = uint64(g)
	case ByHost:
		b.spread(pk, 0, l.fixed)
	default:
		b.spread(pk, fl.id, l.fixed)
	}
}

// spread labels a packet with a path number, or with a hash of its flow's number and an entropy value.
func (b *loadBalancer) spread(pk *packet, id, value uint32) {
	if b.dragonfly != nil {
		pk.path = undecidedRoute
		return
	}
	if b.sourceRouted() {
		pk.path = value
		return
	}
	pk.path = uint32(sim.Mix(uint64(id)<<32|uint64(value)) >> 32)
}

// shuffled returns the image of i under a permutation of 0 to count-1 selected by key.
func shuffled(i, count uint32, key uint64) uint32 {
	width := bits.Len32(count - 1)
	mask := uint32(1)<<width - 1
	for {
		// Each step is a bijection of numbers of width bits.
		i = (i + uint32(key)) & mask
		i = i * (uint32(key>>32) | 1) & mask
		i ^= i >> (width/2 + 1)
		i = i * (uint32(key>>16)<<1 | 1) & mask
		i ^= i >> (width/2 + 1)
		i = (i + uint32(key>>40)) & mask
		if i < count {
			return i
		}
	}
}

// choosePort returns the output port of a packet at a switch, or none if there is no path.
func (b *loadBalancer) choosePort(n *network, sw uint32, pk *packet) uint32 {
	edge := n.routes.Edge(pk.dst)
	if edge == sw {
		return n.routes.HostPort(pk.dst)
	}
	if port, ok := n.routes.Only(sw, edge); ok && b.dragonfly == nil {
		return port
	}
	ports := n.routes.Next(sw, edge)
	if len(ports) == 0 && b.dragonfly == nil {
		return none
	}
	switch b.policy {
	case Spray, ByFlow, ByHost:
		return b.hashedPort(ports, sw, pk)
	case Valiant, UGAL:
		return b.dragonflyPort(n, sw, edge, pk)
	case Permute, Random, Fixed:
		if n.failures != nil { // a failure may have removed paths
			pk.path %= n.routes.Paths(sw, edge)
		}
		port, rest := n.routes.Choose(sw, edge, pk.path)
		pk.path = rest
		return port
	case RoundRobin:
		return b.roundRobinPort(sw, ports)
	case Adaptive:
		return b.leastLoadedPort(n, sw, ports)
	}
	return b.flowletPort(n, sw, pk, ports)
}

// hashedPort returns the port selected by the packet's hash, or none if there are no ports.
func (b *loadBalancer) hashedPort(ports []uint32, sw uint32, pk *packet) uint32 {
	if len(ports) == 0 {
		return none
	}
	h := sim.Mix(uint64(pk.path)<<32 ^ b.salts[sw])
	return ports[(h>>32)*uint64(len(ports))>>32]
}

// roundsBeforeShuffle is the number of round-robin rounds between two shuffles.
const roundsBeforeShuffle = 5

func (b *loadBalancer) roundRobinPort(sw uint32, ports []uint32) uint32 {
	r := &b.rounds[sw]
	r.next++
	if r.next >= uint32(len(ports)) {
		r.next = 0
		if r.count++; r.count == roundsBeforeShuffle {
			r.count, r.key = 0, b.random[sw].Next()
		}
	}
	return ports[shuffled(r.next, uint32(len(ports)), r.key)]
}

// leastLoadedPort returns a random port among those with the lowest load level.
func (b *loadBalancer) leastLoadedPort(n *network, sw uint32, ports []uint32) uint32 {
	best, ties, port := uint32(255), uint32(0), ports[0]
	random := &b.random[sw]
	for _, w := range ports {
		pt := &n.ports[w]
		load := loadLevel(n.backlog(w), pt.loadCapacity)
		if pt.paused {
			load = 4
		}
		switch {
		case load < best:
			best, ties, port = load, 1, w
		case load == best:
			if ties++; random.Below(ties) == 0 {
				port = w
			}
		}
	}
	return port
}

// loadLevel returns the load level of a queue: 0 below 5 % of its capacity, 1 below 10 %, 2 below 20 %, 3 otherwise.
func loadLevel(bytes, capacity uint64) uint32 {
	switch {
	case bytes*20 < capacity:
		return 0
	case bytes*10 < capacity:
		return 1
	case bytes*5 < capacity:
		return 2
	}
	return 3
}

// flowletPort returns the port of the flow's current flowlet. After a gap, a new flowlet starts with probability 1/2.
func (b *loadBalancer) flowletPort(n *network, sw uint32, pk *packet, ports []uint32) uint32 {
	fl := &n.flows[pk.flow]
	id := fl.id<<1 | 1
	if pk.dst == fl.src {
		id--
	}
	e := &b.flowlets[sim.Mix(uint64(id)<<32|uint64(sw))%flowletTable]
	if e.flow != id || e.sw != sw || e.at == 0 {
		*e = flowlet{flow: id, sw: sw, port: b.leastLoadedPort(n, sw, ports)}
	} else if n.now-e.at > b.gap && b.random[sw].Next()>>63 == 0 {
		e.port = b.leastLoadedPort(n, sw, ports)
	}
	e.at = n.now
	return e.port
}

// Path labels on a dragonfly: undecidedRoute at the first router, directRoute, or the intermediate router plus 1.
const (
	undecidedRoute = none
	directRoute    = 0
)

// dragonflyPort returns the output port of a packet at a router of a dragonfly.
func (b *loadBalancer) dragonflyPort(n *network, sw, edge uint32, pk *packet) uint32 {
	if pk.path == undecidedRoute {
		pk.path = b.chooseIntermediate(n, sw, edge)
	}
	if pk.path == sw+1 {
		pk.path = directRoute
	}
	to := edge
	if pk.path != directRoute {
		to = pk.path - 1
	}
	ports := n.routes.Next(sw, to)
	if len(ports) == 0 {
		return none
	}
	return ports[0]
}

// chooseIntermediate returns the label of a packet at its first router. Packets within a group take the direct path.
func (b *loadBalancer) chooseIntermediate(n *network, sw, edge uint32) uint32 {
	from, to := b.dragonfly.Group(int(sw)), b.dragonfly.Group(int(edge))
	if from == to || b.dragonfly.Groups < 3 {
		return directRoute
	}
	group := int(b.random[sw].Below(uint32(b.dragonfly.Groups - 2))) // a group other than both
	if group >= min(from, to) {
		group++
	}
	if group >= max(from, to) {
		group++
	}
	via := uint32(group*b.dragonfly.A) + b.random[sw].Below(uint32(b.dragonfly.A))
	if b.policy == Valiant {
		return via + 1
	}
	short, long := n.routes.Next(sw, edge), n.routes.Next(sw, via)
	minimal, detour := b.hops(int(sw), int(edge)), b.hops(int(sw), int(via))+b.hops(int(via), int(edge))
	if len(long) == 0 || len(short) > 0 && n.backlog(short[0])*minimal <= n.backlog(long[0])*detour {
		return directRoute
	}
	return via + 1
}

// hops returns the number of links on the minimal path between two routers of a dragonfly.
func (b *loadBalancer) hops(from, to int) uint64 {
	source, target := b.dragonfly.Group(from), b.dragonfly.Group(to)
	if source == target {
		if from == to {
			return 0
		}
		return 1
	}
	hops := uint64(1)
	if b.dragonfly.Gateway(source, target) != from {
		hops++
	}
	if b.dragonfly.Gateway(target, source) != to {
		hops++
	}
	return hops
}

// backlog returns the bytes of data queued at a port, including the packet in service.
func (n *network) backlog(i uint32) uint64 {
	pt := &n.ports[i]
	if pt.serving != none {
		pt.finishService(n.now)
	}
	return pt.bytes[dataQueue]
}
