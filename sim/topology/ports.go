// This file names the ports of networks, groups them by tier, and finds those that sprayed traffic uses alike.

package topology

import (
	"fmt"
	"slices"
)

// Tiers are the names of the tiers of ports, in the order of reports: from hosts up to cores, and down again.
var Tiers = []string{
	"host up", "tor up", "agg up", "router local", "router global", "switch", "core down", "agg down", "tor down",
	"router down", "switch down", "nvlink up", "nvlink down",
}

// TierOf returns the tier of a port, one of [Tiers].
func (n *Network) TierOf(p Port) string {
	if n.GPUs != nil {
		return n.tierOfGPUs(p)
	}
	if int(p.From) < n.Hosts {
		return "host up"
	}
	from := n.Tier[int(p.From)-n.Hosts]
	name := "switch"
	switch {
	case n.FatTree != nil:
		name = [...]string{"tor", "agg", "core"}[from]
	case n.Dragonfly != nil:
		name = "router"
	}
	switch {
	case int(p.To) < n.Hosts:
		return name + " down"
	case n.FatTree != nil && n.Tier[int(p.To)-n.Hosts] > from:
		return name + " up"
	case n.FatTree != nil:
		return name + " down"
	case n.Dragonfly != nil:
		d := n.Dragonfly
		if d.Group(int(p.From)-n.Hosts) == d.Group(int(p.To)-n.Hosts) {
			return name + " local"
		}
		return name + " global"
	}
	return name
}

// tierOfGPUs returns the tier of a port in a network of GPUs: access switches are ToRs.
func (n *Network) tierOfGPUs(p Port) string {
	isNV := func(node uint32) bool {
		s := int(node) - n.Hosts
		return s >= 0 && s < n.GPUs.NVSwitches
	}
	tier := func(node uint32) int { return int(n.Tier[int(node)-n.Hosts]) }
	switch fromHost, toHost := int(p.From) < n.Hosts, int(p.To) < n.Hosts; {
	case isNV(p.To):
		return "nvlink up"
	case isNV(p.From):
		return "nvlink down"
	case fromHost:
		return "host up"
	case toHost:
		return "tor down"
	case tier(p.From) < tier(p.To):
		return "tor up"
	case tier(p.From) > tier(p.To):
		return "agg down"
	}
	return "switch"
}

// PortNames returns the names of all ports, for example tor0->host3. The second of several parallel links is
// agg1->core0#2. If routes are given, they are the names of links.
func (n *Network) PortNames() []string {
	if n.Given != nil {
		return slices.Clone(n.Given.names)
	}
	type pair struct{ from, to uint32 }
	ports := n.Ports()
	names := make([]string, len(ports))
	parallel := make(map[pair]int)
	for i, p := range ports {
		names[i] = n.Name(p.From) + "->" + n.Name(p.To)
		k := pair{p.From, p.To}
		if parallel[k]++; parallel[k] > 1 {
			names[i] += fmt.Sprintf("#%d", parallel[k])
		}
	}
	return names
}

// Bundles returns the bundle of each port of a fat tree or a regular network of GPUs, or nil for other networks.
// Traffic that is spread evenly over all shortest paths uses all ports of a bundle in equal parts or none, so that a
// bundle is like one link. The bundles are numbered from 0: the ports of a ToR up; those of the aggregation switches of
// a pod up, and down to one ToR; those of the cores down to a pod; and each port of a host or to a host. In a network
// of GPUs, access switches are ToRs.
func (n *Network) Bundles() []uint32 {
	if n.GPUs != nil && n.GPUs.uniform {
		return n.podBundles()
	}
	p := n.FatTree
	if p == nil {
		return nil
	}
	tors, perPod := uint32(p.tors()), uint32(p.aggsPerPod())
	type key struct {
		up       bool
		tier, at uint32 // at: the host, ToR or pod below
	}
	numbers := make(map[key]uint32)
	bundles := make([]uint32, 0, 2*len(n.Links))
	for _, link := range n.Links {
		k := key{at: link.A} // A is in the lower tier
		if sw := link.A - uint32(n.Hosts); int(link.A) >= n.Hosts {
			k.tier, k.at = 1, sw
			if sw >= tors {
				k.tier, k.at = 2, (sw-tors)/perPod
			}
		}
		for _, k.up = range [...]bool{true, false} {
			number, known := numbers[k]
			if !known {
				number = uint32(len(numbers))
				numbers[k] = number
			}
			bundles = append(bundles, number)
		}
	}
	return bundles
}

// podBundles returns the bundles of a regular network of GPUs: the ports of an access switch up, those down to an
// access switch, and each port of a GPU or to a GPU.
func (n *Network) podBundles() []uint32 {
	numbers := make(map[[2]uint32]uint32) // by access switch or port of a GPU, and direction
	bundles := make([]uint32, 0, 2*len(n.Links))
	for _, link := range n.Links {
		low := link.A
		if int(low) >= n.Hosts && n.Tier[int(low)-n.Hosts] > n.Tier[int(link.B)-n.Hosts] {
			low = link.B
		}
		for direction := range uint32(2) {
			if low == link.B {
				direction = 1 - direction
			}
			key := [2]uint32{low, direction}
			number, known := numbers[key]
			if !known {
				number = uint32(len(numbers))
				numbers[key] = number
			}
			bundles = append(bundles, number)
		}
	}
	return bundles
}

// isUniform reports whether each access switch has one link to each switch above it, of one rate and latency, and to
// the same switches as all access switches that share one of them; all links between switches are such links.
func (n *Network) isUniform() bool {
	above := make(map[uint32][]uint32) // by access switch
	rates := make(map[Link]bool)
	for _, link := range n.Links {
		a, b := link.A, link.B
		if int(a) < n.Hosts || int(b) < n.Hosts {
			continue
		}
		if n.Tier[int(a)-n.Hosts] > n.Tier[int(b)-n.Hosts] {
			a, b = b, a
		}
		if n.Tier[int(a)-n.Hosts] == n.Tier[int(b)-n.Hosts] {
			return false
		}
		above[a] = append(above[a], b)
		rates[Link{Rate: link.Rate, Latency: link.Latency}] = true
	}
	plane := make(map[uint32]string) // by switch above
	for _, list := range above {
		slices.Sort(list)
		text := fmt.Sprint(list)
		for i, sw := range list {
			if known := plane[sw]; known != "" && known != text || i > 0 && list[i-1] == sw {
				return false
			}
			plane[sw] = text
		}
	}
	return len(rates) <= 1
}
