// Package platform reads platform files of SimGrid: hosts, links, and the routes between hosts that zones with
// different routings define. docs/reference/backends/flow.md has the rules, which are those of SimGrid 3.32.
package platform

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim"
)

// Link is a link of a platform: one direction of a link with two, or a link that both directions share.
type Link struct {
	Name    string
	Rate    float64 // bytes per second
	Latency float64 // seconds
	Fat     bool    // limits each flow, not their sum
	Back    bool    // the other direction of the link before it
}

// Platform is a network whose routes are given.
type Platform struct {
	File  string
	Hosts []string // names, in the order of the file
	Links []Link
	// Settings are the options network/... of the file, by name.
	Settings map[string]string

	processors []processor // by host
	profiled   string      // a host whose speed or availability changes, "" for none

	hosts    []point
	others   []point // routers and zones
	loopback uint32  // link of hosts without another one to themselves
}

// point is a host, a router or a zone.
type point struct {
	name string
	zone *zone // around it; nil: the outermost zone
	sub  *zone // that it is; nil: a host or a router
	id   int32 // in the zone around it
}

// Hosts have the numbers from 0 on, other points -2, -3 and so on.
const (
	nobody = int32(-1)
	behind = int32(-2)
)

// point returns a point by its number.
func (p *Platform) point(at int32) *point {
	if at >= 0 {
		return &p.hosts[at]
	}
	return &p.others[behind-at]
}

// kind is the routing of a zone.
type kind int

const (
	kindNone kind = iota
	kindFull
	kindFloyd
	kindDijkstra
	kindStar
	kindVivaldi
	kindCluster
)

// zone is a part of a platform with its own routing.
type zone struct {
	kind   kind
	parent *zone
	depth  int
	self   int32 // its point
	size   int   // points directly in it
	nested bool  // it contains zones

	routes   map[[2]int32]*route // by source and destination
	bypasses map[[2]int32]*route
	graph    *graph           // Floyd and Dijkstra
	spokes   map[int32]*spoke // star and Vivaldi, by point
	coords   map[int32][3]float64
	cluster  cluster
}

// route is the links from one point of a zone to another. Routes between zones have gateways.
type route struct {
	links    []uint32
	from, to int32 // gateways; nobody: a route between hosts or routers
}

// spoke is the links between a point of a star and its center.
type spoke struct {
	up, down, loop []uint32
}

// cluster has the routes of a regular zone.
type cluster interface {
	// hops appends the links from one host to another to a list. Hosts are numbered from 0 within the zone. It appends
	// nothing if a host has no route to itself.
	hops(list []uint32, from, to uint32) []uint32
}

// HostNames returns the names of the hosts; those of no platform are nil.
func (p *Platform) HostNames() []string {
	if p == nil {
		return nil
	}
	return p.Hosts
}

// LinkByName returns the link with a name, or both directions of one.
func (p *Platform) LinkByName(name string) (links []int, err error) {
	for i := range p.Links {
		switch p.Links[i].Name {
		case name, name + "_UP", name + "_DOWN":
			links = append(links, i)
		}
	}
	if links == nil {
		return nil, fmt.Errorf("expected the id of a link of the platform, found %s", short(name))
	}
	return links, nil
}

// LeastLatency returns the smallest latency of a link in seconds, without the implicit loopback: no route between
// different hosts is shorter.
func (p *Platform) LeastLatency() float64 {
	least := math.Inf(1)
	for i := range p.Links {
		if uint32(i) != p.loopback {
			least = min(least, p.Links[i].Latency)
		}
	}
	return least
}

// Describe returns the description of the platform for results.
func (p *Platform) Describe() *sim.Topology {
	t := &sim.Topology{Given: p.File, Hosts: len(p.Hosts)}
	links := make(map[int64]int)
	for i := range p.Links {
		if uint32(i) != p.loopback {
			t.Links++
			links[int64(min(p.Links[i].Rate*8, 9e18))]++
		}
	}
	for rate, number := range links {
		t.Rates = append(t.Rates, sim.LinkRate{BitsPerS: rate, Links: number})
	}
	slices.SortFunc(t.Rates, func(a, b sim.LinkRate) int { return cmp.Compare(b.BitsPerS, a.BitsPerS) })
	return t
}
