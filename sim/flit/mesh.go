// This file routes packets in meshes and tori: in dimension order, or adaptively on shortest paths.

package flit

import (
	"slices"

	"github.com/tracedag/tracedag/sim/topology"
)

// mesh routes packets in meshes and tori. In a ring, packets that have not crossed the wrap-around link yet use
// separate channels (Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987):
// class 0 before the link, class 1 after it or if the packet does not cross it.
//
// With [Adaptive], one channel per class is ordered: packets on it go in dimension order. All other channels are free:
// a packet takes the free channel with the most credits on a shortest path. If none has room, it takes the ordered
// channel and then stays on ordered channels (Duato, A new theory of deadlock-free adaptive routing, 1993, without
// returning).
type mesh struct {
	info    *topology.MeshInfo
	strides []uint32
	ports   []uint32 // by router and dimension: down and up; none without a link
	classes uint32
	lanes   uint32 // channels per class; the target of a packet selects one
}

// meshClasses returns the classes of virtual channels that dimension order needs: two in a torus whose rings have more
// than two routers, else one.
func meshClasses(info *topology.MeshInfo) uint32 {
	if info.Wrap && slices.Max(info.Dims) > 2 {
		return 2
	}
	return 1
}

func newMesh(n *worker, links []uint32) (*mesh, error) {
	info := n.topology.Mesh
	m := &mesh{info: info, classes: meshClasses(info), ports: make([]uint32, n.routers*len(info.Dims)*2)}
	stride := uint32(1)
	for _, size := range info.Dims {
		m.strides = append(m.strides, stride)
		stride *= uint32(size)
	}
	m.lanes = uint32(n.lanes[localPort]) / m.classes
	if n.p.Routing == Adaptive {
		m.lanes = 1
	}
	for i := range m.ports {
		m.ports[i] = none
	}
	for l, link := range n.topology.Links[n.hosts:] {
		a, b := link.A-uint32(n.hosts), link.B-uint32(n.hosts)
		for d := range info.Dims {
			x, y := m.coordinate(a, d), m.coordinate(b, d)
			if x == y {
				continue
			}
			m.ports[(a*uint32(len(info.Dims))+uint32(d))*2+1] = links[2*(n.hosts+l)] // links lead up
			m.ports[(b*uint32(len(info.Dims))+uint32(d))*2] = links[2*(n.hosts+l)+1]
		}
	}
	return m, nil
}

func (m *mesh) coordinate(router uint32, d int) uint32 {
	return router / m.strides[d] % uint32(m.info.Dims[d])
}

// step returns the port of a router on the shorter direction to another router along a dimension, and the class of its
// channel; none if the coordinates are equal. With equally long directions in a ring, it takes the upward one.
func (m *mesh) step(at, to uint32, d int) (out, class uint32) {
	size := uint32(m.info.Dims[d])
	x, y := m.coordinate(at, d), m.coordinate(to, d)
	if x == y {
		return none, 0
	}
	ring := m.info.Wrap && size > 2
	up := uint32(0)
	if y > x {
		up = 1
	}
	if ring {
		up = 0
		if (y+size-x)%size*2 <= size {
			up = 1
		}
		if y > x == (up == 1) {
			class = 1
		}
	}
	return m.ports[(at*uint32(len(m.info.Dims))+uint32(d))*2+up], class
}

// next returns the port and the channel of dimension order.
func (m *mesh) next(at, to, host uint32) (out uint32, vc uint8) {
	for d := range m.info.Dims {
		if out, class := m.step(at, to, d); out != none {
			return out, uint8(class*m.lanes + host%m.lanes)
		}
	}
	return none, 0 // the packet has arrived
}

// adapt selects the free channel with the most credits, or otherwise that of dimension order, for the first packet of a
// buffer.
func (m *mesh) adapt(n *worker, c *inputVC, at uint32, t uint64) {
	pk := &n.packets[c.first]
	to := n.edge[pk.to]
	if at == to || pk.stage > 0 {
		return
	}
	best, most := uint32(none), int32(-1)
	for d := range m.info.Dims {
		out, _ := m.step(at, to, d)
		if out == none {
			continue
		}
		first := uint32(n.classOffset(pk, localPort))
		for v := first + m.classes; v < first+uint32(n.lanes[localPort]); v++ {
			if credits := n.creditsFor(out, out*n.vcs+v, c.flits, t); credits > most {
				best, most = out*n.vcs+v, credits
			}
		}
	}
	if best == none {
		out, vc := m.next(at, to, pk.to)
		best = out*n.vcs + uint32(vc+n.classOffset(pk, localPort))
	}
	c.out, c.channel = best/n.vcs, best
}

// granted records that a packet that started in dimension order continues in dimension order.
func (m *mesh) granted(n *worker, pk *packet) {
	if uint32(pk.vc-n.classOffset(pk, localPort)) < m.classes {
		pk.stage = 1
	}
}
