package lower

// bcastKnomial: as bcastBinomial, in the k-nomial tree, which is the binomial one for k = 2.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (k-nomial tree).
func bcastKnomial(c *Call, s *Schedule) {
	bcastDown(c, s, knomial, c.whole())
}
