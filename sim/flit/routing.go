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
	mesh      *mesh
	paths     *paths // for all other networks
}

// resolve sets the virtual channels that are 0 to those that the topology and the routing need to avoid deadlock, and
// converts lengths in packets to flits. It fails if the routing is not for the topology, and if fewer channels are
// given.
func (p *Params) resolve(t *topology.Network) error {
	p.Threshold = Length{N: p.Threshold.flits(p.PacketFlits)}
	local, global := 1, 1
	detours := p.Routing == Valiant || p.Routing == UGAL || p.Routing == UGALGlobal
	switch {
	case t.Dragonfly != nil && p.Routing == Adaptive:
		return fmt.Errorf("routing %v is not for dragonflies; use %v", Adaptive, UGAL)
	case t.Dragonfly != nil && detours:
		local, global = 3, 2
	case t.Dragonfly != nil:
		local = 2
	case detours:
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
		if *vcs.at == 0 {
			*vcs.at = vcs.need
		}
		if *vcs.at < vcs.need {
			return fmt.Errorf("%s: expected at least %d for routing %v, found %d; use --set %s=%d", vcs.key, vcs.need,
				p.Routing, *vcs.at, vcs.key, vcs.need)
		}
	}
	return nil
}

// newRouting returns the routing of a network. links contains the routers' ports by port of the topology.
func newRouting(n *worker, links []uint32) (routing, error) {
	r := routing{}
	var err error
	switch t := n.topology; {
	case t.Dragonfly != nil:
		r.dragonfly = t.Dragonfly
		r.late = n.p.Routing == UGAL || n.p.Routing == UGALGlobal
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
		if n.p.Routing == Valiant {
			pk.via = r.detour(n, from, pk.to)
		}
	case r.paths != nil && !r.free:
		pk.via = pk.to
	}
}

// route sets a packet's output port at a router, and the virtual channel at its end.
func (r *routing) route(n *worker, at uint32, pk *packet) {
	if !r.through(pk, at) && n.edge[pk.to] == at {
		pk.out, pk.vc = n.hostPorts[pk.to], 0
		return
	}
	switch {
	case r.dragonfly != nil:
		r.routeDragonfly(n, at, pk)
	case r.mesh != nil:
		pk.out, pk.vc = r.mesh.next(at, n.edge[pk.to], pk.to)
	default:
		r.paths.route(n, at, pk)
	}
}

// adapt selects the next hop of a buffer's first packet again, if the packet is free to change it.
func (r *routing) adapt(n *worker, c *inputVC, at uint32, t uint64) {
	if r.mesh != nil {
		r.mesh.adapt(n, c, at, t)
	} else {
		r.paths.adapt(n, c, at, t)
	}
}
