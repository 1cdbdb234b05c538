package lower

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
