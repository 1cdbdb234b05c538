package lower

// barrierLinear: every member sends to the first, which posts all receives at once and, when it has them all, sends to
// the others one after the other.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (basic linear).
func barrierLinear(c *Call, s *Schedule) {
	if c.Me != 0 {
		s.recv(0, c.whole(), s.send(0, c.whole()))
		return
	}
	after := make([]int32, 0, c.Members)
	for i := 1; i < c.Members; i++ {
		after = append(after, s.combine(i, c.whole()))
	}
	for i := 1; i < c.Members; i++ {
		after = append(after[:0], s.send(i, c.whole(), after...))
	}
}
