package lower

// allreduceHierarchical: reduceBinomial in each node to its first member; these do allreduceRabenseifner, or
// allreduceRecdoubling where the vector is short, 2048 bytes at most; then bcastBinomial in each node.
//
// MPICH, src/mpi/coll/allreduce/allreduce_intra_smp.c.
func allreduceHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, 0)
	l.within(s, reduceBinomial)
	if c.Bytes <= 2048 {
		l.among(s, allreduceRecdoubling)
	} else {
		l.among(s, allreduceRabenseifner)
	}
	l.within(s, bcastBinomial)
}
