// This file defines the sequences of virtual channels of dragonflies. Each hop of a packet takes the first channel of
// its kind behind that of the previous hop, so packets only wait for packets that are later in the sequence.

package flit

import "strings"

// sequence is the order of the virtual channels of a routing. The stage of a packet is the number of channels up to
// and including that of its last hop; 0: none.
type sequence struct {
	kinds []uint8 // by place: localPort or globalPort
	vcs   []uint8 // by place: number of the channel among those of its kind

	hops [globalPort + 1][8]step // by kind and stage
}

// step is the result of a hop: the stage after it, and its channel.
type step struct{ stage, vc uint8 }

// noStage is the stage of a hop that the sequence does not have.
const noStage = 255

// sequenceOf returns the sequence of a routing in dragonflies.
func sequenceOf(r Routing) *sequence {
	kinds := "lgl"
	switch r {
	case Valiant, UGAL, UGALGlobal, Piggyback, Opportunistic:
		kinds = "lglgl"
	case ValiantAny, CurrentGlobal, RandomGlobal:
		kinds = "lgllgl"
	case Progressive:
		kinds = "llgllgl"
	}
	s := &sequence{}
	var count [globalPort + 1]uint8
	for _, letter := range kinds {
		kind := uint8(localPort)
		if letter == 'g' {
			kind = globalPort
		}
		s.kinds, s.vcs = append(s.kinds, kind), append(s.vcs, count[kind])
		count[kind]++
	}
	for kind := range s.hops {
		next := step{noStage, 0}
		for stage := len(s.hops[kind]) - 1; stage >= 0; stage-- {
			if stage < len(s.kinds) && int(s.kinds[stage]) == kind {
				next = step{uint8(stage) + 1, s.vcs[stage]}
			}
			s.hops[kind][stage] = next
		}
	}
	return s
}

// count returns the number of channels of a kind.
func (s *sequence) count(kind uint8) int { return strings.Count(string(s.kinds), string([]byte{kind})) }

// hop returns the stage after a hop, and its channel. The stage is noStage if the sequence does not have the hop.
func (s *sequence) hop(stage, kind uint8) (next, vc uint8) {
	if stage == noStage {
		return noStage, 0
	}
	h := s.hops[kind][stage%8]
	return h.stage, h.vc
}

// allows reports whether the sequence has all hops behind a stage.
func (s *sequence) allows(stage uint8, hops ...uint8) bool {
	for _, kind := range hops {
		if stage, _ = s.hop(stage, kind); stage == noStage {
			return false
		}
	}
	return stage != noStage
}

// before returns the last channel of local links up to a stage, and false if there is none.
func (s *sequence) before(stage uint8) (vc uint8, ok bool) {
	for i := int(stage) - 1; i >= 0; i-- {
		if s.kinds[i] == localPort {
			return s.vcs[i], true
		}
	}
	return 0, false
}
