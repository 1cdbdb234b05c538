package collective

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

// barrierRecdoubling: as allreduceRecdoubling, of the fact that all have come.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (recursive doubling).
func barrierRecdoubling(c *Call, s *Schedule) {
	allreduceRecdoubling(c, s)
}

// barrierBinomial: reduceBinomial to the first member, of the fact that all have come, then bcastBinomial from it.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (tree).
func barrierBinomial(c *Call, s *Schedule) {
	reduceDown(c, s, binomial, c.whole())
}

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

// barrierHierarchical: reduceBinomial in each node to its first member, of the fact that all have come; these do
// barrierDissemination; then bcastBinomial in each node.
//
// MPICH, src/mpi/coll/barrier/barrier_intra_smp.c, which begins with a barrier in each node.
func barrierHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, 0)
	l.within(s, reduceBinomial)
	l.among(s, barrierDissemination)
	l.within(s, bcastBinomial)
}
