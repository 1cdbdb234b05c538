package lower

// reduceBinomial: a member receives from its children in a binomial tree one after the other, the one with the
// smallest subtree first, then sends to its parent.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func reduceBinomial(c *Call, s *Schedule) {
	v, last := c.relative(), None
	for bit := 1; bit < c.Members; bit *= 2 {
		if v&bit != 0 {
			s.Send(c.absolute(v-bit), c.Bytes, last)
			return
		}
		if v+bit < c.Members {
			last = s.Recv(c.absolute(v+bit), c.Bytes, last)
		}
	}
}
