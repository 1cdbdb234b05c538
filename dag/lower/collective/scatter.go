package collective

// scatterBinomial is bcastBinomial with the blocks of the receiver's subtree in each message.
//
// E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience.
// Concurrency and Computation: Practice and Experience 19(13), 2007 (minimum spanning tree scatter).
func scatterBinomial(p *Participant, s *Schedule) {
	v := p.relative()
	bit, last := 1, noStep
	for ; bit < p.Members; bit *= 2 {
		if v&bit != 0 {
			last = s.recv(p.absolute(v-bit), p.blocks(p.absolute(v), min(bit, p.Members-v)))
			break
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if child := v + bit; child < p.Members {
			last = s.send(p.absolute(child), p.blocks(p.absolute(child), min(bit, p.Members-child)), last)
		}
	}
}

// scatterLinear sends every block directly from the root, concurrently.
//
// MPICH, src/mpi/coll/scatterv/scatterv_allcomm_linear.c.
func scatterLinear(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		s.recv(p.Root, p.block(p.Me))
		return
	}
	for i := range p.Members {
		if i != p.Root {
			s.send(i, p.block(i))
		}
	}
}

// scatterBinomialascending is scatterBinomial with the sends in ascending order of subtree size.
//
// Open MPI, ompi/mca/coll/base/coll_base_scatter.c (binomial tree).
func scatterBinomialascending(p *Participant, s *Schedule) {
	v, last := p.relative(), noStep
	subtree := p.Members
	if v > 0 {
		subtree = v & -v
		last = s.recv(p.absolute(v-subtree), p.blocks(p.absolute(v), min(subtree, p.Members-v)))
	}
	for bit := 1; bit < subtree; bit *= 2 {
		if child := v + bit; child < p.Members {
			last = s.send(p.absolute(child), p.blocks(p.absolute(child), min(bit, p.Members-child)), last)
		}
	}
}

// scatterNonblocking is scatterLinear with non-blocking sends.
//
// Open MPI, ompi/mca/coll/base/coll_base_scatter.c (linear, non-blocking).
func scatterNonblocking(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		scatterLinear(p, s)
		return
	}
	for i := range p.Members {
		if i != p.Root {
			s.post(i, p.block(i))
		}
	}
}

// scatterSequential is scatterLinear with one send of the root after the other.
//
// Open MPI, ompi/mca/coll/base/coll_base_scatter.c (basic linear).
func scatterSequential(p *Participant, s *Schedule) {
	if p.Me != p.Root {
		scatterLinear(p, s)
		return
	}
	last := noStep
	for i := range p.Members {
		if i != p.Root {
			last = s.send(i, p.block(i), last)
		}
	}
}
