package collective

// reduceBinomial receives from the children in a binomial tree one after the other in ascending order of subtree size,
// then sends to the parent.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func reduceBinomial(p *Participant, s *Schedule) {
	reduceTree(p, s, binomial, p.whole())
}

// reduceBinary receives from the children in a binary tree numbered level by level, then sends to the parent.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (binary tree), whose trees are numbered otherwise.
func reduceBinary(p *Participant, s *Schedule) {
	reduceTree(p, s, binary, p.whole())
}

// reduceKary is reduceBinary with k children per member.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type kary.
func reduceKary(p *Participant, s *Schedule) {
	reduceTree(p, s, kary, p.whole())
}

// reduceKnomial is reduceBinomial in the k-nomial tree; for k = 2 that is the binomial tree.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type knomial_1.
func reduceKnomial(p *Participant, s *Schedule) {
	reduceTree(p, s, knomial, p.whole())
}

// reduceKnomialnonblocking is reduceKnomial with all receives posted at once and non-blocking sends.
//
// MVAPICH2, src/mpi/coll/reduce_osu.c (k-nomial tree).
func reduceKnomialnonblocking(p *Participant, s *Schedule) {
	t := newTreeNode(p, s, knomial)
	var reduced []int32
	for i := range t.children {
		received := len(s.Steps)
		reduced = append(reduced, s.combine(int(t.children[len(t.children)-1-i]), p.whole()))
		s.Steps[received].NonBlocking = true
	}
	if !t.root {
		s.post(t.parent, p.whole(), reduced...)
	}
}

// reduceChain sends from every member to the previous one of its chain, and from the first member of each chain to the
// root. One chain with segments is the pipeline algorithm.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (chain, pipeline).
func reduceChain(p *Participant, s *Schedule) {
	reduceTree(p, s, chain, p.whole())
}

// reduceLinear sends every member's data to the root, which posts all receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (basic linear).
func reduceLinear(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.send(p.Root, p.whole())
		return
	}
	for i := range p.Members {
		if i != p.Root {
			s.combine(i, p.whole())
		}
	}
}

// reduceRabenseifner is a reduce-scatter by recursive halving followed by a binomial gather, with one part per active
// member. If n is not a power of two, the first members from the root on form pairs; one member of each pair sends its
// data to the other and is idle.
//
// R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational Science,
// LNCS 3036, 2004.
func reduceRabenseifner(p *Participant, s *Schedule) {
	f := fold(p.Members, 1) // the root is active
	x := newExchange(s, noStep)
	me, active := f.number(p.relative())
	if !active {
		s.send(p.absolute(f.member(me)), p.whole())
		return
	}
	if idle, paired := f.idlePartner(me); paired {
		x.rcvd = s.combine(p.absolute(idle), p.whole())
	}
	parts := func(first, last int) span { return p.parts(f.power, first, last) }
	f.halve(&x, me, parts, p.absolute)
	for bit := 1; bit < f.power; bit *= 2 {
		if me&bit != 0 {
			s.send(p.absolute(f.member(me^bit)), parts(me, me+bit), x.sent, x.rcvd)
			return
		}
		x.rcvd = s.recv(p.absolute(f.member(me+bit)), parts(me+bit, me+2*bit), x.sent, x.rcvd)
		x.sent = noStep
	}
}

// reduceRabenseifnernear is reduceRabenseifner with the nearest partners first in the reduce-scatter, and last in the
// gather. Members are not counted from the root: if n is not a power of two and the root is idle, it receives the part
// of member 0 and takes its place in the gather.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func reduceRabenseifnernear(p *Participant, s *Schedule) {
	f := fold(p.Members, 1)
	x := newExchange(s, noStep)
	parts := p.elements(f.power)
	me, active := f.number(p.Me)
	root, rootActive := f.number(p.Root)
	if !rootActive {
		root = 0
	}
	first := 0
	switch {
	case active:
		if idle, paired := f.idlePartner(me); paired {
			x.rcvd = s.combine(idle, p.whole())
		}
		first = f.halveNear(&x, me, parts)
		if me == 0 && !rootActive {
			s.send(p.Root, parts(0, 1), x.sent, x.rcvd)
			return
		}
	default:
		x.rcvd = s.send(f.member(me), p.whole())
		if p.Me != p.Root {
			return
		}
		x.rcvd = s.recv(0, parts(0, 1), x.rcvd)
		me = 0
	}
	for width := 1; width < f.power; width *= 2 {
		bit := f.power / 2 / width
		partner := f.member(me ^ bit)
		if me^bit == 0 && !rootActive {
			partner = p.Root
		}
		if me&bit != root&bit {
			s.send(partner, parts(first, first+width), x.sent, x.rcvd)
			return
		}
		theirs := sibling(first, width, me, bit)
		x.rcvd = s.recv(partner, parts(theirs, theirs+width), x.sent, x.rcvd)
		x.sent, first = noStep, min(first, theirs)
	}
}

// reduceBinaryinterleaved is reduceBinary with another numbering of the tree, binaryInterleaved. A member receives from
// two children at a time.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (binary tree).
func reduceBinaryinterleaved(p *Participant, s *Schedule) {
	reduceBuffered(p, s, binaryInterleaved, p.whole())
}

// reduceBinomialtuned is reduceBinomial with receives from two children at a time, in order. Vectors of 2 KiB and more
// are split into segments of 1 KiB if n exceeds 0.6016 per KiB plus 1.3496, except those below 20 KiB on less than 8
// members.
//
// Open MPI 4.0, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c.
func reduceBinomialtuned(p *Participant, s *Schedule) {
	const slope, base = 0.6016 / 1024, 1.3496
	part := *p
	if (p.Members >= 8 || p.Bytes >= 20480) && p.Bytes >= 2048 && float64(p.Members) > slope*float64(p.Bytes)+base {
		part.segmentSize = 1024
	}
	reduceBuffered(&part, s, binomialAscending, p.whole())
}

// reduceChainbuffered is reduceChain; the root receives from two chains at a time, in order.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (chain).
func reduceChainbuffered(p *Participant, s *Schedule) {
	reduceBuffered(p, s, chain, p.whole())
}

// reduceNonblocking is reduceLinear with non-blocking sends.
//
// Open MPI, ompi/mca/coll/libnbc/nbc_ireduce.c (linear).
func reduceNonblocking(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.post(p.Root, p.whole())
		return
	}
	reduceLinear(p, s)
}

// reduceSequential sends every member's data to the root, which receives from one member after the other, the last one
// first.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (basic linear).
func reduceSequential(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.send(p.Root, p.whole())
		return
	}
	last := noStep
	for i := p.Members - 1; i >= 0; i-- {
		if i != p.Root {
			last = s.combine(i, p.whole(), last)
		}
	}
}

// reduceDoublebinarytree reduces each half of the vector up its tree of doubleTree.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009.
func reduceDoublebinarytree(p *Participant, s *Schedule) {
	doubleTree(p, s, reduceTree)
}

// reduceHierarchical is reduceBinomial in each node to its leader, then from the leaders to the root.
//
// MPICH, src/mpi/coll/reduce/reduce_intra_smp.c.
func reduceHierarchical(p *Participant, s *Schedule) {
	h := p.setHierarchy(s, p.Root)
	h.withinNode(s, reduceBinomial)
	h.amongLeaders(s, reduceBinomial)
}
