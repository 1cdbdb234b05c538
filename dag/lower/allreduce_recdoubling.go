package lower

// allreduceRecdoubling: members whose positions differ in one bit exchange their partial results, one bit a round.
// Where the number of members is not a power of two, the first members pair up beforehand: the even ones hand their
// data to their odd neighbours, sit out, and get the result afterwards.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceRecdoubling(c *Call, s *Schedule) {
	power := 1
	for power*2 <= c.Members {
		power *= 2
	}
	paired := 2 * (c.Members - power) // the members 0..paired-1
	x := newExchange(s, None)
	virtual := c.Me - paired/2
	if c.Me < paired {
		if c.Me%2 == 0 {
			sent := s.Send(c.Me+1, c.Bytes)
			s.Recv(c.Me+1, c.Bytes, sent)
			return
		}
		x.rcvd = s.Recv(c.Me-1, c.Bytes)
		virtual = c.Me / 2
	}
	for bit := 1; bit < power; bit *= 2 {
		partner := virtual ^ bit
		if partner < paired/2 {
			partner = 2*partner + 1
		} else {
			partner += paired / 2
		}
		x.round(partner, c.Bytes, partner, c.Bytes)
	}
	if c.Me < paired {
		s.Send(c.Me-1, c.Bytes, x.sent, x.rcvd)
	}
}
