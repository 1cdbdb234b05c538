package lower

// bcastLinear: the root sends to every member, all at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (basic linear).
func bcastLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.recv(c.Root, c.whole())
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.send(i, c.whole())
		}
	}
}
