package lower

// allgatherLinear: every member sends its block to every other, all sends and receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgather.c (direct messaging).
func allgatherLinear(c *Call, s *Schedule) {
	n := c.Members
	for k := 1; k < n; k++ {
		to, from := (c.Me+k)%n, (c.Me-k+n)%n
		s.send(to, c.block(c.Me))
		s.recv(from, c.block(from))
	}
}
