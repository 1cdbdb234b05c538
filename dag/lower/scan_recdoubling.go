package lower

// scanRecdoubling: members whose positions differ in one bit exchange the partial results of their blocks of 2^k
// members, one bit a round; a member without a partner skips the round. What comes from a lower position enters the
// member's own prefix. The inclusive and the exclusive scan send the same messages.
//
// MPICH, src/mpi/coll/scan/scan_intra_recursive_doubling.c and exscan/exscan_intra_recursive_doubling.c.
func scanRecdoubling(c *Call, s *Schedule) {
	x := newExchange(s, None)
	for bit := 1; bit < c.Members; bit *= 2 {
		if partner := c.Me ^ bit; partner < c.Members {
			how := reduce
			if partner < c.Me {
				how = reduceAll
			}
			x.do(partner, c.whole(), partner, c.whole(), how)
		}
	}
}
