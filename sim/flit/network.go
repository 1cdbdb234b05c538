// This file contains the state of a network and the processing of a cycle.

package flit

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

const (
	none  = math.MaxUint32
	never = math.MaxUint64
)

// packet is a packet in the network.
type packet struct {
	head     uint64 // cycle from which its head is here and may move on
	created  uint64 // cycle in which it entered the NIC's queue
	injected uint64 // cycle in which its head left the NIC
	left     uint64 // cycle in which its head left the first router; never: not yet
	next     uint32 // next packet of its current list
	to       uint32 // target host
	message  uint32 // none: no message; of a request its sender, of a reply the cycles since the request's creation
	flits    uint32
	via      uint32 // intermediate group, or the rest of its path number; none: neither
	out      uint32 // next output port at the current router
	vc       uint8  // virtual channel of the current buffer; after routing, of the next
	stage    uint8  // progress in the sequence of virtual channels
	decided  bool   // UGAL has chosen its path
	flags    uint8  // of routing in dragonflies
	hops     uint16 // number of links between routers
}

// Kinds of ports.
const (
	hostPort = iota
	localPort
	globalPort
)

// port is a port of a router, as input and as output.
type port struct {
	busy uint64 // as input: a packet leaves until this cycle
	// As output: a packet arrives from the crossbar, or without output buffers moves to the link, until this cycle.
	written  uint64
	linkFree uint64 // the link is free from this cycle on
	accepts  uint64 // a host without a link is free from this cycle on
	peer     uint32 // port at the other end; NICs follow all ports of routers
	router   uint32
	beyond   uint32 // router at the other end; for a host's port the same router
	room     int32  // free flits of the output buffer
	first    uint32 // packets of the output buffer
	last     uint32
	latency  uint16 // latency of the link in cycles
	servedIn uint16 // as output: input port served last
	servedVC uint8  // as input: virtual channel served last
	kind     uint8
	blocked  bool // a packet waits for room or credits here
	parked   bool // as input: its packets wait, possibly for a blocked output
}

// inputVC is the buffer of a virtual channel of an input port.
type inputVC struct {
	ready   uint64 // arrival of the first packet's head; never: empty
	served  uint64 // increases with the last service
	since   uint64 // cycle up to which the waiting time of the first packet is counted
	first   uint32 // packets of the buffer
	last    uint32
	out     uint32 // output port of the first packet
	channel uint32 // virtual channel at the other end of that port
	flits   uint32
	cause   stall // reason why the last attempt of the first packet failed
}

// channel is a virtual channel of a link, from the sender's view.
type channel struct {
	credits int32 // free flits of the buffer at its end
	stream  int32 // flits of the packet whose credits return one by one
	since   uint64
}

// available returns the credits in a cycle at the given rate of returning credits.
func (c *channel) available(t, speedup uint64) int32 {
	return c.credits + int32(min(uint64(c.stream), (t-c.since+1)*speedup))
}

// coming reports whether more credits return in the next cycle.
func (c *channel) coming(t, speedup uint64) bool {
	return uint64(c.stream) > (t-c.since+1)*speedup
}

