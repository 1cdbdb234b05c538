package lower

// allreduceRecdoubling: members whose positions differ in one bit exchange their partial results, one bit a round.
// Where the number of members is not a power of two, the first members pair up beforehand: the even ones hand their
// data to their odd neighbours, sit out, and get the result afterwards.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceRecdoubling(c *Call, s *Schedule) {
	f := fold(c.Members, 0)
	x := newExchange(s, None)
	me, takesPart := f.part(c.Me)
	if !takesPart {
		s.recv(f.member(me), c.whole(), s.send(f.member(me), c.whole()))
		return
	}
	sitter, paired := f.sitter(me)
	if paired {
		x.rcvd = s.combine(sitter, c.whole())
	}
	for bit := 1; bit < f.power; bit *= 2 {
		partner := f.member(me ^ bit)
		x.reduce(partner, c.whole(), partner, c.whole())
	}
	if paired {
		s.send(sitter, c.whole(), x.sent, x.rcvd)
	}
}
