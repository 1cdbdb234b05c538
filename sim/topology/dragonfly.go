// This file builds dragonflies with two arrangements of global links.

package topology

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// DragonflyParams describes a dragonfly of maximum size: A*H+1 groups, with one global link between any two (Kim,
// Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008).
type DragonflyParams struct {
	P, A, H       int      // hosts per router, routers per group, global links per router
	Rate          int64    // rate of links to hosts and within groups, bit/s
	Latency       dag.Time // latency of links to hosts and within groups
	GlobalRate    int64    // rate of links between groups, bit/s
	GlobalLatency dag.Time // latency of links between groups
	SwitchLatency dag.Time // latency of a router
	Arrangement   Arrangement
}

// Arrangement defines which global ports of two groups are connected.
type Arrangement uint8

// Arrangements of Hastings et al., Comparing Global Link Arrangements for Dragonfly Networks (CLUSTER 2015). Global
// port j of a group's router r has position r*H+j.
const (
	Absolute Arrangement = iota // position t leads to the t-th other group, in ascending order
	PalmTree                    // position t of group g leads to group g-t-1, modulo the number of groups
)

var arrangements = [...]string{"absolute", "palmtree"}

// String returns the name of the arrangement.
func (a Arrangement) String() string { return arrangements[a] }

// DragonflyInfo is the shape of a dragonfly: group G has routers (switches) G*A to G*A+A-1, and router R has hosts R*P
// to R*P+P-1.
type DragonflyInfo struct {
	P, A, H, Groups int
	Arrangement     Arrangement
}

// Group returns the group of a router.
func (d *DragonflyInfo) Group(router int) int { return router / d.A }

// Gateway returns the router of group from that has the global link to group to. The groups must differ.
func (d *DragonflyInfo) Gateway(from, to int) int {
	return from*d.A + d.position(from, to)/d.H
}

// GlobalPort returns the global port, 0 to H-1, of that link at Gateway(from, to).
func (d *DragonflyInfo) GlobalPort(from, to int) int {
	return d.position(from, to) % d.H
}

// position returns the position, 0 to A*H-1, of the global link of group from to group to.
func (d *DragonflyInfo) position(from, to int) int {
	switch {
	case d.Arrangement == PalmTree && to > from:
		return from - to + d.Groups - 1
	case d.Arrangement == PalmTree:
		return from - to - 1
	case to > from:
		return to - 1
	}
	return to
}

// Dragonfly builds a dragonfly. Links are in this order: host links; links within groups by the lower and the higher
// router; links between groups by the lower and the higher group.
func Dragonfly(p DragonflyParams) (*Network, error) {
	for _, count := range [...]int{p.P, p.A, p.H} {
		if count < 1 || count > 4096 {
			return nil, fmt.Errorf("dragonfly: expected p, a and h from 1 to 4096, found %d, %d and %d", p.P, p.A, p.H)
		}
	}
	if p.Arrangement > PalmTree {
		return nil, fmt.Errorf("dragonfly: unknown arrangement %d", p.Arrangement)
	}
	d := &DragonflyInfo{p.P, p.A, p.H, p.A*p.H + 1, p.Arrangement}
	routers := d.Groups * d.A
	hosts := routers * d.P
	links := hosts + d.Groups*(d.A*(d.A-1)/2) + d.Groups*(d.Groups-1)/2
	if hosts > maxNodes || links > maxLinks {
		return nil, fmt.Errorf("dragonfly: expected at most %d hosts and %d links, found %d and %d", maxNodes, maxLinks,
			hosts, links)
	}
	n := newRouters(routers, p.P, links, p.Rate, p.Latency, p.SwitchLatency)
	n.Dragonfly = d
	for low := range routers {
		for high := low + 1; d.Group(high) == d.Group(low); high++ {
			n.Links = append(n.Links, Link{n.node(low), n.node(high), p.Rate, p.Latency})
		}
	}
	for low := range d.Groups {
		for high := low + 1; high < d.Groups; high++ {
			n.Links = append(n.Links,
				Link{n.node(d.Gateway(low, high)), n.node(d.Gateway(high, low)), p.GlobalRate, p.GlobalLatency})
		}
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("dragonfly: %w", err)
	}
	return n, nil
}
