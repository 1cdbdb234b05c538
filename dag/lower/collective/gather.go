package collective

// gatherBinomial is reduceBinomial with the blocks of the sender's subtree in each message.
//
// E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience.
// Concurrency and Computation: Practice and Experience 19(13), 2007 (minimum spanning tree gather).
func gatherBinomial(p *Participant, s *Schedule) {
	v, last := p.relative(), noStep
	for bit := 1; bit < p.Members; bit *= 2 {
		if v&bit != 0 {
			s.send(p.absolute(v-bit), p.blocks(p.absolute(v), min(bit, p.Members-v)), last)
			return
		}
		if child := v + bit; child < p.Members {
			last = s.recv(p.absolute(child), p.blocks(p.absolute(child), min(bit, p.Members-child)), last)
		}
	}
}

// gatherLinear sends every block directly to the root, which posts all receives at once.
//
// MPICH, src/mpi/coll/gatherv/gatherv_allcomm_linear.c.
func gatherLinear(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.send(p.Root, p.block(p.Me))
		return
	}
	for i := range p.Members {
		if i != p.Root {
			s.recv(i, p.block(i))
		}
	}
}

// gatherNonblocking is gatherLinear with non-blocking sends.
//
// Open MPI, ompi/mca/coll/libnbc/nbc_igatherv.c.
func gatherNonblocking(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.post(p.Root, p.block(p.Me))
		return
	}
	gatherLinear(p, s)
}

// gatherSequential is gatherLinear with one receive of the root after the other.
//
// Open MPI, ompi/mca/coll/base/coll_base_gather.c (basic linear).
func gatherSequential(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		gatherLinear(p, s)
		return
	}
	last := noStep
	for i := range p.Members {
		if i != p.Root {
			last = s.recv(i, p.block(i), last)
		}
	}
}

// gatherLinearsync is gatherLinear in two segments per block, in the order of the members: the root posts the receive
// of the first segment, sends an empty message, at which the member begins to send, posts the receive of the second
// segment, and waits for the first one before it turns to the next member. The first segment is the first 32 KiB of a
// block above 90 KiB, else the first 1 KiB.
//
// Open MPI, ompi/mca/coll/base/coll_base_gather.c (linear with synchronization).
func gatherLinearsync(p *Participant, s *Schedule) {
	const small, large, limit = 1 << 10, 32 << 10, 90 << 10
	segments := func(member int) (first, second span) {
		block, size := p.block(member), int64(small)
		if block.bytes > limit {
			size = large
		}
		size = min(size, block.bytes)
		return span{block.from, size}, span{block.from + size, block.bytes - size}
	}
	if p.Me != p.Root {
		first, second := segments(p.Me)
		s.send(p.Root, second, s.send(p.Root, first, s.recv(p.Root, span{})))
		return
	}
	arrived := noStep
	for i := range p.Members {
		if i == p.Root {
			continue
		}
		first, second := segments(i)
		begun := s.await(arrived, noStep) // the signal must not wait for the same step as the receive before it
		received := s.expect(i, first, arrived)
		signal := s.send(i, span{}, begun)
		s.follow(signal)
		s.expect(i, second, signal)
		arrived = s.await(received, signal)
		s.follow(arrived)
	}
}
