// This file implements the entropy policies of senders, which use feedback about earlier packets.

package packet

import "github.com/tracedag/tracedag/sim"

// sprayMode is the entropy policy of a sender.
type sprayMode uint8

const (
	// oblivious cycles through all values, in a new random order each round.
	oblivious sprayMode = iota
	// skipping does the same, but skips values whose packets were marked or trimmed.
	skipping
	// recycling reuses values that returned unmarked, oldest first, and otherwise is skipping; "mixed" in the simulator
	// of the Ultra Ethernet Consortium.
	recycling
	// reps caches the last values that returned unmarked (Bonato et al., REPS: Recycled Entropy Packet Spraying for
	// Adaptive Load Balancing and Failure Mitigation, arXiv:2407.21625).
	reps
)

// sprayer is the configuration of all flows of a transport.
type sprayer struct {
	mode    sprayMode
	count   uint32 // number of entropy values
	penalty struct {
		mark, trim, limit uint8 // number of skips after a mark, after a trim, and their limit
		all               bool  // each of several consecutive skipped values uses up one skip
		edge              bool  // trims at the last hop count, although all paths share it
	}
}

// entropyState is the state of a flow's sender.
type entropyState struct {
	key       uint64 // key of the current order
	next      uint32
	penalties []uint8 // by value: remaining skips; empty: none
	recycled  ring    // for recycling: values that returned unmarked
	random    sim.Random

	// Fields of reps.
	buffer      [repsBuffer]uint32
	fresh       uint8 // bitmap of the unused values in buffer
	head        uint8 // next index to write
	count       uint8
	frozenNext  uint8
	frozen      bool
	frozenUntil uint64
	exploring   uint8 // remaining packets with random values
}

const (
	repsBuffer  = 8
	repsExplore = 16
	repsFreeze  = 10_000_000_000 // in picoseconds
)

func (s *sprayer) open(e *entropyState, key uint64) {
	clear(e.penalties)
	e.recycled.reset()
	*e = entropyState{key: key, penalties: e.penalties, recycled: e.recycled, random: sim.Random(sim.Mix(key))}
}

// choose returns the entropy value of the next packet.
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

// nextInRound returns the next value of the round.
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

// succeeded records that a packet arrived unmarked.
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

// penalize records that a packet was marked or trimmed.
func (s *sprayer) penalize(e *entropyState, x uint32, penalty uint8) {
	if s.mode != skipping && s.mode != recycling {
		return
	}
	if len(e.penalties) == 0 {
		e.penalties = make([]uint8, s.count)
	}
	e.penalties[x] = min(e.penalties[x]+penalty, s.penalty.limit)
}

// timedOut records that a packet was lost, for example after a link failure.
func (s *sprayer) timedOut(e *entropyState, now uint64) {
	if s.mode == reps && !e.frozen && e.exploring == 0 {
		e.frozen, e.frozenUntil = true, now+repsFreeze
	}
}
