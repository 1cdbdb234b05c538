package lower

// bcastBinomial: a member receives from its parent in a binomial tree, then sends to its children one after the
// other, the one with the largest subtree first.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastBinomial(c *Call, s *Schedule) {
	bcastTree(c, s, None)
}

// bcastTree is bcastBinomial after the step last.
func bcastTree(c *Call, s *Schedule, last int32) {
	v, bit := c.relative(), 1
	for ; bit < c.Members; bit *= 2 {
		if v&bit != 0 {
			last = s.Recv(c.absolute(v-bit), c.Bytes, last)
			break
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < c.Members {
			last = s.Send(c.absolute(v+bit), c.Bytes, last)
		}
	}
}
