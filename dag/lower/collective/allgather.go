package collective

import "github.com/tracedag/tracedag/dag"

// allgatherRing sends, in each of n - 1 rounds, the block received last to the right neighbour, in the first round the
// member's own block.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Allgather".
func allgatherRing(p *Participant, s *Schedule) {
	ringBlocks(p, newExchange(s, noStep))
}

// allgatherRingsegments is allgatherRing with blocks in segments of the smallest block, or of 256 KiB if that is less.
// A member sends its next segment and receives one in each round; the rounds of different blocks may differ. It sends
// nothing for an empty block.
//
// MPICH, src/mpi/coll/allgatherv/allgatherv_intra_ring.c, with SMPI's size of segments (SimGrid 3.32,
// src/smpi/colls/allgatherv/allgatherv-mpich-ring.cpp).
func allgatherRingsegments(p *Participant, s *Schedule) {
	const least = 256 << 10
	n := p.Members
	smallest := p.block(0).bytes
	for i := range n {
		smallest = min(smallest, p.block(i).bytes)
	}
	right, left := (p.Me+1)%n, (p.Me-1+n)%n
	part := *p
	part.segmentSize = max(smallest, least)
	out, in := segmentsOf{p: &part, block: p.Me, end: right}, segmentsOf{p: &part, block: left, end: p.Me}
	x := newExchange(s, noStep)
	for {
		send, sends := out.next()
		recv, recvs := in.next()
		switch {
		case !sends && !recvs:
			return
		case send.bytes > 0 && recv.bytes > 0:
			x.round(right, send, left, recv)
		case send.bytes > 0:
			x.sent, x.rcvd = s.send(right, send, x.sent, x.rcvd), noStep
		case recv.bytes > 0:
			x.sent, x.rcvd = noStep, s.recv(left, recv, x.sent, x.rcvd)
		}
	}
}

// segmentsOf are the segments of the blocks from one member downwards to another one, without that of the latter.
type segmentsOf struct {
	p          *Participant
	block, end int
	segment    int // of the block
}

// next returns the next segment, and whether there is one.
func (f *segmentsOf) next() (x span, more bool) {
	if f.block == f.end {
		return span{}, false
	}
	block := f.p.block(f.block)
	x = f.p.segment(block, f.segment)
	if f.segment++; f.segment == f.p.segments(block) {
		f.block, f.segment = (f.block-1+f.p.Members)%f.p.Members, 0
	}
	return x, true
}

// ringBlocks appends allgatherRing to an exchange.
func ringBlocks(p *Participant, x exchange) {
	n := p.Members
	right, left := (p.Me+1)%n, (p.Me-1+n)%n
	sending := p.Me
	for range n - 1 {
		receiving := (sending - 1 + n) % n
		x.round(right, p.block(sending), left, p.block(receiving))
		sending = receiving
	}
}

// allgatherRecdoubling exchanges, in round k, all blocks at hand between members whose positions differ in bit k. If n
// is not a power of two, it is allgatherBruck, as in MPICH.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Allgather".
func allgatherRecdoubling(p *Participant, s *Schedule) {
	doubleBlocks(p, newExchange(s, noStep))
}

// doubleBlocks appends allgatherRecdoubling to an exchange.
func doubleBlocks(p *Participant, x exchange) {
	n := p.Members
	if n&(n-1) != 0 {
		bruckBlocks(p, x)
		return
	}
	for bit := 1; bit < n; bit *= 2 {
		partner, has := p.Me^bit, ^(bit - 1) // a member's blocks start at its position with the lower bits cleared
		x.round(partner, p.blocks(p.Me&has, bit), partner, p.blocks(partner&has, bit))
	}
}

// allgatherBruck sends, in round k, the first 2^k blocks at hand (the member's own and those of the members that follow
// it) to the member 2^k positions before, and receives as many from the member 2^k positions behind. The last of the
// ceil(log2 n) rounds carries the missing blocks only.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
func allgatherBruck(p *Participant, s *Schedule) {
	bruckBlocks(p, newExchange(s, noStep))
}

// bruckBlocks appends allgatherBruck to an exchange.
func bruckBlocks(p *Participant, x exchange) {
	n := p.Members
	for have := 1; have < n; have *= 2 {
		to, from := (p.Me-have+n)%n, (p.Me+have)%n
		count := min(have, n-have)
		x.round(to, p.blocks(p.Me, count), from, p.blocks(from, count))
	}
}

