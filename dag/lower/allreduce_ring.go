package lower

// allreduceRing: a ring reduce-scatter of n parts, then a ring allgather of the reduced parts, 2 (n - 1) rounds in
// each of which every member sends one part to its right neighbour. With segments the reduce-scatter is done once for
// the first segment of all parts, once for the second, ...
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of Parallel
// and Distributed Computing 69(2), 2009. With segments: Open MPI, ompi/mca/coll/base/coll_base_allreduce.c (segmented
// ring).
func allreduceRing(c *Call, s *Schedule) {
	n := c.Members
	right, left := (c.Me+1)%n, (c.Me-1+n)%n
	x := newExchange(s, None)
	for i := range c.segments(c.parts(n, 0, 1)) {
		piece := func(p int) span { return c.segment(c.parts(n, p, p+1), i) }
		sending := c.Me
		for range n - 1 {
			receiving := (sending - 1 + n) % n
			x.reduce(right, piece(sending), left, piece(receiving))
			sending = receiving
		}
	}
	sending := right // the part that is reduced
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.round(right, c.parts(n, sending, sending+1), left, c.parts(n, receiving, receiving+1))
		sending = receiving
	}
}
