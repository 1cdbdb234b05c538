package collective

// reducescatterRing: every member passes on to its right neighbour, n - 1 times, the block it got last, reduced with
// its own data. It begins with the block of its left neighbour, so that its own comes last.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of Parallel
// and Distributed Computing 69(2), 2009 (the first of its two phases).
func reducescatterRing(c *Call, s *Schedule) {
	n := c.Members
	right, left := (c.Me+1)%n, (c.Me-1+n)%n
	x := newExchange(s, None)
	sending := left
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.reduce(right, c.block(sending), left, c.block(receiving))
		sending = receiving
	}
}

// reducescatterRechalving: recursive halving of the blocks. Where the number of members is not a power of two, the
// first members pair up beforehand: the even ones hand their data to their odd neighbours, sit out, and get their block
// afterwards.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter".
func reducescatterRechalving(c *Call, s *Schedule) {
	f := fold(c.Members, 0)
	x := newExchange(s, None)
	me, takesPart := f.part(c.Me)
	whole := c.blocks(0, c.Members)
	if !takesPart {
		s.recv(f.member(me), c.block(c.Me), s.send(f.member(me), whole))
		return
	}
	sitter, paired := f.sitter(me)
	if paired {
		x.rcvd = s.combine(sitter, whole)
	}
	// A member that takes part answers for its partner's block, too.
	begin := func(number int) int { return number + min(number, f.extra) }
	blocks := func(first, last int) span { return c.blocks(begin(first), begin(last)-begin(first)) }
	f.halve(&x, me, blocks, func(v int) int { return v })
	if paired {
		s.send(sitter, c.block(sitter), x.sent, x.rcvd)
	}
}

// reducescatterPairwise: n - 1 rounds; in round k a member sends its data for the block of the member k further on, and
// reduces its own block with what it receives from the one k before.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter".
func reducescatterPairwise(c *Call, s *Schedule) {
	n := c.Members
	x := newExchange(s, None)
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		x.reduce(to, c.block(to), from, c.block(c.Me))
	}
}

// reducescatterReducescatterv: a binomial reduction to the first member, which then sends every other its block.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (non-overlapping).
func reducescatterReducescatterv(c *Call, s *Schedule) {
	whole := c.blocks(0, c.Members)
	b := newBranch(c, s, binomial)
	reduced := b.up(whole)
	if c.Me != 0 {
		s.recv(0, c.block(c.Me), reduced)
		return
	}
	for i := 1; i < c.Members; i++ {
		s.send(i, c.block(i), reduced)
	}
}