// allgatherNeighborexchange exchanges blocks with the left and the right neighbour alternately, in n/2 rounds: the
// member's own block in round 0, its own and the received block in round 1, and the two blocks received last in later
// rounds. Even members start with the right neighbour. If n is odd, it is allgatherRing, as in Open MPI.
//
// J. Chen, L. Zhang, Y. Zhang, W. Yuan: Performance evaluation of allgather algorithms on terascale Linux cluster with
// fast Ethernet. HPC Asia, 2005.
func allgatherNeighborexchange(p *Participant, s *Schedule) {
	n := p.Members
	if n%2 != 0 {
		allgatherRing(p, s)
		return
	}
	x := newExchange(s, noStep)
	side := 1 - 2*(p.Me%2)
	partner := func() int { return (p.Me + side + n) % n }
	x.round(partner(), p.block(p.Me), partner(), p.block(partner()))
	// Blocks travel in pairs, that of an even member and that of its right neighbour. The even member identifies the
	// pair.
	pair := p.Me &^ 1
	for k := 1; k < n/2; k++ {
		side = -side
		// The left neighbour sends pairs further and further to the left, the right one pairs to the right.
		distance := 2 * ((k + 1) / 2)
		got := (p.Me&^1 + distance*side + n) % n
		x.round(partner(), p.blocks(pair, 2), partner(), p.blocks(got, 2))
		pair = got
	}
}

// allgatherGatherbcast gathers all blocks at member 0 by gatherLinear, then broadcasts them down a binomial tree.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgatherv.c (default).
func allgatherGatherbcast(p *Participant, s *Schedule) {
	all := p.blocks(0, p.Members)
	s.stage(samePosition, func() { gatherLinear(p, s) })
	s.stage(samePosition, func() { bcastTree(p, s, binomial, all) })
}

// allgatherLinear sends the member's block to every other member; all sends and receives are concurrent.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgather.c (direct messaging).
func allgatherLinear(p *Participant, s *Schedule) {
	n := p.Members
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		s.send(to, p.block(p.Me))
		s.recv(from, p.block(from))
	}
}

// allgatherShift sends, in round k of n - 1, the member's block to the member k positions behind, and receives one from
// the member k positions before.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005 (ring).
func allgatherShift(p *Participant, s *Schedule) {
	n := p.Members
	x := newExchange(s, noStep)
	for k := 1; k < n; k++ {
		to, from := (p.Me+k)%n, (p.Me-k+n)%n
		x.round(to, p.block(p.Me), from, p.block(from))
	}
}

// allgatherOrdered is allgatherLinear in the order of the members: every member exchanges with the first one, the
// second and so on, all at once.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgather.c (basic linear).
func allgatherOrdered(p *Participant, s *Schedule) {
	for other := range p.Members {
		if other != p.Me {
			s.post(other, p.block(p.Me))
			s.follow(s.expect(other, p.block(other)))
		}
	}
}

// allgatherGatherthenbcast gathers all blocks at member 0 by gatherNonblocking, then broadcasts them by the algorithm
// that the choice selects.
//
// Open MPI, ompi/mca/coll/base/coll_base_allgatherv.c (default).
func allgatherGatherthenbcast(p *Participant, s *Schedule) {
	s.stage(samePosition, func() { gatherNonblocking(p, s) })
	p.phase(dag.Bcast, 0, p.offset(p.Members), s)
}

// allgatherChosengatherthenbcast gathers all blocks at member 0, then broadcasts them, both by the algorithms that the
// choice selects.
//
// A. Faraj, X. Yuan: Automatic generation and tuning of MPI collective communication routines. International
// Conference on Supercomputing, 2005 (gather and broadcast).
func allgatherChosengatherthenbcast(p *Participant, s *Schedule) {
	part, all := *p, p.blocks(0, p.Members).bytes
	part.Kind, part.Root = dag.Gather, 0
	p.choose(dag.Gather, all, &part, s)
	p.phase(dag.Bcast, 0, all, s)
}

// allgatherRecdoublingspread is allgatherRecdoubling for any n: members without a partner get the data of a round from
// those of their group that have one, down a binomial tree.
//
// MPICH, src/mpi/coll/allgather/allgather_intra_recursive_doubling.c.
func allgatherRecdoublingspread(p *Participant, s *Schedule) {
	spreadBlocks(p, newExchange(s, noStep))
}

// spreadBlocks appends allgatherRecdoublingspread to an exchange.
func spreadBlocks(p *Participant, x exchange) {
	n, s := p.Members, x.schedule
	for bit := 1; bit < n; bit *= 2 {
		partner, mine, theirs := p.Me^bit, p.Me&^(bit-1), (p.Me^bit)&^(bit-1)
		if theirs >= n {
			continue
		}
		got := p.blocks(theirs, min(bit, n-theirs))
		if partner < n {
			x.round(partner, p.blocks(mine, min(bit, n-mine)), partner, got)
		}
		if theirs+bit > n {
			p.spread(n-theirs, bit, func(to int) {
				x.sent, x.rcvd = s.send(to, got, x.sent, x.rcvd), noStep
			}, func(from int) {
				x.sent, x.rcvd = noStep, s.recv(from, got, x.sent, x.rcvd)
			})
		}
	}
}

// spread calls send or recv for the messages of the member in a binomial tree, in which the first have members of its
// group of bit members, a power of two, send to the others.
func (p *Participant) spread(have, bit int, send, recv func(partner int)) {
	for half := bit / 2; half > 0; half /= 2 {
		partner, limit := p.Me^half, p.Me&^(2*half-1)+have
		switch {
		case p.Me < limit && partner >= limit:
			send(partner)
		case p.Me >= limit && partner < limit:
			recv(partner)
		}
	}
}
