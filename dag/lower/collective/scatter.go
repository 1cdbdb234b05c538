package collective

// scatterBinomial: as bcastBinomial, but a message holds only the blocks of the receiver's subtree.
//
// E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience.
// Concurrency and Computation: Practice and Experience 19(13), 2007 (minimum spanning tree scatter).
func scatterBinomial(c *Call, s *Schedule) {
	v := c.relative()
	bit, last := 1, None
	for ; bit < c.Members; bit *= 2 {
		if v&bit != 0 {
			last = s.recv(c.absolute(v-bit), c.blocks(c.absolute(v), min(bit, c.Members-v)))
			break
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if child := v + bit; child < c.Members {
			last = s.send(c.absolute(child), c.blocks(c.absolute(child), min(bit, c.Members-child)), last)
		}
	}
}

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
