package flow

import (
	"cmp"
	"math"
	"slices"
)

// filler has the state of links while all levels are computed at once: by link.
type filler struct {
	rest  []float64  // capacity that flows without a level share
	ratio []float64  // sum of the ratios of these flows
	exact []float64  // ratio when it was last summed
	open  []int32    // number of these flows
	users [][]uint32 // of links that limit each flow: users by descending ratio, from the first that may be open
	tied  []uint32   // links that are full at the same level
}

// refill computes the levels of all flows: it raises the level of the flows without one from link to link, from the
// lowest on, as SimGrid does.
func (s *fluid) refill() {
	s.pending.clear()
	r := &s.rest
	if r.rest == nil {
		n := len(s.links)
		r.rest, r.ratio, r.exact = make([]float64, n), make([]float64, n), make([]float64, n)
		r.open, r.users = make([]int32, n), make([][]uint32, n)
	}
	for f := range s.flows {
		if x := &s.flows[f]; x.active {
			s.record(uint32(f))
			s.limits[f].by = isOpen
		}
	}
	for i := range s.links {
		l := &s.links[i]
		s.levels[i], s.groups[i].known = math.Inf(1), false
		if s.loads[i].used, s.loads[i].stale = 0, 0; len(l.users) == 0 {
			continue
		}
		r.open[i] = int32(len(l.users))
		if l.fat {
			r.sort(uint32(i), l)
		} else {
			s.sum(uint32(i))
		}
		s.pending.set(uint32(i), s.height(uint32(i)))
	}
	for !s.pending.empty() {
		// Flows that other links or their bounds limit leave more to the others.
		i := s.pending.first().number
		s.pending.remove(i)
		switch {
		case r.open[i] == 0:
		case s.first(i) && (s.links[i].fat || s.sum(i) && s.first(i)):
			s.saturate(s.tied(i))
		default:
			s.pending.set(i, s.height(i))
		}
	}
}

// first reports whether a link has the lowest level of those that are not full.
func (s *fluid) first(i uint32) bool {
	return s.pending.empty() || s.height(i) <= s.pending.first().key()
}

// sum sums the use of a link. It returns true.
func (s *fluid) sum(i uint32) bool {
	rest, ratio := s.links[i].capacity, 0.0
	for _, u := range s.links[i].users {
		if x := s.limits[u.flow]; x.by == isOpen {
			ratio += u.ratio
		} else {
			rest -= u.ratio * x.level
		}
	}
	s.rest.rest[i], s.rest.ratio[i], s.rest.exact[i] = rest, ratio, ratio
	return true
}

// isOpen is the link that limits flows without a level.
const isOpen = noLink - 1

// sort prepares a link that limits each flow.
func (r *filler) sort(i uint32, l *link) {
	r.users[i] = r.users[i][:0]
	for k := range l.users {
		r.users[i] = append(r.users[i], uint32(k))
	}
	slices.SortFunc(r.users[i], func(a, b uint32) int {
		return cmp.Or(cmp.Compare(l.users[b].ratio, l.users[a].ratio), cmp.Compare(a, b))
	})
}

// height returns the level at which a link with open flows is full.
func (s *fluid) height(i uint32) float64 {
	l, r := &s.links[i], &s.rest
	if !l.fat {
		if r.rest[i] < cancelled*l.capacity || r.ratio[i] < cancelled*r.exact[i] {
			s.sum(i) // differences of nearly equal numbers are not precise
		}
		return max(0, r.rest[i]) / r.ratio[i]
	}
	for s.limits[l.users[r.users[i][0]].flow].by != isOpen {
		r.users[i] = r.users[i][1:]
	}
	return l.capacity / l.users[r.users[i][0]].ratio
}

// cancelled is the part of a sum below which the difference of the sum and its terms is computed anew.
const cancelled = 1e-3

// tied returns a link and those that are full at the same level.
func (s *fluid) tied(i uint32) []uint32 {
	level, links := s.height(i), append(s.rest.tied[:0], i)
	for !s.pending.empty() && s.pending.first().key() <= level {
		k := s.pending.first().number
		s.pending.remove(k)
		if s.rest.open[k] == 0 {
			continue
		}
		if !s.links[k].fat {
			s.sum(k)
		}
		height := s.height(k)
		if height != level {
			s.pending.set(k, height)
		} else {
			links = append(links, k)
		}
		if height < level {
			break // a rounding error
		}
	}
	s.rest.tied = links
	return links
}

// saturate gives the open flows of links that are full at the same level this level, unless some have a lower bound:
// then only they get theirs, and those whose bound is sameBound above at most.
func (s *fluid) saturate(links []uint32) {
	level, most := s.height(links[0]), -1.0
	for _, i := range links {
		for _, u := range s.links[i].users {
			if x := &s.flows[u.flow]; s.limits[u.flow].by == isOpen && x.most < level {
				most = max(most, x.most)
			}
		}
	}
	for _, i := range links {
		if s.rest.open[i] == 0 {
			continue
		}
		if most < 0 {
			s.levels[i] = level
		}
		for _, u := range s.links[i].users {
			switch x := &s.flows[u.flow]; {
			case s.limits[u.flow].by != isOpen:
			case most < 0:
				s.fix(u.flow, limit{level, i})
			case x.most < most+sameBound:
				s.fix(u.flow, limit{x.most, noLink})
			}
		}
		if s.rest.open[i] > 0 {
			s.pending.set(i, s.height(i))
		}
	}
}

// sameBound is the difference of bounds that SimGrid does not distinguish: its maxmin/precision.
const sameBound = 1e-5

// fix gives an open flow a level.
func (s *fluid) fix(f uint32, to limit) {
	x, r := &s.flows[f], &s.rest
	s.limits[f] = to
	for hop, i := range x.route.links {
		ratio := x.route.weights[hop] * x.inverse
		s.loads[i].used += ratio * to.level
		r.rest[i] -= ratio * to.level
		r.ratio[i] -= ratio
		r.open[i]--
	}
}
