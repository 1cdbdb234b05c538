package lower

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
