package packet

import "github.com/tracedag/tracedag/sim/topology"

// Placement maps ranks to hosts. In a network of GPUs, the host of a rank is the first port of its GPU.
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
