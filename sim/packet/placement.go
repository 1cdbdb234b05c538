package packet

import (
	"fmt"
	"math/rand/v2"

	"github.com/tracedag/tracedag/sim"
)

// Placement maps ranks to hosts.
type Placement struct {
	Hosts []uint32 // first host of each rank
	// NICs is the number of hosts per rank, each of which is one NIC: NIC i of a rank is host Hosts[rank] + i mod NICs.
	// 0 means 1.
	NICs int
}

// Packed places rank r on the r-th group of nics hosts.
func Packed(ranks, hosts, nics int) (Placement, error) {
	return Strided(ranks, hosts, nics, 1)
}

// Strided places ranks on groups of hosts at a distance. After the last group it continues with the first free one.
func Strided(ranks, hosts, nics, stride int) (Placement, error) {
	groups, err := groupsFor(ranks, hosts, nics)
	if err != nil {
		return Placement{}, err
	}
	if stride < 1 {
		return Placement{}, fmt.Errorf("a stride of %d, expected 1 or more", stride)
	}
	p := Placement{Hosts: make([]uint32, 0, ranks), NICs: nics}
	for first := 0; first < min(stride, groups) && len(p.Hosts) < ranks; first++ {
		for g := first; g < groups && len(p.Hosts) < ranks; g += stride {
			p.Hosts = append(p.Hosts, uint32(g*nics))
		}
	}
	return p, nil
}

// Shuffled places ranks on random groups of hosts.
func Shuffled(ranks, hosts, nics int, seed int64) (Placement, error) {
	groups, err := groupsFor(ranks, hosts, nics)
	if err != nil {
		return Placement{}, err
	}
	p := Placement{Hosts: make([]uint32, ranks), NICs: nics}
	for r, g := range rand.New(rand.NewPCG(uint64(seed), 0x706c6163)).Perm(groups)[:ranks] {
		p.Hosts[r] = uint32(g * nics)
	}
	return p, nil
}

func groupsFor(ranks, hosts, nics int) (int, error) {
	if nics < 1 {
		return 0, fmt.Errorf("%d interfaces a rank, expected 1 or more", nics)
	}
	if groups := hosts / nics; ranks <= groups {
		return groups, nil
	}
	return 0, fmt.Errorf("the trace has %d ranks with %d interfaces each, but the network only %d hosts",
		ranks, nics, hosts)
}

// check returns an error if a placement does not fit. Several ranks may share a host.
func (p *Placement) check(ranks, hosts int) error {
	if len(p.Hosts) != ranks {
		return fmt.Errorf("the placement is of %d ranks, but the trace has %d", len(p.Hosts), ranks)
	}
	for r, h := range p.Hosts {
		if int(h)+max(p.NICs, 1) > hosts {
			return fmt.Errorf("rank %d is placed on host %d, but the network has hosts 0 to %d", r, h, hosts-1)
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
