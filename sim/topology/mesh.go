// This file builds meshes and tori of any number of dimensions.

package topology

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// MeshParams describes a mesh, or a torus, which is a mesh whose lines are rings (Dally and Towles, Principles and
// Practices of Interconnection Networks, chapter 5).
type MeshParams struct {
	Dims          []int    // routers per dimension: 1 to 8 dimensions of 1 to 4096 routers
	Wrap          bool     // build a torus
	P             int      // hosts per router
	Rate          int64    // rate of all links, bit/s
	Latency       dag.Time // latency of all links
	SwitchLatency dag.Time // latency of a router
}

// MeshInfo is the shape of a mesh or torus. Coordinate 0 of router R is R mod Dims[0], coordinate 1 is R / Dims[0] mod
// Dims[1], and so on. Router R has hosts R*P to R*P+P-1.
type MeshInfo struct {
	Dims []int
	Wrap bool
	P    int
}

// Mesh builds a mesh or torus. Links are in this order: host links; links to the next coordinate by router and
// dimension. A ring of two routers has one link, not two.
func Mesh(p MeshParams) (*Network, error) {
	kind := "mesh"
	if p.Wrap {
		kind = "torus"
	}
	if len(p.Dims) < 1 || len(p.Dims) > 8 {
		return nil, fmt.Errorf("%s: expected 1 to 8 dimensions, found %d", kind, len(p.Dims))
	}
	routers := 1
	for _, size := range p.Dims {
		if size < 1 || size > 4096 {
			return nil, fmt.Errorf("%s: expected dimensions of 1 to 4096 routers, found %d", kind, size)
		}
		if routers *= size; routers > maxNodes {
			return nil, fmt.Errorf("%s: expected at most %d routers, found more", kind, maxNodes)
		}
	}
	if p.P < 1 || p.P > 4096 {
		return nil, fmt.Errorf("%s: expected 1 to 4096 hosts per router, found %d", kind, p.P)
	}
	hosts := routers * p.P
	if links := hosts + routers*len(p.Dims); hosts > maxNodes || links > maxLinks {
		return nil, fmt.Errorf("%s: expected at most %d hosts and %d links, found %d and %d", kind, maxNodes, maxLinks,
			hosts, links)
	}
	info := &MeshInfo{append([]int(nil), p.Dims...), p.Wrap, p.P}
	n := newRouters(routers, p.P, hosts+routers*len(p.Dims), p.Rate, p.Latency, p.SwitchLatency)
	n.Mesh = info
	for router := range routers {
		stride := 1
		for _, size := range p.Dims {
			at := router / stride % size
			if next := (at + 1) % size; next > at || p.Wrap && size > 2 {
				n.Links = append(n.Links, Link{n.node(router), n.node(router + (next-at)*stride), p.Rate, p.Latency})
			}
			stride *= size
		}
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return n, nil
}

// newRouters returns a network of routers with the given number of hosts each, without links between routers. It
// allocates memory for all links.
func newRouters(routers, hostsEach, links int, rate int64, latency, switchLatency dag.Time) *Network {
	hosts := routers * hostsEach
	n := &Network{Hosts: hosts, Switches: routers, Links: make([]Link, 0, links), Tier: make([]int8, routers),
		SwitchLatency: slices.Repeat([]dag.Time{switchLatency}, routers), Name: func(node uint32) string {
			if int(node) < hosts {
				return numbered("host", int(node))
			}
			return numbered("router", int(node)-hosts)
		}}
	for host := range hosts {
		n.Links = append(n.Links, Link{uint32(host), n.node(host / hostsEach), rate, latency})
	}
	return n
}
