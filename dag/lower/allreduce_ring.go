package lower

// allreduceRing: a ring reduce-scatter of n parts, then a ring allgather of the reduced parts, 2 (n - 1) rounds in
// each of which every member sends one part to its right neighbour.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of Parallel
// and Distributed Computing 69(2), 2009.
func allreduceRing(c *Call, s *Schedule) {
	n := c.Members
	right, left := (c.Me+1)%n, (c.Me-1+n)%n
	x := newExchange(s, None)
	sending := c.Me
	for range 2 * (n - 1) {
		receiving := (sending - 1 + n) % n
		x.round(right, part(c.Bytes, n, sending), left, part(c.Bytes, n, receiving))
		sending = receiving // the part just received, reduced or final, goes on in the next round
	}
}
