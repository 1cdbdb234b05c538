package collective

// gatherBinomial: as reduceBinomial, but a message holds the blocks of the sender's whole subtree.
//
// E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience.
// Concurrency and Computation: Practice and Experience 19(13), 2007 (minimum spanning tree gather).
func gatherBinomial(c *Call, s *Schedule) {
	v, last := c.relative(), None
	for bit := 1; bit < c.Members; bit *= 2 {
		if v&bit != 0 {
			s.send(c.absolute(v-bit), c.blocks(c.absolute(v), min(bit, c.Members-v)), last)
			return
		}
		if child := v + bit; child < c.Members {
			last = s.recv(c.absolute(child), c.blocks(c.absolute(child), min(bit, c.Members-child)), last)
		}
	}
}

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
