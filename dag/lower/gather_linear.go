package lower

// gatherLinear: every member sends its block to the root, which posts all receives at once.
//
// MPICH, src/mpi/coll/gatherv/gatherv_allcomm_linear.c.
func gatherLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.send(c.Root, c.block(c.Me))
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.recv(i, c.block(i))
		}
	}
}
