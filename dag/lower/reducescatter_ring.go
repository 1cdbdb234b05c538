package lower

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
