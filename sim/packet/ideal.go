// This file computes the delivery times of flows in an idle network, a lower bound of those of a run.

package packet

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// idealHop is a link of all shortest paths between two hosts at the same distance: the fastest link with the lowest
// latency.
type idealHop struct {
	perByte byteTime
	latency uint64 // with that of the switch at its end
	shared  bool   // all packets use the same link
}

// idealRoute is the shortest paths between two edge switches.
type idealRoute struct {
	hops      []idealHop
	connected bool
	alike     bool // all paths have links with these properties
}

// idealTimer computes ideal times. Routes between switches are cached.
type idealTimer struct {
	net     *topology.Network
	routes  *topology.Routes
	params  *Params
	header  uint64
	perByte []byteTime // by link, the lowest of the run
	cache   map[[2]uint32]*idealRoute
	global  idealHop   // dragonflies: the fastest global link
	hops    []idealHop // those of the current flow
}

func newIdealTimer(routes *topology.Routes, o *Options, header uint64) *idealTimer {
	c := &idealTimer{
		net: o.Network, routes: routes, params: &o.Params, header: header,
		perByte: make([]byteTime, len(o.Network.Links)), cache: make(map[[2]uint32]*idealRoute),
	}
	quirks := quirksOf(o.Params.Compat)
	for i := range c.perByte {
		c.perByte[i] = quirks.byteTimeOf(c.net.Links[i].Rate)
	}
	for i := range o.Failures {
		if f := &o.Failures[i]; f.Rate > 0 { // may be higher
			for _, l := range f.Links {
				if t := quirks.byteTimeOf(f.Rate); t.less(c.perByte[l]) {
					c.perByte[l] = t
				}
			}
		}
	}
	if c.params.Balance != Valiant && c.params.Balance != UGAL {
		return c
	}
	first := true
	for l := range c.net.Links {
		link, hosts := &c.net.Links[l], uint32(c.net.Hosts)
		if link.A < hosts || link.B < hosts ||
			c.net.Dragonfly.Group(int(link.A-hosts)) == c.net.Dragonfly.Group(int(link.B-hosts)) {
			continue
		}
		for _, port := range []uint32{uint32(2 * l), uint32(2*l + 1)} {
			c.global.add(c.hop(port), first)
			first = false
		}
	}
	return c
}

// hop returns the properties of a port.
func (c *idealTimer) hop(port uint32) idealHop {
	h := idealHop{perByte: c.perByte[port/2], latency: uint64(c.net.Links[port/2].Latency), shared: true}
	if to := c.net.Head(port); to >= uint32(c.net.Hosts) {
		h.latency += uint64(c.net.SwitchLatency[to-uint32(c.net.Hosts)])
	}
	return h
}

// add adds a link at the same distance, and reports whether it is like the others.
func (h *idealHop) add(other idealHop, first bool) (alike bool) {
	if first {
		*h = other
		return true
	}
	alike = h.perByte == other.perByte && h.latency == other.latency
	if other.perByte.less(h.perByte) {
		h.perByte = other.perByte
	}
	h.latency, h.shared = min(h.latency, other.latency), false
	return alike
}

// route returns the shortest paths between two edge switches.
func (c *idealTimer) route(from, to uint32) *idealRoute {
	if r := c.cache[[2]uint32{from, to}]; r != nil {
		return r
	}
	r := &idealRoute{connected: true, alike: true}
	c.cache[[2]uint32{from, to}] = r
	front := []uint32{from}
	for front[0] != to {
		var hop idealHop
		var next []uint32
		seen := make(map[uint32]bool)
		first := true
		for _, sw := range front {
			for _, port := range c.routes.Next(sw, to) {
				if !hop.add(c.hop(port), first) {
					r.alike = false
				}
				first = false
				if at := c.net.Head(port) - uint32(c.net.Hosts); !seen[at] {
					seen[at] = true
					next = append(next, at)
				}
			}
		}
		if len(next) == 0 {
			r.connected = false
			return r
		}
		r.hops = append(r.hops, hop)
		front = next
	}
	return r
}

// time returns the ideal time of a flow, or 0 without a path.
func (c *idealTimer) time(f *Flow) dag.Time {
	before := uint64(0) // time before the first packet
	if c.params.TransportParams[handshake] > 0 {
		there, ok := c.control(f.Source, f.Target)
		back, okToo := c.control(f.Target, f.Source)
		if !ok || !okToo {
			return 0
		}
		before = there + back
	}
	r := c.lay(f.Source, f.Target)
	if r == nil {
		return 0
	}
	return dag.Time(before + c.delivery(f, r))
}