// network is the state shared by all workers of a run. Each worker changes only the state of its own routers and hosts.
type network struct {
	p        *Params
	topology *topology.Network
	driver   driver

	routers, hosts int
	vcs            uint32   // virtual channels allocated per port
	base           []uint32 // by router: its first port; then the end
	edge           []uint32 // by host: its router
	hostPorts      []uint32 // by host: its port at the router
	count          [3]uint8 // by kind of port: virtual channels
	lanes          [3]uint8 // by kind of port: virtual channels per class of packets
	capacity       [3]int32 // by kind of port: capacity of an input buffer in flits

	next     []uint64 // by port: cycle in which its input may send a request; never: nothing to request
	sendAt   []uint64 // by port: cycle in which its output buffer may send; never: empty
	sent     []uint64 // by port: flits sent in measured cycles
	ports    []port
	inputs   []inputVC // vcs per port
	channels []channel // vcs per port, then per NIC
	stamps   []uint64  // by router and output: last service of each input; nil: not needed
	stampAt  []int     // by router: index in stamps
	widest   uint32    // largest number of ports of a router

	packets  []packet
	messages []message
	freeMess uint32
	nics     []nic
	routing  routing
	traffic  *traffic // nil: no synthetic traffic
	reactive bool     // hosts reply to packets

	from, to uint64 // measured cycles: from <= t < to
	batch    uint64 // measured cycles per batch; 0: no batches
	horizon  uint64 // largest distance of an event in cycles

	ctx         context.Context // for synthetic traffic; nil: no limit
	interrupted error           // error at the end of the context, set by the first of several workers
}

// driver is notified of message progress.
type driver interface {
	// taken is called in cycle t, in which the NIC takes the last packet of a message. began is the cycle of the
	// message's first packet.
	taken(op uint32, began, t uint64)
	// received is called when the reception cycle t of a message is known; t may be in the future.
	received(op uint32, t uint64)
}

// newNetwork returns a network before its first cycle, with one worker. It returns an error if the routing may deadlock
// or the context ends.
func newNetwork(ctx context.Context, t *topology.Network, p *Params) (*worker, error) {
	n, err := newUnchecked(t, p)
	if err != nil {
		return nil, err
	}
	if err := checkDependencies(ctx, n); err != nil {
		return nil, err
	}
	return n, nil
}

func newUnchecked(t *topology.Network, p *Params) (*worker, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if err := p.resolve(t); err != nil {
		return nil, err
	}
	shared := &network{p: p, topology: t, routers: t.Switches, hosts: t.Hosts, freeMess: none, to: never}
	n := &worker{network: shared, freePacket: none, last: uint32(t.Switches)}
	n.count = [3]uint8{uint8(p.InjectionVCs), uint8(p.LocalVCs), uint8(p.GlobalVCs)}
	for kind, count := range n.count {
		n.lanes[kind] = count / p.classCount()
	}
	n.capacity = [3]int32{int32(p.InjectionBuffer), int32(p.LocalBuffer), int32(p.GlobalBuffer)}
	n.vcs = uint32(max(p.InjectionVCs, p.LocalVCs))
	if t.Dragonfly != nil {
		n.vcs = max(n.vcs, uint32(p.GlobalVCs))
	}
	if err := n.countPorts(); err != nil {
		return nil, err
	}
	links, err := n.connect()
	if err != nil {
		return nil, err
	}
	n.fill()
	if n.routing, err = newRouting(n, links); err != nil {
		return nil, err
	}
	latest := uint64(0)
	for i := range n.ports {
		latest = max(latest, uint64(n.ports[i].latency))
	}
	horizon := latest + uint64(max(p.Pipeline, p.InjectionDelay)) + uint64(p.PacketFlits) + 4
	const most = 1 << 32 // bits
	if horizon*uint64(n.routers+n.hosts) > most {
		return nil, fmt.Errorf("expected at most %d routers and hosts with latencies of %d cycles, found %d",
			most/horizon, latest, n.routers+n.hosts)
	}
	n.horizon = horizon
	n.prepare()
	return n, nil
}

