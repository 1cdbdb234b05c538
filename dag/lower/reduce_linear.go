package lower

// reduceLinear: every member sends its data to the root, which posts all receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (basic linear).
func reduceLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.send(c.Root, c.whole())
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.combine(i, c.whole())
		}
	}
}
