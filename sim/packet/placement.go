package packet

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
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
	return topology.CheckHosts(p.Hosts, p.NICs, ranks, hosts)
}

// endpoints returns the source and destination hosts of a send.
func (p *Placement) endpoints(send *sim.Op) (from, to uint32) {
	return topology.Endpoints(p.Hosts, p.NICs, send)
}
