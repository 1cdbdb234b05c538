package lower

// barrierRecdoubling: as allreduceRecdoubling, of the fact that all have come.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (recursive doubling).
func barrierRecdoubling(c *Call, s *Schedule) {
	allreduceRecdoubling(c, s)
}
