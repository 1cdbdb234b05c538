package collective

import "github.com/tracedag/tracedag/dag"

// scanRecdoubling exchanges, in round k, the partial results of groups of 2^k members between members whose positions
// differ in bit k. A member without a partner skips the round. Data from a lower position enters the member's prefix.
// The inclusive and the exclusive scan send the same messages.
//
// MPICH, src/mpi/coll/scan/scan_intra_recursive_doubling.c and exscan/exscan_intra_recursive_doubling.c.
func scanRecdoubling(p *Participant, s *Schedule) {
	x := newExchange(s, noStep)
	for bit := 1; bit < p.Members; bit *= 2 {
		if partner := p.Me ^ bit; partner < p.Members {
			how := reduce
			if partner < p.Me {
				how = reducePrefix
			}
			x.sendrecv(partner, p.whole(), partner, p.whole(), how)
		}
	}
}

// scanLinear receives the prefix of the previous member, reduces the member's own data into it, and sends it to the
// next member. The inclusive and the exclusive scan send the same messages.
//
// Open MPI, ompi/mca/coll/base/coll_base_scan.c and coll_base_exscan.c (linear).
func scanLinear(p *Participant, s *Schedule) {
	rcvd := noStep
	if p.Me > 0 {
		rcvd = s.add(dag.Recv, p.Me-1, p.whole(), reducePrefix, nil)
	}
	if p.Me < p.Members-1 {
		s.send(p.Me+1, p.whole(), rcvd)
	}
}

// scanOrdered sends the member's data to all later members, and receives that of all earlier ones, all at once.
//
// SimGrid, src/smpi/colls/smpi_coll.cpp. The inclusive and the exclusive scan send the same messages.
func scanOrdered(p *Participant, s *Schedule) {
	for from := range p.Me {
		s.add(dag.Recv, from, p.whole(), reducePrefix, nil)
	}
	for to := p.Me + 1; to < p.Members; to++ {
		i := s.post(to, p.whole())
		s.setRelayed(i, ownData)
	}
}

// scanSequential is scanOrdered with one receive after the other.
//
// SimGrid, src/smpi/colls/smpi_coll.cpp, for operations that do not commute and in replays.
func scanSequential(p *Participant, s *Schedule) {
	for to := p.Me + 1; to < p.Members; to++ {
		i := s.post(to, p.whole())
		s.setRelayed(i, ownData)
	}
	last := noStep
	for from := range p.Me {
		last = s.add(dag.Recv, from, p.whole(), reducePrefix, []int32{last})
	}
}
