package slots

// saturation is the level at which an edge has no packet left for each of its flows.
type saturation struct {
	level int64
	edge  uint32
}

// maxMin fills all flows equally until they have no packets left or an edge on their path is full (D. Bertsekas and
// R. Gallager, Data Networks, 1992, section 6.5.2, with whole packets). The packets that remain then go to the flows in
// the order of their arrival, one each.
func (s *slot) maxMin() {
	s.sort(func(i int) int64 { return s.need[i] })
	s.list(s.order)
	s.levels, s.counts = zeroed(s.levels, len(s.used)), resized(s.counts, len(s.used))
	s.filling = s.filling[:0]
	for d := range uint32(len(s.used)) {
		if s.counts[d] = int64(len(s.listed(d))); s.counts[d] > 0 {
			s.push(saturation{s.room[d] / s.counts[d], d})
		}
	}
	s.fixed = zeroed(s.fixed, len(s.flows))
	next := 0 // in order
	for len(s.filling) > 0 {
		for next < len(s.order) && s.fixed[s.order[next]] {
			next++
		}
		if next == len(s.order) {
			break
		}
		top := s.filling[0]
		if at := s.saturates(top.edge); at != top.level {
			s.pop()
			if at >= 0 {
				s.push(saturation{at, top.edge})
			}
			continue
		}
		if i := s.order[next]; s.need[i] <= top.level {
			s.fix(i, s.need[i])
			continue
		}
		s.pop()
		for _, i := range s.listed(top.edge) {
			if !s.fixed[i] {
				s.fix(i, top.level)
			}
		}
	}
	s.handOut()
}

// saturates returns the level at which an edge saturates, or -1 if it has no unfinished flows. levels has the level up
// to which the room of the edge is without the packets of its unfinished flows.
func (s *slot) saturates(d uint32) int64 {
	if s.counts[d] == 0 {
		return -1
	}
	return s.levels[d] + s.room[d]/s.counts[d]
}

// fix ends the filling of a flow at a level.
func (s *slot) fix(i uint32, level int64) {
	s.fixed[i], s.take[i] = true, level
	for _, d := range s.path(int(i)) {
		s.room[d] -= (level - s.levels[d]) * s.counts[d]
		s.levels[d] = level
		s.counts[d]--
	}
}

// handOut gives one packet each to the flows for which all edges have room, by arrival, until there is no such flow.
func (s *slot) handOut() {
	s.keys = s.keys[:0]
	for i, flow := range s.flows {
		if s.take[i] < s.need[i] {
			s.keys = append(s.keys, sorted{flow: flow, at: uint32(i)})
		}
	}
	s.sortKeys()
	for left := s.keys; len(left) > 0; {
		more := left[:0]
		for _, k := range left {
			if path := s.path(int(k.at)); s.take[k.at] < s.need[k.at] && s.fits(path) > 0 {
				s.take[k.at]++
				s.occupy(path, 1)
				more = append(more, k)
			}
		}
		left = more
	}
}

// push and pop maintain the min-heap filling.
func (s *slot) push(x saturation) {
	s.filling = append(s.filling, x)
	h, i := s.filling, len(s.filling)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = x
}

func (s *slot) pop() {
	h, x := s.filling, s.filling[len(s.filling)-1]
	h = h[:len(h)-1]
	s.filling = h
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(x) {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = x
	}
}

func (x saturation) before(y saturation) bool {
	return x.level < y.level || x.level == y.level && x.edge < y.edge
}
