package collective

// barrierDissemination sends, in round k of ceil(log2 n), to the member 2^k positions behind and receives from the
// member 2^k positions before.
//
// D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International Journal of Parallel
// Programming 17(1), 1988.
func barrierDissemination(p *Participant, s *Schedule) {
	x := newExchange(s, noStep)
	for distance := 1; distance < p.Members; distance *= 2 {
		to, from := (p.Me+distance)%p.Members, (p.Me-distance+p.Members)%p.Members
		x.reduce(to, p.whole(), from, p.whole())
	}
}

// barrierRecdoubling is allreduceRecdoubling with messages of one byte.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (recursive doubling).
func barrierRecdoubling(p *Participant, s *Schedule) {
	allreduceRecdoubling(p, s)
}

// barrierBinomial is reduceBinomial to member 0 followed by bcastBinomial.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (tree).
func barrierBinomial(p *Participant, s *Schedule) {
	reduceBcastTree(p, s, binomial, p.whole())
}

// barrierLinear sends from every member to member 0, which posts all receives at once. After all of them, member 0
// sends to the other members one after the other.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (basic linear).
func barrierLinear(p *Participant, s *Schedule) {
	after := enterAtFirst(p, s)
	if p.Me != 0 {
		return
	}
	for i := 1; i < p.Members; i++ {
		after = append(after[:0], s.send(i, p.whole(), after...))
	}
}

// enterAtFirst appends the messages of all members to member 0, and those that they wait for from it. It returns the
// receives of member 0.
func enterAtFirst(p *Participant, s *Schedule) (received []int32) {
	if p.Me != 0 {
		s.recv(0, p.whole(), s.send(0, p.whole()))
		return nil
	}
	received = make([]int32, 0, p.Members)
	for i := 1; i < p.Members; i++ {
		received = append(received, s.combine(i, p.whole()))
	}
	return received
}

// barrierFan is barrierLinear with concurrent messages from member 0.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (basic linear).
func barrierFan(p *Participant, s *Schedule) {
	after := enterAtFirst(p, s)
	if p.Me != 0 {
		return
	}
	for i := 1; i < p.Members; i++ {
		s.post(i, p.whole(), after...)
	}
}

// barrierRecdoublinghigh is barrierRecdoubling with other pairs if n is not a power of two: the last members are idle,
// and their partners are the first.
//
// Open MPI, ompi/mca/coll/base/coll_base_barrier.c (recursive doubling).
func barrierRecdoublinghigh(p *Participant, s *Schedule) {
	power := floorPower(p.Members)
	if p.Me >= power {
		partner := p.Me - power
		x := newExchange(s, noStep)
		x.round(partner, p.whole(), partner, p.whole())
		return
	}
	x := newExchange(s, noStep)
	idle := p.Me + power
	if idle < p.Members {
		x.rcvd = s.combine(idle, p.whole())
	}
	for bit := 1; bit < power; bit *= 2 {
		x.reduce(p.Me^bit, p.whole(), p.Me^bit, p.whole())
	}
	if idle < p.Members {
		s.send(idle, p.whole(), x.sent, x.rcvd)
	}
}

// barrierHierarchical is reduceBinomial in each node to its first member, barrierDissemination among these, then
// bcastBinomial in each node.
//
// MPICH, src/mpi/coll/barrier/barrier_intra_smp.c, which begins with a barrier in each node.
func barrierHierarchical(p *Participant, s *Schedule) {
	h := p.setHierarchy(s, 0)
	h.withinNode(s, reduceBinomial)
	h.amongLeaders(s, barrierDissemination)
	h.withinNode(s, bcastBinomial)
}
