// This file builds networks with one switch.

package topology

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Star returns a network of hosts connected to one switch, "tor0", by links with the given rate in bit/s and latency.
func Star(hosts int, rate int64, latency, switchLatency dag.Time) (*Network, error) {
	n := &Network{Hosts: hosts, Switches: 1, Links: make([]Link, 0, max(0, min(hosts, maxNodes))), Tier: []int8{0},
		SwitchLatency: []dag.Time{switchLatency}, Name: func(node uint32) string {
			if int(node) < hosts {
				return numbered("host", int(node))
			}
			return numbered(tierNames[0], int(node)-hosts)
		}}
	for host := range min(hosts, maxNodes) {
		n.Links = append(n.Links, Link{uint32(host), n.node(0), rate, latency})
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("star: %w", err)
	}
	return n, nil
}
