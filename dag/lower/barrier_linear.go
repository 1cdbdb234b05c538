package lower

// barrierLinear: every member sends to the first, which posts all receives at once and, when it has them all, sends to
// the others one after the other.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (basic linear).
func barrierLinear(c *Call, s *Schedule) {
	if c.Me != 0 {
		s.Recv(0, c.Bytes, s.Send(0, c.Bytes))
		return
	}
	after := make([]int32, 0, c.Members)
	for i := 1; i < c.Members; i++ {
		after = append(after, s.Recv(i, c.Bytes))
	}
	for i := 1; i < c.Members; i++ {
		after = append(after[:0], s.Send(i, c.Bytes, after...))
	}
}
