package packet

import (
	"fmt"

	"github.com/tracedag/tracedag/sim"
)

// Placement maps ranks to hosts.
type Placement struct {
	Hosts []uint32 // by rank: its first host
	// NICs is the number of hosts per rank, each of which is one NIC: NIC i of a rank is host Hosts[rank] + i mod NICs.
	// 0 means 1.
	NICs int
}

// check returns an error if the placement does not match the trace and the network. Several ranks may share a host.
func (p *Placement) check(ranks, hosts int) error {
	if len(p.Hosts) != ranks {
		return fmt.Errorf("the placement has hosts for %d ranks, expected %d as in the trace", len(p.Hosts), ranks)
	}
	for r, h := range p.Hosts {
		if int(h)+max(p.NICs, 1) > hosts {
			return fmt.Errorf("rank %d is placed on host %d, expected hosts 0 to %d of the network", r, h, hosts-1)
		}
	}
	return nil
}

// endpoints returns the source and destination hosts of a send.
func (p *Placement) endpoints(send *sim.Op) (from, to uint32) {
	nic := uint32(0)
	if p.NICs > 1 {
		nic = uint32(int(send.NIC) % p.NICs)
	}
	return p.Hosts[send.Rank] + nic, p.Hosts[send.Peer] + nic
}
