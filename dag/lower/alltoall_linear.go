package lower

// alltoallLinear: every member sends every other its share, all sends and receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_alltoall.c (basic linear).
func alltoallLinear(c *Call, s *Schedule) {
	n := c.Members
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		s.send(to, c.share(c.Me, to))
		s.recv(from, c.share(from, c.Me))
	}
}
