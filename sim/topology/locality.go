package topology

import (
	"fmt"
	"iter"
)

// UnusedFabric describes a placement that leaves the links between switches unused: all messages stay on their hosts or
// at one switch. It returns "" for other placements, for traces without messages, for networks whose routes are given,
// and for networks in which all hosts are at one switch, unless all messages stay on their hosts. messages are the
// hosts of both ends of each message.
func (n *Network) UnusedFabric(messages iter.Seq2[uint32, uint32]) string {
	if n.Given != nil { // its links do not connect switches
		return ""
	}
	edge, edges := make([]uint32, n.Hosts), make(map[uint32]bool)
	for i := range n.Links {
		for _, ends := range [2][2]uint32{{n.Links[i].A, n.Links[i].B}, {n.Links[i].B, n.Links[i].A}} {
			if host, sw := ends[0], ends[1]; int(host) < n.Hosts {
				edge[host] = sw
				edges[sw] = true
			}
		}
	}
	count, local, at := 0, 0, uint32(0) // messages, those within a host, a switch of the others
	used := make([]bool, n.Hosts)
	for from, to := range messages {
		if edge[from] != edge[to] {
			return ""
		}
		if count++; from == to {
			local++
		} else {
			at = edge[from]
		}
		used[from], used[to] = true, true
	}
	hosts, where := 0, n.Name(at)
	for host := range used {
		if used[host] {
			hosts++
			if edge[host] != at {
				where = "one switch each"
			}
		}
	}
	if count == 0 {
		return ""
	}
	ends, each := fmt.Sprintf("the ends of all %d messages are", count), "one host each"
	if count == 1 {
		ends, each = "both ends of the only message are", "one host"
	}
	switch {
	case local == count:
		return fmt.Sprintf("no packet enters the network: %s on %s, with %d of %d hosts in use; use --placement "+
			"packed, strided:N or random to spread the ranks", ends, each, hosts, n.Hosts)
	case len(edges) < 2:
		return ""
	}
	return fmt.Sprintf("no packet crosses a link between switches: %s at %s, with %d of %d hosts at %d switches in "+
		"use; use --placement strided:N or random to spread the ranks, or a smaller network", ends, where, hosts,
		n.Hosts, len(edges))
}
