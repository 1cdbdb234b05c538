// This file is load balancing: which of several ways of equal length a packet takes.

package packet

import (
	"math/bits"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Balance says how packets are spread over ways of equal length.
type Balance uint8

// The ways to spread packets.
const (
	// ByFlow has a switch take the way that a hash of the flow says: ECMP.
	ByFlow Balance = iota
	// ByHost is the same with the pair of hosts, so that all flows between two hosts take one way.
	ByHost
	// Spray has a switch take the way that a hash of the flow and an entropy says, which the sender changes with every
	// packet.
	Spray
	// Permute has the sender name the whole way: a random permutation of all ways, one after the other, and then another.
	Permute
	// Random has the sender draw the whole way for every packet.
	Random
	// Fixed has the sender draw the whole way for every flow, and for its acks another.
	Fixed
	// RoundRobin has a switch take one way after the other, in an order that it shuffles now and then.
	RoundRobin
	// Adaptive has a switch take the way whose queue is the least full, for every packet.
	Adaptive
	// Flowlet has a switch do so for a packet that comes some time after the one before it of the same flow, and keep the
	// way otherwise.
	Flowlet
	// Valiant sends every packet to a router of another group first, drawn at random; of dragonflies (Kim et al., ISCA
	// 2008, section 4.1).
	Valiant
	// UGAL has the first router decide, for every packet, whether it goes there first: if the queue of the direct way, times
	// the links of that, is longer than that of the detour, times its links; of dragonflies (UGAL-L, section 4.2).
	UGAL
)

// balance spreads packets.
type loadBalancer struct {
	policy    Balance
	entropies uint32 // entropies
	shuffle   bool   // the order of entropies changes with every round
	seed      int64
	paths     Paths // Fixed

	salts     []uint64 // by switch
	rounds    []rounds // by switch; RoundRobin
	random    []sim.Random
	dragonfly *topology.DragonflyInfo // of the network; Valiant and UGAL
	// Flowlet: of a switch and a flow, what the last packet did; a direct-mapped table, for forgetting does little harm.
	flowlets []flowlet
	gap      uint64 // ps, after which a flowlet begins
}

// labels is how the packets of one end of a flow are labelled.
type flowLabels struct {
	key   uint64 // of the permutation at hand
	count uint32 // of the entropies or paths
	next  uint32
	fixed uint32
}

// flowlet is the way of a flow at a switch.
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

func newBalance(how Balance, paths uint32, seed int64, switches int, gap uint64) loadBalancer {
	b := loadBalancer{policy: how, entropies: max(paths, 1), shuffle: true, seed: seed, salts: make([]uint64, switches), gap: gap}
	b.random = make([]sim.Random, switches)
	for i := range b.salts {
		b.random[i] = sim.NewRandom(seed, forSwitch, uint64(i))
		b.salts[i] = b.random[i].Next()
	}
	switch how {
	case RoundRobin:
		b.rounds = make([]rounds, switches)
	case Flowlet:
		b.flowlets = make([]flowlet, flowletTable)
	}
	return b
}

// open prepares the labels of a flow.
func (b *loadBalancer) open(n *network, f uint32) {
	fl := &n.flows[f]
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

// label gives a packet that leaves its host what it is spread by.
func (b *loadBalancer) label(n *network, pk *packet) {
	fl := &n.flows[pk.flow]
	l := &fl.labels[0]
	if pk.dst == fl.src {
		l = &fl.labels[1]
	}
	switch b.policy {
	case Spray, Permute:
		if pk.kind == pull { // as in NDP, all of a flow the same way
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

// spread labels a packet with a path's number, or with a hash of its flow's number and an entropy, by which switches choose.
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

// shuffled returns where a permutation of 0 to count-1, which the key chooses, takes i.
func shuffled(i, count uint32, key uint64) uint32 {
	width := bits.Len32(count - 1)
	mask := uint32(1)<<width - 1
	for {
		// Each step is one to one on numbers of so many bits.
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

// choose returns the port by which a packet leaves a switch, none if there is no way.
func (b *loadBalancer) choosePort(n *network, sw uint32, pk *packet) uint32 {
	edge := n.routes.Edge(pk.dst)
	if edge == sw {
		return n.routes.HostPort(pk.dst)
	}
	ways := n.routes.Next(sw, edge)
	if len(ways) < 2 && b.dragonfly == nil {
		if len(ways) == 0 {
			return none
		}
		return ways[0]
	}
	switch b.policy {
	case Spray, ByFlow, ByHost:
		return b.hashedPort(ways, sw, pk)
	case Valiant, UGAL:
		return b.dragonflyPort(n, sw, edge, pk)
	case Permute, Random, Fixed:
		if n.failures != nil { // the ways may have become fewer
			pk.path %= n.routes.Paths(sw, edge)
		}
		port, rest := n.routes.Choose(sw, edge, pk.path)
		pk.path = rest
		return port
	case RoundRobin:
		return b.roundRobinPort(sw, ways)
	case Adaptive:
		return b.leastLoadedPort(n, sw, ways)
	}
	return b.flowletPort(n, sw, pk, ways)
}

// hashed returns the one of several ways that a hash of what the packet is spread by says, none if there are none.
func (b *loadBalancer) hashedPort(ways []uint32, sw uint32, pk *packet) uint32 {
	if len(ways) == 0 {
		return none
	}
	h := sim.Mix(uint64(pk.path)<<32 ^ b.salts[sw])
	return ways[(h>>32)*uint64(len(ways))>>32]
}

// turnsBeforeShuffle is how often a switch goes round its ways before it shuffles them.
const roundsBeforeShuffle = 5

func (b *loadBalancer) roundRobinPort(sw uint32, ways []uint32) uint32 {
	r := &b.rounds[sw]
	r.next++
	if r.next >= uint32(len(ways)) {
		r.next = 0
		if r.count++; r.count == roundsBeforeShuffle {
			r.count, r.key = 0, b.random[sw].Next()
		}
	}
	return ways[shuffled(r.next, uint32(len(ways)), r.key)]
}

// leastFull returns one of the ways whose queues are the least full, in steps of a twentieth, a tenth and a fifth of what
// they hold, at random.
func (b *loadBalancer) leastLoadedPort(n *network, sw uint32, ways []uint32) uint32 {
	best, ties, way := uint32(255), uint32(0), ways[0]
	random := &b.random[sw]
	for _, w := range ways {
		pt := &n.ports[w]
		load := loadLevel(n.backlog(w), pt.capacity[dataQueue])
		if pt.paused {
			load = 4
		}
		switch {
		case load < best:
			best, ties, way = load, 1, w
		case load == best:
			if ties++; random.Below(ties) == 0 {
				way = w
			}
		}
	}
	return way
}

func loadLevel(bytes, room uint64) uint32 {
	switch {
	case bytes*20 < room:
		return 0
	case bytes*10 < room:
		return 1
	case bytes*5 < room:
		return 2
	}
	return 3
}

// sameFlowlet keeps the way of a flow while its packets follow each other closely; after a gap, half of the time, it takes
// one whose queue is the least full.
func (b *loadBalancer) flowletPort(n *network, sw uint32, pk *packet, ways []uint32) uint32 {
	fl := &n.flows[pk.flow]
	id := fl.id<<1 | 1
	if pk.dst == fl.src {
		id--
	}
	e := &b.flowlets[sim.Mix(uint64(id)<<32|uint64(sw))%flowletTable]
	if e.flow != id || e.sw != sw || e.at == 0 {
		*e = flowlet{flow: id, sw: sw, port: b.leastLoadedPort(n, sw, ways)}
	} else if n.now-e.at > b.gap && b.random[sw].Next()>>63 == 0 {
		e.port = b.leastLoadedPort(n, sw, ways)
	}
	e.at = n.now
	return e.port
}

// What the label of a packet says on a dragonfly: undecided at its first router, direct, or else one more than a router
// that it goes to first.
const (
	undecidedRoute = none
	directRoute    = 0
)

// detour returns the port by which a packet leaves a router of a dragonfly, on the direct way or by way of another group.
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
	ways := n.routes.Next(sw, to)
	if len(ways) == 0 {
		return none
	}
	return ways[0]
}

// decide returns the label of a packet at its first router. Within a group packets go directly.
func (b *loadBalancer) chooseIntermediate(n *network, sw, edge uint32) uint32 {
	from, to := b.dragonfly.Group(int(sw)), b.dragonfly.Group(int(edge))
	if from == to || b.dragonfly.Groups < 3 {
		return directRoute
	}
	group := int(b.random[sw].Below(uint32(b.dragonfly.Groups - 2))) // neither of the two
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
	if len(long) == 0 || len(short) > 0 &&
		n.backlog(short[0])*b.hops(int(sw), int(edge)) <= n.backlog(long[0])*(b.hops(int(sw), int(via))+b.hops(int(via), int(edge))) {
		return directRoute
	}
	return via + 1
}

// hops returns the links of the minimal way between routers of a dragonfly.
func (b *loadBalancer) hops(from, to int) uint64 {
	here, there := b.dragonfly.Group(from), b.dragonfly.Group(to)
	if here == there {
		if from == to {
			return 0
		}
		return 1
	}
	hops := uint64(1)
	if b.dragonfly.Gateway(here, there) != from {
		hops++
	}
	if b.dragonfly.Gateway(there, here) != to {
		hops++
	}
	return hops
}

// backlog returns the bytes of data that wait at a port, with the packet in service.
func (n *network) backlog(i uint32) uint64 {
	pt := &n.ports[i]
	if pt.serving != none {
		pt.finishService(n.now)
	}
	return pt.bytes[dataQueue]
}
