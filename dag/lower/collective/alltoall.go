package collective

import "github.com/tracedag/tracedag/dag"

// alltoallPairwise exchanges, in round k of n - 1, shares with the member at position me XOR k if n is a power of two;
// otherwise it sends to me + k and receives from me - k. The share of a member for itself is not sent.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "All-to-all".
func alltoallPairwise(p *Participant, s *Schedule) {
	n := p.Members
	powerOfTwo := n&(n-1) == 0
	x := newExchange(s, noStep)
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		if powerOfTwo {
			to, from = p.Me^k, p.Me^k
		}
		x.round(to, p.share(p.Me, to), from, p.share(from, p.Me))
	}
}

// alltoallBruck moves, in round k, all shares whose distance to their destination has bit k set by 2^k positions. In
// each of the ceil(log2 n) rounds a member sends one message to the member 2^k positions behind and receives one from
// the member 2^k positions before.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
func alltoallBruck(p *Participant, s *Schedule) {
	n := p.Members
	x := newExchange(s, noStep)
	for bit := 1; bit < n; bit *= 2 {
		to, from := (p.Me+bit)%n, (p.Me-bit+n)%n
		x.round(to, p.moving(p.Me, bit), from, p.moving(from, bit))
		s.setContents(x.sent, func(add func(span)) { p.eachMoving(p.Me, bit, add) })
		s.setContents(x.rcvd, func(add func(span)) { p.eachMoving(from, bit, add) })
	}
}

// moving returns the size of the data that member i sends in the alltoallBruck round of the given bit.
func (p *Participant) moving(i, bit int) span {
	n := p.Members
	size, longer := p.Bytes/int64(n), int(p.Bytes%int64(n)) // the first `longer` shares have one byte more
	// A share moves in this round if its distance has the bit set. The distances of moving shares form runs of `bit`
	// consecutive distances, each run starting at an odd multiple of the bit; the last run may be cut off at n.
	below := func(x int) int { return (min(max(x, 0), n) + bit - 1) / (2 * bit) } // odd multiples below x
	last := bit * (2*below(n) - 1)
	cut := max(0, bit-(n-last))
	shares := bit*below(n) - cut
	more := bit * (below(longer-i) + below(n-i+longer) - below(n-i))
	if (i+last)%n < longer {
		more -= cut
	}
	return span{0, int64(shares)*size + int64(more)}
}

// eachMoving calls add for every share that member i sends in the alltoallBruck round of the given bit.
func (p *Participant) eachMoving(i, bit int, add func(span)) {
	n := p.Members
	for distance := range n {
		if distance&bit != 0 {
			source := (i - distance%bit + n) % n
			add(p.share(source, (source+distance)%n))
		}
	}
}

// alltoallLinear sends every other member its share; all sends and receives are concurrent.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoall.c (basic linear).
func alltoallLinear(p *Participant, s *Schedule) {
	n := p.Members
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		s.send(to, p.share(p.Me, to))
		s.recv(from, p.share(from, p.Me))
	}
}

// alltoallRecdoublingspread is allgatherRecdoublingspread of all shares of each member.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005 (recursive doubling).
func alltoallRecdoublingspread(p *Participant, s *Schedule) {
	allgatherRecdoublingspread(p, s)
}

// alltoallShift is alltoallPairwise with the partners me + k and me - k for any n.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoall.c (pairwise).
func alltoallShift(p *Participant, s *Schedule) {
	n := p.Members
	x := newExchange(s, noStep)
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		x.round(to, p.share(p.Me, to), from, p.share(from, p.Me))
	}
}

// alltoallScattered exchanges shares with k members at a time: group g receives from the members me + g k to me + (g+1)
// k - 1, and sends to the members me - g k to me - (g+1) k + 1, all at once; the next group follows when all of these
// messages have arrived. The first group has the member itself, which sends its share for itself in an alltoall, but
// not in an alltoallv.
//
// MPICH, src/mpi/coll/alltoall/alltoall_intra_scattered.c and src/mpi/coll/alltoallv/alltoallv_intra_scattered.c, with
// a wait for all messages of a group.
func alltoallScattered(p *Participant, s *Schedule) {
	n := p.Members
	var after []int32
	for begin := 0; begin < n; begin += p.k {
		group := len(s.Steps)
		for i := begin; i < min(begin+p.k, n); i++ {
			if from := (p.Me + i) % n; i > 0 || p.Kind == dag.Alltoall {
				s.expect(from, p.share(from, p.Me), after...)
			}
		}
		for i := begin; i < min(begin+p.k, n); i++ {
			if to := (p.Me - i + n) % n; i > 0 || p.Kind == dag.Alltoall {
				s.post(to, p.share(p.Me, to), after...)
			}
		}
		switch {
		case len(s.Steps) == group:
		case begin+p.k < n:
			after = []int32{s.add(dag.Calc, 0, span{}, overwrite, steps(group, len(s.Steps)))}
		}
	}
}

// alltoallOrdered is alltoallLinear in the order of the members: every member receives from the first one, from the
// second and so on, then sends to them in that order, all at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoallv.c (basic linear).
func alltoallOrdered(p *Participant, s *Schedule) {
	for from := range p.Members {
		if from != p.Me {
			s.expect(from, p.share(from, p.Me))
		}
	}
	for to := range p.Members {
		if to != p.Me {
			s.post(to, p.share(p.Me, to))
		}
	}
}

// alltoallLinearreverse is alltoallLinear in another order: every member receives from me + 1, me + 2, ..., then sends
// to me - 1, me - 2, ..., all at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoall.c (basic linear).
func alltoallLinearreverse(p *Participant, s *Schedule) {
	n := p.Members
	for k := 1; k < n; k++ {
		from := (p.Me + k) % n
		s.expect(from, p.share(from, p.Me))
	}
	for k := 1; k < n; k++ {
		to := (p.Me - k + n) % n
		s.post(to, p.share(p.Me, to))
	}
}
