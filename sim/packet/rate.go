// This file derives rates, round trips and bandwidth-delay products from the network, by host and by path.

package packet

import "github.com/tracedag/tracedag/sim/topology"

// pathInfo describes the path between two hosts in an idle network.
type pathInfo struct {
	rate      uint64 // rate of the slowest link in bit/s; 0: no path
	roundTrip uint64 // time of a full packet and of a control packet back, in picoseconds
	drain     uint64 // longest time to send a full queue of a switch on the path, in picoseconds
	lastDrain uint64 // the same at the port to the destination
	// lastControlDrain is the time to send a full queue of control packets at that port, if it has one.
	lastControlDrain uint64
}

// bandwidthDelay returns the bandwidth-delay product of a path in bytes.
func (p *pathInfo) bandwidthDelay() uint64 {
	return uint64(float64(p.roundTrip) * float64(p.rate) / 8e12)
}

// path returns the properties of the path between two hosts. If no path is left after failures, it is that of the
// intact network. Between unconnected hosts it is the reference path.
func (n *network) path(from, to uint32) pathInfo {
	p := n.pathOver(n.routes, from, to)
	if p.rate == 0 && n.routes != n.intact {
		p = n.pathOver(n.intact, from, to)
	}
	if p.rate == 0 {
		return n.reference
	}
	return p
}

// pathOver returns the properties of the first of the given routes between two hosts.
func (n *network) pathOver(r *topology.Routes, from, to uint32) (p pathInfo) {
	rate := uint64(1) << 63
	last := none
	n.firstPath = n.topology.AppendFirstPath(n.firstPath[:0], r, from, to)
	for _, i := range n.firstPath {
		last = i
		pt := &n.ports[i]
		rate = min(rate, n.linkRate(i))
		p.roundTrip += pt.byteTime().of(uint64(n.fullSize)) + pt.latency
		if pt.host == none {
			p.lastDrain, p.lastControlDrain = pt.drain(dataQueue), 0
			p.drain = max(p.drain, p.lastDrain)
			if pt.twoQueues {
				p.lastControlDrain = pt.drain(controlQueue)
			}
		}
	}
	if !n.complete(last) {
		return pathInfo{}
	}
	last = none
	n.firstPath = n.topology.AppendFirstPath(n.firstPath[:0], r, to, from)
	for _, i := range n.firstPath {
		last = i
		pt := &n.ports[i]
		p.roundTrip += pt.byteTime().of(uint64(n.controlSize)) + pt.latency
	}
	if !n.complete(last) {
		return pathInfo{}
	}
	p.rate = rate
	return p
}

// drain returns the time to send a full queue.
func (pt *port) drain(queue int) uint64 {
	return uint64(min(float64(pt.capacity[queue])*pt.byteTime().float(), maxDrain))
}

// maxDrain limits the time of a full queue, in picoseconds.
const maxDrain = 1e15

// complete reports whether a path whose last port is i ends at a host. Given routes always do.
func (n *network) complete(i uint32) bool {
	return i != none && (n.given != nil || n.ports[i].toHost)
}

// linkRate returns the rate of a port in bit/s, without failures.
func (n *network) linkRate(i uint32) uint64 {
	return uint64(n.topology.Links[i/2].Rate)
}

// hostRate returns the rate of a host's NIC in bit/s. With the quirk firstHostRate it is that of host 0.
func (n *network) hostRate(host uint32) uint64 {
	if n.quirks.firstHostRate {
		host = 0
	}
	return n.linkRate(n.intact.NIC(host))
}

// maxExhaustive is the largest number of pairs of hosts that referencePath compares one by one.
const maxExhaustive = 1 << 18

// findReference sets the reference path, that with the largest bandwidth-delay product of the network: the product of
// its round trip and its slowest link. It considers one of the hosts with equal links to a switch. In networks with
// more than maxExhaustive pairs of these, it repeatedly proceeds to the host with the largest product from the last
// one, which is exact in regular networks. With the quirk firstHostRate, it is the path from the first to the last
// host, at the rate of the first.
func (n *network) findReference() {
	if n.given != nil {
		n.largestGiven()
		return
	}
	n.referenceEnds = [2]uint32{0, n.hosts - 1}
	n.reference = n.pathOver(n.routes, 0, n.hosts-1)
	if n.quirks.firstHostRate {
		n.reference.rate = n.hostRate(0)
		return
	}
	better := func(from, to uint32) bool {
		p := n.pathOver(n.routes, from, to)
		if p.rate == 0 || n.reference.rate != 0 && p.bandwidthDelay() <= n.reference.bandwidthDelay() {
			return false
		}
		n.reference, n.referenceEnds = p, [2]uint32{from, to}
		return true
	}
	hosts, twins := n.distinctHosts()
	for i, host := range hosts { // pairs at the same switch
		if twins[i] != none {
			better(host, twins[i])
		}
	}
	if len(hosts)*len(hosts) <= maxExhaustive {
		for _, from := range hosts {
			for _, to := range hosts {
				if from != to {
					better(from, to)
				}
			}
		}
		return
	}
	const sweeps = 8
	from := hosts[0]
	for range sweeps {
		next := none
		for _, to := range hosts {
			if from != to && (better(from, to) || better(to, from)) {
				next = to
			}
		}
		if next == none {
			break
		}
		from = next
	}
}

// largestGiven sets the reference path of a network whose routes are given: the first one with the largest
// bandwidth-delay product.
func (n *network) largestGiven() {
	for _, ends := range n.given.Pairs() {
		p := n.pathOver(n.routes, ends[0], ends[1])
		if n.reference.rate == 0 || p.bandwidthDelay() > n.reference.bandwidthDelay() {
			n.reference, n.referenceEnds = p, ends
		}
	}
	if n.reference.rate == 0 { // no message uses the network
		n.reference.rate = topology.MaxRate
	}
}

// drainReference sets the times of full queues on the reference path, after their capacities, which depend on its rate
// and its round trip.
func (n *network) drainReference() {
	p := n.pathOver(n.routes, n.referenceEnds[0], n.referenceEnds[1])
	n.reference.drain, n.reference.lastDrain, n.reference.lastControlDrain = p.drain, p.lastDrain, p.lastControlDrain
}

// distinctHosts returns a host for each combination of an edge switch and the properties of the host's link, and
// another host with the same combination, or none.
func (n *network) distinctHosts() (hosts, twins []uint32) {
	type attachment struct {
		edge    uint32
		perByte byteTime
		up      uint64 // latencies in both directions
		down    uint64
	}
	index := make(map[attachment]int)
	for host := range n.hosts {
		nic, port := n.routes.NIC(host), n.routes.HostPort(host)
		if nic == none || port == none {
			continue
		}
		key := attachment{n.routes.Edge(host), n.ports[nic].byteTime(), n.ports[nic].latency, n.ports[port].latency}
		i, known := index[key]
		switch {
		case !known:
			index[key] = len(hosts)
			hosts, twins = append(hosts, host), append(twins, none)
		case twins[i] == none:
			twins[i] = host
		}
	}
	return hosts, twins
}
