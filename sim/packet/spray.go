// This file is how senders choose the entropies of packets by what they hear of those that they have used.

package packet

import "github.com/tracedag/tracedag/sim"

// spraying is how a sender chooses entropies.
type sprayMode uint8

const (
	// oblivious takes all in turn, in an order that is drawn anew for every round.
	oblivious sprayMode = iota
	// skipping does the same, and skips those that had marks or trimmed packets.
	skipping
	// recycling takes one that came back without a mark if there is one, the oldest first, and skips otherwise: "mixed" in
	// the simulator of the Ultra Ethernet Consortium.
	recycling
	// reps keeps the last few that came back without a mark: Bonato et al., REPS: Recycled Entropy Packet Spraying for
	// Adaptive Load Balancing and Failure Mitigation, arXiv:2407.21625.
	reps
)

// sprays is how all flows of a transport choose entropies.
type sprayer struct {
	mode    sprayMode
	count   uint32 // of entropies
	penalty struct {
		mark, trim, most uint8 // how often an entropy is skipped then, and at most
		all              bool  // those that are skipped one after the other each count
		edge             bool  // trims at the port to the destination count, where all paths end
	}
}

// entropies is what a flow's sender knows of its entropies.
type entropyState struct {
	key       uint64 // of the order at hand
	next      uint32
	penalties []uint8 // by entropy; none while there were none
	recycled  ring    // recycling: those that came back
	random    sim.Random

	// reps
	buffer      [repsBuffer]uint32
	fresh       uint8 // bits of those in the buffer that were not used again
	head        uint8 // where the next is put
	count       uint8
	frozenNext  uint8
	frozen      bool
	frozenUntil uint64
	exploring   uint8 // so many packets are sent at random
}

const (
	repsBuffer  = 8
	repsExplore = 16
	repsFreeze  = 10_000_000_000 // ps
)

func (s *sprayer) open(e *entropyState, key uint64) {
	clear(e.penalties)
	e.recycled.reset()
	*e = entropyState{key: key, penalties: e.penalties, recycled: e.recycled, random: sim.Random(sim.Mix(key))}
}

// choose returns the entropy of the next packet.
func (s *sprayer) choose(e *entropyState) uint32 {
	switch s.mode {
	case oblivious:
		return s.nextInRound(e)
	case recycling:
		if e.recycled.count > 0 {
			return e.recycled.pop()
		}
	case reps:
		return s.nextREPS(e)
	}
	x := s.nextInRound(e)
	if len(e.penalties) == 0 {
		return x
	}
	for i := uint32(0); e.penalties[x] > 0 && (s.penalty.all || i <= s.count); i++ {
		if i == 0 || s.penalty.all {
			e.penalties[x]--
		}
		x = s.nextInRound(e)
	}
	return x
}

// step returns one entropy after the other, each once in a round.
func (s *sprayer) nextInRound(e *entropyState) uint32 {
	x := shuffled(e.next, s.count, e.key)
	if e.next++; e.next == s.count {
		e.next = 0
		e.key = e.random.Next()
	}
	return x
}

func (s *sprayer) nextREPS(e *entropyState) uint32 {
	switch {
	case e.exploring > 0:
		e.exploring--
	case e.frozen && e.count > 0:
		x := e.buffer[e.frozenNext]
		e.fresh &^= 1 << e.frozenNext
		e.frozenNext = (e.frozenNext + 1) % e.count
		return x
	case !e.frozen && e.fresh != 0:
		i := e.head
		for e.fresh>>i&1 == 0 {
			i = (i + 1) % repsBuffer
		}
		e.fresh &^= 1 << i
		return e.buffer[i]
	}
	return e.random.Below(s.count)
}

// worked notes that a packet got through, unmarked.
func (s *sprayer) succeeded(e *entropyState, x uint32, now uint64) {
	switch s.mode {
	case recycling:
		e.recycled.push(x)
	case reps:
		s.thaw(e, now)
		e.buffer[e.head] = x
		e.fresh |= 1 << e.head
		e.head = (e.head + 1) % repsBuffer
		e.count = min(e.count+1, repsBuffer)
	}
}

func (s *sprayer) thaw(e *entropyState, now uint64) {
	if e.frozen && now > e.frozenUntil {
		e.frozen, e.fresh, e.head, e.count, e.frozenNext = false, 0, 0, 0, 0
		e.exploring = repsExplore
	}
}

// failed notes that a packet was marked or trimmed: it is to be skipped as often as the penalty says.
func (s *sprayer) penalize(e *entropyState, x uint32, penalty uint8) {
	if s.mode != skipping && s.mode != recycling {
		return
	}
	if len(e.penalties) == 0 {
		e.penalties = make([]uint8, s.count)
	}
	e.penalties[x] = min(e.penalties[x]+penalty, s.penalty.most)
}

// timedOut notes that a packet was lost without a word, as where a link has failed.
func (s *sprayer) timedOut(e *entropyState, now uint64) {
	if s.mode == reps && !e.frozen && e.exploring == 0 {
		e.frozen, e.frozenUntil = true, now+repsFreeze
	}
}
