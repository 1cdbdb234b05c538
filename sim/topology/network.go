// Package topology models networks of hosts and switches, their node names and their shortest paths, for backends that
// simulate packets or flits. It builds networks from parameters ([FatTree], [Dragonfly], [Mesh], [Star], [Pod],
// [Parse]), reads them from files ([ReadTopo], [ReadSimAI], [ReadEdges], [Load]), or makes them of the routes of
// platforms of SimGrid ([FromPlatform]). [Latencies] has the distances of hosts for backends without links.
// docs/reference/topologies.md describes them.
package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// MaxRate is the highest rate of a link in bit/s, at which a byte takes 1 ps.
const MaxRate = 8e12

// Limits of a network, so that a mistyped number causes an error instead of exhausting memory.
const (
	maxNodes   = 1 << 22
	maxLinks   = 1 << 22
	maxPorts   = 1 << 20 // per switch and direction
	maxRate    = MaxRate
	maxLatency = 1000 * dag.Second
)

// Link is a full-duplex cable between two nodes. It transmits Rate in each direction.
type Link struct {
	A, B    uint32   // nodes; in a fat tree, A is in the lower tier
	Rate    int64    // bit/s per direction, 1 to 8e12
	Latency dag.Time // propagation delay, 0 to 1000 s
}

// Network is a network of hosts, switches and links. Nodes 0 to Hosts-1 are the hosts; switch s is node Hosts+s. Every
// host has exactly one link, to its edge switch, unless routes are given. In a network of GPUs, the hosts are the ports
// of GPUs.
type Network struct {
	Hosts, Switches int
	Links           []Link

	// Tier is the tier of each switch: 0 ToR, 1 aggregation (or spine, with two tiers), 2 core. It is 0 in networks
	// without tiers.
	Tier []int8
	// SwitchLatency is the delay added to a packet by each switch, 0 to 1000 s.
	SwitchLatency []dag.Time
	// Name returns the unique name of a node: "host3", "tor0", "agg5", "core1", "router7", or the name in the file.
	Name func(node uint32) string

	FatTree   *FatTreeParams // complete parameters; nil unless the network is a fat tree
	Dragonfly *DragonflyInfo // nil unless the network is a dragonfly
	Mesh      *MeshInfo      // nil unless the network is a mesh or a torus
	GPUs      *GPUs          // nil unless the hosts are ports of GPUs
	Given     *Given         // nil unless the routes are given; then some hosts have no link

	byName map[string]uint32 // built by the first lookup
}

// Port is one direction of a link: the output of node From towards To.
type Port struct {
	From, To uint32
	Link     int
}

// Ports returns all ports: port 2*l is link l from A to B, port 2*l+1 the reverse direction.
func (n *Network) Ports() []Port {
	ports := make([]Port, 0, 2*len(n.Links))
	for l, link := range n.Links {
		ports = append(ports, Port{link.A, link.B, l}, Port{link.B, link.A, l})
	}
	return ports
}

// Head returns the node that receives over a port of [Network.Ports].
func (n *Network) Head(port uint32) uint32 {
	if port%2 == 0 {
		return n.Links[port/2].B
	}
	return n.Links[port/2].A
}

// tail returns the node that sends over a port.
func (n *Network) tail(port uint32) uint32 { return n.Head(port ^ 1) }

// Validate returns an error if a field violates its description.
func (n *Network) Validate() error {
	switch {
	case n.Hosts < 1 || n.Hosts > maxNodes:
		return fmt.Errorf("expected 1 to %d hosts, found %d", maxNodes, n.Hosts)
	case n.Switches < 1 || n.Switches > maxNodes:
		return fmt.Errorf("expected 1 to %d switches, found %d", maxNodes, n.Switches)
	case len(n.Links) > maxLinks:
		return fmt.Errorf("expected at most %d links, found %d", maxLinks, len(n.Links))
	case len(n.Tier) != n.Switches || len(n.SwitchLatency) != n.Switches:
		return fmt.Errorf("expected a tier and a latency for each of %d switches, found %d and %d",
			n.Switches, len(n.Tier), len(n.SwitchLatency))
	case n.Name == nil:
		return errors.New("expected node names (Name), found none")
	}
	if n.GPUs != nil {
		if err := n.GPUs.check(n); err != nil {
			return err
		}
	}
	for s, latency := range n.SwitchLatency {
		if latency < 0 || latency > maxLatency {
			return fmt.Errorf("%s: expected a latency of 0 to %v, found %v", n.Name(n.node(s)), maxLatency, latency)
		}
	}
	links := make([]uint8, n.Hosts) // by host: number of links, at most 2
	nodes := uint32(n.Hosts + n.Switches)
	for l := range n.Links {
		link := &n.Links[l]
		if link.A >= nodes || link.B >= nodes {
			return fmt.Errorf("link %d: expected nodes below %d, found %d and %d", l, nodes, link.A, link.B)
		}
		if err := n.checkLink(link, links); err != nil {
			return fmt.Errorf("link %s-%s: %w", n.Name(link.A), n.Name(link.B), err)
		}
	}
	for host, count := range links {
		if count == 0 {
			return fmt.Errorf("%s: expected a link to a switch, found none", n.Name(uint32(host)))
		}
	}
	return nil
}

