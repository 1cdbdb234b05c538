package collective

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

// allreduceReducebcast: a binomial reduction to the first member, then a binomial broadcast from it. A segment is
// broadcast as soon as it is reduced.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceReducebcast(c *Call, s *Schedule) {
	reduceDown(c, s, binomial, c.whole())
}

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

// allreduceDoublebinarytree: each half goes up its tree, which bothTrees describes, to the first member, and
// down again as soon as it is there.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009. NCCL does so (src/device/all_reduce.h, tree).
func allreduceDoublebinarytree(c *Call, s *Schedule) {
	bothTrees(c, s, reduceDown)
}

// allreduceHierarchical: reduceBinomial in each node to its first member; these do allreduceRabenseifner, or
// allreduceRecdoubling where the vector is short, 2048 bytes at most; then bcastBinomial in each node.
//
// MPICH, src/mpi/coll/allreduce/allreduce_intra_smp.c.
func allreduceHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, 0)
	l.within(s, reduceBinomial)
	if c.Bytes <= 2048 {
		l.among(s, allreduceRecdoubling)
	} else {
		l.among(s, allreduceRabenseifner)
	}
	l.within(s, bcastBinomial)
}
