package rescale

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/memory"
)

// counts is how the bytes that a member of a communicator sends to another one in an alltoallv depend on the
// displacement between them.
type counts struct {
	line    bool // the displacement is that in the order of members, otherwise on the grid
	ring    bool // the line is periodic
	near    map[vector]int64
	others  int64 // to all other members
	longest vector
}

// members returns the members of a communicator of a kind as a space whose ranks are their places in it.
func (s *space) members(kind int32, c *counts) space {
	_, size := s.memberOf(kind, 0)
	m := space{ranks: size, grid: []int{size}, periodic: []bool{c.ring}}
	if c.line {
		return m
	}
	m.grid, m.periodic = nil, nil
	for d, n := range s.grid {
		if mask := kind >> 8; mask == 0 || mask&(1<<d) != 0 {
			m.grid, m.periodic = append(m.grid, n), append(m.periodic, s.periodic[d])
		}
	}
	return m
}

// fitCounts finds out how the counts of the alltoallv in a slot depend on the ranks. It returns nil if no op has
// counts, or they follow no rule, which unknown reports.
func (m *model) fitCounts(i int32) (found *counts, unknown bool) {
	c := m.slots[i].call
	if c == nil || c.kind != dag.Coll || c.sub != dag.Alltoallv {
		return nil, false
	}
	_, size := m.old.memberOf(c.comm, 0)
	sent := make([][]int64, m.old.ranks)
	some := false
	for rank, op := range m.opAt[i] {
		if op < 0 {
			continue
		}
		r := m.from.Ranks[rank]
		list, has := attr.ParseCounts(r.Attrs.At(int(op)))
		some = some || has
		if sent[rank] = list.Send; !has {
			sent[rank] = make([]int64, size)
			for to := range sent[rank] {
				sent[rank][to] = r.Bytes.At(int(op)) / int64(size)
			}
		} else if len(list.Send) != size {
			return nil, true
		}
	}
	if !some {
		return nil, false
	}
	shapes := []counts{{line: true, ring: true}, {line: true}}
	if len(m.old.grid) > 1 {
		shapes = append(shapes, counts{})
	}
	for _, shape := range shapes {
		if m.countsFit(c.comm, sent, &shape) {
			return &shape, false
		}
	}
	return nil, true
}

// countsFit completes the counts if they are a function of the displacement that is constant from nearly half of each
// dimension on.
func (m *model) countsFit(kind int32, sent [][]int64, c *counts) bool {
	s := m.old.members(kind, c)
	values := map[vector]int64{}
	for rank, list := range sent {
		from, _ := m.old.memberOf(kind, rank)
		for to, bytes := range list {
			v := s.between(from, to)
			for d, n := range s.grid {
				if s.periodic[d] && 2*int(v[d]) == n {
					v[d] = int32(n / 2) // either way
				}
			}
			if known, twice := values[v]; twice && known != bytes {
				return false
			}
			values[v] = bytes
		}
	}
	far := func(v vector) bool {
		for d, n := range s.grid {
			reach := n - 1
			if s.periodic[d] {
				reach = n / 2
			}
			if n > 2 && int(max(v[d], -v[d])) == reach {
				return true
			}
		}
		return false
	}
	c.others = -1
	for v, bytes := range values {
		if far(v) {
			if c.others >= 0 && bytes != c.others {
				return false
			}
			c.others = bytes
		}
	}
	if c.others < 0 {
		return false
	}
	c.near = map[vector]int64{}
	for v, bytes := range values {
		if bytes == c.others {
			continue
		}
		c.near[v] = bytes
		for d := range v {
			c.longest[d] = max(c.longest[d], v[d], -v[d])
		}
	}
	return 2*len(c.near) <= len(values)+1
}

// checkCounts drops the rules of counts that the new communicators are too short for, and returns an error if there is
// no memory for the counts.
func (g *target) checkCounts() error {
	g.counted = make([]*counts, len(g.slots))
	calls, members := int64(0), 0
	for i := range g.slots {
		s := &g.slots[i]
		if s.counts == nil {
			continue
		}
		space := g.new.members(s.call.comm, s.counts)
		fits := true
		for d, n := range space.grid {
			fits = fits && 2*int(s.counts.longest[d]) < n
		}
		if fits {
			g.counted[i] = s.counts
			calls, members = calls+1, max(members, space.ranks)
		}
	}
	const digits = 4 // and more, of two numbers
	return memory.Check(g.ctx, "counts of partners", digits*calls, int64(members), int64(g.new.ranks))
}

// setCounts sets the bytes by partner of an alltoallv: those of the recorded rank on the same number of ranks.
func (g *target) setCounts(op *dag.Op, slot int32, rank int) {
	if g.old.ranks == g.new.ranks {
		if at := g.opAt[slot][rank]; at >= 0 {
			if c, has := attr.ParseCounts(g.from.Ranks[rank].Attrs.At(int(at))); has {
				op.Attrs = attr.WithCounts(op.Attrs, &c)
			}
		}
		return
	}
	c := g.counted[slot]
	if c == nil {
		return
	}
	kind := g.slots[slot].call.comm
	s := g.new.members(kind, c)
	me, _ := g.new.memberOf(kind, rank)
	before, after := int64(g.old.members(kind, c).ranks), int64(s.ranks)
	p, n := int64(1), int64(1)
	if g.o.Scaling == Strong {
		p, n = int64(g.old.ranks), int64(g.new.ranks)
	}
	bytes := func(from, to int) int64 {
		if near, known := c.near[s.between(from, to)]; known {
			return scaleBytes(near, p, n)
		}
		const small = 16 // bytes that count others
		if c.others <= small {
			return c.others
		}
		return scaleBytes(scaleBytes(c.others, before, after), p, n)
	}
	list := attr.Counts{Send: make([]int64, s.ranks), Recv: make([]int64, s.ranks)}
	op.Bytes, op.RecvBytes = 0, 0
	for other := range s.ranks {
		list.Send[other], list.Recv[other] = bytes(me, other), bytes(other, me)
		op.Bytes += list.Send[other]
		op.RecvBytes += list.Recv[other]
	}
	if !list.Even() {
		op.Attrs = attr.WithCounts(op.Attrs, &list)
	}
}
