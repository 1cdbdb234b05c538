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

// detour selects the intermediate group of a packet by Valiant's algorithm: that of a uniformly random node outside the
// packet's group. A packet within its group takes the minimal path; so do others if the routing prefers it.
func (r *routing) detour(n *worker, from uint32, pk *packet) {
	d := r.dragonfly
	source := n.edge[from]
	group := uint32(d.Group(int(source)))
	if uint32(d.Group(int(n.edge[pk.to]))) == group {
		return
	}
	via := n.nics[from].random.Below(uint32(d.Groups - 1))
	if via >= group {
		via++
	}
	straight, around := source, source // routers whose queues are compared
	switch n.p.Routing {
	case Valiant:
		pk.via = via
		return
	case UGALGlobal:
		straight = uint32(d.Gateway(int(group), d.Group(int(n.edge[pk.to]))))
		around = uint32(d.Gateway(int(group), int(via)))
	}
	minimal := n.queued(r.towards(n, straight, n.edge[pk.to], none))
	other := n.queued(r.towards(n, around, none, via))
	if minimal > 2*other+int64(n.p.Threshold) {
		pk.via = via
	}
}

// queued returns the number of flits that wait for a port, in its output buffer and in the buffers behind it, as known
// to its router.
func (n *worker) queued(out uint32) int64 {
	o := &n.ports[out]
	flits := int64(n.p.OutputBuffer) - int64(o.room)
	for v := range uint32(n.count[o.kind]) {
		c := &n.channels[out*n.vcs+v]
		flits += int64(n.capacity[o.kind] - c.available(n.now, uint64(n.p.Speedup)))
	}
	return flits
}