// control returns the time of a control packet from one host to another, and whether there is a path.
func (c *idealTimer) control(from, to uint32) (time uint64, ok bool) {
	r := c.lay(from, to)
	if r == nil {
		return 0, false
	}
	size := uint64(c.params.ControlSize)
	time = lowerBound(c.hops, 1, size, size, true)
	if d := c.detour(from, to); d != nil {
		time = min(time, lowerBound(d, 1, size, size, false))
	}
	return time, true
}

// lay sets c.hops to the links from one host to another, and returns those between their switches, or nil without a
// path.
func (c *idealTimer) lay(from, to uint32) *idealRoute {
	if c.net.Given != nil {
		c.hops = c.hops[:0]
		for port := range c.net.FirstPath(c.routes, from, to) {
			c.hops = append(c.hops, c.hop(port))
		}
		if len(c.hops) == 0 {
			return nil
		}
		return &idealRoute{connected: true, alike: true}
	}
	r := c.route(c.routes.Edge(from), c.routes.Edge(to))
	nic, port := c.routes.NIC(from), c.routes.HostPort(to)
	if !r.connected || nic == topology.NoPort || port == topology.NoPort {
		return nil
	}
	c.hops = append(append(append(c.hops[:0], c.hop(nic)), r.hops...), c.hop(port))
	return r
}

// detour returns the links of the fastest path over another group of a dragonfly, if the load balancing uses it and the
// hosts are in different groups, or nil.
func (c *idealTimer) detour(from, to uint32) []idealHop {
	if b := c.params.Balance; b != Valiant && b != UGAL || c.global.perByte == (byteTime{}) {
		return nil
	}
	d := c.net.Dragonfly
	if d.Group(int(c.routes.Edge(from))) == d.Group(int(c.routes.Edge(to))) {
		return nil
	}
	global := c.global
	global.shared = false
	return []idealHop{c.hops[0], global, global, c.hops[len(c.hops)-1]}
}

// delivery returns the time of all packets of a flow over c.hops.
func (c *idealTimer) delivery(f *Flow, r *idealRoute) uint64 {
	onePath := r.alike
	switch c.params.Balance {
	case ByFlow, ByHost, Fixed:
	case Valiant, UGAL:
		if c.detour(f.Source, f.Target) != nil {
			onePath = false
			for i := range c.hops[1 : len(c.hops)-1] {
				c.hops[i+1].shared = false
			}
		}
	default:
		for i := range r.hops {
			onePath = onePath && r.hops[i].shared
		}
	}
	packets := packetCount(f.Bytes, uint64(c.params.MSS))
	first, rest := wireBytes(f.Bytes, uint64(c.params.MSS), c.header, c.params.PadLastPacket)
	last := first
	if packets > 1 {
		last = rest - (packets-2)*first
	}
	t := lowerBound(c.hops, packets, first, last, onePath)
	// A detour has two global links, which may be faster than the links of the shortest path.
	if detour := c.detour(f.Source, f.Target); detour != nil {
		t = min(t, lowerBound(detour, packets, first, last, false))
	}
	return t
}

// lowerBound returns a lower bound of the time to deliver packets over the given links, in picoseconds. All packets
// have the bytes of the first one but the last.
//
// On each shared link, either the last packet or a full one is the final one: after all full packets, which follow a
// full one over the earlier links, or after the bytes of all. On one path, a full packet is also the first, since
// packets keep their order and a retransmission takes longer than the last packet.
func lowerBound(hops []idealHop, packets, full, last uint64, onePath bool) (bound uint64) {
	all := (packets-1)*full + last
	var fullTime, lastTime uint64 // of a packet alone
	for i := range hops {
		fullTime += hops[i].perByte.of(full) + hops[i].latency
		lastTime += hops[i].perByte.of(last) + hops[i].latency
	}
	if packets == 1 {
		return lastTime
	}
	var fullBefore, lastBefore uint64 // of a packet alone, before the link
	for i := range hops {
		h := &hops[i]
		if h.shared || onePath {
			bound = max(bound, fullTime+(packets-2)*h.perByte.of(full))
			before := lastBefore
			if onePath {
				before = fullBefore
			}
			after := lastTime - lastBefore - h.perByte.of(last) // with the latency of the link
			bound = max(bound, before+h.perByte.of(all)+after)
		}
		fullBefore += h.perByte.of(full) + h.latency
		lastBefore += h.perByte.of(last) + h.latency
	}
	return bound
}
