// This file is how senders choose the entropies of packets by what they hear of those that they have used.

package packet

import "github.com/tracedag/tracedag/sim"

// spraying is how a sender chooses entropies.
type spraying uint8

const (
	// oblivious takes all in turn, in an order that is drawn anew for every round.
	oblivious spraying = iota
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
type sprays struct {
	how     spraying
	count   uint32 // of entropies
	penalty struct {
		mark, trim, most uint8 // how often an entropy is skipped then, and at most
		all              bool  // those that are skipped one after the other each count
		edge             bool  // trims at the port to the destination count, where all paths end
	}
}

// entropies is what a flow's sender knows of its entropies.
type entropies struct {
	key       uint64 // of the order at hand
	next      uint32
	penalties []uint8 // by entropy; none while there were none
	good      ring    // recycling: those that came back
	random    sim.Random

	// reps
	buffer      [repsBuffer]uint32
	fresh       uint8 // bits of those in the buffer that were not used again
	head        uint8 // where the next is put
	count       uint8
	frozenNext  uint8
	frozen      bool
	frozenUntil uint64
	explore     uint8 // so many packets are sent at random
}

const (
	repsBuffer  = 8
	repsExplore = 16
	repsFreeze  = 10_000_000_000 // ps
)

func (s *sprays) open(e *entropies, key uint64) {
	clear(e.penalties)
	e.good.reset()
	*e = entropies{key: key, penalties: e.penalties, good: e.good, random: sim.Random(sim.Mix(key))}
}

// choose returns the entropy of the next packet.
func (s *sprays) choose(e *entropies) uint32 {
	switch s.how {
	case oblivious:
		return s.step(e)
	case recycling:
		if e.good.count > 0 {
			return e.good.take()
		}
	case reps:
		return s.repeat(e)
	}
	x := s.step(e)
	if len(e.penalties) == 0 {
		return x
	}
	for i := uint32(0); e.penalties[x] > 0 && (s.penalty.all || i <= s.count); i++ {
		if i == 0 || s.penalty.all {
			e.penalties[x]--
		}
		x = s.step(e)
	}
	return x
}

// step returns one entropy after the other, each once in a round.
func (s *sprays) step(e *entropies) uint32 {
	x := shuffled(e.next, s.count, e.key)
	if e.next++; e.next == s.count {
		e.next = 0
		e.key = e.random.Next()
	}
	return x
}

func (s *sprays) repeat(e *entropies) uint32 {
	switch {
	case e.explore > 0:
		e.explore--
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
func (s *sprays) worked(e *entropies, x uint32, now uint64) {
	switch s.how {
	case recycling:
		e.good.put(x)
	case reps:
		s.thaw(e, now)
		e.buffer[e.head] = x
		e.fresh |= 1 << e.head
		e.head = (e.head + 1) % repsBuffer
		e.count = min(e.count+1, repsBuffer)
	}
}

func (s *sprays) thaw(e *entropies, now uint64) {
	if e.frozen && now > e.frozenUntil {
		e.frozen, e.fresh, e.head, e.count, e.frozenNext = false, 0, 0, 0, 0
		e.explore = repsExplore
	}
}

// failed notes that a packet was marked or trimmed: it is to be skipped as often as the penalty says.
func (s *sprays) failed(e *entropies, x uint32, penalty uint8) {
	if s.how != skipping && s.how != recycling {
		return
	}
	if len(e.penalties) == 0 {
		e.penalties = make([]uint8, s.count)
	}
	e.penalties[x] = min(e.penalties[x]+penalty, s.penalty.most)
}

// timedOut notes that a packet was lost without a word, as where a link has failed.
func (s *sprays) timedOut(e *entropies, now uint64) {
	if s.how == reps && !e.frozen && e.explore == 0 {
		e.frozen, e.frozenUntil = true, now+repsFreeze
	}
}