// countPorts numbers the ports of the routers and allocates their state.
func (n *worker) countPorts() error {
	t, hosts := n.topology, uint32(n.hosts)
	if most := 1 << 26; 2*len(t.Links)*int(n.vcs) > most {
		return fmt.Errorf("expected at most %d buffers, found %d ports with %d virtual channels", most,
			2*len(t.Links), n.vcs)
	}
	if err := memory.Check(n.ctx, "virtual channels", int64(unsafe.Sizeof(port{})+unsafe.Sizeof(inputVC{})+
		unsafe.Sizeof(channel{})), 2, int64(len(t.Links)), int64(n.vcs)); err != nil {
		return err
	}
	radix := make([]uint32, n.routers)
	for _, l := range t.Links {
		for _, end := range [...]uint32{l.A, l.B} {
			if end >= hosts {
				radix[end-hosts]++
			}
		}
	}
	n.base = make([]uint32, n.routers+1)
	stamps := 0
	for r, ports := range radix {
		if ports > math.MaxUint16 {
			return fmt.Errorf("%s has %d ports, expected at most %d", t.Name(hosts+uint32(r)), ports, math.MaxUint16)
		}
		n.base[r+1] = n.base[r] + ports
		n.stampAt = append(n.stampAt, stamps)
		stamps += int(ports) * int(ports)
		n.widest = max(n.widest, ports)
	}
	if n.p.OutputArbiter == LeastRecentlyServed {
		if stamps > 1<<28 {
			return fmt.Errorf("the routers have %d pairs of ports, expected at most %d with the arbiter lrs",
				stamps, 1<<28)
		}
		n.stamps = cpu.InHugePages(make([]uint64, stamps))
	}
	n.ports = cpu.InHugePages(make([]port, n.base[n.routers]))
	n.edge, n.hostPorts = make([]uint32, hosts), make([]uint32, hosts)
	return nil
}

// connect connects the ports. It returns, by port of the topology, the router's port that sends there, or none for
// hosts.
func (n *worker) connect() (links []uint32, err error) {
	t, hosts := n.topology, uint32(n.hosts)
	links = make([]uint32, 2*len(t.Links))
	taken := make([]uint32, n.routers)
	number := func(node, other uint32) uint32 {
		if node < hosts {
			return uint32(len(n.ports)) + node
		}
		if at := n.dragonflyPort(node, other); at != none {
			return at
		}
		r := node - hosts
		taken[r]++
		return n.base[r] + taken[r] - 1
	}
	for _, toHosts := range [...]bool{true, false} { // ports to hosts have the lowest numbers
		for l := range t.Links {
			link := &t.Links[l]
			if toHosts != (link.A < hosts || link.B < hosts) {
				continue
			}
			latency := max(1, (int64(link.Latency)+int64(n.p.Cycle)-1)/int64(n.p.Cycle))
			if latency > maxCycles {
				return nil, fmt.Errorf("link %s-%s: expected a latency of at most %d cycles, found %d", t.Name(link.A),
					t.Name(link.B), maxCycles, latency)
			}
			a, b := number(link.A, link.B), number(link.B, link.A)
			links[2*l] = n.attach(link.A, a, link.B, b, uint16(latency))
			links[2*l+1] = n.attach(link.B, b, link.A, a, uint16(latency))
		}
	}
	return links, nil
}

// attach creates a node's port of a link to another node and returns it, or none if the node is a host.
func (n *worker) attach(node, at, other, peer uint32, latency uint16) uint32 {
	hosts, d := uint32(n.hosts), n.topology.Dragonfly
	if node < hosts {
		n.edge[node], n.hostPorts[node] = other-hosts, peer
		return none
	}
	pt := &n.ports[at]
	*pt = port{peer: peer, router: node - hosts, beyond: other - hosts, latency: latency, kind: localPort}
	switch {
	case other < hosts:
		pt.kind, pt.beyond = hostPort, pt.router
	case d != nil && d.Group(int(pt.router)) != d.Group(int(pt.beyond)):
		pt.kind = globalPort
	}
	return at
}

// dragonflyPort returns the canonical number of a port of a dragonfly's router: after the ports to hosts, first the
// ports to other routers of the group by router number, then the global ports. It returns none for numbering in link
// order.
func (n *worker) dragonflyPort(node, other uint32) uint32 {
	d := n.topology.Dragonfly
	if d == nil || other < uint32(n.hosts) {
		return none
	}
	x, y := int(node)-n.hosts, int(other)-n.hosts
	if from, to := d.Group(x), d.Group(y); from != to {
		return n.base[x] + uint32(d.P+d.A-1+d.GlobalPort(from, to))
	}
	j := y % d.A
	if y > x {
		j--
	}
	return n.base[x] + uint32(d.P+j)
}

