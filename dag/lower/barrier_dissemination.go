package lower

// barrierDissemination: in round k every member sends to the one 2^k further on and receives from the one 2^k before,
// ceil(log2 n) rounds.
//
// D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International Journal of Parallel
// Programming 17(1), 1988.
func barrierDissemination(c *Call, s *Schedule) {
	x := newExchange(s, None)
	for distance := 1; distance < c.Members; distance *= 2 {
		to, from := (c.Me+distance)%c.Members, (c.Me-distance+c.Members)%c.Members
		x.reduce(to, c.whole(), from, c.whole())
	}
}
