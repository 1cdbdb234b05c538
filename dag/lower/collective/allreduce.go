package collective

import "github.com/tracedag/tracedag/dag"

// allreduceRecdoubling exchanges, in round k, partial results between members whose positions differ in bit k. If n is
// not a power of two, the first members form pairs; the even member of each pair sends its data to the odd one, is
// idle, and receives the result at the end.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceRecdoubling(p *Participant, s *Schedule) {
	f, x, me, active := beginFolded(p, s)
	if !active {
		return
	}
	for bit := 1; bit < f.power; bit *= 2 {
		partner := f.member(me ^ bit)
		x.reduce(partner, p.whole(), partner, p.whole())
	}
	f.end(p, &x, me)
}

// beginFolded begins an allreduce of the active members of a fold: each idle member sends its data to its partner, and
// receives the result, which [folded.end] sends. me is the number of the member.
func beginFolded(p *Participant, s *Schedule) (f folded, x exchange, me int, active bool) {
	f, x, me, active = joinFolded(p, s, p.whole())
	if !active {
		s.recv(f.member(me), p.whole(), s.send(f.member(me), p.whole()))
	}
	return f, x, me, active
}

// end sends the result of an allreduce to the idle partner of an active member.
func (f folded) end(p *Participant, x *exchange, me int) {
	if idle, paired := f.idlePartner(me); paired {
		x.schedule.send(idle, p.whole(), x.sent, x.rcvd)
	}
}

// allreduceRing is a ring reduce-scatter of n parts followed by a ring allgather of the reduced parts: 2 (n - 1) rounds
// in each of which every member sends one part to its right neighbour. With segments, the reduce-scatter runs once for
// the first segment of all parts, once for the second, and so on.
//
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of Parallel
// and Distributed Computing 69(2), 2009. With segments: Open MPI, ompi/mca/coll/base/coll_base_allreduce.c (segmented
// ring).
func allreduceRing(p *Participant, s *Schedule) {
	n := p.Members
	right, left := (p.Me+1)%n, (p.Me-1+n)%n
	x := newExchange(s, noStep)
	for i := range p.segments(p.parts(n, 0, 1)) {
		piece := func(part int) span { return p.segment(p.parts(n, part, part+1), i) }
		sending := p.Me
		for range n - 1 {
			receiving := (sending - 1 + n) % n
			x.reduce(right, piece(sending), left, piece(receiving))
			sending = receiving
		}
	}
	sending := right // the part that this member has reduced
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.round(right, p.parts(n, sending, sending+1), left, p.parts(n, receiving, receiving+1))
		sending = receiving
	}
}

// allreduceRingremainder is allreduceRing with equal parts of whole elements, then an allreduce of the rest by the
// algorithm that the choice selects. A vector with fewer elements than members is reduced by allreduceReducethenbcast.
//
// SimGrid 3.32, src/smpi/colls/allreduce/allreduce-lr.cpp.
func allreduceRingremainder(p *Participant, s *Schedule) {
	part := *p
	part.Bytes = p.elements(p.Members)(0, 1).bytes * int64(p.Members)
	if part.Bytes == 0 {
		allreduceReducethenbcast(p, s)
		return
	}
	s.stage(samePosition, func() { allreduceRing(&part, s) })
	if rest := p.Bytes - part.Bytes; rest > 0 {
		part.base += part.Bytes
		part.phase(dag.Allreduce, 0, rest, s)
	}
}

// allreduceReducebcast is a binomial reduction to member 0 followed by a binomial broadcast. The broadcast of a segment
// starts as soon as the segment is reduced.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceReducebcast(p *Participant, s *Schedule) {
	reduceBcastTree(p, s, binomial, p.whole())
}

