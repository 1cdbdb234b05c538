package rescale

import (
	"maps"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// loop is a run of rounds whose number, and whose partners, depend on the number of ranks: an algorithm of a
// collective.
type loop struct {
	first, length int // in model.order: the first slot, and the number of slots of a round
	rounds        int
	count         count
	body          []progress // of each slot of a round
	counted       bool       // only the number of rounds shows that they depend on the number of ranks
}

// count is the number of rounds as a function of the number of ranks, or of those along a dimension of the grid.
type count struct {
	dim    int  // -1: all ranks
	log    bool // binary logarithm
	times  int  // factor; 0: half
	offset int
}

func (c count) of(s *space) int {
	n := s.ranks
	if c.dim >= 0 {
		n = s.grid[c.dim]
	}
	switch {
	case c.log:
		return bits.Len(uint(n)) - 1 + c.offset
	case c.times == 0:
		return n/2 + c.offset
	}
	return c.times*n + c.offset
}

// progress is how the partner of a slot, its tag and its sizes change from round to round.
type progress struct {
	kind  progressKind
	dim   int     // of call.at
	start int32   // of call.at[dim] in the first round
	step  int32   // of a sum
	tags  int64   // added to the tag
	half  int     // the size: 1 doubles, -1 halves
	size  [2]size // of the first round
}

type progressKind uint8

const (
	still progressKind = iota
	sum
	double
	halve
)

// shape is what the slots of successive rounds have in common.
type shape struct {
	kind        dag.Kind
	sub         dag.Subkind
	rule        rule
	comm        int32
	stream, nic int32
	join        bool
}

const maxBody = 64

// findLoops finds the loops.
func (m *model) findLoops() error {
	n := len(m.order)
	shapes := make([]shape, n)
	for i, s := range m.order {
		t := &m.slots[s]
		shapes[i] = shape{kind: dag.Calc, sub: t.template.Subkind, stream: t.template.Stream, nic: t.template.NIC,
			join: t.join}
		if c := t.call; c != nil {
			shapes[i] = shape{kind: c.kind, sub: c.sub, rule: c.rule, comm: c.comm, stream: c.stream, nic: c.nic}
		}
	}
	// ahead[l][i] would be the number of equal shapes i.. and i+l..; a few lengths of bodies suffice.
	ahead := make([][]int32, maxBody+1)
	for l := 1; l <= maxBody && 2*l <= n; l++ {
		ahead[l] = make([]int32, n+1)
		for i := n - l - 1; i >= 0; i-- {
			if shapes[i] == shapes[i+l] {
				ahead[l][i] = ahead[l][i+1] + 1
			}
		}
	}
	// A part of a run of rounds is no loop if the run is none, whatever its number of rounds.
	var from [maxBody + 1]int
	for i := 0; i < n; {
		found := loop{}
		for l := 1; l <= maxBody && 2*l <= n-i; l++ {
			if int(ahead[l][i]) < l || i < from[l] {
				continue
			}
			x, ok := m.loopAt(i, l, int(ahead[l][i])/l+1)
			if ok {
				found = x
				break
			}
			rounds := x.rounds
			for b := range x.body {
				if x.body[b].kind != still {
					rounds = x.rounds - 1 // the last one may be the first of a loop
					break
				}
			}
			from[l] = i + l*rounds
		}
		if found.rounds == 0 {
			i++
			continue
		}
		m.loops = append(m.loops, found)
		i += found.length * found.rounds
	}
	return nil
}

// loopAt returns the loop of bodies of l slots from slot i on.
func (m *model) loopAt(i, l, most int) (x loop, ok bool) {
	x = loop{first: i, length: l}
	messages := false
	for b := range l {
		c := m.slots[m.order[i+b]].call
		if c != nil && !isMessage(c.kind) {
			return x, false
		}
		messages = messages || c != nil
	}
	if !messages {
		return x, false
	}
	for x.rounds = 1; x.rounds < most && m.extends(&x); x.rounds++ {
	}
	if x.rounds < 2 || x.body == nil {
		return x, false
	}
	moving := progressKind(still)
	dim := -1
	for b := range x.body {
		p := &x.body[b]
		s := &m.slots[m.order[i+b]]
		p.size = [2]size{s.size, s.recv}
		if p.kind != still {
			moving = p.kind
			if s.call.rule == onGrid {
				dim = p.dim
			}
		}
	}
	found := false
	x.count, found = m.countOf(x.rounds, moving, dim, &x)
	return x, found
}

// extends reports whether the next round continues the progress of the loop.
func (m *model) extends(x *loop) bool {
	body := make([]progress, x.length)
	for b := range x.length {
		at := func(round int) *slot { return &m.slots[m.order[x.first+round*x.length+b]] }
		s, next := at(x.rounds-1), at(x.rounds)
		p := &body[b]
		if s.call == nil {
			continue
		}
		if s.always != next.always || s.feature.kind != next.feature.kind || s.feature.dim != next.feature.dim ||
			!maps.Equal(s.table, next.table) {
			return false
		}
		p.start = at(0).call.at[0]
		period := 0
		if s.call.rule == onLine && m.old.ring {
			period = m.old.ranks
		}
		for d := range s.call.at {
			v, w := s.call.at[d], next.call.at[d]
			if v == w {
				continue
			}
			if p.kind != still {
				return false // along two dimensions
			}
			if s.call.rule == onGrid && m.old.periodic[d] {
				period = m.old.grid[d]
			}
			same := func(a, b int32) bool {
				return a == b || period > 0 && modulo(int(a-b), period) == 0
			}
			p.dim, p.start = d, at(0).call.at[d]
			before := progress{kind: still}
			if x.body != nil {
				before = x.body[b]
			}
			step := w - v
			if period > 0 {
				step = shortest(step, period)
			}
			// The first two rounds of 1, 2, ... may be a sum or a doubling: the third tells.
			switch {
			case x.rounds > 2 && before.kind == sum && same(before.step, step):
				p.kind, p.step = sum, before.step
			case x.rounds > 2 && before.kind == double && same(w, 2*v):
				p.kind = double
			case x.rounds > 2 && before.kind == halve && v == 2*w:
				p.kind = halve
			case x.rounds > 2:
				return false
			case x.rounds == 2 && same(w-v, v-p.start):
				p.kind, p.step = sum, step
			case x.rounds == 2 && same(w, 2*v) && same(v, 2*p.start):
				p.kind = double
			case x.rounds == 2 && v == 2*w && p.start == 2*v:
				p.kind = halve
			case x.rounds == 2:
				return false
			default:
				p.kind, p.step = sum, step
			}
		}
		if x.body != nil && p.kind == still && x.body[b].kind != still {
			return false
		}
		p.tags = next.call.tag - s.call.tag
		if x.rounds > 1 && p.tags != x.body[b].tags {
			return false
		}
		half, ok := ratio(s, next)
		if !ok || x.rounds > 1 && half != x.body[b].half {
			return false
		}
		p.half = half
	}
	x.body = body
	return true
}

// ratio returns how the sizes of two slots compare: 0 equal, 1 doubled, -1 halved.
func ratio(s, next *slot) (int, bool) {
	a, b := s.size, next.size
	switch {
	case a.kind != b.kind || s.recv.kind != next.recv.kind:
		return 0, false
	case a.kind != constant:
		return 0, true
	case a.value == b.value:
		return 0, true
	case b.value == 2*a.value:
		return 1, true
	case a.value == 2*b.value:
		return -1, true
	}
	return 0, false
}

// countOf returns the number of rounds as a function of the ranks. Rounds with moving partners are an algorithm if
// their number fits; those with the neighbors on a ring are if it fits exactly, as in ring algorithms.
func (m *model) countOf(rounds int, moving progressKind, dim int, x *loop) (c count, ok bool) {
	c = count{dim: dim, times: 1}
	n := m.old.ranks
	if dim >= 0 {
		n = m.old.grid[dim]
	}
	switch moving {
	case sum:
		for _, c.offset = range []int{-1, 0, -2} {
			if rounds == n+c.offset && rounds > 2 {
				return c, true
			}
		}
		c.times = 0
		for _, c.offset = range []int{0, -1} {
			if rounds == n/2+c.offset && rounds > 3 {
				return c, true
			}
		}
	case double, halve:
		c.log = true
		return c, n == 1<<rounds
	case still:
		// One message in and one out, in one direction: an exchange with both neighbors is an iteration.
		messages, sum := 0, int32(0)
		for b := range x.body {
			s := &m.slots[m.order[x.first+b]]
			if s.call == nil {
				continue
			}
			if s.call.rule != onLine || s.call.at[0] != 1 && s.call.at[0] != -1 || !m.old.ring {
				return c, false
			}
			messages, sum = messages+1, sum+s.call.at[0]
		}
		if messages != 2 || sum != 0 {
			return c, false
		}
		x.counted = true
		for _, c.times = range []int{1, 2} {
			c.offset = -c.times
			if rounds == c.of(&m.old) {
				return c, true
			}
		}
	}
	return c, false
}
