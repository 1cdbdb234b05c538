package lower

// allreduceRabenseifner: a reduce-scatter by recursive halving of as many parts as there are members, then an allgather
// by recursive doubling. Where the number of members is not a power of two, it begins and ends as
// allreduceRecdoubling.
//
// R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational Science,
// LNCS 3036, 2004.
func allreduceRabenseifner(c *Call, s *Schedule) {
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
	parts := func(first, last int) span { return c.parts(f.power, first, last) }
	f.halve(&x, me, parts, func(v int) int { return v })
	for bit := 1; bit < f.power; bit *= 2 {
		partner, mine, theirs := f.member(me^bit), me&^(bit-1), (me^bit)&^(bit-1)
		x.round(partner, parts(mine, mine+bit), partner, parts(theirs, theirs+bit))
	}
	if paired {
		s.send(sitter, c.whole(), x.sent, x.rcvd)
	}
}
