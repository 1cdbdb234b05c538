// This file routes packets adaptively in transit in dragonflies (Jiang, Kim, Dally, ISCA 2009, progressive adaptive
// routing; García et al., Efficient routing mechanisms for dragonfly networks, ICPP 2013, opportunistic local
// misrouting). A packet takes the minimal path unless that has no room: then it may take another global link in its
// source group, or another local link once per group.
//
// With [Opportunistic], such a local hop takes the virtual channel of an earlier local hop. From there the minimal path
// is open on the channels that follow in the sequence. A packet takes a hop off this path only if the whole packet has
// room there, and otherwise waits for the path, which is free of cycles.

package flit

import "github.com/tracedag/tracedag/sim"

// Properties of packets that are routed in transit.
const (
	crossed         = 1 << iota // has left its source group
	misroutedGlobal             // has left it by another global link than that of the minimal path
	misroutedLocal              // has taken another local link in the current group
	nonminimal                  // has left the minimal path
)

// transit are the parameters of adaptive routing in transit.
type transit struct {
	local   bool // misroutes in all groups
	current bool // selects among the global links of the first router only
	reuse   bool // local misroutes take an earlier channel, and one port is tried per cycle
}

// newTransit returns the parameters of a routing, nil if it does not adapt in transit.
func newTransit(p *Params) *transit {
	if p.Routing != Progressive && p.Routing != Opportunistic {
		return nil
	}
	policy := p.MisroutePolicy
	if policy == DefaultPolicy {
		policy = Mixed
		if p.Routing == Opportunistic {
			policy = MixedLocal
		}
	}
	return &transit{local: policy == MixedLocal || policy == CurrentLocal,
		current: policy == Current || policy == CurrentLocal, reuse: p.Routing == Opportunistic}
}

// option returns the kind of links that a packet may take instead of its minimal one, hostPort for none, and whether it
// must if there is room.
func (r *routing) option(pk *packet, at, to uint32, minimal uint8) (kind uint8, must bool) {
	d, v := r.dragonfly, r.transit
	if d.Group(int(at)) == d.Group(int(to)) || pk.flags&crossed != 0 {
		if v.local && minimal == localPort && pk.flags&misroutedLocal == 0 {
			return localPort, false
		}
		return hostPort, false
	}
	switch {
	case pk.hops == 0:
		return globalPort, false
	case v.current:
		return hostPort, false
	case pk.flags&misroutedLocal != 0:
		return globalPort, true
	}
	return localPort, false
}

// detourHop returns the stage after a hop off the minimal path and its channel. The stage is noStage if the packet
// could not take a minimal path from there.
func (r *routing) detourHop(pk *packet, at, to uint32, kind uint8) (stage, vc uint8) {
	stage, vc = r.sequence.hop(pk.stage, kind)
	if kind == localPort && r.transit.reuse {
		if earlier, ok := r.sequence.before(pk.stage); ok {
			stage, vc = pk.stage, earlier
		}
	}
	if stage == noStage {
		return noStage, 0
	}
	if kind == localPort && r.dragonfly.Group(int(at)) == r.dragonfly.Group(int(to)) {
		if !r.sequence.allows(stage, localPort) {
			return noStage, 0
		}
	} else if !r.sequence.allows(stage, localPort, globalPort, localPort) {
		return noStage, 0
	}
	return stage, vc
}

