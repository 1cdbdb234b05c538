package lower

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
