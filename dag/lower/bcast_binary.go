package lower

// bcastBinary: a member receives from its parent in a binary tree numbered level by level, then sends to its children.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (binary tree), whose trees are numbered otherwise.
func bcastBinary(c *Call, s *Schedule) {
	bcastDown(c, s, binary, c.whole())
}
