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
