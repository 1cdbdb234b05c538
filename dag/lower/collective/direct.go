package collective

import "github.com/tracedag/tracedag/dag"

// direct are the algorithms of SMPI for non-blocking collectives, under every selector: all messages of a member are
// non-blocking and begin at once; no later message waits for an earlier one.
//
// SimGrid 3.32, src/smpi/colls/smpi_nbc_impl.cpp.
var direct = func() (all [dag.NumSubkinds]selection) {
	for kind, plan := range map[dag.Subkind]func(p *Participant, s *Schedule){
		dag.Barrier:       barrierDirect,
		dag.Bcast:         bcastDirect,
		dag.Reduce:        reduceDirect,
		dag.Allreduce:     allreduceDirect,
		dag.Gather:        gatherDirect,
		dag.Gatherv:       gatherDirect,
		dag.Scatter:       scatterDirect,
		dag.Scatterv:      scatterDirect,
		dag.Allgather:     allgatherOrdered,
		dag.Allgatherv:    allgatherOrdered,
		dag.Alltoall:      alltoallLinearreverse,
		dag.Alltoallv:     alltoallOrdered,
		dag.ReduceScatter: reducescatterDirect,
		dag.Scan:          scanOrdered,
		dag.Exscan:        scanOrdered,
	} {
		all[kind].algorithm = &algorithm{kind: kind, name: "direct", plan: plan}
	}
	return all
}()

// idle are algorithms without messages.
var idle = func() (all [dag.NumSubkinds]selection) {
	for _, kind := range allCollectives {
		all[kind].algorithm = &algorithm{kind: kind, name: "idle", plan: func(*Participant, *Schedule) {}}
	}
	return all
}()

// partners calls each for all other members in their order if the participant is the given one, else for that one only.
func (p *Participant) partners(center int, each func(other int)) {
	if p.Me != center {
		each(center)
		return
	}
	for other := range p.Members {
		if other != center {
			each(other)
		}
	}
}

// barrierDirect exchanges a message with the first member, which exchanges one with every other member. Only the first
// member waits for all others.
func barrierDirect(p *Participant, s *Schedule) {
	p.partners(0, func(other int) {
		s.post(other, p.whole())
		s.follow(s.absorb(other, p.whole()))
	})
}

// fromRoot sends data from the root to every other member.
func (p *Participant) fromRoot(s *Schedule, data func(member int) span) {
	p.partners(p.Root, func(other int) {
		if p.Me == p.Root {
			s.post(other, data(other))
		} else {
			s.expect(other, data(p.Me))
		}
	})
}

// toRoot sends data from every other member to the root, which takes it by receive.
func (p *Participant) toRoot(s *Schedule, data func(member int) span,
	receive func(from int, x span, after ...int32) int32) {
	p.partners(p.Root, func(other int) {
		if p.Me == p.Root {
			receive(other, data(other))
		} else {
			s.post(other, data(p.Me))
		}
	})
}

// bcastDirect sends the vector from the root to every other member.
func bcastDirect(p *Participant, s *Schedule) {
	p.fromRoot(s, func(int) span { return p.whole() })
}

// scatterDirect sends the block of every other member from the root to it.
func scatterDirect(p *Participant, s *Schedule) {
	p.fromRoot(s, p.block)
}

// reduceDirect sends the vector of every other member to the root.
func reduceDirect(p *Participant, s *Schedule) {
	p.toRoot(s, func(int) span { return p.whole() }, s.absorb)
}

// gatherDirect sends the block of every other member to the root.
func gatherDirect(p *Participant, s *Schedule) {
	p.toRoot(s, p.block, s.expect)
}

// allreduceDirect sends the vector of every member to every other one.
func allreduceDirect(p *Participant, s *Schedule) {
	for other := range p.Members {
		if other != p.Me {
			s.setRelayed(s.post(other, p.whole()), ownData)
			s.follow(s.absorb(other, p.whole()))
		}
	}
}

// reducescatterDirect sends every other member its block of the vector.
func reducescatterDirect(p *Participant, s *Schedule) {
	for other := range p.Members {
		if other != p.Me {
			s.post(other, p.block(other))
			s.follow(s.absorb(other, p.block(p.Me)))
		}
	}
}