// fill initializes all buffers as empty.
func (n *worker) fill() {
	ports := len(n.ports)
	n.next, n.sendAt, n.sent = make([]uint64, ports), make([]uint64, ports), make([]uint64, ports)
	n.inputs = cpu.InHugePages(make([]inputVC, ports*int(n.vcs)))
	n.channels = cpu.InHugePages(make([]channel, (ports+n.hosts)*int(n.vcs)))
	for i := range n.ports {
		pt := &n.ports[i]
		n.next[i], n.sendAt[i] = never, never
		pt.room, pt.first, pt.last = int32(n.p.OutputBuffer), none, none
		pt.servedIn, pt.servedVC = uint16(n.base[pt.router+1]-n.base[pt.router]-1), n.count[pt.kind]-1
		for v := range n.vcs {
			c := &n.inputs[uint32(i)*n.vcs+v]
			c.ready, c.first, c.last = never, none, none
			if v < uint32(n.count[pt.kind]) {
				n.channels[pt.peer*n.vcs+v].credits = n.capacity[pt.kind]
			}
		}
	}
	n.nics = make([]nic, n.hosts)
	for h := range n.nics {
		n.nics[h] = nic{firstMessage: none, lastMessage: none, firstPacket: none, lastPacket: none,
			random: sim.NewRandom(n.p.Seed, forRoute, uint64(h))}
	}
}

// nextCycle returns the next active cycle, or the current one before its NICs have run.
func (n *worker) nextCycle() uint64 {
	if n.nicsPending {
		return n.now
	}
	return n.nextUsed()
}

// runRouters processes credits and runs the routers in cycle t. runNICs must follow.
func (n *worker) runRouters(t uint64) {
	n.now = t
	n.nicsPending = true
	slot := t & n.mask
	if events := n.credits[slot]; len(events) > 0 {
		n.takeCredits(events, t)
		n.credits[slot] = events[:0]
	}
	words := n.routerBits[int(slot)*n.routerW:][:n.routerW]
	for w, word := range words {
		if word == 0 {
			continue
		}
		words[w] = 0
		for ; word != 0; word &= word - 1 {
			n.router(uint32(w*64+bits.TrailingZeros64(word)), t)
		}
	}
	if len(n.touched) > 0 {
		n.updateCongestion(t)
	}
}

// runNICs runs the NICs in the current cycle and ends the cycle.
func (n *worker) runNICs() {
	t := n.now
	words := n.nicBits[int(t&n.mask)*n.nicW:][:n.nicW]
	for w, word := range words {
		if word == 0 {
			continue
		}
		words[w] = 0
		for ; word != 0; word &= word - 1 {
			n.runNIC(uint32(w*64+bits.TrailingZeros64(word)), t)
		}
	}
	n.nicsPending, n.over = false, t+1
	n.done()
}

// takeCredits processes the arriving credits.
func (n *worker) takeCredits(events []creditEvent, t uint64) {
	for _, e := range events {
		c := &n.channels[e.channel]
		if n.p.WholeCredits {
			c.credits += e.flits
		} else {
			c.credits += c.stream
			c.stream, c.since = e.flits, t
		}
		at := e.channel / n.vcs
		if at >= uint32(len(n.ports)) {
			h := at - uint32(len(n.ports))
			if n.nics[h].blocked {
				n.nics[h].blocked = false
				n.wakeNIC(h, t)
			}
		} else {
			pt := &n.ports[at]
			n.touch(pt)
			if pt.blocked {
				pt.blocked = false
				n.unpark(pt.router, t)
			}
		}
	}
}