// misroute selects the output of the first packet of a buffer: that of the minimal path, or at random one of the other
// ports that have room and short queues.
func (r *routing) misroute(n *worker, c *inputVC, at uint32, t uint64) {
	pk := &n.packets[c.first]
	to := n.edge[pk.to]
	if at == to {
		return
	}
	minimal := r.towards(n, at, to, none)
	o := &n.ports[minimal]
	_, vc := r.sequence.hop(pk.stage, o.kind)
	vc += n.classOffset(pk, o.kind)
	c.out, c.channel = minimal, minimal*n.vcs+uint32(vc)
	kind, must := r.option(pk, at, to, o.kind)
	if kind == hostPort {
		return
	}
	_, vc = r.detourHop(pk, at, to, kind)
	if stage, _ := r.detourHop(pk, at, to, kind); stage == noStage {
		return
	}
	vc += n.classOffset(pk, kind)
	n.until = t + 1 // queues change in any cycle
	if !must && !r.blocked(n, c, at, t) {
		return
	}
	limit := 1e300
	if !must {
		limit = n.filled(minimal) * float64(n.p.LocalThreshold) / 100
		if kind == globalPort {
			limit = n.filled(minimal) * float64(n.p.GlobalThreshold) / 100
		}
	}
	if out := r.draw(n, c, at, kind, vc, limit, t); out != none {
		c.out, c.channel = out, out*n.vcs+uint32(vc)
	}
}

// blocked reports whether a packet may leave its minimal path, whose next port is c.out: the port's queue is long
// enough and it cannot take the packet, and if it is a global one, it is congested.
func (r *routing) blocked(n *worker, c *inputVC, at uint32, t uint64) bool {
	o := &n.ports[c.out]
	if cause := n.hindrance(o, c.channel, c.flits, t); cause == stallNone {
		return false
	}
	if n.filled(c.out)*100 < float64(n.p.MisrouteMinimum) {
		return false
	}
	return o.kind != globalPort ||
		n.congested(at, c.out, int64(n.p.RestrictionCoefficient), n.p.RestrictionThreshold.N)
}

// filled returns the mean share of the capacity in use of the virtual channels of a port's link.
func (n *worker) filled(out uint32) float64 {
	kind := n.ports[out].kind
	return float64(n.occupied(out)) / (float64(n.count[kind]) * float64(n.capacity[kind]))
}

// draw returns a random port of a kind, other than c.out, that can take a packet and is filled up to a limit, or none.
// The choice depends on the packet and the cycle only, not on how often the router has tried.
func (r *routing) draw(n *worker, c *inputVC, at uint32, kind, vc uint8, limit float64, t uint64) uint32 {
	pk := &n.packets[c.first]
	random := sim.NewRandom(n.p.Seed, forMisroute, sim.Mix(sim.Mix(t<<24^uint64(at))^pk.created<<24^uint64(pk.to)))
	first, last := n.globalPorts(at)
	if kind == localPort {
		first, last = n.base[at]+uint32(r.dragonfly.P), first
	}
	fits := func(q uint32) bool {
		return q != c.out && n.hindrance(&n.ports[q], q*n.vcs+uint32(vc), c.flits, t) == stallNone &&
			n.filled(q) <= limit
	}
	if r.transit.reuse {
		others := last - first
		skip := c.out >= first && c.out < last
		if skip {
			others--
		}
		if others == 0 {
			return none
		}
		q := first + random.Below(others)
		if skip && q >= c.out {
			q++
		}
		if fits(q) {
			return q
		}
		return none
	}
	best, found := uint32(none), uint32(0)
	for q := first; q < last; q++ {
		if fits(q) {
			found++
			if random.Below(found) == 0 {
				best = q
			}
		}
	}
	return best
}

// moved records a hop of a packet from a router.
func (r *routing) moved(n *worker, pk *packet, at, out uint32) {
	to, kind := n.edge[pk.to], n.ports[out].kind
	if kind == hostPort {
		return
	}
	if out == r.towards(n, at, to, none) {
		pk.stage, _ = r.sequence.hop(pk.stage, kind)
	} else {
		pk.stage, _ = r.detourHop(pk, at, to, kind)
		pk.flags |= nonminimal
		if kind == localPort {
			pk.flags |= misroutedLocal
		} else {
			pk.flags |= misroutedGlobal
		}
	}
	if kind == globalPort {
		pk.flags = pk.flags&^misroutedLocal | crossed
	}
}
