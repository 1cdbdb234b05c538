package lower

// reduceChain: every member sends to the one before in its chain, and the first members of all chains to the root. With
// one chain and segments it is known as the pipeline.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (chain, pipeline).
func reduceChain(c *Call, s *Schedule) {
	reduceUp(c, s, chains, c.whole())
}
