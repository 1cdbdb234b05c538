package lower

// reducescatterRechalving: recursive halving of the blocks. Where the number of members is not a power of two, the
// first members pair up beforehand: the even ones hand their data to their odd neighbours, sit out, and get their block
// afterwards.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter".
func reducescatterRechalving(c *Call, s *Schedule) {
	f := fold(c.Members, 0)
	x := newExchange(s, None)
	me, takesPart := f.part(c.Me)
	whole := c.blocks(0, c.Members)
	if !takesPart {
		s.recv(f.member(me), c.block(c.Me), s.send(f.member(me), whole))
		return
	}
	sitter, paired := f.sitter(me)
	if paired {
		x.rcvd = s.combine(sitter, whole)
	}
	// A member that takes part answers for its partner's block, too.
	begin := func(number int) int { return number + min(number, f.extra) }
	blocks := func(first, last int) span { return c.blocks(begin(first), begin(last)-begin(first)) }
	f.halve(&x, me, blocks, func(v int) int { return v })
	if paired {
		s.send(sitter, c.block(sitter), x.sent, x.rcvd)
	}
}
