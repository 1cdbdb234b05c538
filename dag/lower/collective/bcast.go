package collective

import "github.com/tracedag/tracedag/dag"

// bcastBinomial: a member receives from its parent in a binomial tree, then sends to its children one after the
// other, the one with the largest subtree first.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastBinomial(c *Call, s *Schedule) {
	bcastDown(c, s, binomial, c.whole())
}

// bcastBinary: a member receives from its parent in a binary tree numbered level by level, then sends to its children.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (binary tree), whose trees are numbered otherwise.
func bcastBinary(c *Call, s *Schedule) {
	bcastDown(c, s, binary, c.whole())
}

// bcastKary: as bcastBinary, with k children.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_pipelined_tree.c with trees of type kary.
func bcastKary(c *Call, s *Schedule) {
	bcastDown(c, s, kary, c.whole())
}

// bcastKnomial: as bcastBinomial, in the k-nomial tree, which is the binomial one for k = 2.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (k-nomial tree).
func bcastKnomial(c *Call, s *Schedule) {
	bcastDown(c, s, knomial, c.whole())
}

// bcastChain: the root sends to the first member of each chain, and every member to the next in its chain. With one
// chain and segments it is known as the pipeline.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (chain, pipeline).
func bcastChain(c *Call, s *Schedule) {
	bcastDown(c, s, chains, c.whole())
}

// bcastLinear: the root sends to every member, all at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (basic linear).
func bcastLinear(c *Call, s *Schedule) {
	if c.Me != c.Root {
		s.recv(c.Root, c.whole())
		return
	}
	for i := range c.Members {
		if i != c.Root {
			s.send(i, c.whole())
		}
	}
}

// bcastScatterallgather: the root scatters n blocks down a binomial tree, then all members gather them in a ring, in
// which the root takes part like the others (van de Geijn's algorithm).
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterallgather(c *Call, s *Schedule) {
	blocks := *c
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	passRound(&blocks, newExchange(s, s.last()))
}

// bcastScatterrecdoubling: as bcastScatterallgather, but the members gather the blocks by allgatherRecdoubling.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterrecdoubling(c *Call, s *Schedule) {
	blocks := *c
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	doubleBlocks(&blocks, newExchange(s, s.last()))
}

// bcastDoublebinarytree: each half goes down its tree, which bothTrees describes.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009.
func bcastDoublebinarytree(c *Call, s *Schedule) {
	bothTrees(c, s, bcastDown)
}

// bcastHierarchical: bcastBinomial from the root to a leader on every node, then in each node.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_smp.c.
func bcastHierarchical(c *Call, s *Schedule) {
	l := c.setLevels(s, c.Root)
	l.among(s, bcastBinomial)
	l.within(s, bcastBinomial)
}
