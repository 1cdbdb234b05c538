package lower

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
