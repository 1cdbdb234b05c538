package lower

// reducescatterReducescatterv: a binomial reduction to the first member, which then sends every other its block.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (non-overlapping).
func reducescatterReducescatterv(c *Call, s *Schedule) {
	whole := c.blocks(0, c.Members)
	b := newBranch(c, s, binomial)
	reduced := b.up(whole)
	if c.Me != 0 {
		s.recv(0, c.block(c.Me), reduced)
		return
	}
	for i := 1; i < c.Members; i++ {
		s.send(i, c.block(i), reduced)
	}
}
