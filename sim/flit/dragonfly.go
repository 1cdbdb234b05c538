// This file routes packets in dragonflies. A packet follows the sequence of virtual channels
//
//	local 0, global 0, local 1, global 1, local 2
//
// and each hop takes the first channel of its kind after that of the previous hop. So no packet waits for a packet that
// is earlier in the sequence.

package flit

// through reports whether a packet at a router has not reached its intermediate group, and records its arrival there.
func (r *routing) through(pk *packet, at uint32) bool {
	if r.dragonfly == nil || pk.via == none {
		return false
	}
	if uint32(r.dragonfly.Group(int(at))) == pk.via {
		pk.via = none
		return false
	}
	return true
}

// routeDragonfly sets the next hop of a packet that is not at its last router.
func (r *routing) routeDragonfly(n *worker, at uint32, pk *packet) {
	pk.out = r.towards(n, at, n.edge[pk.to], pk.via)
	if n.ports[pk.out].kind == globalPort {
		pk.stage |= 1
		pk.vc = pk.stage / 2
	} else {
		pk.stage = (pk.stage + 1) &^ 1
		pk.vc = pk.stage / 2
	}
	pk.stage++
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

// detour returns a random intermediate group for packets of a host, by Valiant's algorithm: that of a uniformly random
// node outside the host's group. It returns none for packets within the group, which take the minimal path.
func (r *routing) detour(n *worker, from, to uint32) uint32 {
	d := r.dragonfly
	group := uint32(d.Group(int(n.edge[from])))
	if uint32(d.Group(int(n.edge[to]))) == group {
		return none
	}
	via := n.nics[from].random.Below(uint32(d.Groups - 1))
	if via >= group {
		via++
	}
	return via
}

// choosePaths decides by UGAL between the minimal and the Valiant path, for those packets of a host that are the first
// of their buffers at the host's router and can request an output in the next cycle. A packet with the minimal path
// that has to wait is decided again in each cycle, with another random group; one with the Valiant path keeps it.
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
		via := r.detour(n, host, pk.to)
		switch {
		case via == none:
			pk.decided = true
		case r.prefers(n, pt.router, pk.to, via):
			pk.decided = true
			pk.via, pk.stage = via, 0
			r.routeDragonfly(n, pt.router, pk)
			n.account(c, t)
			n.present(c, t)
			n.schedule(q, pt, t)
		default:
			n.wakeNIC(host, t+1)
		}
	}
}

// prefers reports whether UGAL prefers the path to a host through group via to the minimal path.
func (r *routing) prefers(n *worker, source, to, via uint32) bool {
	d := r.dragonfly
	straight, around := source, source // routers whose queues are compared
	if n.p.Routing == UGALGlobal {
		group := d.Group(int(source))
		straight = uint32(d.Gateway(group, d.Group(int(n.edge[to]))))
		around = uint32(d.Gateway(group, int(via)))
	}
	minimal := n.queued(r.towards(n, straight, n.edge[to], none))
	other := n.queued(r.towards(n, around, none, via))
	return minimal > 2*other+r.threshold
}

// queued returns the queue of a port as known to its router: the flits that were granted the first virtual channel of
// the port's link, which both paths take, and whose credits have not returned.
func (n *worker) queued(out uint32) int64 {
	c := &n.channels[out*n.vcs]
	return int64(n.capacity[n.ports[out].kind] - c.available(n.now, uint64(n.p.Speedup)))
}
