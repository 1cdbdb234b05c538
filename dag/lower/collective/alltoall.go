package collective

// alltoallPairwise: n - 1 rounds; in round k a member exchanges with the member at position me XOR k where n is a
// power of two, and otherwise sends to me + k and receives from me - k. What a member addresses to itself does not
// travel.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "All-to-all".
func alltoallPairwise(c *Call, s *Schedule) {
	n := c.Members
	powerOfTwo := n&(n-1) == 0
	x := newExchange(s, None)
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		if powerOfTwo {
			to, from = c.Me^k, c.Me^k
		}
		x.round(to, c.share(c.Me, to), from, c.share(from, c.Me))
	}
}

// alltoallBruck: what member i has for the member d further on moves on by 2^k in round k if bit k of d is set; so in
// round k a member sends one message, to the one 2^k further on, and receives one from the one 2^k before.
// ceil(log2 n) rounds.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
func alltoallBruck(c *Call, s *Schedule) {
	n := c.Members
	x := newExchange(s, None)
	for bit := 1; bit < n; bit *= 2 {
		to, from := (c.Me+bit)%n, (c.Me-bit+n)%n
		x.round(to, c.moving(c.Me, bit), from, c.moving(from, bit))
		s.hold(x.sent, func(add func(span)) { c.eachMoving(c.Me, bit, add) })
		s.hold(x.rcvd, func(add func(span)) { c.eachMoving(from, bit, add) })
	}
}

// moving returns how much of an all-to-all member i sends in the round in which distances with this bit move.
func (c *Call) moving(i, bit int) span {
	n := c.Members
	size, longer := c.Bytes/int64(n), int(c.Bytes%int64(n)) // of the members' shares, the first have one byte more
	// A share moves this round if its distance has the bit. Shares whose distances are the same from the bit up, an odd
	// multiple of it, have the same destination: as many as the bit, but for those cut off by the end.
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

// eachMoving calls add for every share of which moving is the sum.
func (c *Call) eachMoving(i, bit int, add func(span)) {
	n := c.Members
	for distance := range n {
		if distance&bit != 0 {
			source := (i - distance%bit + n) % n
			add(c.share(source, (source+distance)%n))
		}
	}
}

// alltoallLinear: every member sends every other its share, all sends and receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoall.c (basic linear).
func alltoallLinear(c *Call, s *Schedule) {
	n := c.Members
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		s.send(to, c.share(c.Me, to))
		s.recv(from, c.share(from, c.Me))
	}
}
