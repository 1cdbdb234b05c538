package lower

// bcastHierarchical: bcastBinomial from the root to a leader on every node, then in each node.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_smp.c.
func bcastHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, c.Root)
	l.among(s, bcastBinomial)
	l.within(s, bcastBinomial)
}
