package collective

import "github.com/tracedag/tracedag/dag"

// scanRecdoubling exchanges, in round k, the partial results of groups of 2^k members between members whose positions
// differ in bit k. A member without a partner skips the round. Data from a lower position enters the member's prefix.
// The inclusive and the exclusive scan send the same messages.
//
// MPICH, src/mpi/coll/scan/scan_intra_recursive_doubling.c and exscan/exscan_intra_recursive_doubling.c.
func scanRecdoubling(p *Participant, s *Schedule) {
	x := newExchange(s, noStep)
	prefix := firstPrefix(p)
	for bit := 1; bit < p.Members; bit *= 2 {
		if partner := p.Me ^ bit; partner < p.Members {
			how, reductions := reduce, 1
			if partner < p.Me {
				how, reductions = reducePrefix, 1+prefix // into the partial result and into the prefix
				prefix = 1
			}
			x.sendrecv(partner, p.whole(), partner, p.whole(), how, reductions)
		}
	}
}

// firstPrefix returns the number of reductions of the first data that enters the member's result: 1 for a scan, and 0
// for an exscan, whose result is this data.
func firstPrefix(p *Participant) int {
	if p.Kind == dag.Exscan {
		return 0
	}
	return 1
}

// scanLinear receives the prefix of the previous member, reduces the member's own data into it, and sends it to the
// next member. The inclusive and the exclusive scan send the same messages.
//
// Open MPI, ompi/mca/coll/base/coll_base_scan.c and coll_base_exscan.c (linear).
func scanLinear(p *Participant, s *Schedule) {
	rcvd := noStep
	if p.Me > 0 {
		reductions := 1
		if p.Me == p.Members-1 { // an exscan reduces for the next member only
			reductions = firstPrefix(p)
		}
		rcvd = s.combinePrefix(p.Me-1, p.whole(), reductions)
	}
	if p.Me < p.Members-1 {
		s.send(p.Me+1, p.whole(), rcvd)
	}
}

// scanOrdered sends the member's data to all later members, and receives that of all earlier ones, all at once.
//
// SimGrid, src/smpi/colls/smpi_coll.cpp. The inclusive and the exclusive scan send the same messages.
func scanOrdered(p *Participant, s *Schedule) {
	reductions := firstPrefix(p)
	for from := range p.Me {
		received := len(s.Steps)
		s.combinePrefix(from, p.whole(), reductions)
		s.Steps[received].NonBlocking = true
		reductions = 1
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
	last, reductions := noStep, firstPrefix(p)
	for from := range p.Me {
		last = s.combinePrefix(from, p.whole(), reductions, last)
		reductions = 1
	}
}
