package lower

// bcastChain: the root sends to the first member of each chain, and every member to the next in its chain. With one
// chain and segments it is known as the pipeline.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (chain, pipeline).
func bcastChain(c *Call, s *Schedule) {
	bcastDown(c, s, chains, c.whole())
}
