package lower

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
