package lower

// barrierHierarchical: reduceBinomial in each node to its first member, of the fact that all have come; these do
// barrierDissemination; then bcastBinomial in each node.
//
// MPICH, src/mpi/coll/barrier/barrier_intra_smp.c, which begins with a barrier in each node.
func barrierHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, 0)
	l.within(s, reduceBinomial)
	l.among(s, barrierDissemination)
	l.within(s, bcastBinomial)
}
