package lower

// reduceRabenseifner: a reduce-scatter by recursive halving of as many parts as there are members, then a binomial
// gather of the parts. Where the number of members is not a power of two, the first members after the root pair up
// beforehand, and one of each pair hands its data to the other and has done its part.
//
// R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational Science,
// LNCS 3036, 2004.
func reduceRabenseifner(c *Call, s *Schedule) {
	f := fold(c.Members, 1) // the root takes part
	x := newExchange(s, None)
	me, takesPart := f.part(c.relative())
	if !takesPart {
		s.send(c.absolute(f.member(me)), c.whole())
		return
	}
	if sitter, paired := f.sitter(me); paired {
		x.rcvd = s.combine(c.absolute(sitter), c.whole())
	}
	parts := func(first, last int) span { return c.parts(f.power, first, last) }
	f.halve(&x, me, parts, c.absolute)
	for bit := 1; bit < f.power; bit *= 2 {
		if me&bit != 0 {
			s.send(c.absolute(f.member(me^bit)), parts(me, me+bit), x.sent, x.rcvd)
			return
		}
		x.rcvd = s.recv(c.absolute(f.member(me+bit)), parts(me+bit, me+2*bit), x.sent, x.rcvd)
		x.sent = None
	}
}
