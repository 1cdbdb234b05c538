package lower

// reduceKary: as reduceBinary, with k children.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type kary.
func reduceKary(c *Call, s *Schedule) {
	reduceUp(c, s, kary, c.whole())
}
