// This file routes packets in dragonflies, on minimal paths or through an intermediate group or router.

package flit

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// through reports whether a packet at a router has not reached its intermediate group, and records its arrival there.
func (r *routing) through(pk *packet, at uint32) bool {
	if r.dragonfly == nil || pk.via == none {
		return false
	}
	place := at
	if !r.routers {
		place = uint32(r.dragonfly.Group(int(at)))
	}
	if place == pk.via {
		pk.via = none
		return false
	}
	return true
}

// routeDragonfly sets the next hop of a packet that is not at its last router.
func (r *routing) routeDragonfly(n *worker, at uint32, pk *packet) {
	if r.routers && pk.via != none {
		pk.out = r.towards(n, at, pk.via, none)
	} else {
		pk.out = r.towards(n, at, n.edge[pk.to], pk.via)
	}
	stage, vc := r.sequence.hop(pk.stage, n.ports[pk.out].kind)
	pk.vc = vc + n.classOffset(pk, n.ports[pk.out].kind)
	if r.transit == nil { // in transit, the grant decides
		pk.stage = stage
	}
}

// towards returns the port of a router on the minimal path to another router, or to group via unless via is none.
func (r *routing) towards(n *worker, at, to, via uint32) uint32 {
	d := r.dragonfly
	group, target := d.Group(int(at)), via
	if via == none {
		target = uint32(d.Group(int(to)))
	}
	if int(target) == group {
		return n.base[at] + r.localPort(at, to)
	}
	gateway := uint32(d.Gateway(group, int(target)))
	if gateway == at {
		return n.base[at] + uint32(d.P+d.A-1+d.GlobalPort(group, int(target)))
	}
	return n.base[at] + r.localPort(at, gateway)
}

// localPort returns the number of the port from a router to another one of its group.
func (r *routing) localPort(at, to uint32) uint32 {
	d := r.dragonfly
	j := to % uint32(d.A)
	if to > at {
		j--
	}
	return uint32(d.P) + j
}

// alternative returns a router of the intermediate group of the Valiant path that UGAL compares with the minimal path,
// or none for packets within a group. With [WeightTwo] the group is drawn again in each cycle. Otherwise, and with
// [Piggyback], a packet keeps its router, as in FOGSim.
func (r *routing) alternative(n *worker, host uint32, pk *packet) uint32 {
	size := uint32(r.dragonfly.A)
	if n.p.UGALWeight == WeightTwo && n.p.Routing != Piggyback {
		if via := r.detour(n, &n.nics[host].random, host, pk.to); via != none {
			return via * size
		}
		return none
	}
	random := sim.NewRandom(n.p.Seed, forPath, sim.Mix(pk.created)^uint64(host)<<32^uint64(pk.to))
	if via := r.detour(n, &random, host, pk.to); via != none {
		return via*size + random.Below(size)
	}
	return none
}

// detour returns a random intermediate group for packets of a host, by Valiant's algorithm: that of a uniformly random
// node outside the host's group. It returns none for packets within the group, which take the minimal path.
func (r *routing) detour(n *worker, random *sim.Random, from, to uint32) uint32 {
	d := r.dragonfly
	group := uint32(d.Group(int(n.edge[from])))
	if uint32(d.Group(int(n.edge[to]))) == group {
		return none
	}
	via := random.Below(uint32(d.Groups - 1))
	if via >= group {
		via++
	}
	return via
}

// intermediate returns the random intermediate router of packets of a host, or none for the minimal path. It is any
// router of another group, or with [ValiantAny] and a target in the same group any of that. With [CurrentGlobal], the
// group is one that the host's router has a link to.
func (r *routing) intermediate(n *worker, from, to uint32) uint32 {
	d, random := r.dragonfly, &n.nics[from].random
	source := n.edge[from]
	group := uint32(d.Group(int(source)))
	if uint32(d.Group(int(n.edge[to]))) == group {
		if n.p.Routing != ValiantAny {
			return none
		}
		return group*uint32(d.A) + random.Below(uint32(d.A))
	}
	via := random.Below(uint32(d.Groups - 1))
	if n.p.Routing == CurrentGlobal {
		first, _ := n.globalPorts(source)
		via = uint32(d.Group(int(n.ports[first+via%uint32(d.H)].beyond)))
	} else if via >= group {
		via++
	}
	return via*uint32(d.A) + random.Below(uint32(d.A))
}

