package lower

// reduceBinary: a member receives from its children in a binary tree numbered level by level, then sends to its parent.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (binary tree), whose trees are numbered otherwise.
func reduceBinary(c *Call, s *Schedule) {
	reduceUp(c, s, binary, c.whole())
}
