package lower

// reduceKnomial: as reduceBinomial, in the k-nomial tree, which is the binomial one for k = 2.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type knomial_1.
func reduceKnomial(c *Call, s *Schedule) {
	reduceUp(c, s, knomial, c.whole())
}