// choosePaths decides by UGAL between the minimal and the Valiant path, for those packets of a host that are the first
// of their buffers at the host's router and can request an output in the next cycle. A packet with the minimal path
// that has to wait is decided again in each cycle; one with the Valiant path keeps it, except with [Piggyback].
//
// It runs at the end of cycle t, when no queue changes: all decisions of a cycle are based on the same queues.
func (r *routing) choosePaths(n *worker, host uint32, t uint64) {
	q := n.hostPorts[host]
	pt := &n.ports[q]
	for v := range uint32(n.count[hostPort]) {
		c := &n.inputs[q*n.vcs+v]
		if c.first == none {
			continue
		}
		pk := &n.packets[c.first]
		if pk.decided {
			continue
		}
		if due := max(c.ready, pt.busy); due > t+1 {
			n.wakeNIC(host, due-1)
			continue
		}
		place := r.alternative(n, host, pk)
		if place == none {
			pk.decided = true
			continue
		}
		via := uint32(none)
		if r.prefers(n, pt.router, pk, place) {
			via = uint32(r.dragonfly.Group(int(place)))
		}
		if via != pk.via {
			pk.via, pk.stage = via, 0
			pk.flags ^= nonminimal
			r.routeDragonfly(n, pt.router, pk)
			n.account(c, t)
			n.present(c, t)
			n.schedule(q, pt, t)
		}
		if pk.decided = via != none && r.piggyback == nil; !pk.decided {
			n.wakeNIC(host, t+1)
		}
	}
}

// prefers reports whether UGAL prefers the path of a packet through the group of router place to the minimal path.
func (r *routing) prefers(n *worker, source uint32, pk *packet, place uint32) bool {
	d := r.dragonfly
	target, via := n.edge[pk.to], uint32(d.Group(int(place)))
	straight, around := source, source // routers whose queues are compared
	if n.p.Routing == UGALGlobal {
		group := d.Group(int(source))
		straight = uint32(d.Gateway(group, d.Group(int(target))))
		around = uint32(d.Gateway(group, int(via)))
	}
	if r.piggyback != nil && r.warned(n, source, target) {
		return true
	}
	minimal := n.queued(r.towards(n, straight, target, none), pk)
	other := n.queued(r.towards(n, around, none, via), pk)
	if n.p.UGALWeight == WeightTwo {
		return minimal > 2*other+r.threshold
	}
	group := d.Group(int(source))
	turn := place
	if n.p.UGALWeight == WeightPaths {
		turn = uint32(d.Gateway(int(via), group))
	}
	hops := distance(&r.lengths, source, uint32(r.lengths.Gateway(group, int(via)))) + 1 +
		distance(&r.lengths, turn, target)
	return minimal*distance(&r.lengths, source, target) > other*hops+r.threshold
}

// distance returns the hops of the minimal path between two routers.
func distance(d *topology.DragonflyInfo, from, to uint32) int64 {
	x, y := d.Group(int(from)), d.Group(int(to))
	switch {
	case from == to:
		return 0
	case x == y:
		return 1
	}
	return distance(d, from, uint32(d.Gateway(x, y))) + 1 + distance(d, uint32(d.Gateway(y, x)), to)
}

// queued returns the queue of a port as known to its router: the flits that were granted the first virtual channel of
// a packet's class on the port's link, which both paths take, and whose credits have not returned.
func (n *worker) queued(out uint32, pk *packet) int64 {
	kind := n.ports[out].kind
	c := &n.channels[out*n.vcs+uint32(n.classOffset(pk, kind))]
	return int64(n.capacity[kind] - c.available(n.now, uint64(n.p.Speedup)))
}
