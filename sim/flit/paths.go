// This file has the routing of networks that are neither dragonflies nor meshes, by tables of their shortest paths.

package flit

import (
	"github.com/tracedag/tracedag/sim/topology"
)

// paths has the shortest paths of a network. In fat trees and with one switch, where packets go up and then down, all virtual
// channels are alike, and packets use them by their targets. In other networks the n-th hop between routers takes
// channel n, and all that follow the last: whether that does, is checked.
type paths struct {
	routes *topology.Routes
	links  []uint32 // the routers' ports by those of the topology
	tree   bool
}

func newPaths(n *worker, links []uint32) (*paths, error) {
	routes, err := topology.NewRoutes(n.topology, nil)
	if err != nil {
		return nil, err
	}
	return &paths{routes, links, n.topology.FatTree != nil || n.routers == 1}, nil
}

// begin returns the number of the path that packets from one host to another take; it depends on the target alone.
func (p *paths) begin(n *worker, from, to uint32) uint32 {
	return to % max(1, p.routes.Paths(n.edge[from], n.edge[to]))
}

// vc returns the channel of a packet's next hop.
func (p *paths) vc(n *worker, pk *packet) uint8 {
	if p.tree {
		return uint8(pk.to % uint32(n.count[localPort]))
	}
	return uint8(min(uint32(pk.hops), uint32(n.count[localPort])-1))
}

// route sets the way of a packet that is not at its last router.
func (p *paths) route(n *worker, at uint32, pk *packet) {
	edge := n.edge[pk.to]
	pk.vc = p.vc(n, pk)
	if n.routing.free {
		pk.out = p.links[p.routes.Next(at, edge)[0]]
		return
	}
	var link uint32
	link, pk.via = p.routes.Choose(at, edge, pk.via)
	pk.out = p.links[link]
}

// adapt chooses the port with the most credits, of those that can take it now, for the first packet of a buffer.
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
