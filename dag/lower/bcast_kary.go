package lower

// bcastKary: as bcastBinary, with k children.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_pipelined_tree.c with trees of type kary.
func bcastKary(c *Call, s *Schedule) {
	bcastDown(c, s, kary, c.whole())
}