// checkLink checks a link between existing nodes and counts the link of its host.
func (n *Network) checkLink(link *Link, links []uint8) error {
	hosts := uint32(n.Hosts)
	switch {
	case link.A == link.B:
		return errors.New("expected two nodes, found one")
	case link.A < hosts && link.B < hosts:
		return errors.New("expected at least one switch, found two hosts")
	case link.Rate < 1 || link.Rate > maxRate:
		return fmt.Errorf("expected a rate of 1bps to 8Tbps, found %dbps", link.Rate)
	case link.Latency < 0 || link.Latency > maxLatency:
		return fmt.Errorf("expected a latency of 0 to %v, found %v", maxLatency, link.Latency)
	}
	for _, end := range [...]uint32{link.A, link.B} {
		if end < hosts {
			if links[end]++; links[end] > 1 {
				return fmt.Errorf("expected one link per host, found a second link of %s", n.Name(end))
			}
		}
	}
	return nil
}

// LinkName returns the name of a link: its two nodes, or the name in a platform.
func (n *Network) LinkName(l int) string {
	if n.Given != nil {
		return n.Given.names[2*l]
	}
	return n.Name(n.Links[l].A) + "-" + n.Name(n.Links[l].B)
}

// node returns the node of switch s.
func (n *Network) node(s int) uint32 {
	return uint32(n.Hosts + s)
}

// LinkByName returns the links with the given name in ascending order: all links between two nodes ("tor3-agg1", in
// either order), one of several between them ("tor3-agg1#2" is the second), or all links of a node ("agg1"). It is not
// safe for concurrent use.
func (n *Network) LinkByName(name string) ([]int, error) {
	pair, number, single := strings.Cut(name, "#")
	which := 0
	if single {
		var err error
		if which, err = strconv.Atoi(number); err != nil || which < 1 {
			return nil, fmt.Errorf("link %q: expected a link number from 1 after #, found %q", name, number)
		}
	}
	a, b, err := n.ends(pair)
	if err != nil {
		return nil, fmt.Errorf("link %q: %w", name, err)
	}
	var links []int
	for l, link := range n.Links {
		if link.A == a && link.B == b || link.A == b && link.B == a || a == b && (link.A == a || link.B == a) {
			links = append(links, l)
		}
	}
	switch {
	case len(links) == 0:
		return nil, fmt.Errorf("link %q: expected a link between these nodes, found none", name)
	case single && a == b:
		return nil, fmt.Errorf("link %q: expected two nodes before #, found one", name)
	case which > len(links):
		return nil, fmt.Errorf("link %q: expected a link number from 1 to %d, found %d", name, len(links), which)
	case single:
		links = links[which-1 : which]
	}
	return links, nil
}

// ends returns the two nodes of a pair such as tor3-agg1, or the same node twice for a single name. Names may contain
// hyphens, so ends tries every hyphen as the separator.
func (n *Network) ends(pair string) (a, b uint32, err error) {
	if n.byName == nil {
		n.byName = make(map[string]uint32, n.Hosts+n.Switches)
		for node := range uint32(n.Hosts + n.Switches) {
			n.byName[n.Name(node)] = node
		}
	}
	found := 0
	if node, ok := n.byName[pair]; ok {
		a, b, found = node, node, 1
	}
	for at := range len(pair) {
		if pair[at] != '-' {
			continue
		}
		left, isNode := n.byName[pair[:at]]
		right, isToo := n.byName[pair[at+1:]]
		if isNode && isToo && left != right {
			a, b = left, right
			found++
		}
	}
	switch found {
	case 0:
		return 0, 0, fmt.Errorf("expected a node such as %s, or two nodes separated by a hyphen, found %q",
			n.Name(n.node(0)), pair)
	case 1:
		return a, b, nil
	}
	return 0, 0, fmt.Errorf("expected an unambiguous pair of node names, found %d possible pairs", found)
}

// tierNames are the name prefixes of the switches of tiers 0, 1 and 2.
var tierNames = [...]string{"tor", "agg", "core"}

// numbered returns a name such as host3.
func numbered(kind string, number int) string {
	return kind + strconv.Itoa(number)
}

// Describe returns the description of the network for results. given is the specification or file that it was built
// from.
func (n *Network) Describe(given string) *sim.Topology {
	links := make(map[int64]int) // by rate
	for i := range n.Links {
		links[n.Links[i].Rate]++
	}
	t := &sim.Topology{Given: given, Hosts: n.Hosts, Switches: n.Switches, Links: len(n.Links)}
	if n.GPUs != nil {
		t.Hosts = n.GPUs.Count()
	}
	for rate, number := range links {
		t.Rates = append(t.Rates, sim.LinkRate{BitsPerS: rate, Links: number})
	}
	slices.SortFunc(t.Rates, func(a, b sim.LinkRate) int { return cmp.Compare(b.BitsPerS, a.BitsPerS) })
	return t
}
