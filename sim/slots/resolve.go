package slots

import (
	"cmp"
	"slices"
)

// removal is a flow that another one has replaced, with its packets.
type removal struct {
	at      uint32
	packets int64
}

// resolve makes flows send the packets proposed to them, in queue order. If the packets of a flow do not fit on an
// edge,
// the sending flow of the lowest rank on that edge is removed, if replaces agrees; then the flow tries again. If it
// disagrees, or if no flow is left there, all removed flows get their packets back. At the end, removed flows send what
// fits, those of the highest rank first.
//
// rank and order are inverse to each other: order[rank[i]] is i.
func (s *slot) resolve(replaces func(i int, rank uint32) bool) {
	for len(s.heaps) < len(s.used) {
		s.heaps = append(s.heaps, nil)
	}
	for d := range s.used {
		s.heaps[d] = s.heaps[d][:0]
	}
	for i, packets := range s.packets {
		if packets == 0 || packets > s.budget(i) {
			continue // it would not fit alone
		}
		path := s.path(i)
		s.removed = s.removed[:0]
		stays := true
		for stays && s.fits(path) < packets {
			stays = s.replace(i, packets, replaces)
		}
		if stays {
			s.send(uint32(i), packets)
			s.refill()
			continue
		}
		for _, r := range s.removed {
			s.send(r.at, r.packets)
		}
	}
}

// replace removes a sending flow from the first edge on the path of a flow that has no room for its packets, with
// compat one from each of them. It returns false if replaces disagrees or no flow sends there.
func (s *slot) replace(i int, packets int64, replaces func(i int, rank uint32) bool) bool {
	for _, d := range s.path(i) {
		if s.room[d] >= packets {
			continue
		}
		rank, is := s.first(d)
		if !is || !replaces(i, rank) {
			return false
		}
		if s.remove(s.order[rank]); !s.compat {
			break
		}
	}
	return true
}

// budget returns the smallest budget on the path of a flow.
func (s *slot) budget(i int) int64 {
	budgets := s.net.budgets[s.part]
	least := int64(maxPackets)
	for _, d := range s.path(i) {
		least = min(least, budgets[int(s.used[d])/s.net.channels])
	}
	return least
}

// send makes a flow send packets that fit.
func (s *slot) send(i uint32, packets int64) {
	s.take[i] = packets
	for _, d := range s.path(int(i)) {
		s.room[d] -= packets
		s.heaps[d].Push(s.rank[i])
	}
}

// remove stops a sending flow. Its entries in heaps become invalid.
func (s *slot) remove(i uint32) {
	s.removed = append(s.removed, removal{i, s.take[i]})
	s.occupy(s.path(int(i)), -s.take[i])
	s.take[i] = 0
}

// first returns the lowest rank of the flows that send on an edge.
func (s *slot) first(d uint32) (rank uint32, is bool) {
	h := &s.heaps[d]
	for len(*h) > 0 {
		if rank = (*h)[0]; s.take[s.order[rank]] > 0 {
			return rank, true
		}
		h.Pop()
	}
	return 0, false
}

// refill makes the removed flows send what fits.
func (s *slot) refill() {
	if s.compat {
		slices.Reverse(s.removed)
	} else if len(s.removed) > 1 {
		slices.SortFunc(s.removed, func(a, b removal) int { return cmp.Compare(s.rank[b.at], s.rank[a.at]) })
	}
	for _, r := range s.removed {
		if packets := min(s.need[r.at], s.fits(s.path(int(r.at)))); packets > 0 {
			s.send(r.at, packets)
		}
	}
}
