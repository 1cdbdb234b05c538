// This file routes packets with tables of shortest paths, in networks other than dragonflies and meshes.

package flit

import (
	"github.com/tracedag/tracedag/sim/topology"
)

// paths contains the shortest paths of a network. In fat trees and stars, where packets go up and then down, all
// virtual channels are equivalent, and the target of a packet selects one. In other networks, hop n between routers
// takes channel n, and all further hops the last channel; checkDependencies checks that this is deadlock-free.
type paths struct {
	routes *topology.Routes
	links  []uint32 // the routers' ports by port of the topology
	tree   bool
}

func newPaths(n *worker, links []uint32) (*paths, error) {
	routes, err := topology.NewRoutes(n.ctx, n.topology, nil)
	if err != nil {
		return nil, err
	}
	return &paths{routes, links, n.topology.FatTree != nil || n.routers == 1}, nil
}

// step returns the output port at a router on the shortest path to a host, and the rest of the path's number, which is
// at first the number of the host. The equal-cost ports are the digits of that number, the lowest digit at the first
// router. In fat trees this is D-mod-k routing, which spreads the hosts of every router over all links (Zahavi,
// Fat-tree routing and node ordering providing contention free traffic for MPI global collectives, 2012).
func (p *paths) step(at, edge, number uint32) (port, rest uint32) {
	next := p.routes.Next(at, edge)
	k := uint32(len(next))
	return next[number%k], number / k
}

// vc returns the channel of a packet's next hop.
func (p *paths) vc(n *worker, pk *packet) uint8 {
	if p.tree {
		return uint8(pk.to%uint32(n.lanes[localPort])) + n.classOffset(pk, localPort)
	}
	return uint8(min(uint32(pk.hops), uint32(n.lanes[localPort])-1)) + n.classOffset(pk, localPort)
}

// route sets the next hop of a packet that is not at its last router.
func (p *paths) route(n *worker, at uint32, pk *packet) {
	edge := n.edge[pk.to]
	pk.vc = p.vc(n, pk)
	if n.routing.free {
		pk.out = p.links[p.routes.Next(at, edge)[0]]
		return
	}
	var link uint32
	link, pk.via = p.step(at, edge, pk.via)
	pk.out = p.links[link]
}

// adapt selects the port with the most credits, among those with room, for the first packet of a buffer.
func (p *paths) adapt(n *worker, c *inputVC, at uint32, t uint64) {
	pk := &n.packets[c.first]
	edge := n.edge[pk.to]
	if at == edge {
		return
	}
	most := int32(-1)
	for _, link := range p.routes.Next(at, edge) {
		out := p.links[link]
		channel := out*n.vcs + uint32(pk.vc)
		if credits := n.creditsFor(out, channel, c.flits, t); credits > most {
			c.out, c.channel, most = out, channel, credits
		}
	}
}
