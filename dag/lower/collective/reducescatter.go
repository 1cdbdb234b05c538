package collective

import "github.com/tracedag/tracedag/dag"

// reducescatterRing reduces, in each of n - 1 rounds, the block received last with the member's own data and sends it
// to the right neighbour. It starts with the block of the left neighbour, so that the member's own block arrives last.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of Parallel
// and Distributed Computing 69(2), 2009 (the first of its two phases).
func reducescatterRing(p *Participant, s *Schedule) {
	n := p.Members
	right, left := (p.Me+1)%n, (p.Me-1+n)%n
	x := newExchange(s, noStep)
	sending := left
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.reduce(right, p.block(sending), left, p.block(receiving))
		sending = receiving
	}
}

// reducescatterRingbuffered is reducescatterRing with two buffers: a member posts the receive of a round before it
// waits for that of the round before, and its sends are blocking.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (ring).
func reducescatterRingbuffered(p *Participant, s *Schedule) {
	n := p.Members
	right, left := (p.Me+1)%n, (p.Me-1+n)%n
	sent, rcvd := noStep, s.await(noStep, noStep) // the first send must not wait for the same step as its receive
	sending := left
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		posted := s.add(dag.Recv, left, p.block(receiving), reduce, []int32{sent})
		sent = s.send(right, p.block(sending), rcvd)
		s.follow(sent)
		rcvd, sending = s.reduced(posted, 1), receiving
	}
}

// reducescatterRechalving is recursive halving of the blocks. If n is not a power of two, the first members form pairs;
// the even member of each pair sends its data to the odd one, is idle, and receives its block at the end.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter".
func reducescatterRechalving(p *Participant, s *Schedule) {
	halveBlocks(p, s, false)
}

// reducescatterRechalvingbuffered is reducescatterRechalving with blocking sends, each behind the start of the receive
// of its round.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (recursive halving).
func reducescatterRechalvingbuffered(p *Participant, s *Schedule) {
	halveBlocks(p, s, true)
}

// halveBlocks appends reducescatterRechalving, with rounds of blocking sends or of MPI_Sendrecv.
func halveBlocks(p *Participant, s *Schedule, blocking bool) {
	whole := p.blocks(0, p.Members)
	f, x, me, active := joinFolded(p, s, whole)
	x.blocking = blocking
	if !active {
		s.recv(f.member(me), p.block(p.Me), s.send(f.member(me), whole))
		return
	}
	f.halve(&x, me, f.blocksOf(p), func(v int) int { return v })
	if idle, paired := f.idlePartner(me); paired {
		s.send(idle, p.block(idle), x.sent, x.rcvd)
	}
}

// reducescatterButterfly is reducescatterRechalving with the nearest partners first: the active members then have each
// other's blocks and exchange them, after each has sent the block of an idle member to it.
//
// J. L. Träff: An improved algorithm for (non-commutative) reduce-scatter with an application. EuroPVM/MPI, LNCS 3666,
// 2005. Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (butterfly).
func reducescatterButterfly(p *Participant, s *Schedule) {
	whole := p.blocks(0, p.Members)
	f, x, me, active := joinFolded(p, s, whole)
	if !active {
		s.recv(f.member(f.reversed(me)), p.block(p.Me), s.send(f.member(me), whole))
		return
	}
	number := f.halveNear(&x, me, f.blocksOf(p))
	owner := f.member(number)
	if idle, paired := f.idlePartner(number); paired {
		x.sent, x.rcvd = s.send(idle, p.block(idle), x.sent, x.rcvd), noStep
	}
	if number != me {
		x.round(owner, p.block(owner), owner, p.block(p.Me))
	}
}

// reducescatterPairwise sends, in round k of n - 1, the member's data for the block of the member k positions behind,
// and reduces the data received from the member k positions before into its own block.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter".
func reducescatterPairwise(p *Participant, s *Schedule) {
	n := p.Members
	x := newExchange(s, noStep)
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		x.reduce(to, p.block(to), from, p.block(p.Me))
	}
}

// reducescatterReducescatterv is a binomial reduction to member 0, which then sends every other member its block.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce_scatter.c (non-overlapping).
func reducescatterReducescatterv(p *Participant, s *Schedule) {
	whole := p.blocks(0, p.Members)
	t := newTreeNode(p, s, binomial)
	reduced := t.reduce(whole)
	if p.Me != 0 {
		s.recv(0, p.block(p.Me), reduced)
		return
	}
	for i := 1; i < p.Members; i++ {
		s.send(i, p.block(i), reduced)
	}
}

// reducescatterLinear is reduceLinear to member 0, then scatterLinear from it, with non-blocking sends.
//
// Open MPI, ompi/mca/coll/basic/coll_basic_reduce_scatter.c, with linear phases.
func reducescatterLinear(p *Participant, s *Schedule) {
	whole := p.blocks(0, p.Members)
	if p.Me != 0 {
		s.recv(0, p.block(p.Me), s.post(0, whole))
		return
	}
	var reduced []int32
	for i := 1; i < p.Members; i++ {
		reduced = append(reduced, s.combine(i, whole))
	}
	for i := 1; i < p.Members; i++ {
		s.post(i, p.block(i), reduced...)
	}
}

// reducescatterRecdoubling exchanges, in round k, partial results of all blocks but those of the 2^k members around the
// sender between members whose positions differ in bit k. If n is not a power of two, members without a partner get the
// data of a round from those of their group that have one, down a binomial tree.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce-Scatter" (noncommutative operations).
func reducescatterRecdoubling(p *Participant, s *Schedule) {
	n := p.Members
	x := newExchange(s, noStep)
	except := func(group, size int) span { // the blocks of all members but those of the group
		end := min(group+size, n)
		return p.blocks(end%n, n-(end-group))
	}
	for bit := 1; bit < n; bit *= 2 {
		partner, mine, theirs := p.Me^bit, p.Me&^(bit-1), (p.Me^bit)&^(bit-1)
		if partner < n {
			x.reduce(partner, except(mine, bit), partner, except(theirs, bit))
		}
		if theirs < n && theirs+bit > n {
			data := except(theirs, bit)
			received := x.rcvd
			p.spread(n-theirs, bit, func(to int) {
				x.sent, x.rcvd = s.send(to, data, x.sent, x.rcvd), noStep
				s.setRelayed(x.sent, received)
			}, func(from int) {
				x.sent, x.rcvd = noStep, s.combine(from, data, x.sent, x.rcvd)
				received = x.rcvd
			})
		}
	}
}
