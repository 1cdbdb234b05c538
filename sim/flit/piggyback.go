// This file contains the congestion of the global links of dragonflies, which routers tell each other (piggybacking:
// Jiang, Kim, Dally, Indirect adaptive routing on large scale interconnection networks, ISCA 2009).

package flit

import "slices"

// piggyback is the congestion of all global links. The router of a link updates its history in the phase of routers of
// a cycle, and all routers of the group read it in the phase of NICs.
type piggyback struct {
	links []history // by router and global port
}

// history is the congestion of a link over time.
type history struct {
	congested bool
	changes   []uint64 // the last cycles of changes, ascending
}

// at returns the congestion at the end of a cycle.
func (h *history) at(t uint64) bool {
	congested := h.congested
	for i := len(h.changes) - 1; i >= 0 && h.changes[i] > t; i-- {
		congested = !congested
	}
	return congested
}

// set records the congestion in cycle t. Cycles before oldest are not asked for any more.
func (h *history) set(congested bool, t, oldest uint64) {
	if congested == h.congested {
		return
	}
	if len(h.changes) == cap(h.changes) {
		first, _ := slices.BinarySearch(h.changes, oldest)
		h.changes = h.changes[:copy(h.changes, h.changes[first:])]
	}
	h.congested, h.changes = congested, append(h.changes, t)
}

// occupied returns the flits that were granted the virtual channels of a port's link and whose credits have not begun
// to return, as a sum over the channels.
func (n *worker) occupied(out uint32) int64 {
	count := uint32(n.count[n.ports[out].kind])
	sum := int64(count) * int64(n.capacity[n.ports[out].kind])
	for _, c := range n.channels[out*n.vcs:][:count] {
		sum -= int64(c.credits) + int64(c.stream)
	}
	return sum
}

// congested reports whether the mean queue of the virtual channels of a global port exceeds the percentage of the mean
// over the router's global ports, plus a number of flits.
func (n *worker) congested(router, out uint32, percent, flits int64) bool {
	first, last := n.globalPorts(router)
	all := int64(0)
	for q := first; q < last; q++ {
		all += n.occupied(q)
	}
	ports, vcs := int64(last-first), int64(n.count[globalPort])
	return 100*ports*n.occupied(out) > percent*all+100*ports*vcs*flits
}

// globalPorts returns the range of the global ports of a dragonfly's router.
func (n *worker) globalPorts(router uint32) (first, last uint32) {
	return n.base[router] + uint32(n.topology.Dragonfly.P+n.topology.Dragonfly.A-1), n.base[router+1]
}

// touch notes that a queue of a global port has changed.
func (n *worker) touch(pt *port) {
	if n.routing.piggyback != nil && pt.kind == globalPort {
		n.touched = append(n.touched, pt.router)
	}
}

// updateCongestion updates the congestion of the links of the touched routers in cycle t.
func (n *worker) updateCongestion(t uint64) {
	d := n.topology.Dragonfly
	for i, router := range n.touched {
		if i > 0 && router == n.touched[i-1] {
			continue
		}
		first, last := n.globalPorts(router)
		for q := first; q < last; q++ {
			h := &n.routing.piggyback.links[int(router)*d.H+int(q-first)]
			congested := n.congested(router, q, int64(n.p.PiggybackCoefficient), n.p.PiggybackThreshold.N)
			h.set(congested, t, t-min(t, n.mask))
		}
	}
	n.touched = n.touched[:0]
}

// warned reports whether the global link of the minimal path from a router to another group is congested, as far as
// the router knows: the congestion of another router's link arrives after the latency of the local link.
func (r *routing) warned(n *worker, source, to uint32) bool {
	d := r.dragonfly
	from, target := d.Group(int(source)), d.Group(int(to))
	gateway := uint32(d.Gateway(from, target))
	age := uint64(0)
	if gateway != source {
		age = uint64(n.ports[n.base[source]+r.localPort(source, gateway)].latency)
	}
	if n.now < age {
		return false
	}
	return r.piggyback.links[int(gateway)*d.H+d.GlobalPort(from, target)].at(n.now - age)
}
