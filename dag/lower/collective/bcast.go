package collective

import "github.com/tracedag/tracedag/dag"

// bcastBinomial receives from the parent in a binomial tree, then sends to the children one after the other in
// descending order of subtree size.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastBinomial(p *Participant, s *Schedule) {
	bcastTree(p, s, binomial, p.whole())
}

// bcastBinary receives from the parent in a binary tree numbered level by level, then sends to the children.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (binary tree), whose trees are numbered otherwise.
func bcastBinary(p *Participant, s *Schedule) {
	bcastTree(p, s, binary, p.whole())
}

// bcastKary is bcastBinary with k children per member.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_pipelined_tree.c with trees of type kary.
func bcastKary(p *Participant, s *Schedule) {
	bcastTree(p, s, kary, p.whole())
}

// bcastKnomial is bcastBinomial in the k-nomial tree; for k = 2 that is the binomial tree.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (k-nomial tree).
func bcastKnomial(p *Participant, s *Schedule) {
	bcastTree(p, s, knomial, p.whole())
}

// bcastKnomiallevels is bcastKnomial with concurrent messages to all children of a level of the tree.
//
// MVAPICH2, src/mpi/coll/bcast_osu.c (k-nomial tree).
func bcastKnomiallevels(p *Participant, s *Schedule) {
	bcastLevels(p, s, p.whole())
}

// bcastRelaybinomial sends from the root to member 0, then is bcastBinomial from member 0, the root included.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005.
func bcastRelaybinomial(p *Participant, s *Schedule) {
	relayTree(p, s, binomial, p.whole())
}

// bcastRelaybinary sends from the root to member 0, then is bcastBinary from member 0, the root included.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005.
func bcastRelaybinary(p *Participant, s *Schedule) {
	relayTree(p, s, binary, p.whole())
}

// bcastRelaychain sends from the root to member 0, then is bcastChain from member 0, the root included.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005.
func bcastRelaychain(p *Participant, s *Schedule) {
	part := *p
	part.k = 1
	relayTree(&part, s, chain, p.whole())
}

// bcastChainnonblocking is bcastChain with one chain and non-blocking sends. A member posts the receive of a segment
// before it waits for the segment before.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (pipeline).
func bcastChainnonblocking(p *Participant, s *Schedule) {
	part := *p
	part.k = 1
	t := newTreeNode(&part, s, chain)
	segments := p.segments(p.whole())
	receive := func(i int, after int32) int32 {
		if segments == 1 {
			return s.recv(t.parent, p.segment(p.whole(), i), after)
		}
		return s.expect(t.parent, p.segment(p.whole(), i), after)
	}
	next, done := noStep, noStep // the receive posted last; the last send or wait
	if !t.root {
		next = receive(0, noStep)
	}
	for i := range segments {
		arrived, last := next, i == segments-1
		if !t.root && !last {
			if next = receive(i+1, done); i == 0 {
				s.follow(next)
			}
		}
		leaf := len(t.children) == 0
		if leaf && last {
			return
		}
		if !t.root && segments > 1 {
			if arrived = s.await(arrived, done); !last {
				s.follow(arrived)
			}
		}
		switch {
		case leaf:
			done = arrived
		case t.root || last:
			done = s.post(int(t.children[0]), p.segment(p.whole(), i), done, arrived)
		default:
			done = s.await(s.post(int(t.children[0]), p.segment(p.whole(), i), arrived), noStep)
		}
	}
}

// bcastChain sends from the root to the first member of each chain, and from every member to the next of its chain. One
// chain with segments is the pipeline algorithm.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (chain, pipeline).
func bcastChain(p *Participant, s *Schedule) {
	bcastTree(p, s, chain, p.whole())
}

// bcastLinear sends from the root to every member, concurrently.
//
// Open MPI, ompi/mca/coll/base/coll_base_bcast.c (basic linear).
func bcastLinear(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.recv(p.Root, p.whole())
		return
	}
	for i := range p.Members {
		if i != p.Root {
			s.send(i, p.whole())
		}
	}
}

// bcastScatterallgather scatters n blocks from the root down a binomial tree, then gathers them at all members in a
// ring, the root included (van de Geijn's algorithm).
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterallgather(p *Participant, s *Schedule) {
	blocks := *p
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	ringBlocks(&blocks, newExchange(s, s.last()))
}

// bcastScatterrecdoubling is bcastScatterallgather with allgatherRecdoubling in place of the ring.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterrecdoubling(p *Participant, s *Schedule) {
	blocks := *p
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	doubleBlocks(&blocks, newExchange(s, s.last()))
}

// bcastScatterallgatherup is bcastScatterallgather with blocks rounded up, counted from the root: the last ones may be
// shorter.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_scatter_ring_allgather.c.
func bcastScatterallgatherup(p *Participant, s *Schedule) {
	scatterUp(p, s, ringBlocks)
}

// bcastScatterrecdoublingspread is bcastScatterallgatherup with allgatherRecdoublingspread in place of the ring.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_scatter_recursive_doubling_allgather.c.
func bcastScatterrecdoublingspread(p *Participant, s *Schedule) {
	scatterUp(p, s, spreadBlocks)
}

// scatterUp appends bcastScatterallgatherup with another allgather.
func scatterUp(p *Participant, s *Schedule, gather func(p *Participant, x exchange)) {
	n := int64(p.Members)
	blocks := *p
	blocks.Kind, blocks.Me, blocks.Root = dag.Scatter, p.relative(), 0
	blocks.blockSize = p.Bytes/n + min(p.Bytes%n, 1)
	s.stage(func(position int32) int32 { return int32(p.absolute(int(position))) }, func() {
		scatterBinomial(&blocks, s)
		gather(&blocks, newExchange(s, s.last()))
	})
}

// bcastDoublebinarytree broadcasts each half of the vector down its tree of doubleTree.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009.
func bcastDoublebinarytree(p *Participant, s *Schedule) {
	doubleTree(p, s, bcastTree)
}

// bcastHierarchical is bcastBinomial from the root to one leader per node, then in each node.
//
// MPICH, src/mpi/coll/bcast/bcast_intra_smp.c.
func bcastHierarchical(p *Participant, s *Schedule) {
	h := p.setHierarchy(s, p.Root)
	h.amongLeaders(s, bcastBinomial)
	h.withinNode(s, bcastBinomial)
}
