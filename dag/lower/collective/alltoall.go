package collective

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