// allreduceRabenseifner is a reduce-scatter by recursive halving followed by an allgather by recursive doubling, with
// one part per active member. If n is not a power of two, members pair up as in allreduceRecdoubling.
//
// R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational Science,
// LNCS 3036, 2004.
func allreduceRabenseifner(p *Participant, s *Schedule) {
	f, x, me, active := beginFolded(p, s)
	if !active {
		return
	}
	parts := func(first, last int) span { return p.parts(f.power, first, last) }
	f.halve(&x, me, parts, func(v int) int { return v })
	for bit := 1; bit < f.power; bit *= 2 {
		partner, mine, theirs := f.member(me^bit), me&^(bit-1), (me^bit)&^(bit-1)
		x.round(partner, parts(mine, mine+bit), partner, parts(theirs, theirs+bit))
	}
	f.end(p, &x, me)
}

// allreduceRabenseifnernear is allreduceRabenseifner with the nearest partners first in the reduce-scatter, and last in
// the allgather. The parts are whole elements; the last part has the rest.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceRabenseifnernear(p *Participant, s *Schedule) {
	f, x, me, active := beginFolded(p, s)
	if !active {
		return
	}
	parts := p.elements(f.power)
	first := f.halveNear(&x, me, parts)
	for width := 1; width < f.power; width *= 2 {
		bit := f.power / 2 / width
		partner, theirs := f.member(me^bit), sibling(first, width, me, bit)
		x.round(partner, parts(first, first+width), partner, parts(theirs, theirs+width))
		first = min(first, theirs)
	}
	f.end(p, &x, me)
}

// allreduceReducethenbcast is a reduce to member 0, then a bcast from it, by the algorithms that the choice selects for
// these collectives.
//
// Open MPI, ompi/mca/coll/base/coll_base_allreduce.c (nonoverlapping).
func allreduceReducethenbcast(p *Participant, s *Schedule) {
	p.phase(dag.Reduce, 0, p.Bytes, s)
	p.phase(dag.Bcast, 0, p.Bytes, s)
}

// allreduceHalvingthenallgather is a reduce-scatter by recursive halving, one part per member, then an allgather of the
// parts by the algorithm that the choice selects. The parts are equal and whole elements: if there is a remainder,
// each part has one element more than the quotient, so that the last parts are longer than their data. If n is not a
// power of two, it is allreduceRabenseifner.
//
// SimGrid 3.32, src/smpi/colls/allreduce/allreduce-rab1.cpp.
func allreduceHalvingthenallgather(p *Participant, s *Schedule) {
	n := p.Members
	if n&(n-1) != 0 {
		allreduceRabenseifner(p, s)
		return
	}
	size := p.paddedPart()
	x := newExchange(s, noStep)
	parts := func(first, last int) span { return span{p.base + int64(first)*size, int64(last-first) * size} }
	fold(n, 0).halve(&x, p.Me, parts, func(v int) int { return v })
	part := *p
	part.Kind, part.starts = dag.Allgather, []int64{p.base}
	for i := range n {
		part.starts = append(part.starts, p.base+int64(i+1)*size)
	}
	p.choose(dag.Allgather, int64(n)*size, &part, s)
}

// paddedPart returns the bytes of a part of the vector per member in whole elements, the quotient rounded up.
func (p *Participant) paddedPart() int64 {
	element, n := p.wholeElement(), int64(p.Members)
	count := p.Bytes / element
	return (count/n + min(count%n, 1)) * element
}

// allreduceDoublebinarytree reduces each half of the vector up its tree of doubleTree, and broadcasts a segment down as
// soon as it is reduced.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009. NCCL does so (src/device/all_reduce.h, tree).
func allreduceDoublebinarytree(p *Participant, s *Schedule) {
	doubleTree(p, s, reduceBcastTree)
}

// allreduceHierarchical reduces in each node to its first member by reduceBinomial, combines these by
// allreduceRecdoubling up to 2048 bytes and by allreduceRabenseifner above, and broadcasts in each node by
// bcastBinomial.
//
// MPICH, src/mpi/coll/allreduce/allreduce_intra_smp.c.
func allreduceHierarchical(p *Participant, s *Schedule) {
	h := p.setHierarchy(s, 0)
	h.withinNode(s, reduceBinomial)
	if p.Bytes <= 2048 {
		h.amongLeaders(s, allreduceRecdoubling)
	} else {
		h.amongLeaders(s, allreduceRabenseifner)
	}
	h.withinNode(s, bcastBinomial)
}
