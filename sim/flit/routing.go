// This file selects paths and deadlock-free virtual channels.

package flit

import (
	"fmt"

	"github.com/tracedag/tracedag/sim/topology"
)

// routing routes packets according to the kind of network. With free, a packet selects among several hops at each
// router.
type routing struct {
	free bool
	// late: UGAL chooses the path of a packet at its first router. It takes the minimal path unless the queue of that
	// exceeds twice the other one by more than threshold.
	late      bool
	threshold int64

	dragonfly *topology.DragonflyInfo
	// lengths is the shape by which UGAL counts hops. FOGSim counts them in the absolute arrangement of global links,
	// even if the network has another one.
	lengths   topology.DragonflyInfo
	sequence  *sequence  // of virtual channels, in dragonflies
	piggyback *piggyback // nil: routers do not know the congestion of other routers
	transit   *transit   // nil: packets do not change their path in transit
	routers   bool       // the intermediate place of a packet is a router, not a group
	mesh      *mesh
	paths     *paths // for all other networks
}

// resolve sets the virtual channels that are 0 to those that the topology and the routing need to avoid deadlock, and
// converts lengths in packets to flits. It fails if the routing is not for the topology, and if fewer channels are
// given.
func (p *Params) resolve(t *topology.Network) error {
	for _, length := range []*Length{&p.Threshold, &p.PiggybackThreshold, &p.RestrictionThreshold} {
		*length = Length{N: length.flits(p.PacketFlits)}
	}
	local, global := 1, 1
	switch {
	case t.Dragonfly != nil && p.Routing == Adaptive:
		return fmt.Errorf("routing %v is not for dragonflies; use %v", Adaptive, UGAL)
	case t.Dragonfly != nil:
		s := sequenceOf(p.Routing)
		local, global = s.count(localPort), s.count(globalPort)
	case p.Routing != Minimal && p.Routing != Adaptive:
		return fmt.Errorf("routing %v is for dragonflies only; use %v or %v", p.Routing, Minimal, Adaptive)
	case t.Mesh != nil:
		local = int(meshClasses(t.Mesh))
		if p.Routing == Adaptive {
			local++
		}
	}
	for _, vcs := range []struct {
		key  string
		at   *int
		need int
	}{{"local-vcs", &p.LocalVCs, local}, {"global-vcs", &p.GlobalVCs, global}} {
		need := vcs.need * int(p.classCount())
		if *vcs.at == 0 {
			*vcs.at = need
		}
		if *vcs.at < need {
			traffic := ""
			if p.classCount() > 1 {
				traffic = " with requests and replies"
			}
			return fmt.Errorf("%s: expected at least %d for routing %v%s, found %d; use --set %s=%d", vcs.key, need,
				p.Routing, traffic, *vcs.at, vcs.key, need)
		}
	}
	return p.checkClasses()
}

// newRouting returns the routing of a network. links contains the routers' ports by port of the topology.
func newRouting(n *worker, links []uint32) (routing, error) {
	r := routing{}
	var err error
	switch t := n.topology; {
	case t.Dragonfly != nil:
		r.dragonfly, r.lengths = t.Dragonfly, *t.Dragonfly
		if n.p.UGALWeight == WeightHops {
			r.lengths.Arrangement = topology.Absolute
		}
		r.sequence = sequenceOf(n.p.Routing)
		r.transit = newTransit(n.p)
		r.free = r.transit != nil
		r.routers = n.p.Routing == ValiantAny || n.p.Routing == CurrentGlobal || n.p.Routing == RandomGlobal
		r.late = n.p.Routing == UGAL || n.p.Routing == UGALGlobal || n.p.Routing == Piggyback
		if n.p.Routing == Piggyback {
			r.piggyback = &piggyback{links: make([]history, n.routers*t.Dragonfly.H)}
		}
		r.threshold = n.p.Threshold.flits(n.p.PacketFlits)
	case t.Mesh != nil:
		r.mesh, err = newMesh(n, links)
		r.free = n.p.Routing == Adaptive
	default:
		r.paths, err = newPaths(n, links)
		r.free = n.p.Routing == Adaptive
	}
	return r, err
}

// begin initializes the route of a packet at its host.
func (r *routing) begin(n *worker, from uint32, pk *packet) {
	switch {
	case r.dragonfly != nil:
		switch {
		case n.p.Routing == Valiant:
			pk.via = r.detour(n, &n.nics[from].random, from, pk.to)
		case r.routers:
			pk.via = r.intermediate(n, from, pk.to)
		}
		if pk.via != none {
			pk.flags |= nonminimal
		}
	case r.paths != nil && !r.free:
		pk.via = pk.to
	}
}

// route sets a packet's output port at a router, and the virtual channel at its end.
func (r *routing) route(n *worker, at uint32, pk *packet) {
	if !r.through(pk, at) && n.edge[pk.to] == at {
		pk.out, pk.vc = n.hostPorts[pk.to], 0
		if pk.flags&isReply != 0 {
			pk.vc = 1
		}
		return
	}
	switch {
	case r.dragonfly != nil:
		r.routeDragonfly(n, at, pk)
	case r.mesh != nil:
		pk.out, pk.vc = r.mesh.next(at, n.edge[pk.to], pk.to)
		pk.vc += n.classOffset(pk, localPort)
	default:
		r.paths.route(n, at, pk)
	}
}

// adapt selects the next hop of a buffer's first packet again, if the packet is free to change it.
func (r *routing) adapt(n *worker, c *inputVC, at uint32, t uint64) {
	switch {
	case r.transit != nil:
		r.misroute(n, c, at, t)
	case r.mesh != nil:
		r.mesh.adapt(n, c, at, t)
	default:
		r.paths.adapt(n, c, at, t)
	}
}

// granted records that a packet that is free to change its next hop takes a port.
func (r *routing) granted(n *worker, pk *packet, out uint32) {
	switch o := &n.ports[out]; {
	case o.kind == hostPort:
	case r.transit != nil:
		r.moved(n, pk, o.router, out)
	case r.mesh != nil:
		r.mesh.granted(n, pk)
	}
}
