package lower

// reduceHierarchical: reduceBinomial in each node to its leader, then from the leaders to the root.
//
// MPICH, src/mpi/coll/reduce/reduce_intra_smp.c.
func reduceHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, c.Root)
	l.within(s, reduceBinomial)
	l.among(s, reduceBinomial)
}
