package lower

// allgatherGatherbcast: every member sends its block to the first, which posts all receives at once and then broadcasts
// them all down a binomial tree.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgatherv.c (default).
func allgatherGatherbcast(c *Call, s *Schedule) {
	all := c.blocks(0, c.Members)
	position := func(p int32) int32 { return p }
	s.stage(position, func() { gatherLinear(c, s) })
	s.stage(position, func() { bcastDown(c, s, binomial, all) })
}
