// This file has the ways that packets take and the virtual channels that keep them from waiting for each other in a circle.

package flit

import (
	"fmt"

	"github.com/tracedag/tracedag/sim/topology"
)

// routing finds the ways through a network. The shape of the network says how; free says that a packet chooses among several
// at each router.
type routing struct {
	free bool

	dragonfly *topology.DragonflyInfo
	mesh      *mesh
	paths     *paths // of all other networks
}

// newRouting returns the routing of a network. Links has the routers' ports by those of the topology.
func newRouting(n *worker, links []uint32) (routing, error) {
	r := routing{}
	var err error
	switch t := n.topology; {
	case t.Dragonfly != nil:
		r.dragonfly = t.Dragonfly
		err = checkDragonfly(n.p)
	case n.p.Routing == Valiant || n.p.Routing == UGAL || n.p.Routing == UGALGlobal:
		err = fmt.Errorf("routing %v is for dragonflies", n.p.Routing)
	case t.Mesh != nil:
		r.mesh, err = newMesh(n, links)
		r.free = n.p.Routing == Adaptive
	default:
		r.paths, err = newPaths(n, links)
		r.free = n.p.Routing == Adaptive
	}
	return r, err
}

// begin prepares a packet that is made at a host.
func (r *routing) begin(n *worker, from uint32, pk *packet) {
	switch {
	case r.dragonfly != nil:
		if n.p.Routing != Minimal {
			r.detour(n, from, pk)
		}
	case r.paths != nil && !r.free:
		pk.via = r.paths.begin(n, from, pk.to)
	}
}

// route sets the port that a packet takes at a router, and the virtual channel at its end.
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

// adapt chooses anew where the first packet of a buffer of a router is to go, where it is free to.
func (r *routing) adapt(n *worker, c *inputVC, at uint32, t uint64) {
	if r.mesh != nil {
		r.mesh.adapt(n, c, at, t)
	} else {
		r.paths.adapt(n, c, at, t)
	}
}
