package collective

// reduceBinomial: a member receives from its children in a binomial tree one after the other, the one with the
// smallest subtree first, then sends to its parent.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func reduceBinomial(c *Call, s *Schedule) {
	reduceUp(c, s, binomial, c.whole())
}

// reduceBinary: a member receives from its children in a binary tree numbered level by level, then sends to its parent.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (binary tree), whose trees are numbered otherwise.
func reduceBinary(c *Call, s *Schedule) {
	reduceUp(c, s, binary, c.whole())
}

// reduceKary: as reduceBinary, with k children.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type kary.
func reduceKary(c *Call, s *Schedule) {
	reduceUp(c, s, kary, c.whole())
}

// reduceKnomial: as reduceBinomial, in the k-nomial tree, which is the binomial one for k = 2.
//
// MPICH, src/mpi/coll/ireduce/ireduce_tsp_tree_algos.h with trees of type knomial_1.
func reduceKnomial(c *Call, s *Schedule) {
	reduceUp(c, s, knomial, c.whole())
}

// reduceChain: every member sends to the one before in its chain, and the first members of all chains to the root. With
// one chain and segments it is known as the pipeline.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (chain, pipeline).
func reduceChain(c *Call, s *Schedule) {
	reduceUp(c, s, chains, c.whole())
}

// reduceLinear: every member sends its data to the root, which posts all receives at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_reduce.c (basic linear).
func reduceLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.send(c.Root, c.whole())
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.combine(i, c.whole())
		}
	}
}

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

// reduceDoublebinarytree: each half goes up its tree, which bothTrees describes.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009.
func reduceDoublebinarytree(c *Call, s *Schedule) {
	bothTrees(c, s, reduceUp)
}

// reduceHierarchical: reduceBinomial in each node to its leader, then from the leaders to the root.
//
// MPICH, src/mpi/coll/reduce/reduce_intra_smp.c.
func reduceHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, c.Root)
	l.within(s, reduceBinomial)
	l.among(s, reduceBinomial)
}
