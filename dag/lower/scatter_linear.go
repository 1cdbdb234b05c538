package lower

// scatterLinear: the root sends every member its block, all at once.
//
// MPICH, src/mpi/coll/scatterv/scatterv_allcomm_linear.c.
func scatterLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.recv(c.Root, c.block(c.Me))
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.send(i, c.block(i))
		}
	}
}
