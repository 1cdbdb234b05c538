package collective

// allgatherRing: every member passes on to its right neighbour, n - 1 times, the block it got last, its own first.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Allgather".
func allgatherRing(c *Call, s *Schedule) {
	passRound(c, newExchange(s, None))
}

// passRound is allgatherRing in the given exchange.
func passRound(c *Call, x exchange) {
	n := c.Members
	right, left := (c.Me+1)%n, (c.Me-1+n)%n
	sending := c.Me
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.round(right, c.block(sending), left, c.block(receiving))
		sending = receiving
	}
}

// allgatherRecdoubling: members whose positions differ in one bit exchange all the blocks that they have, one bit a
// round. Where the number of members is not a power of two, allgatherBruck takes its place, as in MPICH.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Allgather".
func allgatherRecdoubling(c *Call, s *Schedule) {
	doubleBlocks(c, newExchange(s, None))
}

// doubleBlocks is allgatherRecdoubling in the given exchange.
func doubleBlocks(c *Call, x exchange) {
	n := c.Members
	if n&(n-1) != 0 {
		bruckBlocks(c, x)
		return
	}
	for bit := 1; bit < n; bit *= 2 {
		partner, has := c.Me^bit, ^(bit - 1) // what a member has begins at its position, the bits below this one 0
		x.round(partner, c.blocks(c.Me&has, bit), partner, c.blocks(partner&has, bit))
	}
}

// allgatherBruck: in round k a member sends the first 2^k blocks that it has, its own and those of the members that
// follow it, to the member 2^k before, and receives as many from the one 2^k further on; in the last round only those
// still missing. ceil(log2 n) rounds.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
func allgatherBruck(c *Call, s *Schedule) {
	bruckBlocks(c, newExchange(s, None))
}

// bruckBlocks is allgatherBruck in the given exchange.
func bruckBlocks(c *Call, x exchange) {
	n := c.Members
	for have := 1; have < n; have *= 2 {
		to, from := (c.Me-have+n)%n, (c.Me+have)%n
		count := min(have, n-have)
		x.round(to, c.blocks(c.Me, count), from, c.blocks(from, count))
	}
}

// allgatherNeighborexchange: n/2 rounds in which a member exchanges with its left and its right neighbour by turns: its
// block in the first, and then the two blocks that it got last, or its own and the one it got first. The even members
// begin with the right neighbour. Where the number of members is odd, allgatherRing takes its place, as in Open MPI.
//
// J. Chen, L. Zhang, Y. Zhang, W. Yuan: Performance evaluation of allgather algorithms on terascale Linux cluster with
// fast Ethernet. HPC Asia, 2005.
func allgatherNeighborexchange(c *Call, s *Schedule) {
	n := c.Members
	if n%2 != 0 {
		allgatherRing(c, s)
		return
	}
	x := newExchange(s, None)
	side := 1 - 2*(c.Me%2)
	partner := func() int { return (c.Me + side + n) % n }
	x.round(partner(), c.block(c.Me), partner(), c.block(partner()))
	// Blocks travel in pairs, an even member's and that of its right neighbour; the even member of the pair names it.
	pair := c.Me &^ 1
	for k := 1; k < n/2; k++ {
		side = -side
		// What comes from the left are the pairs further and further to the left, and likewise from the right.
		distance := 2 * ((k + 1) / 2)
		got := (c.Me&^1 + distance*side + n) % n
		x.round(partner(), c.blocks(pair, 2), partner(), c.blocks(got, 2))
		pair = got
	}
}

// allgatherGatherbcast: every member sends its block to the first, which posts all receives at once and then broadcasts
// them all down a binomial tree.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgatherv.c (default).
func allgatherGatherbcast(c *Call, s *Schedule) {
	all := c.blocks(0, c.Members)
	position := func(p int32) int32 { return p }
	s.stage(position, func() { gatherLinear(c, s) })
	s.stage(position, func() { bcastDown(c, s, binomial, all) })
}

// allgatherLinear: every member sends its block to every other, all sends and receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgather.c (direct messaging).
func allgatherLinear(c *Call, s *Schedule) {
	n := c.Members
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		s.send(to, c.block(c.Me))
		s.recv(from, c.block(from))
	}
}
