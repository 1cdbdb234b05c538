// This file names the ports of networks, groups them by tier, and finds those that sprayed traffic uses alike.

package topology

import "fmt"

// Tiers are the names of the tiers of ports, in the order of reports: from hosts up to cores, and down again.
var Tiers = []string{
	"host up", "tor up", "agg up", "router local", "router global", "switch", "core down", "agg down", "tor down",
	"router down", "switch down",
}

// TierOf returns the tier of a port, one of [Tiers].
func (n *Network) TierOf(p Port) string {
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

// PortNames returns the names of all ports, for example tor0->host3. The second of several parallel links is
// agg1->core0#2.
func (n *Network) PortNames() []string {
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

// Bundles returns the bundle of each port of a fat tree, or nil for other networks. Traffic that is spread evenly over
// all shortest paths uses all ports of a bundle in equal parts or none, so that a bundle is like one link. The bundles
// are numbered from 0: the ports of a ToR up; those of the aggregation switches of a pod up, and down to one ToR; those
// of the cores down to a pod; and each port of a host or to a host.
func (n *Network) Bundles() []uint32 {
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
