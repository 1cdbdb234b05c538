package slots

import (
	"cmp"
	"slices"
)

// This file has the rules of TrafPy's schedulers (trafpy/manager/src/schedulers, commit eaf6669) that differ from those
// of the paper and of scheduler.go, for --compat trafpy:
//
//   - ff, random: an edge may draw a flow again, and then proposes all its packets once more. The flow occupies the
//     room of all proposed packets, also of those that it does not have.
//   - ff: a flow that only wide edges propose, with more packets than the narrowest has room in a slot, sends nothing.
//   - srpt: a flow also replaces flows of equal remaining time. Equal ones are in queue order.
//   - srpt, random: a flow removes others from each full edge on its path in turn. Removed flows return in the order
//     opposite to their removal.
//   - fs: an edge also stops when the rest of its budget is equal to its number of flows.

// proposeRepeatedly draws flows on each edge with equal probability, also those drawn before, and proposes all their
// packets, until the budget is full or all flows are drawn.
func (s *slot) proposeRepeatedly() {
	s.levels = resized(s.levels, len(s.flows))
	for d := range s.used {
		flows, room := s.listed(uint32(d)), s.room[d]
		for _, i := range flows {
			s.levels[i] = 0
		}
		for left := len(flows); left > 0 && room > 0; {
			i := flows[s.draw.IntN(len(flows))]
			if s.levels[i] == 0 {
				left--
			}
			packets := min(s.need[i], room)
			s.levels[i] += packets
			room -= packets
		}
		for _, i := range flows {
			s.propose(i, s.levels[i])
		}
	}
}

// firstFitOfTrafPy makes flows send the packets proposed to them, or what fits, in queue order.
func (s *slot) firstFitOfTrafPy() {
	sends := false
	for i, packets := range s.packets {
		switch {
		case packets > s.budget(i):
			continue
		case packets > s.fits(s.path(i)):
			packets = s.need[i]
		}
		s.takeUpTo(i, packets)
		sends = sends || s.take[i] > 0
	}
	if s.clip(); !sends { // on networks of links of different rates
		s.takeUpTo(0, s.need[0])
	}
}

// clip limits the packets of each flow to those that it has left.
func (s *slot) clip() {
	for i, need := range s.need {
		s.take[i] = min(s.take[i], need)
	}
}

// orderByQueue puts the sorted flows with equal keys in queue order.
func (s *slot) orderByQueue() {
	slices.SortFunc(s.keys, func(a, b sorted) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	for k := range s.keys {
		s.order[k] = s.keys[k].at
	}
}

// costs returns the keys of the last sort by position.
func (s *slot) costs() []int64 {
	s.levels = resized(s.levels, len(s.flows))
	for _, k := range s.keys {
		s.levels[k.at] = k.key
	}
	return s.levels
}
