package lower

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
