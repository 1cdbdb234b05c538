package lower

// barrierBinomial: reduceBinomial to the first member, of the fact that all have come, then bcastBinomial from it.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (tree).
func barrierBinomial(c *Call, s *Schedule) {
	reduceDown(c, s, binomial, c.whole())
}
